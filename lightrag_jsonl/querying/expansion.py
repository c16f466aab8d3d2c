"""From seeds to a subgraph: the relations of the entities found, the entities at their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.graph import KnowledgeGraph
from lightrag_jsonl.options import Fusion, Ranking
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.hits import Hit, Ids, Probe, Scope, Seeds, Subgraph
from lightrag_jsonl.sorting import among, foremost, grouped
from lightrag_jsonl.storage.snapshot import Snapshot

Floats = npt.NDArray[np.float64]

NAMED_END = 0.25  # added to the cosine for each end that the question names
BOTH_ENDS = 1.0  # added where both are named: the asked edge stands before all others
TOLD_OFTEN = 0.1  # of the logarithm of its weight, beside a relation's cosine
CONNECTED = 0.1  # of the logarithm of its degree, beside an entity's cosine
KEYWORD_SHARE = 0.5  # of the nearest keyword beside the question in a relation's relevance


def expand(
    snapshot: Snapshot,
    seeds: Seeds,
    probe: Probe,
    *,
    scope: Scope | None,
    ranking: Ranking,
    fusion: Fusion,
    limit: int,
) -> Subgraph:
    """The relations of the seeds, fused with those hit directly, and the entities they join."""
    ids, named_ends = _adjacent(snapshot.graph, seeds)
    if scope is not None:
        inside = among(ids, scope.relations)
        ids, named_ends = ids[inside], named_ends[inside]
    score = RANKINGS[ranking]
    around = _ranked(ids, score(snapshot, probe, ids, named_ends), limit)
    if ranking == "relevance":
        asked = frozenset(ids[named_ends > 1].tolist())
        relations = _first(asked, fuse([around, seeds.relations], how=fusion))
    else:
        direct = np.array([hit.id for hit in seeds.relations], np.int64)
        by_rank = _ranked(direct, score(snapshot, probe, direct, np.zeros(len(direct))), limit)
        relations = fuse([around, by_rank], how=fusion)
    relations = relations[:limit]
    return Subgraph(_entities(snapshot, seeds, probe, relations, fusion, limit), relations)


# ── relations ───────────────────────────────────────────────────────────────────


def _adjacent(graph: KnowledgeGraph, seeds: Seeds) -> tuple[Ids, Floats]:
    """The relations of the seed entities, ascending, and how many ends of each are named."""
    which, ids = graph.relations_of([hit.id for hit in seeds.entities])
    named = np.array([float(hit.id in seeds.named) for hit in seeds.entities])
    each, group, _ = grouped(ids)
    return each, np.asarray(np.bincount(group, named[which], len(each)), np.float64)


def _by_relevance(snapshot: Snapshot, probe: Probe, ids: Ids, named_ends: Floats) -> Floats:
    """By likeness to the question and its nearest keyword; named ends first, what is told often too."""
    bonus = NAMED_END * np.minimum(named_ends, 1) + BOTH_ENDS * (named_ends > 1)
    weights = snapshot.graph.weights(ids)
    return _likeness(snapshot, probe, ids) + bonus + TOLD_OFTEN * np.log1p(weights)


def _by_degree(snapshot: Snapshot, probe: Probe, ids: Ids, named_ends: Floats) -> Floats:
    """By the sum of the degrees of both ends, then by weight (the LightRAG overview's rule)."""
    graph = snapshot.graph
    degrees = graph.degrees(graph.ends(ids).ravel()).reshape(-1, 2).sum(axis=1)
    weights = graph.weights(ids)
    ranks: Floats = degrees + weights / (1.0 + weights)
    return ranks


RANKINGS: Mapping[Ranking, Callable[[Snapshot, Probe, Ids, Floats], Floats]] = {
    "relevance": _by_relevance,
    "degree": _by_degree,
}


def _likeness(snapshot: Snapshot, probe: Probe, ids: Ids) -> Floats:
    """How alike relations are to the question and its nearest keyword; without vectors, 0."""
    index = snapshot.vectors["relation"]
    if probe.vectors is None or not len(ids) or not len(index):
        return np.zeros(len(ids))
    asked = probe.vectors
    if len(asked) > 1:
        asked = (asked[:1] + KEYWORD_SHARE * asked[1:]) / (1.0 + KEYWORD_SHARE)
    cosines = index.scores(asked, ids, unknown=0.0)  # some may not be embedded
    return cosines.max(axis=0).astype(np.float64)


# ── entities ────────────────────────────────────────────────────────────────────


def _entities(
    snapshot: Snapshot,
    seeds: Seeds,
    probe: Probe,
    relations: Sequence[Hit],
    fusion: Fusion,
    limit: int,
) -> tuple[Hit, ...]:
    """Seeds and the ends of relations, the more relevant the relation the earlier.

    Both are judged once more together, by what is told of them beside the whole question.
    """
    reached: dict[int, Hit] = {}
    ends = snapshot.graph.ends([hit.id for hit in relations]).tolist()
    for hit, pair in zip(relations, ends, strict=True):
        for end in pair:
            if end not in reached:
                reached[end] = Hit(end, hit.score, "an end of a relation found")
    found = {hit.id: hit for hit in (*reached.values(), *seeds.entities)}
    judged = _judged(snapshot, seeds, probe, found)
    return fuse([seeds.entities, tuple(reached.values()), judged], how=fusion, limit=limit)


def _judged(
    snapshot: Snapshot, seeds: Seeds, probe: Probe, found: Mapping[int, Hit]
) -> tuple[Hit, ...]:
    """Entities by the cosine of question and description; much-connected ones a little earlier."""
    index = snapshot.vectors["entity"]
    ids = np.fromiter(found, np.int64)
    ids = ids[index.knows(ids)]
    if probe.vectors is None or not len(ids):
        return ()
    degrees = snapshot.graph.degrees(ids)
    named = among(ids, seeds.named_rows)
    scores = index.scores(probe.vectors[0], ids) + CONNECTED * np.log1p(degrees) + named
    return tuple(found[row] for row in ids[np.lexsort((ids, -scores))].tolist())


# ── helpers ─────────────────────────────────────────────────────────────────────


def _first(asked: frozenset[int], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits in `asked` before all others."""
    raised = [hit._replace(score=hit.score + BOTH_ENDS) for hit in hits if hit.id in asked]
    return (*raised, *(hit for hit in hits if hit.id not in asked))


def _ranked(ids: Ids, scores: Floats, limit: int) -> tuple[Hit, ...]:
    order = foremost(scores, ids, limit)
    return tuple(
        Hit(row, score, "of an entity found")
        for row, score in zip(ids[order].tolist(), scores[order].tolist(), strict=True)
    )
