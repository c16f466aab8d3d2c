"""Who mentions whom, in memory: the pairs of entities and chunks, found from either side."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

_NONE: Ids = np.empty((0, 2), np.int64)
_PAIR = np.dtype([("entity", np.int64), ("chunk", np.int64)])


class Mentions:
    """(entity, chunk) pairs of row ids, each once; read-only once made."""

    def __init__(self, pairs: Ids = _NONE) -> None:
        self._by_entity = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        self._by_chunk = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
        self._entities = self._by_entity[:, 0].copy()  # in one piece, to be searched
        self._chunks = self._by_chunk[:, 1].copy()

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Mentions:
        """All of them."""
        return cls(_read(connection, "", ()))

    def renewed(self, connection: sqlite3.Connection, entities: Iterable[int]) -> Mentions:
        """With those of some entities read anew."""
        changed = sorted(entities)
        kept = self._by_entity[~np.isin(self._by_entity[:, 0], changed)]
        where = "WHERE entity IN (SELECT value FROM json_each(?))"
        return Mentions(np.concatenate([kept, _read(connection, where, (json.dumps(changed),))]))

    @property
    def pairs(self) -> Ids:
        """All pairs, by entity."""
        return self._by_entity

    def counts(self, entities: Ids) -> Ids:
        """How many chunks mention each of these entities."""
        starts, stops = _ranges(self._entities, entities)
        return stops - starts

    def of_entities(self, entities: Ids) -> Ids:
        """The pairs of these entities, in their order."""
        return _rows(self._by_entity, *_ranges(self._entities, entities))

    def of_chunks(self, chunks: Ids) -> Ids:
        """The pairs of these chunks, in their order."""
        return _rows(self._by_chunk, *_ranges(self._chunks, chunks))


# ── helpers ─────────────────────────────────────────────────────────────────────


def _read(connection: sqlite3.Connection, where: str, values: tuple[str, ...]) -> Ids:
    rows = connection.execute(f"SELECT DISTINCT entity, chunk FROM entity_mentions {where}", values)
    return np.fromiter(rows, _PAIR).view(np.int64).reshape(-1, 2)


def _ranges(column: Ids, wanted: Ids) -> tuple[Ids, Ids]:
    """From where to where each wanted value stands in an ascending column."""
    return np.searchsorted(column, wanted), np.searchsorted(column, wanted, side="right")


def _rows(pairs: Ids, starts: Ids, stops: Ids) -> Ids:
    lengths = stops - starts
    shift = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    found: Ids = pairs[shift + np.arange(lengths.sum())]
    return found
