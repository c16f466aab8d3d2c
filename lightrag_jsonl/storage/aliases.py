"""Which names stand for which entity, as a person decided."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lightrag_jsonl.storage.bulk import put_rows


@dataclass(frozen=True, slots=True)
class Aliases:
    """`targets` leads from a name key to another; `displays` says how a target is called."""

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
        """With `keys` standing for themselves again."""
        gone = set(keys)
        targets = {key: target for key, target in self.targets.items() if key not in gone}
        used = set(targets.values())
        return Aliases(targets, {key: name for key, name in self.displays.items() if key in used})


def read(connection: sqlite3.Connection) -> Aliases:
    """All aliases."""
    rows = connection.execute("SELECT key, target, display FROM aliases ORDER BY key").fetchall()
    return Aliases(
        {key: target for key, target, _ in rows}, {target: display for _, target, display in rows}
    )


def replace(connection: sqlite3.Connection, aliases: Aliases) -> None:
    """Store these aliases and no others."""
    connection.execute("DELETE FROM aliases")
    put_rows(
        connection,
        "INSERT INTO aliases",
        [
            (key, target, aliases.displays.get(target, target))
            for key, target in aliases.targets.items()
        ],
    )


def chunks_naming(connection: sqlite3.Connection, keys: Iterable[str]) -> list[int]:
    """The chunks (row ids) that mention any entity with one of these keys."""
    rows = connection.execute(
        "SELECT DISTINCT m.chunk FROM entities e JOIN entity_mentions m ON m.entity = e.id "
        "WHERE e.key IN (SELECT value FROM json_each(?)) ORDER BY m.chunk",
        (json.dumps(sorted(keys), ensure_ascii=False),),
    )
    return [row[0] for row in rows]
