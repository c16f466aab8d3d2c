"""The shape of the graph in memory, by row id: relations between entities, mentions in chunks.

An index consists of sorted columns, in which many rows are looked up at once, and never changes:
`updated` copies the columns with the changed rows replaced, so a search goes on in the old index.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lightrag_jsonl.storage.vector_index import Floats, Ids

GraphColumns: TypeAlias = Mapping[str, npt.NDArray[Any]]

_HALF = np.int64(32)  # bits for each id of a pair in one number; row ids are below 2**31
_MASK = np.int64((1 << 32) - 1)


class GraphRows(Struct, frozen=True):
    """Rows of the graph, in any order.

    `entities` and `chunks` are row ids. `relations` has the columns id, low and high end, shape
    (n, 3), and `weights` a number for each relation. `mentions` has the columns entity and chunk,
    shape (n, 2); pairs may repeat.
    """

    entities: Ids
    chunks: Ids
    relations: Ids
    weights: Floats
    mentions: Ids


class GraphIndex:
    """Entities, relations between entities, and chunks that mention entities.

    `entities` and `chunks` are all row ids, ascending, chunks without mentions included. `columns`
    are all that the index consists of, by name, to be written to files and read again.
    """

    def __init__(self, columns: GraphColumns) -> None:
        self.columns = columns
        self.entities: Ids = columns["entities"]
        self.chunks: Ids = columns["chunks"]
        self._relations: Ids = columns["relations"]  # the rows id, low, high
        self._weights: Floats = columns["weights"]
        self._relations_of: Ids = columns["relations_of"]
        self._chunks_of: Ids = columns["chunks_of"]
        self._entities_of: Ids = columns["entities_of"]

    @classmethod
    def of(cls, rows: GraphRows) -> "GraphIndex":
        """The index of a graph."""
        order = np.argsort(rows.relations[:, 0], kind="stable")
        relations = np.ascontiguousarray(rows.relations[order].T)
        return cls(
            {
                "entities": distinct_rows(rows.entities),
                "chunks": distinct_rows(rows.chunks),
                "relations": relations,
                "weights": rows.weights[order],
                "relations_of": _pairs(relations[1:].ravel(), np.tile(relations[0], 2)),
                "chunks_of": _pairs(rows.mentions[:, 0], rows.mentions[:, 1]),
                "entities_of": _pairs(rows.mentions[:, 1], rows.mentions[:, 0]),
            }
        )

    def updated(self, entities: Ids, relations: Ids, chunks: Ids, rows: GraphRows) -> "GraphIndex":
        """A copy for a changed graph.

        The first three arguments are the row ids of everything that was added, changed or deleted;
        a chunk counts as changed if its mentions are. `rows` are the rows of these ids that exist
        now, with all the mentions of these chunks.
        """
        old = self.rows
        unchanged = ~np.isin(old.relations[:, 0], relations)
        old_mentions = old.mentions[~np.isin(old.mentions[:, 1], chunks)]
        return GraphIndex.of(
            GraphRows(
                entities=np.append(old.entities[~np.isin(old.entities, entities)], rows.entities),
                chunks=np.append(old.chunks[~np.isin(old.chunks, chunks)], rows.chunks),
                relations=np.append(old.relations[unchanged], rows.relations, axis=0),
                weights=np.append(old.weights[unchanged], rows.weights),
                mentions=np.append(old_mentions, rows.mentions, axis=0),
            )
        )

    @property
    def rows(self) -> GraphRows:
        """All rows of the graph."""
        relations = self.all_relations
        return GraphRows(
            entities=self.entities,
            chunks=self.chunks,
            relations=np.column_stack([relations, self.all_ends]),
            weights=self.weights(relations),
            mentions=np.column_stack(self.all_mentions),
        )

    def degrees(self, entities: Ids) -> Ids:
        """The number of relations of each entity; 0 for an unknown entity."""
        starts, ends = _ranges(self._relations_of, entities)
        counts: Ids = ends - starts
        return counts

    def relations_of(self, entities: Ids) -> tuple[Ids, Ids]:
        """Two columns: the index of an entity in `entities`, and its relations, ascending."""
        return _members(self._relations_of, entities)

    def ends(self, relations: Ids) -> Ids:
        """The two entities of each of these known relations, low first, shape (n, 2)."""
        return self._relations[1:, np.searchsorted(self._relations[0], relations)].T

    def weights(self, relations: Ids) -> Floats:
        """The weight of each of these known relations, shape (n,)."""
        return self._weights[np.searchsorted(self._relations[0], relations)]

    @property
    def all_relations(self) -> Ids:
        """All row ids of relations, ascending."""
        rows: Ids = self._relations[0]
        return rows

    @property
    def all_ends(self) -> Ids:
        """The two entities of every relation, low first, in the order of the relations' ids."""
        return self._relations[1:].T

    def mention_counts(self, entities: Ids) -> Ids:
        """The number of chunks of each entity; 0 for an unknown entity."""
        starts, ends = _ranges(self._chunks_of, entities)
        counts: Ids = ends - starts
        return counts

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


def distinct_rows(*columns: Ids) -> Ids:
    """The distinct row ids in some columns, ascending; `numpy.unique` takes a hundred times as long."""
    rows = np.sort(np.concatenate(columns))
    return rows[np.diff(rows, prepend=-1) > 0]


def is_among(rows: Ids, members: Ids) -> npt.NDArray[np.bool_]:
    """Whether each row id is one of the members; `numpy.isin` takes five times as long for a few hundred."""
    ordered = np.sort(np.append(members, -1))
    nearest = ordered.take(ordered.searchsorted(rows), mode="clip")
    is_member: npt.NDArray[np.bool_] = nearest == rows
    return is_member


# Pairs of ids (owner, member) are one ascending column of numbers.


def _pairs(owners: Ids, members: Ids) -> Ids:
    return distinct_rows((owners << _HALF) | members)


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


class PartialGraph(GraphIndex):
    """A graph without some of its mentions: pairs of an entity and a chunk, shape (n, 2)."""

    def __init__(self, graph: GraphIndex, hidden_mentions: Ids) -> None:
        self._graph = graph
        self._hidden = _pairs(hidden_mentions[:, 0], hidden_mentions[:, 1])

    @property
    def entities(self) -> Ids:  # type: ignore[override]
        """All row ids of entities, ascending."""
        return self._graph.entities

    @property
    def chunks(self) -> Ids:  # type: ignore[override]
        """All row ids of chunks, ascending."""
        return self._graph.chunks

    def degrees(self, entities: Ids) -> Ids:
        return self._graph.degrees(entities)

    def relations_of(self, entities: Ids) -> tuple[Ids, Ids]:
        return self._graph.relations_of(entities)

    def ends(self, relations: Ids) -> Ids:
        return self._graph.ends(relations)

    def weights(self, relations: Ids) -> Floats:
        return self._graph.weights(relations)

    @property
    def all_ends(self) -> Ids:
        return self._graph.all_ends

    def mention_counts(self, entities: Ids) -> Ids:
        return np.bincount(self.chunks_of(entities)[0], minlength=len(entities))

    def chunks_of(self, entities: Ids) -> tuple[Ids, Ids]:
        positions, chunks = self._graph.chunks_of(entities)
        visible = self._visible(entities[positions], chunks)
        return positions[visible], chunks[visible]

    def entities_of(self, chunks: Ids) -> tuple[Ids, Ids]:
        positions, entities = self._graph.entities_of(chunks)
        visible = self._visible(entities, chunks[positions])
        return positions[visible], entities[visible]

    @property
    def all_mentions(self) -> tuple[Ids, Ids]:
        entities, chunks = self._graph.all_mentions
        visible = self._visible(entities, chunks)
        return entities[visible], chunks[visible]

    def _visible(self, entities: Ids, chunks: Ids) -> npt.NDArray[np.bool_]:
        return ~np.isin((entities << _HALF) | chunks, self._hidden)
