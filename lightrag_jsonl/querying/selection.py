"""Which chunks to show: where a walk over the facts found leads, and what a reranker adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from lightrag_jsonl.querying.loading import NamesOf
from lightrag_jsonl.sorting import among
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Chunk

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
    names_of: NamesOf,
    entity_limit: int,
    chunk_limit: int,
) -> Walked:
    """Entities and chunks by personalized PageRank over the ground.

    The walk starts at the entities that the question names, at the ends of the best relation
    and, a little, at each chunk by its own relevance: so a chunk counts by how many of the facts
    found point at it, by how telling they are, and by likeness. `names_of` entities (by
    row id) are for saying why.
    """
    starts = _starts(snapshot, ground, seeds, names_of)
    nearness = walk.WORDS if probe.by_words else walk.MEANINGS
    chunks, near = _near_chunks(snapshot, ground, seeds, probe, nearness)
    reset = walk.reset_vector(ground.graph, starts, chunks, near, mass=nearness.mass)
    shares = ground.graph.walk(reset)
    split = ground.graph.entities
    allowed = (None, None) if scope is None else (scope.entities, scope.chunks)
    entities = _best(ground.entities, shares[:split], allowed[0], entity_limit)
    passages = _best(ground.chunks, shares[split:], allowed[1], chunk_limit)
    nodes = [*entities.tolist(), *(passages + split).tolist()]
    paths = walk.Paths(ground.graph, shares, reset)
    why = _reasons(ground, [paths.to(node) for node in nodes], starts, names_of)
    rows = [*ground.entities[entities].tolist(), *ground.chunks[passages].tolist()]
    hits = tuple(map(Hit, rows, shares[nodes].tolist(), why))
    return Walked(hits[: len(entities)], hits[len(entities) :])


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


def _best(rows: Ids, shares: Floats, allowed: Ids | None, limit: int) -> Ids:
    """The places of the allowed rows where most walkers are, ties by row id."""
    return walk.best(shares if allowed is None else shares * among(rows, allowed), limit)


def _reasons(
    ground: Ground,
    paths: Sequence[Sequence[walk.Step]],
    starts: Sequence[walk.Seed],
    names_of: NamesOf,
) -> list[str]:
    """Paths in words, each from where the walk began."""
    whys = {seed.node: seed.why for seed in reversed(starts)}
    split = len(ground.entities)
    met = {step.node for path in paths for step in path if step.node < split}
    rows = dict(zip(met, ground.entities[list(met)].tolist(), strict=True))
    names = names_of(rows.values())

    def label(node: int) -> str:
        return "a passage" if node >= split else names.get(rows[node]) or "an entity"

    return [walk.why(path, whys, label) for path in paths]


def _starts(
    snapshot: Snapshot,
    ground: Ground,
    seeds: Seeds,
    names_of: NamesOf,
) -> list[walk.Seed]:
    """The relation first, so that an entity that is named too is said to be named."""
    starts: list[walk.Seed] = []
    named = sorted(seeds.named)
    asked = seeds.asked
    ends = None if asked is None else snapshot.graph.ends([asked.id])[0].tolist()
    names = names_of(dict.fromkeys((*named, *(ends or ()))))
    if asked is not None and ends is not None:
        label = " — ".join(names.get(end, "") for end in ends)
        source, target = ground.entity_places(ends)
        starts += walk.relation_seeds(ground.graph, (source, target), asked.score, label)
    alike = [seeds.named[row] for row in named]
    called = [names.get(row, "") for row in named]
    return starts + walk.name_seeds(ground.graph, called, ground.entity_places(named), alike)


def _near_chunks(
    snapshot: Snapshot, ground: Ground, seeds: Seeds, probe: Probe, nearness: walk.Nearness
) -> tuple[Ids, Floats]:
    """The chunks on the ground that the question's text found: their places and their relevance."""
    words = {hit.id: hit.score for hit in seeds.lexical}
    cosines = {hit.id: hit.score for hit in seeds.dense}
    found = np.array(sorted(cosines.keys() | words.keys()), np.int64)
    rows = found[among(found, ground.chunks)]
    lexical = np.array([words.get(row, 0.0) for row in rows.tolist()], np.float32)
    unseen = np.array([row for row in rows.tolist() if row not in cosines], np.int64)
    cosines.update(zip(unseen.tolist(), _cosines(snapshot, probe, unseen), strict=True))
    dense = np.array([cosines[row] for row in rows.tolist()], np.float32)
    return np.searchsorted(ground.chunks, rows), walk.relevance(dense, lexical, nearness)


def _cosines(snapshot: Snapshot, probe: Probe, chunks: Ids) -> list[float]:
    """The cosines of chunks' vectors with the question; 0 where there is none."""
    index = snapshot.vectors["chunk"]
    scores = np.zeros(len(chunks), np.float32)
    if probe.vectors is not None and len(index):
        known = index.knows(chunks)
        scores[known] = index.scores(probe.vectors[0], chunks[known])
    return scores.tolist()
