"""Decides which chunks to show: by a walk over the facts found, and by a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lightrag_jsonl.calls import scores_of
from lightrag_jsonl.options import Fusion
from lightrag_jsonl.protocols import Reranker
from lightrag_jsonl.querying import walk
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.ground import Ground
from lightrag_jsonl.querying.hits import NO_HITS, Hits, Ids, Probe, Scope, Seeds
from lightrag_jsonl.querying.loading import NamesOf
from lightrag_jsonl.querying.transitions import Floats
from lightrag_jsonl.sorting import among, distinct, foremost
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Chunk


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk found: entities and chunks, best first."""

    entities: Hits = NO_HITS
    chunks: Hits = NO_HITS


def walk_over(
    snapshot: Snapshot,
    ground: Ground,
    seeds: Seeds,
    probe: Probe,
    *,
    scope: Scope | None,
    names_of: NamesOf,
    entity_limit: int,
    chunk_limit: int,
) -> Walked:
    """Entities and chunks, ranked by personalized PageRank over the ground.

    The walk starts at the entities that the question names, at the ends of the best relation and,
    with little weight, at each chunk near the question. So a chunk ranks high if many facts point
    at it, if these are specific, and if it resembles the question. `names_of` gives entities' names
    by row id, for the reasons.
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
    rows = np.concatenate([ground.entities[entities], ground.chunks[passages]])
    hits = Hits.of(rows, shares[nodes], why)
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
    """The chunks in the reranker's order; with `facts`, fused with the order they came in.

    The reranker judges the `direct` chunks, or all if there are none. It compares with the question
    alone, and would drop passages that lead to the answer without resembling the question; so
    chunks that were reached through facts keep their rank in the fusion.
    """
    judged = [place for place, chunk in enumerate(chunks) if not direct or chunk.id in direct]
    found = await scores_of(reranker, question, [chunks[place].text for place in judged])
    found[np.isnan(found)] = -np.inf
    hits = Hits.of(judged, found)[foremost(found, np.array(judged, np.int64), len(judged))]
    before = Hits.of(range(len(chunks)), np.zeros(len(chunks))) if facts else NO_HITS
    fused = fuse([hits, before], how=fusion)
    return tuple(replace(chunks[place], score=score) for place, score, _ in fused.rows())


# ── the walk ────────────────────────────────────────────────────────────────────


def _best(rows: Ids, shares: Floats, allowed: Ids | None, limit: int) -> Ids:
    """The places of the allowed rows with the greatest shares, ties by row id."""
    return walk.best(shares if allowed is None else shares * among(rows, allowed), limit)


def _reasons(
    ground: Ground,
    paths: Sequence[Sequence[walk.Step]],
    starts: Sequence[walk.Seed],
    names_of: NamesOf,
) -> list[str]:
    """Paths in words, each beginning where the walk began."""
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
    """The walk's seeds, the relation's ends first: an entity that is also named is reported as named."""
    starts: list[walk.Seed] = []
    named = sorted(seeds.named)
    pairs = snapshot.graph.ends(seeds.asked.ids).tolist()
    names = names_of(dict.fromkeys((*named, *(end for ends in pairs for end in ends))))
    for ends, alike in zip(pairs, seeds.asked.scores.tolist(), strict=True):
        label = " — ".join(names.get(end, "") for end in ends)
        source, target = ground.entity_places(ends)
        starts += walk.relation_seeds(ground.graph, (source, target), alike, label)
    sure = [seeds.named[row] for row in named]
    called = [names.get(row, "") for row in named]
    return starts + walk.name_seeds(ground.graph, called, ground.entity_places(named), sure)


def _near_chunks(
    snapshot: Snapshot, ground: Ground, seeds: Seeds, probe: Probe, nearness: walk.Nearness
) -> tuple[Ids, Floats]:
    """The chunks on the ground that the question's text found: their places and their relevance."""
    found = distinct(seeds.chunk_rows)
    rows = found[among(found, ground.chunks)]
    lexical = _scores(seeds.lexical, rows, 0.0)
    dense = _scores(seeds.dense, rows, np.nan)
    unseen = np.isnan(dense)
    dense[unseen] = _cosines(snapshot, probe, rows[unseen])
    return ground.chunks.searchsorted(rows), walk.relevance(dense, lexical, nearness)


def _scores(hits: Hits, rows: Ids, missing: float) -> Floats:
    """The scores that these hits give to `rows` (ascending); `missing` for others."""
    scores = np.full(len(rows), missing)
    there = among(hits.ids, rows)
    scores[rows.searchsorted(hits.ids[there])] = hits.scores[there]
    return scores


def _cosines(snapshot: Snapshot, probe: Probe, chunks: Ids) -> Floats:
    """The cosines of chunks' vectors with the question; 0 for chunks without a vector."""
    index = snapshot.vectors["chunk"]
    if probe.vectors is None or not len(chunks) or not len(index):
        return np.zeros(len(chunks))
    return index.scores(probe.vectors[0], chunks, unknown=0.0).astype(np.float64)
