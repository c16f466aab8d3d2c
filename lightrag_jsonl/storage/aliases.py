"""Which names stand for which entity, as a person decided."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lightrag_jsonl.storage.bulk import put_rows


@dataclass(frozen=True, slots=True)
class Aliases:
    """`targets` leads from a name key to another; `displays` says how an entity is called."""

    targets: Mapping[str, str] = field(default_factory=dict)
    displays: Mapping[str, str] = field(default_factory=dict)

    def merged(self, keys: Iterable[str], into: str, display: str) -> Aliases:
        """With `keys` standing for `into`, and all that stood for them too; nothing leads in a circle."""
        sources = set(keys) - {into}
        targets = {
            key: into if target in sources else target
            for key, target in self.targets.items()
            if key != into
        }
        targets |= dict.fromkeys(sources, into)
        displays = {key: name for key, name in self.displays.items() if key not in sources}
        return Aliases(targets, {**displays, into: display})

    def without(self, keys: Iterable[str]) -> Aliases:
        """With `keys` standing for themselves again, and called as their texts call them.

        What nothing stands for any more is called so, too.
        """
        gone = set(keys)
        targets = {key: target for key, target in self.targets.items() if key not in gone}
        dropped = gone | (set(self.targets.values()) - set(targets.values()))
        return Aliases(targets, {k: name for k, name in self.displays.items() if k not in dropped})


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
    alone = aliases.displays.keys() - set(aliases.targets.values())
    leads = [*aliases.targets.items(), *((key, key) for key in sorted(alone))]
    put_rows(
        connection,
        "INSERT INTO aliases",
        [(key, target, aliases.displays.get(target, target)) for key, target in leads],
    )


def chunks_naming(connection: sqlite3.Connection, keys: Iterable[str]) -> list[int]:
    """The chunks (row ids) that mention any entity with one of these keys."""
    rows = connection.execute(
        "SELECT DISTINCT m.chunk FROM entities e JOIN entity_mentions m ON m.entity = e.id "
        "WHERE e.key IN (SELECT value FROM json_each(?)) ORDER BY m.chunk",
        (json.dumps(sorted(keys), ensure_ascii=False),),
    )
    return [row[0] for row in rows]
