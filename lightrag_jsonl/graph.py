"""The shape of the knowledge graph in memory, by row id; `rag.graph` converts it for networkx.

It consists of sorted columns, in which many relations are looked up at once. Importing networkx
takes longer than answering a first question, so it is imported only for `rag.graph`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.sorting import Column, Ids, Pairs, distinct, firsts

Floats = npt.NDArray[np.float64]

_RELATION = np.dtype(
    [("id", np.int64), ("low", np.int64), ("high", np.int64), ("weight", np.float64)]
)


class KnowledgeGraph:
    """Entities and the relations between them, at most one for each pair of entities."""

    def __init__(self) -> None:
        self._entities = Column()
        self._ids = Column()  # of relations; the two arrays below are in the same order
        self._ends: Ids = np.empty((0, 2), np.int64)
        self._weights: Floats = np.empty(0, np.float64)
        self._around = Pairs()  # (entity, relation)

    @property
    def entity_count(self) -> int:
        """Number of entities."""
        return len(self._entities)

    @property
    def relation_count(self) -> int:
        """Number of relations."""
        return len(self._ids)

    # ── changing it ─────────────────────────────────────────────────────────────

    def put_entities(self, ids: Iterable[int] | Ids) -> None:
        """Add entities; known ones stay as they are."""
        new = _column(ids)
        new = distinct(new[self._entities.places(new) < 0])
        if len(new):
            self._entities = self._entities.with_values(new)

    def put_relations(
        self,
        rows: Iterable[tuple[int, int, int, float]],
        *,
        instead_of: Iterable[int] | Ids = (),
    ) -> None:
        """Add or replace relations, given as (id, low, high, weight); relations in `instead_of` are
        removed.

        If an id comes twice, the last one counts. Unknown ids in `instead_of` are ignored.
        """
        table = np.fromiter(rows, _RELATION)
        table = table[np.argsort(table["id"], kind="stable")]
        ids = table["id"].copy()
        last = firsts(ids[::-1])[::-1]
        table, ids = table[len(ids) - 1 - last], distinct(ids)
        ends = np.stack([table["low"], table["high"]], axis=1)
        gone = self._ids.places(distinct(np.concatenate([ids, _column(instead_of)])))
        gone = gone[gone >= 0]
        self.put_entities(ends.ravel())
        self._around = self._around.changed(
            _both_ends(self._ids.values[gone], self._ends[gone]), _both_ends(ids, ends)
        )
        self._ids = self._ids.without(gone)
        where = np.searchsorted(self._ids.values, ids)
        self._ids = self._ids.with_values(ids)
        self._ends = np.insert(np.delete(self._ends, gone, axis=0), where, ends, axis=0)
        self._weights = np.insert(np.delete(self._weights, gone), where, table["weight"])

    def drop_entities(self, ids: Iterable[int]) -> None:
        """Remove entities with all their relations; unknown ids are ignored."""
        gone = np.fromiter(ids, np.int64)
        self.drop_relations(self._around.of(gone)[1])
        where = self._entities.places(gone)
        if len(where):
            self._entities = self._entities.without(where[where >= 0])

    def drop_relations(self, ids: Iterable[int] | Ids) -> None:
        """Remove relations by id; unknown ids are ignored."""
        self.put_relations((), instead_of=ids)

    # ── asking it ───────────────────────────────────────────────────────────────

    def __contains__(self, entity: int) -> bool:
        return bool(self._entities.places(np.array([entity]))[0] >= 0)

    def degrees(self, entities: Iterable[int] | Ids) -> Ids:
        """The number of relations of each entity; 0 if the entity is unknown."""
        return self._around.counts(_column(entities))

    def relations_of(self, entities: Iterable[int] | Ids) -> tuple[Ids, Ids]:
        """The relations of these entities, as two columns: the index of the entity in `entities`,
        and the relation (ascending for each entity).
        """
        return self._around.of(_column(entities))

    def ends(self, relations: Iterable[int] | Ids) -> Ids:
        """The two entities of each relation, the lower id first, shape (n, 2); `KeyError` if unknown."""
        return self._ends[self._places(relations)]

    def weights(self, relations: Iterable[int] | Ids) -> Floats:
        """The weight of each relation, the sum of its mentions' strengths; `KeyError` if unknown."""
        return self._weights[self._places(relations)]

    @property
    def all_ends(self) -> Ids:
        """The two entities of every relation, ordered by relation id, shape (n, 2)."""
        return self._ends

    def relation_rows(self) -> Iterator[tuple[int, int, int, float]]:
        """All relations as (id, low, high, weight), in the order of their ids."""
        low, high = self._ends.T.tolist()
        return zip(self._ids.values.tolist(), low, high, self._weights.tolist(), strict=True)

    def entity_ids(self) -> list[int]:
        """All entities' ids, ascending."""
        ids: list[int] = self._entities.values.tolist()
        return ids

    def _places(self, relations: Iterable[int] | Ids) -> Ids:
        wanted = _column(relations)
        found = self._ids.places(wanted)
        if len(found) and found.min() < 0:
            raise KeyError(f"no relation {wanted[found < 0][0]}")
        return found


# ── helpers ─────────────────────────────────────────────────────────────────────


def _column(ids: Iterable[int] | Ids) -> Ids:
    return ids if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int64)


def _both_ends(relations: Ids, ends: Ids) -> tuple[Ids, Ids]:
    """(entity, relation) pairs for both ends of each relation, as two columns."""
    return ends.T.ravel(), np.concatenate([relations, relations])
