"""Expands seeds to a subgraph: the relations of found entities, and the entities at their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lightrag_jsonl.graph import KnowledgeGraph
from lightrag_jsonl.options import Fusion, Ranking
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.hits import NO_HITS, Floats, Hits, Ids, Probe, Scope, Seeds, Subgraph
from lightrag_jsonl.sorting import among, distinct, each_first, foremost, grouped
from lightrag_jsonl.storage.snapshot import Snapshot

NAMED_END = 0.25  # added to a relation's cosine if the question names an end of it
BOTH_ENDS = 1.0  # added further if it names both: the edge asked about comes first
TOLD_OFTEN = 0.1  # factor of the logarithm of a relation's weight, added to its cosine
CONNECTED = 0.1  # factor of the logarithm of an entity's degree, added to its cosine
KEYWORD_SHARE = (
    0.5  # weight of the nearest keyword, where the question has 1, in a relation's cosine
)


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
    """The relations of the seed entities, fused with those hit directly, and the entities they join."""
    ids, named_ends = _adjacent(snapshot.graph, seeds)
    if scope is not None:
        inside = among(ids, scope.relations)
        ids, named_ends = ids[inside], named_ends[inside]
    score = RANKINGS[ranking]
    around = _ranked(ids, score(snapshot, probe, ids, named_ends), limit)
    if ranking == "relevance":
        relations = _first(ids[named_ends > 1], fuse([around, seeds.relations], how=fusion))
    else:
        direct = seeds.relations.ids
        by_rank = _ranked(direct, score(snapshot, probe, direct, np.zeros(len(direct))), limit)
        relations = fuse([around, by_rank], how=fusion)
    relations = relations[:limit]
    return Subgraph(_entities(snapshot, seeds, probe, relations, fusion, limit), relations)


# ── relations ───────────────────────────────────────────────────────────────────


def _adjacent(graph: KnowledgeGraph, seeds: Seeds) -> tuple[Ids, Floats]:
    """The relations of the seed entities, ascending, and how many ends of each the question names."""
    which, ids = graph.relations_of(seeds.entities.ids)
    named = among(seeds.entities.ids, seeds.named_rows).astype(np.float64)
    each, group, _ = grouped(ids)
    return each, np.asarray(np.bincount(group, named[which], len(each)), np.float64)


def _by_relevance(snapshot: Snapshot, probe: Probe, ids: Ids, named_ends: Floats) -> Floats:
    """Scores by likeness to the question and its nearest keyword, by named ends, and by weight."""
    bonus = NAMED_END * np.minimum(named_ends, 1) + BOTH_ENDS * (named_ends > 1)
    weights = snapshot.graph.weights(ids)
    return _likeness(snapshot, probe, ids) + bonus + TOLD_OFTEN * np.log1p(weights)


def _by_degree(snapshot: Snapshot, probe: Probe, ids: Ids, named_ends: Floats) -> Floats:
    """Scores by the sum of the degrees of both ends, then by weight (the LightRAG overview's rule)."""
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
    """The cosine of each relation with the question, moved towards the nearest keyword; 0 without vectors."""
    index = snapshot.vectors["relation"]
    if probe.vectors is None or not len(ids) or not len(index):
        return np.zeros(len(ids))
    question, keywords = probe.vectors[:1], probe.vectors[1:]
    share = np.float32(KEYWORD_SHARE)
    both = (question + share * keywords) / (1 + share) if len(keywords) else question
    cosines = index.scores(both, ids, unknown=0.0)  # some may have no vector
    return np.asarray(cosines.max(axis=0), np.float64)


# ── entities ────────────────────────────────────────────────────────────────────


def _entities(
    snapshot: Snapshot,
    seeds: Seeds,
    probe: Probe,
    relations: Hits,
    fusion: Fusion,
    limit: int,
) -> Hits:
    """Entities that the question names, then seeds and ends of relations, best first.

    All of them are also ranked once more together, by their descriptions' likeness to the question.
    """
    ends = snapshot.graph.ends(relations.ids).ravel()
    first = each_first(ends)
    reached = Hits.of(ends[first], relations.scores[first // 2], "an end of a relation found")
    found = distinct(np.concatenate([reached.ids, seeds.entities.ids]))
    judged = _judged(snapshot, seeds, probe, found)
    fused = fuse([seeds.entities, reached, judged], how=fusion)
    return _first(seeds.named_rows, fused)[:limit]


def _judged(snapshot: Snapshot, seeds: Seeds, probe: Probe, ids: Ids) -> Hits:
    """Entities by the cosine of question and description, with a bonus for degree."""
    index = snapshot.vectors["entity"]
    ids = ids[index.knows(ids)]
    if probe.vectors is None or not len(ids):
        return NO_HITS
    degrees = snapshot.graph.degrees(ids)
    named = among(ids, seeds.named_rows)
    scores = index.scores(probe.vectors[0], ids) + CONNECTED * np.log1p(degrees) + named
    order = foremost(scores, ids, len(ids))
    return Hits.of(ids[order], scores[order])


# ── helpers ─────────────────────────────────────────────────────────────────────


def _first(asked: Ids, hits: Hits) -> Hits:
    """The hits, with those in `asked` (ascending) moved to the front."""
    raised = among(hits.ids, asked)
    higher = Hits(hits.ids, hits.scores + BOTH_ENDS * raised, hits.why)
    return higher[np.argsort(~raised, kind="stable")]


def _ranked(ids: Ids, scores: Floats, limit: int) -> Hits:
    order = foremost(scores, ids, limit)
    return Hits.of(ids[order], scores[order], "of an entity found")
