"""Plans the merging and unmerging of names, checked against what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from lightrag_jsonl.errors import ConfigError, NotFoundError
from lightrag_jsonl.storage import aliases, reading
from lightrag_jsonl.storage.aliases import Aliases
from lightrag_jsonl.text import clean_name, name_key, sanitize


class Renaming(NamedTuple):
    """A change of the aliases, and the keys of all entities that it affects."""

    change: Callable[[Aliases], Aliases]
    concerned: Collection[str]


class Step(NamedTuple):
    """Names to merge `into` another one, or to unmerge if that is None."""

    names: tuple[str, ...]
    into: str | None = None


def cleaned(into: str) -> str:
    """The name to merge into, cleaned; `ConfigError` if nothing of it is left."""
    name = clean_name(into)
    if not name_key(name):
        raise ConfigError("say what they are to be called: the name they are merged into is empty")
    return name


def merging(connection: sqlite3.Connection, names: Collection[str], into: str) -> Renaming:
    """Plan the merge of several names; `NotFoundError` names those that no entity has."""
    keys, target = {name_key(sanitize(name)) for name in names}, name_key(into)
    found = reading.entity_ids(connection, keys)
    before = aliases.read(connection).targets
    missing = [name for name in names if name_key(sanitize(name)) not in found]
    if missing:
        raise NotFoundError(f"no such entity: {', '.join(missing)}")
    concerned = keys | {target}
    concerned |= {
        before[key] for key in concerned if key in before
    }  # the entities they stand for now
    return Renaming(lambda known: known.merged(keys, target, into), concerned)


def unmerging(connection: sqlite3.Connection, names: Collection[str]) -> Renaming:
    """Plan to make names entities of their own again; `NotFoundError` names those that are not merged."""
    keys, known = {name_key(name) for name in names}, aliases.read(connection)
    merged, targets = known.links.keys() | known.displays.keys(), known.targets
    strangers = [name for name in names if name_key(name) not in merged]
    if strangers:
        raise NotFoundError(f"not merged into another entity: {', '.join(strangers)}")
    concerned = keys | {targets.get(key, key) for key in keys}
    return Renaming(lambda now: now.without(keys), concerned)


def undoing(before: Aliases, names: Collection[str], into: str) -> Iterator[Step]:
    """The steps that restore the aliases of `before`, once `names` have been merged into `into`.

    First the names are unmerged; then each gets its earlier display name and merges back.
    """
    called, target = {name_key(sanitize(name)): name for name in names}, name_key(into)
    after = before.merged(called, target, into)
    free = {key: name for key, name in called.items() if key != target}
    if not free and target not in before.displays:  # only its display name changed
        free = {target: into}
    if free:
        yield Step(tuple(free.values()))
        after = after.without(free)
    back = _led_on(before, [*called, target])
    for key in (*called, target):
        display = before.displays.get(key, "")
        if display and key not in back.values() and display != after.displays.get(key):
            yield Step((display,), display)
            after = after.merged([key], key, display)
    for key, end in back.items():
        name = before.displays.get(key) or called.get(key, key)
        yield Step((name,), before.displays[end])


def _led_on(known: Aliases, keys: Collection[str]) -> dict[str, str]:
    """The links from these keys to their ends, each after those that lead to it."""
    found: dict[str, str] = {}
    for start in keys:
        key = start
        while key in known.links:
            end = known.links[key]
            found.pop(key, None)
            found[key] = end
            key = end
    return found
