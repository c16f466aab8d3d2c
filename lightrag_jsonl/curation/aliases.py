"""Merges of names by a person: which name keys stand for which entity."""

from collections.abc import Callable, Iterable, Mapping

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.names import clean_name, name_key
from lightrag_jsonl.indexing.merging import GraphMerger, IndexChange, stored_times
from lightrag_jsonl.indexing.overrides import mentions_of, name_keys
from lightrag_jsonl.storage.rows import Aliases, EntityMentionRow, RelationMentionRow
from lightrag_jsonl.storage.views import StoreView


def aliases_of(links: Mapping[str, str], displays: Mapping[str, str]) -> Aliases:
    """Merges of names, with the display names of merge targets and of renamed entities."""
    displayed_keys = {*links.values(), *displays.keys() - links.keys()}
    return Aliases(
        links=dict(links),
        displays={key: name for key, name in displays.items() if key in displayed_keys},
    )


def merged_aliases(view: StoreView, names: Iterable[str], into: str) -> Aliases:
    """The aliases after a merge: several names, with their own aliases, stand for `into`.

    `NotFoundError` lists names without an entity; `ConfigError` if nothing of `into` is left after
    it was cleaned like names in texts.
    """
    display = clean_name(into)
    target = name_key(display)
    if not target:
        raise ConfigError("the name that they are merged into is empty")
    names_by_key = {name_key(name): name for name in names}
    entity_ids = view.entity_ids(names_by_key)
    missing = [name for key, name in names_by_key.items() if key not in entity_ids]
    if missing:
        raise NotFoundError(f"no such entity: {', '.join(missing)}")
    aliases = view.aliases()
    links = {key: end for key, end in aliases.links.items() if key != target}  # no circles
    for key in names_by_key.keys() - {target}:
        links[key] = target
    return aliases_of(links, {**aliases.displays, target: display})


def unmerged_aliases(view: StoreView, names: Iterable[str]) -> Aliases:
    """The aliases once names stand for themselves again; earlier merges into the names stay.

    For the target of merges, all these merges are undone. `NotFoundError` lists names without a
    merge.
    """
    aliases = view.aliases()
    names_by_key = {name_key(name): name for name in names}
    targets = names_by_key.keys() - aliases.links.keys()
    not_merged = [
        name for key, name in names_by_key.items() if key in targets and key not in aliases.displays
    ]
    if not_merged:
        raise NotFoundError(f"not merged into another entity: {', '.join(not_merged)}")
    links = {
        key: end
        for key, end in aliases.links.items()
        if key not in names_by_key and end not in targets
    }
    renamed = aliases.displays.keys() - set(aliases.links.values()) - names_by_key.keys()
    displayed_keys = {*links.values(), *renamed}
    return Aliases(
        links=links,
        displays={key: name for key, name in aliases.displays.items() if key in displayed_keys},
    )


def plan_renaming(new_aliases: Callable[[StoreView], Aliases], view: StoreView) -> IndexChange:
    """Change the merges of names; only the mentions of the affected entities are merged again."""
    before = view.aliases()
    after = new_aliases(view)
    merger = GraphMerger(view, view.next_ids(), after.targets)
    renamed = {key for key, _ in {*before.displays.items()} ^ {*after.displays.items()}}
    merger.start_with(view.entity_rows(keys=renamed).values(), ())
    entity_mentions, relation_mentions = _moved_mentions(view, before.targets, after.targets)
    merger.remove(entity_mentions, relation_mentions)
    created = stored_times(view, entity_mentions, relation_mentions)
    merger.add(entity_mentions, relation_mentions, created)
    return IndexChange(graph=merger.finish(after.displays), aliases=after)


def _moved_mentions(
    view: StoreView, before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[list[EntityMentionRow], list[RelationMentionRow]]:
    """The mentions of entities that lose or get a name, and of the relations of these entities."""
    moved = {key for key in {*before, *after} if before.get(key, key) != after.get(key, key)}
    entity_keys = {before.get(key, key) for key in moved} | {after.get(key, key) for key in moved}
    entity_mentions = mentions_of(view, entity_keys, before)
    names = {key for row in entity_mentions for key in name_keys(row.mention, {})}
    chunks = {row.chunk for row in entity_mentions}
    relation_mentions = [
        row
        for row in view.relation_mentions(chunks=chunks)
        if not names.isdisjoint(name_keys(row.mention, {}))
    ]
    return entity_mentions, relation_mentions
