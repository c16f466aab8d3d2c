"""Which chunks mention which entities, in memory: pairs that are found from either side."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

import numpy as np

from lightrag_jsonl.sorting import Ids, Pairs

_PAIR = np.dtype([("entity", np.int64), ("chunk", np.int64)])


class Mentions:
    """(entity, chunk) pairs of row ids, without repetitions; immutable."""

    def __init__(self, entities: Pairs, chunks: Pairs) -> None:
        self._chunks_of, self._entities_of = entities, chunks

    @classmethod
    def of(cls, entities: Ids, chunks: Ids) -> Mentions:
        """Mentions from two columns."""
        return cls(Pairs(entities, chunks), Pairs(chunks, entities))

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Mentions:
        """All stored mentions."""
        return cls.of(*_read(connection, "", ()))

    def renewed(self, connection: sqlite3.Connection, chunks: Iterable[int]) -> Mentions:
        """A copy with the mentions of some chunks read again."""
        changed = sorted(chunks)
        owners = np.array(changed, np.int64)
        which, entities = self._entities_of.of(owners)
        old = entities, owners[which]
        where = "WHERE chunk IN (SELECT value FROM json_each(?))"
        new = _read(connection, where, (json.dumps(changed),))
        return Mentions(
            self._chunks_of.changed(old, new),
            self._entities_of.changed((old[1], old[0]), (new[1], new[0])),
        )

    @property
    def all(self) -> tuple[Ids, Ids]:
        """All pairs as two columns, entities (ascending) and chunks."""
        return self._chunks_of.all

    def counts(self, entities: Ids) -> Ids:
        """How many chunks mention each of these entities."""
        return self._chunks_of.counts(entities)

    def of_entities(self, entities: Ids) -> tuple[Ids, Ids]:
        """The chunks that mention these entities, as two columns: index of the entity given, and chunk."""
        return self._chunks_of.of(entities)

    def of_chunks(self, chunks: Ids) -> tuple[Ids, Ids]:
        """The entities that these chunks mention, as two columns: index of the chunk given, and entity."""
        return self._entities_of.of(chunks)


def _read(connection: sqlite3.Connection, where: str, values: tuple[str, ...]) -> tuple[Ids, Ids]:
    rows = connection.execute(f"SELECT entity, chunk FROM entity_mentions {where}", values)
    pairs = np.fromiter(rows, _PAIR)
    return np.ascontiguousarray(pairs["entity"]), np.ascontiguousarray(pairs["chunk"])
