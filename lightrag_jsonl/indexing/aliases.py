"""Merges and unmerges names: which name stands for which entity, as decided by a person."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.text import clean_name, name_key
from lightrag_jsonl.indexing.changes import IndexChange
from lightrag_jsonl.indexing.merging import GraphMerger, stored_at
from lightrag_jsonl.storage.rows import Aliases
from lightrag_jsonl.storage.store import Reader


def targets(aliases: Aliases) -> dict[str, str]:
    """For each merged key, the key at the end of its links."""
    found = {}
    for key in aliases.links:
        end = key
        while end in aliases.links:
            end = aliases.links[end]
        found[key] = end
    return found


def merged(reader: Reader, names: Iterable[str], into: str) -> Aliases:
    """The aliases once several names, and all that stands for them, stand for `into`.

    `NotFoundError` lists the names that no entity has; `ConfigError` if nothing of `into` is left
    after it was cleaned like names in texts.
    """
    display = clean_name(into)
    if not name_key(display):
        raise ConfigError("the name that they are merged into is empty")
    keys, known = {name_key(name): name for name in names}, reader.aliases()
    found, target = reader.entity_ids(keys), name_key(display)
    if missing := [name for key, name in keys.items() if key not in found]:
        raise NotFoundError(f"no such entity: {', '.join(missing)}")
    links = {key: end for key, end in known.links.items() if key != target}  # no circles
    links |= dict.fromkeys(keys.keys() - {target}, target)
    displays = {**known.displays, target: display}
    return Aliases(links, _used(displays, links, alone=displays.keys() - links.keys()))


def unmerged(reader: Reader, names: Iterable[str]) -> Aliases:
    """The aliases once names stand for themselves again; what was merged into them before stays so.

    A name that is only the target of merges has them undone. `NotFoundError` lists the names that
    are not merged.
    """
    keys, known = {name_key(name): name for name in names}, reader.aliases()
    ends = keys.keys() - known.links.keys()
    if strangers := [keys[key] for key in keys if key in ends - known.displays.keys()]:
        raise NotFoundError(f"not merged into another entity: {', '.join(strangers)}")
    links = {key: end for key, end in known.links.items() if key not in keys and end not in ends}
    alone = known.displays.keys() - set(known.links.values()) - keys.keys()
    return Aliases(links, _used(known.displays, links, alone=alone))


def _used(
    displays: Mapping[str, str], links: Mapping[str, str], *, alone: Collection[str]
) -> dict[str, str]:
    """The names of keys that links lead to, and of those in `alone`, which were only renamed."""
    kept = {*links.values(), *alone}
    return {key: name for key, name in displays.items() if key in kept}


def plan_renaming(new_aliases: Callable[[Reader], Aliases], reader: Reader) -> IndexChange:
    """Change which names stand for which entity; only the mentions of these are merged anew."""
    before, after = reader.aliases(), new_aliases(reader)
    old, new = targets(before), targets(after)
    merger = GraphMerger(reader, reader.next_ids(), new)
    renamed = {key for key, _ in {*before.displays.items()} ^ {*after.displays.items()}}
    merger.start_with(reader.entity_rows(keys=renamed).values(), ())
    moved = {key for key in {*old, *new} if old.get(key, key) != new.get(key, key)}
    ends = {old.get(key, key) for key in moved} | {new.get(key, key) for key in moved}
    entities = reader.entity_mentions(entities=reader.entity_rows(keys=ends))
    names = {name_key(one.mention.name) for one in entities}
    chunks = reader.chunks({one.chunk for one in entities})
    relations = [
        one
        for one in reader.relation_mentions(chunks=chunks)
        if not names.isdisjoint((name_key(one.mention.source), name_key(one.mention.target)))
    ]
    merger.remove(entities, relations)
    created = {row: stored_at(chunk) for row, chunk in chunks.items()}
    merger.add(entities, relations, created)
    return IndexChange(graph=merger.finish(after.displays), aliases=after)
