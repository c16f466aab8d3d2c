"""Which chunks to show: where a walk over the facts found leads, and what a reranker adds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.options import Fusion
from lightrag_jsonl.protocols import Reranker
from lightrag_jsonl.querying import walk
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.ground import Ground
from lightrag_jsonl.querying.hits import Hit, Ids, Probe, Scope, Seeds, Subgraph
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Chunk, Kind

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Walked:
    """Where a walk led: entities and chunks, best first."""

    entities: tuple[Hit, ...] = ()
    chunks: tuple[Hit, ...] = ()


def walk_over(
    snapshot: Snapshot,
    ground: Ground,
    subgraph: Subgraph,
    seeds: Seeds,
    probe: Probe,
    *,
    scope: Scope | None,
    name_of: Callable[[int], str],
    entity_limit: int,
    chunk_limit: int,
) -> Walked:
    """Entities and chunks by personalized PageRank over the ground.

    The walk starts at the entities that the question names, at the ends of the best relation
    and, a little, at each chunk by its own relevance: so a chunk counts by how many of the facts
    found point at it, by how telling they are, and by likeness. `name_of` an entity (by
    row id) is for saying why.
    """
    starts = _starts(snapshot, ground, seeds, name_of)
    nearness = walk.WORDS if probe.by_words else walk.MEANINGS
    chunks, near = _near_chunks(snapshot, ground, seeds, probe, nearness)
    reset = walk.reset_vector(ground.graph, starts, chunks, near, mass=nearness.mass)
    shares = ground.graph.walk(reset)
    guide = _Guide(
        ground, shares, reset, {seed.node: seed.why for seed in reversed(starts)}, name_of
    )
    split = ground.graph.entities
    allowed = (None, None) if scope is None else (scope.entities, scope.chunks)
    return Walked(
        guide.best(ground.entities, shares[:split], allowed[0], entity_limit, 0),
        guide.best(ground.chunks, shares[split:], allowed[1], chunk_limit, split),
    )


async def reranked(
    question: str,
    chunks: Sequence[Chunk],
    *,
    direct: frozenset[str],
    facts: bool,
    reranker: Reranker,
    fusion: Fusion,
) -> tuple[Chunk, ...]:
    """The chunks by the reranker's order; with `facts`, fused with the order they came in.

    The reranker judges the `direct` hits, or all where there are none. It sees only the question,
    so it would throw out passages that lead to the answer without resembling the question: what
    was reached through facts keeps its own rank beside it.
    """
    judged = [place for place, chunk in enumerate(chunks) if not direct or chunk.id in direct]
    scores = await reranker.score(question, [chunks[place].text for place in judged])
    if len(scores) != len(judged):
        raise ConfigError(f"the reranker gave {len(scores)} scores for {len(judged)} texts")
    hits = [
        Hit(place, -math.inf if math.isnan(score) else float(score))
        for place, score in zip(judged, scores, strict=True)
    ]
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    before = [Hit(place, 0.0) for place in range(len(chunks))] if facts else []
    return tuple(
        replace(chunks[hit.id], score=hit.score) for hit in fuse([hits, before], how=fusion)
    )


# ── the walk ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Guide:
    """Tells where walkers are and how they came there."""

    ground: Ground
    shares: Floats
    reset: Floats
    starts: Mapping[int, str]
    name_of: Callable[[int], str]

    def best(
        self, rows: Ids, shares: Floats, allowed: Ids | None, limit: int, offset: int
    ) -> tuple[Hit, ...]:
        """The rows where most walkers are, ties by row id; `offset` is the first row's node."""
        own = shares if allowed is None else np.where(np.isin(rows, allowed), shares, 0)
        return tuple(
            Hit(int(rows[place]), float(own[place]), self._way(int(place) + offset))
            for place in walk.best(own, limit)
        )

    def _way(self, node: int) -> str:
        """The strongest way to a node, from where the walk began."""
        steps = self.ground.graph.path(node, self.shares, self.reset)
        return walk.why(steps, self.starts, self._label)

    def _label(self, node: int) -> str:
        if node >= len(self.ground.entities):
            return "a passage"
        return self.name_of(int(self.ground.entities[node])) or "an entity"


def _starts(
    snapshot: Snapshot,
    ground: Ground,
    seeds: Seeds,
    name_of: Callable[[int], str],
) -> list[walk.Seed]:
    """The relation first, so that an entity that is named too is said to be named."""
    starts: list[walk.Seed] = []
    if seeds.asked is not None:
        low, high = snapshot.graph.ends(seeds.asked.id)
        label = f"{name_of(low)} — {name_of(high)}"
        source, target = ground.entity_places((low, high))
        starts += walk.relation_seeds(ground.graph, (source, target), seeds.asked.score, label)
    named = sorted(seeds.named)
    alike = [seeds.named[row] for row in named]
    names = [name_of(row) for row in named]
    return starts + walk.name_seeds(ground.graph, names, ground.entity_places(named), alike)


def _near_chunks(
    snapshot: Snapshot, ground: Ground, seeds: Seeds, probe: Probe, nearness: walk.Nearness
) -> tuple[Ids, Floats]:
    """The chunks on the ground that the question's text found: their places and their relevance."""
    words = {hit.id: hit.score for hit in seeds.lexical}
    found = np.array(sorted({hit.id for hit in seeds.dense} | words.keys()), np.int64)
    rows = found[np.isin(found, ground.chunks, assume_unique=True)]
    lexical = np.array([words.get(row, 0.0) for row in rows.tolist()], np.float32)
    dense = _cosines(snapshot, "chunk", probe, rows)
    return np.searchsorted(ground.chunks, rows), walk.relevance(dense, lexical, nearness)


def _cosines(snapshot: Snapshot, kind: Kind, probe: Probe, rows: Ids) -> Floats:
    """The cosines of stored vectors with the question; 0 where there is none."""
    index = snapshot.vectors[kind]
    scores = np.zeros(len(rows), np.float32)
    if probe.vectors is None or not len(index):
        return scores
    known = np.array([row in index for row in rows.tolist()], np.bool_)
    scores[known] = index.scores(probe.vectors[0], rows[known])
    return scores
