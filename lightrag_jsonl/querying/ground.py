"""What a walk goes over: the entities and chunks of a subgraph, or of the whole index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lightrag_jsonl.querying import walk
from lightrag_jsonl.querying.hits import Ids, Scope, Seeds, Subgraph
from lightrag_jsonl.querying.walk import Edges, WalkGraph
from lightrag_jsonl.storage import reading
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.vectors import VectorIndex

EVERYWHERE = 200  # mentions: above, an entity leads only to chunks that the text found as well
EXACT_SYNONYMS = 10_000  # entities: above, synonyms are looked for in the nearest lists only
LISTS_READ = 8
NEAREST = 2 * walk.SYNONYMS + 2  # neighbours looked at for an entity's synonyms, itself included


@dataclass(frozen=True, slots=True)
class Ground:
    """Row ids of entities and chunks, ascending, and the graph over their places in these arrays."""

    entities: Ids
    chunks: Ids
    graph: WalkGraph

    def entity_places(self, rows: Sequence[int]) -> list[int]:
        """Places of entities; -1 for one that is not there."""
        places = np.searchsorted(self.entities, np.array(rows, np.int64))
        return [
            int(place) if place < len(self.entities) and self.entities[place] == row else -1
            for place, row in zip(places, rows, strict=True)
        ]


def subgraph_ground(
    snapshot: Snapshot, subgraph: Subgraph, seeds: Seeds, *, direct: bool, scope: Scope | None
) -> Ground:
    """The entities and relations found, and the chunks that mention them.

    `direct` lets in all chunks that the question's text found. Of entities that are mentioned
    everywhere only those chunks count.
    """
    ends = [snapshot.graph.ends(hit.id) for hit in subgraph.relations]
    rows = {hit.id for hit in subgraph.entities}.union(*ends)
    entities = np.array(sorted(rows), np.int64)
    near = np.array([hit.id for lane in seeds.chunks for hit in lane], np.int64)
    mentions = _pairs(
        reading.telling_mentions(
            snapshot.connection, entities.tolist(), near.tolist(), limit=EVERYWHERE
        )
    )
    if scope is not None:
        mentions = mentions[np.isin(mentions[:, 1], scope.chunks)]
    chunks = np.unique(np.concatenate([mentions[:, 1], near if direct else near[:0]]))
    edges = Edges(
        mentions=_placed(mentions, entities, chunks),
        relations=np.searchsorted(entities, _pairs(ends)),
    )
    return Ground(entities, chunks, WalkGraph(len(entities), len(chunks), edges))


class WholeGround:
    """The ground of the whole index, kept until the index changes. Use it inside a snapshot."""

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
    chunks = np.array(reading.chunk_rows(snapshot.connection), np.int64)
    mentions = _pairs(reading.all_mentions(snapshot.connection))
    ends = _pairs([(low, high) for _, low, high, _ in snapshot.graph.relation_rows()])
    pairs, similarities = _synonyms(snapshot.vectors["entity"])
    edges = Edges(
        mentions=_placed(mentions, entities, chunks),
        relations=np.searchsorted(entities, ends),
        synonyms=np.searchsorted(entities, pairs),
        similarities=similarities,
    )
    return Ground(entities, chunks, WalkGraph(len(entities), len(chunks), edges))


def _synonyms(index: VectorIndex) -> tuple[Ids, walk.Floats]:
    """Pairs of entities (row ids) whose vectors are nearly alike, and their cosines."""
    ids = index.ids
    if len(ids) < 2:
        return np.empty((0, 2), np.int64), np.empty(0, np.float32)
    import faiss

    vectors = index.vectors(ids)
    finder: Any = faiss.IndexFlatIP(index.dim)
    if len(ids) > EXACT_SYNONYMS:
        lists = int(len(ids) ** 0.5)
        finder = faiss.IndexIVFFlat(finder, index.dim, lists, faiss.METRIC_INNER_PRODUCT)
        finder.train(vectors[:: max(1, len(ids) // (lists * 64))])
        finder.nprobe = LISTS_READ
    finder.add(vectors)
    cosines, places = finder.search(vectors, min(NEAREST, len(ids)))
    return walk.synonym_edges(ids, np.where(places < 0, -1, ids[places]), cosines)


# ── helpers ─────────────────────────────────────────────────────────────────────


def _placed(mentions: Ids, entities: Ids, chunks: Ids) -> Ids:
    """Mentions by places instead of row ids."""
    places = [np.searchsorted(entities, mentions[:, 0]), np.searchsorted(chunks, mentions[:, 1])]
    return np.stack(places, axis=1)


def _pairs(pairs: Sequence[tuple[int, int]]) -> Ids:
    return np.array(pairs, np.int64).reshape(-1, 2)
