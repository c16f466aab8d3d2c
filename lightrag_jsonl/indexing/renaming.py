"""Which names a person decides to be one entity, or no longer: checked against what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from lightrag_jsonl.errors import ConfigError, NotFoundError
from lightrag_jsonl.storage import aliases, reading
from lightrag_jsonl.storage.aliases import Aliases
from lightrag_jsonl.text import clean_name, name_key, sanitize


class Renaming(NamedTuple):
    """A change of the aliases, and the keys of all entities that it concerns."""

    change: Callable[[Aliases], Aliases]
    concerned: Collection[str]


class Step(NamedTuple):
    """Names to be merged `into` another, or to be set free where there is none."""

    names: tuple[str, ...]
    into: str | None = None


def cleaned(into: str) -> str:
    """The name that others are to be merged into; `ConfigError` where nothing of it is left."""
    name = clean_name(into)
    if not name_key(name):
        raise ConfigError("say what they are to be called: the name they are merged into is empty")
    return name


def merging(connection: sqlite3.Connection, names: Collection[str], into: str) -> Renaming:
    """Several names become one entity; `NotFoundError` names those that no entity has."""
    keys, target = {name_key(sanitize(name)) for name in names}, name_key(into)
    found = reading.entity_ids(connection, keys)
    before = aliases.read(connection).targets
    missing = [name for name in names if name_key(sanitize(name)) not in found]
    if missing:
        raise NotFoundError(f"no such entity: {', '.join(missing)}")
    concerned = keys | {target}
    concerned |= {before[key] for key in concerned if key in before}  # what they stood for
    return Renaming(lambda known: known.merged(keys, target, into), concerned)


def unmerging(connection: sqlite3.Connection, names: Collection[str]) -> Renaming:
    """Each name is an entity of its own again; `NotFoundError` names those that were not merged."""
    keys, known = {name_key(name) for name in names}, aliases.read(connection)
    merged, targets = known.links.keys() | known.displays.keys(), known.targets
    strangers = [name for name in names if name_key(name) not in merged]
    if strangers:
        raise NotFoundError(f"not merged into another entity: {', '.join(strangers)}")
    concerned = keys | {targets.get(key, key) for key in keys}
    return Renaming(lambda now: now.without(keys), concerned)


def undoing(before: Aliases, names: Collection[str], into: str) -> Iterator[Step]:
    """What brings the aliases back that were there `before`, once `names` are merged into `into`.

    The names are set free; then each is called and merged as it was, with all that it led to.
    """
    called, target = {name_key(sanitize(name)): name for name in names}, name_key(into)
    after = before.merged(called, target, into)
    free = {key: name for key, name in called.items() if key != target}
    if not free and target not in before.displays:  # it was only spelt anew
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
    """The links from these keys on to their ends; each after all those that lead to it."""
    found: dict[str, str] = {}
    for start in keys:
        key = start
        while key in known.links:
            end = known.links[key]
            found.pop(key, None)
            found[key] = end
            key = end
    return found
