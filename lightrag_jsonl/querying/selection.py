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

DAMPING = 0.6  # chance to walk on (spec 3, section 4: 0.5 to 0.6); best on both tuning sets
LEXICAL_SHARE = 0.3  # of the words in common beside the cosine, in a chunk's relevance


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
    starts = _starts(snapshot, ground, subgraph, seeds, probe)
    relevance = _relevance(snapshot, probe, seeds, ground.chunks)
    reset = walk.reset_vector(ground.graph, starts, relevance)
    shares = ground.graph.walk(reset, damping=DAMPING)
    guide = _Guide(ground, shares, reset, {seed.node: seed.why for seed in reversed(starts)}, name_of)
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
        order = np.argsort(-own, kind="stable")[:limit]
        return tuple(
            Hit(int(rows[place]), float(own[place]), self._way(int(place) + offset))
            for place in order
            if own[place] > 0
        )

    def _way(self, node: int) -> str:
        """The strongest way to a node, from its seed."""
        first, *steps = self.ground.graph.path(node, self.shares, self.reset, damping=DAMPING)
        told = [self.starts.get(first.node) or self._name(first.node) or "near the question"]
        for step in steps:
            name = self._name(step.node)
            told.append(f"{step.by} of {name}" if name else step.by)
        return " → ".join(told)

    def _name(self, node: int) -> str:
        if node >= len(self.ground.entities):
            return ""
        name = self.name_of(int(self.ground.entities[node]))
        return f"“{name}”" if name else "an entity"


def _starts(
    snapshot: Snapshot, ground: Ground, subgraph: Subgraph, seeds: Seeds, probe: Probe
) -> list[walk.Seed]:
    named = sorted(seeds.named)
    places = ground.entity_places(named)
    reasons = {hit.id: hit.why for hit in seeds.entities}
    starts = [
        replace(seed, why=reasons.get(int(ground.entities[seed.node]), ""))
        for seed in walk.name_seeds(
            ground.graph, [""] * len(named), places, [seeds.named[row] for row in named]
        )
    ]
    for hit in subgraph.relations[:1]:
        low, high = ground.entity_places(snapshot.graph.ends(hit.id))
        near = float(_cosines(snapshot, "relation", probe, np.array([hit.id], np.int64))[0])
        starts += [
            replace(seed, why="an end of the best relation")
            for seed in walk.relation_seeds(ground.graph, low, high, near, "")
        ]
    return starts


def _relevance(snapshot: Snapshot, probe: Probe, seeds: Seeds, chunks: Ids) -> Floats:
    """How alike chunks are to the question: by vectors and, where asked, by words."""
    near = _cosines(snapshot, "chunk", probe, chunks)
    highest = float(near.max(initial=0.0))
    relevance = near / np.float32(highest) if highest > 0 else near
    if not seeds.lexical:
        return relevance
    best = max(seeds.lexical[0].score, 1e-9)
    scores = {hit.id: hit.score / best for hit in seeds.lexical}
    words = np.array([scores.get(row, 0.0) for row in chunks.tolist()], np.float32)
    return relevance + np.float32(LEXICAL_SHARE) * words


def _cosines(snapshot: Snapshot, kind: Kind, probe: Probe, rows: Ids) -> Floats:
    """The cosines of stored vectors with the question; 0 where there is none."""
    index = snapshot.vectors[kind]
    scores = np.zeros(len(rows), np.float32)
    if probe.vectors is None or not len(index):
        return scores
    known = np.array([row in index for row in rows.tolist()], np.bool_)
    scores[known] = index.scores(probe.vectors[0], rows[known])
    return scores
