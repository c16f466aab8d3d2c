"""Builds the graph that a walk runs on: entities and chunks of a subgraph, or of the whole index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.neighbours import nearest_neighbours
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.querying import walk
from lightrag_jsonl.querying.hits import Ids, Scope, Seeds, Subgraph
from lightrag_jsonl.querying.transitions import Floats
from lightrag_jsonl.querying.walk import Edges, WalkGraph
from lightrag_jsonl.sorting import among, distinct, grouped, topmost
from lightrag_jsonl.storage import rows
from lightrag_jsonl.storage.mentions import Mentions
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.vectors import VectorIndex

CHUNKS = 300  # the most chunks reached through entities; those of the rarest entities first
LEADING = 40  # synonyms are looked for of so many found entities
EVERYWHERE = 200  # mentions; above, an entity leads only to chunks that the text search found, too
ROUNDING = 1e-5  # the greatest rounding error of a cosine
AT_ONCE = 4  # rows multiplied at a time; for more, BLAS starts threads, which then keep spinning
NEAREST = 2 * walk.SYNONYMS + 2  # neighbours searched for an entity's synonyms, itself included


@dataclass(frozen=True, slots=True)
class Ground:
    """Row ids of entities and chunks, ascending; the graph's nodes are places in these two arrays."""

    entities: Ids
    chunks: Ids
    graph: WalkGraph

    def entity_places(self, rows: Sequence[int]) -> list[int]:
        """The places of entities (row ids); -1 for one that is not on the ground."""
        places = self.entities.searchsorted(np.array(rows, np.int64))
        return [
            int(place) if place < len(self.entities) and self.entities[place] == row else -1
            for place, row in zip(places, rows, strict=True)
        ]


def subgraph_ground(
    snapshot: Snapshot, subgraph: Subgraph, seeds: Seeds, *, direct: bool, scope: Scope | None
) -> Ground:
    """The ground of the entities and relations found: with the chunks that mention them, and all edges.

    With `direct` it includes all chunks that the question's text found.
    """
    table = snapshot.mentions()
    ends, named = snapshot.graph.ends(subgraph.relations.ids), subgraph.entities.ids
    found = distinct(np.concatenate([named, ends.ravel()]))
    chunks = _chunks_around(table, found, seeds, direct=direct, scope=scope)
    by, mentioned = table.of_chunks(chunks)
    each, which, counts = grouped(mentioned)
    joining = (counts > 1) | among(each, found)  # a walker would come straight back from all others
    entities = distinct(np.concatenate([found, each[joining]]))
    joins = joining.take(which)
    inner, outer = joins.nonzero()[0], (~joins).nonzero()[0]
    place = entities.searchsorted(each)
    mentions = np.array([place.take(which.take(inner)), by.take(inner)]).T
    pairs, similarities = synonyms_among(snapshot.vectors["entity"], named[:LEADING], found)
    edges = Edges(
        mentions=mentions,
        relations=entities.searchsorted(ends),
        synonyms=entities.searchsorted(pairs),
        similarities=similarities,
        leaves=np.bincount(by.take(outer), minlength=len(chunks)),
    )
    return Ground(entities, chunks, WalkGraph(len(entities), len(chunks), edges))


def synonyms_among(index: VectorIndex, leading: Ids, rows: Ids) -> tuple[Ids, Floats]:
    """Pairs of nearly equal entities of which one is in `leading` and both are in `rows`; their cosines."""
    rows = rows[index.knows(rows)]
    leading = leading[among(leading, rows)]
    if not len(leading):
        return walk.NO_PAIRS, walk.NO_WEIGHTS
    vectors, places = index.vectors(rows), rows.searchsorted(leading)
    cosines = _products(vectors[places], vectors)
    cosines[np.arange(len(places)), places] = 0  # of each entity with itself
    near = (cosines.ravel() > walk.SYNONYM_SIMILARITY - ROUNDING).nonzero()[0]
    who, whom = np.divmod(near, len(rows))
    # summed alike whatever else is computed, unlike in a matrix product
    exact = np.einsum("ij,ij->i", vectors[places[who]], vectors[whom])
    return walk.synonym_edges(leading[who], rows[whom], exact)


class WholeGround:
    """The ground of the whole index, cached until the index changes. For use inside a snapshot."""

    def __init__(self) -> None:
        self._generation = -1
        self._ground: Ground | None = None

    def at(self, snapshot: Snapshot) -> Ground:
        """The ground of this snapshot."""
        if self._ground is None or self._generation != snapshot.generation:
            self._ground = _whole(snapshot)
            self._generation = snapshot.generation
        return self._ground


# ── the whole index ─────────────────────────────────────────────────────────────


def _whole(snapshot: Snapshot) -> Ground:
    entities = np.array(snapshot.graph.entity_ids(), np.int64)
    chunks = np.array(rows.all_ids(snapshot.connection, "chunk"), np.int64)
    asking, others, cosines = nearest_neighbours(snapshot.vectors["entity"], NEAREST)
    asking = asking.repeat(others.shape[1])
    pairs, similarities = walk.synonym_edges(asking, others.ravel(), cosines.ravel())
    mentioned, by = snapshot.mentions().all
    places = [np.searchsorted(entities, mentioned), np.searchsorted(chunks, by)]
    edges = Edges(
        mentions=np.stack(places).T,
        relations=np.searchsorted(entities, snapshot.graph.all_ends),
        synonyms=np.searchsorted(entities, pairs),
        similarities=similarities,
    )
    return Ground(entities, chunks, WalkGraph(len(entities), len(chunks), edges))


# ── what was found ──────────────────────────────────────────────────────────────


def _chunks_around(
    table: Mentions, found: Ids, seeds: Seeds, *, direct: bool, scope: Scope | None
) -> Ids:
    """The chunks that mention these entities, ascending.

    Entities with very many mentions lead only to chunks that the question's text found.
    """
    near = seeds.chunk_rows
    counts = table.counts(found)
    everywhere = counts > EVERYWHERE
    named = among(found, seeds.named_rows)
    pull = np.repeat(1 / np.maximum(counts, 1) + named, np.where(everywhere, 0, counts))
    reached = table.of_entities(found[~everywhere])[1]
    if scope is not None:
        inside = among(reached, scope.chunks)
        reached, pull = reached[inside], pull[inside]
    reached = _most_pulled(reached, pull, CHUNKS)
    parts = [reached, near if direct else near[:0]]
    if everywhere.any():
        near = distinct(near)
        by, mentioned = table.of_chunks(near)
        parts.append(near[by[among(mentioned, found[everywhere])]])
    return distinct(np.concatenate(parts))


# ── helpers ─────────────────────────────────────────────────────────────────────


def _most_pulled(chunks: Ids, pull: npt.NDArray[np.float64], limit: int) -> Ids:
    """The distinct chunks, ascending; if more than `limit`, those with the greatest sums of `pull`."""
    each, group, _ = grouped(chunks)
    return each[topmost(np.bincount(group, pull, len(each)), limit)]


def _products(ones: Vectors, others: Vectors) -> Vectors:
    """The inner product of each row of `ones` with each row of `others`, shape (ones, others)."""
    stacks = np.zeros((-(-len(ones) // AT_ONCE), AT_ONCE, ones.shape[1]), np.float32)
    stacks.reshape(-1, ones.shape[1])[: len(ones)] = ones
    products = stacks @ others.T
    return products.reshape(-1, len(others))[: len(ones)]
