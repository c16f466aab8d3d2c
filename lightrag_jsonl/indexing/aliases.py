"""Merges of names, as decided by a person: which name keys stand for which entity."""

from collections.abc import Iterable, Mapping

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.names import clean_name, name_key
from lightrag_jsonl.storage.rows import Aliases
from lightrag_jsonl.storage.views import StoreView


def targets(aliases: Aliases) -> dict[str, str]:
    """For each merged key, the key at the end of its links."""
    found = {}
    for key in aliases.links:
        end = key
        while end in aliases.links:
            end = aliases.links[end]
        found[key] = end
    return found


def merged(view: StoreView, names: Iterable[str], into: str) -> Aliases:
    """The aliases once several names, and all that stands for them, stand for `into`.

    `NotFoundError` lists the names that no entity has; `ConfigError` if nothing of `into` is left
    after it was cleaned like names in texts.
    """
    display = clean_name(into)
    if not name_key(display):
        raise ConfigError("the name that they are merged into is empty")
    keys, known = {name_key(name): name for name in names}, view.aliases()
    found, target = view.entity_ids(keys), name_key(display)
    if missing := [name for key, name in keys.items() if key not in found]:
        raise NotFoundError(f"no such entity: {', '.join(missing)}")
    links = {key: end for key, end in known.links.items() if key != target}  # no circles
    links |= dict.fromkeys(keys.keys() - {target}, target)
    return aliases_of(links, {**known.displays, target: display})


def aliases_of(links: Mapping[str, str], displays: Mapping[str, str]) -> Aliases:
    """Merges of names, with the display names of their targets and of what was only renamed."""
    kept = {*links.values(), *displays.keys() - links.keys()}
    return Aliases(dict(links), {key: name for key, name in displays.items() if key in kept})


def unmerged(view: StoreView, names: Iterable[str]) -> Aliases:
    """The aliases once names stand for themselves again; what was merged into them before stays so.

    A name that is only the target of merges has them undone. `NotFoundError` lists the names that
    are not merged.
    """
    keys, known = {name_key(name): name for name in names}, view.aliases()
    ends = keys.keys() - known.links.keys()
    if strangers := [keys[key] for key in keys if key in ends - known.displays.keys()]:
        raise NotFoundError(f"not merged into another entity: {', '.join(strangers)}")
    links = {key: end for key, end in known.links.items() if key not in keys and end not in ends}
    alone = known.displays.keys() - set(known.links.values()) - keys.keys()
    kept = {*links.values(), *alone}
    return Aliases(links, {key: name for key, name in known.displays.items() if key in kept})
