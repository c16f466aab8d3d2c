"""Expands seeds to a subgraph: the relations of found entities, and the entities at their ends."""

from __future__ import annotations

import numpy as np

from lightrag_jsonl.retrieval.fusion import Hits, SearchTask, Seeds, Subgraph, among, distinct, fuse
from lightrag_jsonl.storage.vector_index import Floats, Ids

NAMED_END = 0.25  # added to a relation's cosine if the question names an end of it
BOTH_ENDS = 1.0  # added further if it names both: the edge asked about comes first
OFTEN_MENTIONED = 0.1  # factor of the logarithm of a relation's weight, added to its cosine
CONNECTED = 0.1  # factor of the logarithm of an entity's degree, added to its cosine
KEYWORD_SHARE = 0.5  # weight of the nearest keyword beside the question's 1


def expand(task: SearchTask, seeds: Seeds, limit: int) -> Subgraph:
    """The relations of the seed entities, fused with those hit directly, and the entities they join."""
    named = seeds.named_rows
    which, around = task.snapshot.graph.relations_of(seeds.entities.ids)
    is_named = among(seeds.entities.ids, named)
    ids, group = np.unique(around, return_inverse=True)
    named_ends = np.bincount(group, is_named[which], len(ids)).astype(np.float64)
    if task.filtered is not None:
        inside = among(ids, task.filtered.relation)
        ids, named_ends = ids[inside], named_ends[inside]
    direct = seeds.relations
    if task.param.ranking == "relevance":
        scores = _relevance(task, ids, named_ends)
    else:
        scores = _degrees(task, ids)
        direct = direct[np.lexsort((direct.ids, -_degrees(task, direct.ids)))]
    lists = [Hits.ranked(ids, scores, limit, "of an entity found"), direct]
    relations = fuse(lists, task.param.fusion)
    if task.param.ranking == "relevance":
        relations = _first(ids[named_ends > 1], relations)
    relations = relations[:limit]
    return Subgraph(_entities(task, seeds, named, relations)[:limit], relations)


def _relevance(task: SearchTask, ids: Ids, named_ends: Floats) -> Floats:
    """Scores by likeness to the question and its nearest keyword, by named ends, and by weight."""
    scores = NAMED_END * np.minimum(named_ends, 1) + BOTH_ENDS * (named_ends > 1)
    scores += OFTEN_MENTIONED * np.log1p(task.snapshot.graph.weights(ids))
    if task.query.vectors is not None:
        wanted, keywords = task.query.vectors[:1], task.query.vectors[1:]
        if len(keywords):
            wanted = ((wanted + KEYWORD_SHARE * keywords) / (1 + KEYWORD_SHARE)).astype(np.float32)
        cosines = task.snapshot.vector_scores("relation", wanted, ids)
        scores += np.nan_to_num(cosines).max(axis=0)
    return scores


def _degrees(task: SearchTask, ids: Ids) -> Floats:
    """Scores by the sum of the degrees of both ends, then by weight (the LightRAG overview's rule)."""
    graph = task.snapshot.graph
    degrees = graph.degrees(graph.ends(ids).ravel()).reshape(-1, 2).sum(axis=1)
    weights = graph.weights(ids)
    return np.asarray(degrees + weights / (1.0 + weights))


def _entities(task: SearchTask, seeds: Seeds, named: Ids, relations: Hits) -> Hits:
    """Entities that the question names, then seeds and ends of relations, best first.

    All of them are also ranked once more together, by their likeness to the question.
    """
    ends = task.snapshot.graph.ends(relations.ids).ravel()
    first = np.sort(np.unique(ends, return_index=True)[1])
    reached = Hits.of(ends[first], relations.scores[first // 2], "an end of a relation found")
    lists = [seeds.entities, reached]
    if task.query.vectors is not None:
        ids = distinct(ends, seeds.entities.ids)
        scores = task.snapshot.vector_scores("entity", task.query.vectors[:1], ids)[0]
        scores += CONNECTED * np.log1p(task.snapshot.graph.degrees(ids)) + among(ids, named)
        known = ~np.isnan(scores)
        lists.append(Hits.ranked(ids[known], scores[known]))
    return _first(named, fuse(lists, task.param.fusion))


def _first(asked: Ids, hits: Hits) -> Hits:
    """The hits, with those in `asked` moved to the front."""
    raised = among(hits.ids, np.sort(asked))
    higher = Hits(hits.ids, hits.scores + BOTH_ENDS * raised, hits.why)
    return higher[np.argsort(~raised, kind="stable")]
