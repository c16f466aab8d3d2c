"""Aliases: which names stand for which entity, as decided by a person."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lightrag_jsonl.storage.bulk import put_rows


@dataclass(frozen=True, slots=True)
class Aliases:
    """The merges of names.

    `links` maps a name key to the one it was merged into, which may be merged itself. `displays`
    maps keys to the names that were chosen for display.
    """

    links: Mapping[str, str] = field(default_factory=dict)
    displays: Mapping[str, str] = field(default_factory=dict)

    @property
    def targets(self) -> dict[str, str]:
        """For each linked key, the key at the end of its links."""
        return {key: self._end(key) for key in self.links}

    def merged(self, keys: Iterable[str], into: str, display: str) -> Aliases:
        """With `keys`, and all that stands for them, standing for `into`; without circles."""
        links = {key: target for key, target in self.links.items() if key != into}
        links |= dict.fromkeys(set(keys) - {into}, into)
        displays = {**self.displays, into: display}
        return Aliases(links, _used(displays, links, alone=displays.keys() - links.keys()))

    def without(self, keys: Iterable[str]) -> Aliases:
        """With `keys` standing for themselves again; what was merged into them before stays so.

        A key that is only the target of merges has them undone. A key that no longer has anything
        merged into it is displayed by vote again.
        """
        gone = set(keys)
        ends = gone - self.links.keys()
        links = {k: t for k, t in self.links.items() if k not in gone and t not in ends}
        alone = self.displays.keys() - set(self.links.values()) - gone
        return Aliases(links, _used(self.displays, links, alone=alone))

    def _end(self, key: str) -> str:
        while key in self.links:
            key = self.links[key]
        return key


def _used(
    displays: Mapping[str, str], links: Mapping[str, str], *, alone: Collection[str]
) -> dict[str, str]:
    """The display names of keys that links lead to, and of the keys in `alone`, which were only renamed."""
    kept = {*links.values(), *alone}
    return {key: name for key, name in displays.items() if key in kept}


def read(connection: sqlite3.Connection) -> Aliases:
    """All aliases; a stored key whose target is itself has a chosen display name only."""
    rows = connection.execute("SELECT key, target, display FROM aliases ORDER BY key").fetchall()
    return Aliases(
        {key: target for key, target, _ in rows if key != target},
        {target: display for _, target, display in rows},
    )


def replace(connection: sqlite3.Connection, aliases: Aliases) -> None:
    """Store these aliases and no others."""
    connection.execute("DELETE FROM aliases")
    alone = aliases.displays.keys() - set(aliases.links.values())
    leads = [*aliases.links.items(), *((key, key) for key in sorted(alone))]
    put_rows(
        connection,
        "INSERT INTO aliases",
        [(key, target, aliases.displays[target]) for key, target in leads],
    )


def chunks_naming(connection: sqlite3.Connection, keys: Iterable[str]) -> list[int]:
    """The chunks (row ids) that mention an entity with one of these keys."""
    rows = connection.execute(
        "SELECT DISTINCT m.chunk FROM entities e JOIN entity_mentions m ON m.entity = e.id "
        "WHERE e.key IN (SELECT value FROM json_each(?)) ORDER BY m.chunk",
        (json.dumps(sorted(keys), ensure_ascii=False),),
    )
    return [row[0] for row in rows]
