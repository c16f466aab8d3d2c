"""Searches the index for one question, within one snapshot: seeds, the graph around them, the walk."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lightrag_jsonl.core.types import Context, Relation
from lightrag_jsonl.retrieval import facts
from lightrag_jsonl.retrieval.fusion import (
    NO_HITS,
    Hits,
    SearchTask,
    Seeds,
    Subgraph,
    distinct,
    fuse,
    joined,
)
from lightrag_jsonl.retrieval.pagerank import walk_around
from lightrag_jsonl.retrieval.scope import may_answer
from lightrag_jsonl.retrieval.seeds import find_seeds
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import StoreView

AROUND = 2  # times `top_k`: the entities and relations that the walk starts around
NEAREST_RELATIONS = 10  # are shown, however seldom the walk visits their ends
EDGES_TO_CHOOSE_FROM = 3  # times `top_k`: the relations for a later selection
WORD_COUNTS = 0.1  # weight of vectors that only count words, where BM25 has 1
NAMED_END = 0.25  # added to a relation's cosine if the question names an end of it
BOTH_ENDS = 1.0  # added further if it names both: the edge asked about comes first
OFTEN_MENTIONED = 0.1  # factor of the logarithm of a relation's weight, added to its cosine
CONNECTED = 0.1  # factor of the logarithm of an entity's degree, added to its cosine
KEYWORD_SHARE = 0.5  # weight of the nearest keyword beside the question's 1


def search(task: SearchTask, context: Context) -> tuple[Context, list[str]]:
    """The context with everything that the mode finds, best first, and without a prompt; and the
    ids of the chunks that the question's text found, if the mode searches those, best first.

    Unless relations are selected by score, more of them than `top_k` are found, to choose from.
    """
    task = facts.with_filter(task)
    mode, param, seeds = task.mode, task.param, find_seeds(task)
    if not may_answer(task, seeds):
        return context, []
    weights = [WORD_COUNTS if task.query.lexical else 1.0, 1.0]
    by_text = fuse([seeds.dense, seeds.lexical], param.fusion, weights=weights)
    by_words_alone = not task.query.embedded  # then passages stand in, also in modes without them
    by_text = by_text if mode.chunks or by_words_alone else NO_HITS
    if not mode.graph:
        return _loaded(task, context, Subgraph(), by_text[: task.chunk_limit], by_text)
    choose = param.selection != "score"
    subgraph = expand(task, seeds, (EDGES_TO_CHOOSE_FROM if choose else AROUND) * param.top_k)
    walked = walk_around(task, seeds, subgraph)
    shown = subgraph if choose else _relevant(task, subgraph, walked.relevant)
    if mode.ranked_by_walk:
        is_relevant = np.isin(walked.entities.ids, walked.relevant)
        shown = shown._replace(entities=walked.entities[is_relevant])
    return _loaded(task, context, shown, _with_text(task, walked.chunks, by_text), by_text)


def _with_text(task: SearchTask, found: Hits, by_text: Hits) -> Hits:
    """Chunks that the graph ranked, with those that a search without it would show, which come last:
    the first of these, or where a reranker will choose, all that it would choose from.
    """
    limit, shown = task.chunk_limit, task.param.chunk_top_k
    reranked = limit > shown and len(by_text) > 0
    wanted = by_text[: limit if reranked else 1]
    found = found[:shown] if reranked else found
    missing = wanted[~np.isin(wanted.ids, found.ids)]
    if not reranked and len(missing) and len(found) >= limit:
        found = found[: max(limit - 1, 1)]
    least = found.scores.min(initial=np.inf)
    last = Hits(missing.ids, np.minimum(missing.scores, least), missing.why)
    every = joined([found, last])[0]
    return every if reranked else every[:limit]


def _relevant(task: SearchTask, subgraph: Subgraph, visited: Ids) -> Subgraph:
    """The relations nearest to the question, whatever the visits of their ends, and of the other ones
    those with two ends that the walk visits often enough; and the entities that it visits so, before
    those that only the nearest relations join.
    """
    entities = subgraph.entities[: task.param.top_k]
    relations = subgraph.relations[: task.param.top_k]
    ends = task.snapshot.graph.ends(relations.ids)
    is_nearest = np.isin(relations.ids, _nearest_relations(task, relations.ids))
    is_visited = np.isin(ends, visited).all(axis=1)
    relevant = distinct(visited, ends[is_nearest].ravel())
    return Subgraph(
        entities=_first(visited, entities[np.isin(entities.ids, relevant)]),
        relations=relations[is_nearest | is_visited],
    )


def _nearest_relations(task: SearchTask, relations: Ids) -> Ids:
    """The `NEAREST_RELATIONS` of some relations, by their likeness to the question alone: the weights
    of what is often said do not count here. Without vectors, these are the first.
    """
    likeness = task.snapshot.vector_scores("relation", task.query.vectors[:1], relations)[0]
    order = np.argsort(-np.nan_to_num(likeness, nan=-1.0), kind="stable")
    return relations[order[:NEAREST_RELATIONS]]


def with_sources(
    view: StoreView,
    found: Context,
    direct: Sequence[str],
    relations: Sequence[Relation],
    limit: int,
) -> Context:
    """What goes with the relations that a model chose (specification 2, section 1).

    These are their chunks that were found, the chunks found by text that state none of the
    relations to choose from (the selection says nothing about these), and then their other chunks.
    Entities are left out, since their descriptions may say what was not chosen. If the model chose
    none, these are all chunks found by text.
    """
    if not relations:
        hit = tuple([chunk for chunk in found.chunks if chunk.id in set(direct)])[:limit]
        return replace(found, entities=(), chunks=hit, none_selected=True)
    chosen = dict.fromkeys([id for relation in relations for id in relation.chunk_ids])
    judged = {id for relation in found.relations for id in relation.chunk_ids}
    wanted = chosen.keys() | (set(direct) - judged)
    kept = [chunk for chunk in found.chunks if chunk.id in wanted]
    missing = view.chunks(ids=chosen.keys() - {chunk.id for chunk in kept})
    others = {chunk.id: chunk for chunk in missing.values()}
    chunks = (*kept, *(others[id] for id in chosen if id in others))[:limit]
    return with_documents(view, replace(found, entities=(), chunks=chunks))


def _loaded(
    task: SearchTask, context: Context, shown: Subgraph, hits: Hits, by_text: Hits
) -> tuple[Context, list[str]]:
    """What was found as plain values, with scores and reasons; these are valid after the snapshot."""
    entities, relations = facts.facts(task, shown.entities.ids, shown.relations.ids)
    degrees = facts.degrees(task, shown.entities.ids).tolist()
    ranked = zip(shown.entities.rows(), degrees, strict=True)
    stored = task.snapshot.chunks(hits.ids.tolist())
    direct = [stored[row].id for row in by_text.ids.tolist() if row in stored]
    context = replace(
        context,
        entities=tuple(
            [replace(entities[r], degree=d, score=s, why=why) for (r, s, why), d in ranked]
        ),
        relations=tuple(
            [replace(relations[r], score=s, why=why) for r, s, why in shown.relations.rows()]
        ),
        chunks=tuple([replace(stored[r], score=s, why=why) for r, s, why in hits.rows()]),
    )
    return with_documents(task.snapshot, context), direct


# ── from seeds to a subgraph ────────────────────────────────────────────────────


def expand(task: SearchTask, seeds: Seeds, limit: int) -> Subgraph:
    """The relations of the seed entities, fused with those hit directly, and the entities they join."""
    which, around = task.snapshot.graph.relations_of(seeds.entities.ids)
    is_named = np.isin(seeds.entities.ids, seeds.named_rows)
    ids, group = np.unique(around, return_inverse=True)
    named_ends = np.bincount(group, is_named[which], len(ids)).astype(np.float64)
    inside = task.inside("relation", ids)
    ids, named_ends = ids[inside], named_ends[inside]
    by_relevance, direct = task.param.ranking == "relevance", seeds.relations
    if by_relevance:
        scores = _relevance(task, ids, named_ends)
    else:
        scores = _degrees(task, ids)
        direct = direct[np.lexsort((direct.ids, -_degrees(task, direct.ids)))]
    lists = [Hits.ranked(ids, scores, limit, "of an entity found"), direct]
    relations = fuse(lists, task.param.fusion)
    if by_relevance:
        relations = _first(ids[named_ends > 1], relations)
    relations = relations[:limit]
    return Subgraph(_entities(task, seeds, relations)[:limit], relations)


def _relevance(task: SearchTask, ids: Ids, named_ends: Floats) -> Floats:
    """Scores by likeness to the question and its nearest keyword, by named ends, and by weight."""
    scores = NAMED_END * np.minimum(named_ends, 1) + BOTH_ENDS * (named_ends > 1)
    scores += OFTEN_MENTIONED * np.log1p(task.snapshot.graph.weights(ids))
    wanted, keywords = task.query.vectors[:1], task.query.vectors[1:]
    if len(keywords):
        wanted = ((wanted + KEYWORD_SHARE * keywords) / (1 + KEYWORD_SHARE)).astype(np.float32)
    cosines = task.snapshot.vector_scores("relation", wanted, ids)
    return np.asarray(scores + np.nan_to_num(cosines).max(axis=0))


def _degrees(task: SearchTask, ids: Ids) -> Floats:
    """Scores by the sum of the degrees of both ends, then by weight (the LightRAG overview's rule)."""
    graph = task.snapshot.graph
    degrees = graph.degrees(graph.ends(ids).ravel()).reshape(-1, 2).sum(axis=1)
    weights = graph.weights(ids)
    return np.asarray(degrees + weights / (1.0 + weights))


def _entities(task: SearchTask, seeds: Seeds, relations: Hits) -> Hits:
    """Entities that the question names, then seeds and ends of relations, best first.

    All of them are also ranked once more together, by their likeness to the question.
    """
    ends, named = task.snapshot.graph.ends(relations.ids).ravel(), seeds.named_rows
    first = np.sort(np.unique(ends, return_index=True)[1])
    reached = Hits.of(ends[first], relations.scores[first // 2], "an end of a relation found")
    ids = distinct(ends, seeds.entities.ids)
    scores = task.snapshot.vector_scores("entity", task.query.vectors[:1], ids)[0]
    scores += CONNECTED * np.log1p(task.snapshot.graph.degrees(ids)) + np.isin(ids, named)
    known = ~np.isnan(scores)
    alike = Hits.ranked(ids[known], scores[known])
    return _first(named, fuse([seeds.entities, reached, alike], task.param.fusion))


def _first(asked: Ids, hits: Hits) -> Hits:
    """The hits, with those in `asked` moved to the front."""
    raised = np.isin(hits.ids, asked)
    higher = Hits(hits.ids, hits.scores + BOTH_ENDS * raised, hits.why)
    return higher[np.argsort(~raised, kind="stable")]
