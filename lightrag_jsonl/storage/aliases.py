"""Which names stand for which entity, as a person decided."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lightrag_jsonl.storage.bulk import put_rows


@dataclass(frozen=True, slots=True)
class Aliases:
    """`links` leads from a name key to the one it was merged into, which may have been merged again;
    `displays` says how an entity is called.
    """

    links: Mapping[str, str] = field(default_factory=dict)
    displays: Mapping[str, str] = field(default_factory=dict)

    @property
    def targets(self) -> dict[str, str]:
        """Where each linked key leads in the end."""
        return {key: self._end(key) for key in self.links}

    def merged(self, keys: Iterable[str], into: str, display: str) -> Aliases:
        """With `keys` standing for `into`, and all that stands for them too; nothing leads in a circle."""
        links = {key: target for key, target in self.links.items() if key != into}
        links |= dict.fromkeys(set(keys) - {into}, into)
        displays = {**self.displays, into: display}
        return Aliases(links, _used(displays, links, alone=displays.keys() - links.keys()))

    def without(self, keys: Iterable[str]) -> Aliases:
        """With `keys` standing for themselves again, with what was merged into each before.

        Of a key that others only were merged into, these stand for themselves again, and it is
        called as its texts call it; so is what nothing stands for any more.
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
    """How those are called that something leads to, and those `alone`, which are only spelt anew."""
    kept = {*links.values(), *alone}
    return {key: name for key, name in displays.items() if key in kept}


def read(connection: sqlite3.Connection) -> Aliases:
    """All aliases; a key that leads to itself only says how its entity is called."""
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
    """The chunks (row ids) that mention any entity with one of these keys."""
    rows = connection.execute(
        "SELECT DISTINCT m.chunk FROM entities e JOIN entity_mentions m ON m.entity = e.id "
        "WHERE e.key IN (SELECT value FROM json_each(?)) ORDER BY m.chunk",
        (json.dumps(sorted(keys), ensure_ascii=False),),
    )
    return [row[0] for row in rows]
