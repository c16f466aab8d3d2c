"""The shape of the graph in memory, by row id: relations between entities, mentions in chunks.

It consists of sorted columns, in which many rows are looked up at once. An index never changes:
`updated` copies the columns with the changed rows replaced, so a search keeps the one it began with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lightrag_jsonl.storage.vector_index import Floats, Ids

_HALF = np.int64(32)  # bits for each id of a pair in one number; row ids are below 2**31
_MASK = np.int64((1 << 32) - 1)


@dataclass(frozen=True, slots=True)
class GraphRows:
    """Rows of the graph, in any order.

    `entities` and `chunks` are row ids. `relations` has the columns id, low and high end, shape
    (n, 3), and `weights` a number for each of them. `mentions` has the columns entity and chunk,
    shape (n, 2); pairs may repeat.
    """

    entities: Ids
    chunks: Ids
    relations: Ids
    weights: Floats
    mentions: Ids


class GraphIndex:
    """Entities, the relations between them, and the chunks that mention them."""

    def __init__(self, rows: GraphRows) -> None:
        order = np.argsort(rows.relations[:, 0])
        self._entities, self._chunks = distinct(rows.entities), distinct(rows.chunks)
        self._relations = np.ascontiguousarray(rows.relations[order].T)  # three rows
        self._weights = rows.weights[order]
        self._relations_of = _both_ends(self._relations)
        self._chunks_of = _pairs(rows.mentions[:, 0], rows.mentions[:, 1])
        self._entities_of = _pairs(rows.mentions[:, 1], rows.mentions[:, 0])

    def updated(self, entities: Ids, relations: Ids, chunks: Ids, rows: GraphRows) -> GraphIndex:
        """A copy for a changed graph.

        The first three arguments are the row ids of everything that was added, changed or deleted;
        a chunk counts as changed if its mentions are. `rows` are those of them that exist now, with
        all the mentions of these chunks.
        """
        new, copy = GraphIndex(rows), GraphIndex.__new__(GraphIndex)
        copy._entities = _replaced(self._entities, entities, new._entities)
        copy._chunks = _replaced(self._chunks, chunks, new._chunks)
        gone = np.isin(self._relations[0], relations)
        kept = self._relations[:, ~gone]
        places = np.searchsorted(kept[0], new._relations[0])
        copy._relations = np.insert(kept, places, new._relations, axis=1)
        copy._weights = np.insert(self._weights[~gone], places, new._weights)
        old = _both_ends(self._relations[:, gone])
        copy._relations_of = _changed(self._relations_of, old, new._relations_of)
        which, mentioned = self.entities_of(chunks := distinct(chunks))
        old, inverse = _pairs(mentioned, chunks[which]), _pairs(chunks[which], mentioned)
        copy._chunks_of = _changed(self._chunks_of, old, new._chunks_of)
        copy._entities_of = _changed(self._entities_of, inverse, new._entities_of)
        return copy

    # ── entities and relations ──────────────────────────────────────────────────

    @property
    def entity_count(self) -> int:
        """The number of entities."""
        return len(self._entities)

    @property
    def relation_count(self) -> int:
        """The number of relations."""
        return len(self._weights)

    @property
    def entities(self) -> Ids:
        """All entities, ascending."""
        return self._entities

    def degrees(self, entities: Ids) -> Ids:
        """The number of relations of each entity; 0 if it is unknown."""
        return _counts(self._relations_of, entities)

    def relations_of(self, entities: Ids) -> tuple[Ids, Ids]:
        """Two columns: the index of an entity in `entities`, and its relations, ascending."""
        return _members(self._relations_of, entities)

    def ends(self, relations: Ids) -> Ids:
        """The two entities of each relation, low first, shape (n, 2); `KeyError` if unknown."""
        return self._relations[1:, self._places(relations)].T

    def weights(self, relations: Ids) -> Floats:
        """The weight of each relation, shape (n,); `KeyError` if unknown."""
        return self._weights[self._places(relations)]

    @property
    def all_ends(self) -> Ids:
        """The two entities of every relation, low first, in the order of the relations' ids."""
        return self._relations[1:].T

    # ── mentions ────────────────────────────────────────────────────────────────

    @property
    def chunks(self) -> Ids:
        """All chunks, ascending, also those that mention nothing."""
        return self._chunks

    def chunk_counts(self, entities: Ids) -> Ids:
        """How many chunks mention each entity; 0 if it is unknown."""
        return _counts(self._chunks_of, entities)

    def chunks_of(self, entities: Ids) -> tuple[Ids, Ids]:
        """Two columns: the index of an entity in `entities`, and its chunks, ascending."""
        return _members(self._chunks_of, entities)

    def entities_of(self, chunks: Ids) -> tuple[Ids, Ids]:
        """Two columns: the index of a chunk in `chunks`, and its entities, ascending."""
        return _members(self._entities_of, chunks)

    @property
    def all_mentions(self) -> tuple[Ids, Ids]:
        """Every pair of an entity and a chunk that mentions it, as two columns, ascending."""
        return self._chunks_of >> _HALF, self._chunks_of & _MASK

    def _places(self, relations: Ids) -> Ids:
        known = self._relations[0]
        places = np.searchsorted(known, relations)
        unknown = places == np.searchsorted(known, relations, side="right")
        if unknown.any():
            raise KeyError(f"no relation {relations[unknown][0]}")
        return places


def distinct(values: Ids) -> Ids:
    """The distinct values, ascending; `numpy.unique` takes a hundred times as long."""
    values = np.sort(values)
    return values[np.diff(values, prepend=-1) > 0]


def _replaced(column: Ids, gone: Ids, new: Ids) -> Ids:
    """An ascending column without some values, and with new ones."""
    kept = column[~np.isin(column, gone)]
    return np.insert(kept, np.searchsorted(kept, new), new)


# ── pairs of ids (owner, member) as one ascending column of numbers ─────────────


def _pairs(owners: Ids, members: Ids) -> Ids:
    return distinct((owners << _HALF) | members)


def _both_ends(relations: Ids) -> Ids:
    """The pairs (entity, relation) of both ends of relations, given as the rows id, low, high."""
    return _pairs(relations[1:].ravel(), np.tile(relations[0], 2))


def _changed(pairs: Ids, gone: Ids, new: Ids) -> Ids:
    """The pairs without those that are gone and with new ones; both ascending."""
    kept = np.delete(pairs, np.searchsorted(pairs, gone))
    return np.insert(kept, np.searchsorted(kept, new), new)


def _counts(pairs: Ids, owners: Ids) -> Ids:
    """How many pairs each owner has."""
    starts, ends = _ranges(pairs, owners)
    counts: Ids = ends - starts
    return counts


def _members(pairs: Ids, owners: Ids) -> tuple[Ids, Ids]:
    """The pairs of these owners: the index of the owner in `owners`, and the member."""
    starts, ends = _ranges(pairs, owners)
    counts = ends - starts
    first = np.repeat(starts - np.cumsum(counts) + counts, counts)
    members = pairs.take(first + np.arange(len(first))) & _MASK
    return np.repeat(np.arange(len(owners)), counts), members


def _ranges(pairs: Ids, owners: Ids) -> Ids:
    """Where the pairs of each owner start and end, shape (2, owners)."""
    return np.searchsorted(pairs, np.stack([owners, owners + 1]) << _HALF)
