"""How a question's entities, relations and chunks are ranked: seeds, expansion, fusion, selection.

`find` is the whole search; its walk is in `retrieval/pagerank.py`. The numbers above each step may be
touched; `python -m benchmarks.ablation` measures each of them. Beside a number stands its measured worth,
in recall of mode `mix`: M is musique-a (40 questions), C is zh-cmrc2018 (60), both with the hashing
embedder, and F the frozen questions of tests/retrieval (20). "None" means that no change of the number
was more than chance on these sets.

All were measured again on six sets (musique-a, hotpotqa-train, 2wiki-101-a with MiniLM; zh-cmrc2018 and
both of dragonball by words only; 40 to 80 questions each), and rules that moved no recall by more than chance
are gone. NEAREST_RELATIONS decides what is shown beside the passages; others bound the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Chunk, Kind
from lightrag_jsonl.retrieval.filtering import (
    entity_names,
    joined_entities,
    load_entities,
    load_relations,
    visible_degrees,
    with_filter,
)
from lightrag_jsonl.retrieval.full_text import lexical_hits
from lightrag_jsonl.retrieval.hits import (
    NO_HITS,
    Hits,
    column,
    concatenated,
    fuse,
    take_turns,
)
from lightrag_jsonl.retrieval.pagerank import chunk_relevance, walk_around
from lightrag_jsonl.retrieval.passages import Passages, arrange_passages
from lightrag_jsonl.retrieval.question_names import QuestionNames, alias_pairs, question_names
from lightrag_jsonl.retrieval.scope import may_answer
from lightrag_jsonl.retrieval.task import TIES, SearchResult, SearchTask, Seeds, Subgraph
from lightrag_jsonl.storage.graph_index import distinct_rows, is_among
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.question_kinds import content_words
from lightrag_jsonl.text.terms import search_terms


def find(task: SearchTask, context: Context) -> SearchResult:
    """Everything that the mode finds, best first; nothing if the index cannot answer the question.

    Unless relations are selected by score, more relations than `top_k` are found, to choose from.
    """
    task = with_filter(task)
    seeds = find_seeds(task)
    if not may_answer(task, seeds):
        return SearchResult(context)
    text_hits = fuse_text_hits(task, seeds)
    if not task.mode.graph:
        passages = arrange_passages(task, NO_HITS, text_hits)
        chunks = passages.by_text[: task.chunk_limit]
        return load_result(task, context, Subgraph(), chunks=chunks, passages=passages)
    subgraph = expand(task, seeds)
    walk_hits = walk_around(task, seeds, subgraph)
    selected = subgraph
    if task.param.selection == "score":
        selected = relevant_facts(task, subgraph, walk_hits.relevant)
    passages = arrange_passages(task, walk_hits.chunks, text_hits)
    ranked_chunks = fuse_with_text(task, seeds, passages)
    chunks = add_text_hits(task, ranked_chunks[: walk_hits.chunk_count], passages.by_text)
    return load_result(task, context, selected, chunks=chunks, passages=passages)


# ── 1. seeds: what the question and its keywords hit ────────────────────────────

# The least number of chunks that each text search returns. M: @10 -2.5 with half, +1.2 with double.
TEXT_HITS = 100

# The least cosine at which the nearest entity counts as named (specification 3, section 4).
# M: @5 +3.8 without; C, F: none.
SURE_NAME_COSINE = 0.75

# Weight of the whole question among relations, where each keyword has 1. M: none (@10 -1.2 without).
QUESTION_WEIGHT = 2.0


def find_seeds(task: SearchTask) -> Seeds:
    """The first hits of each kind, best first."""
    limit = max(TEXT_HITS, task.chunk_limit)
    question = task.query.vectors[:1]
    (dense,) = nearest(task, "chunk", question, limit=limit, reasons=["near the question"])
    lexical = lexical_hits(task, limit) if task.param.lexical else NO_HITS
    chunks = fuse([lexical, dense])
    names = question_names(task) if task.query.low else QuestionNames({}, {})
    entities, named = find_entities(task, names, chunks)
    relations, nearest_relation = find_relations(task, chunks)
    return Seeds(
        entities=entities,
        named=named,
        spellings=tuple(names.spellings.values()),
        relations=relations,
        nearest_relation=nearest_relation,
        dense=dense,
        lexical=lexical,
    )


def find_entities(
    task: SearchTask, names: QuestionNames, chunks: Hits
) -> tuple[Hits, dict[int, float]]:
    """Entities by name and by vector: the best of each keyword, then the second of each keyword, and
    so on; without any, the names in the `chunks` near the question. And the entities that the question
    names, each with the likeness of the names.
    """
    if not task.query.low:
        return NO_HITS, {}
    likeness_by_row = dict.fromkeys(names.spellings, 1.0)
    hits_by_name = [_hits_by_name(names.spellings)]
    hits_by_vector = nearest(
        task,
        "entity",
        task.query.vectors[1 : 1 + len(task.query.low)],
        limit=task.param.top_k,
        reasons=[f"near “{keyword}”" for keyword in task.query.low],
    )
    for keyword, hits in zip(task.query.low, hits_by_vector, strict=True):
        row = names.rows_by_key.get(name_key(keyword))
        is_part_of_a_name = row not in names.spellings and names.contain(keyword)
        if row is not None and not is_part_of_a_name:
            likeness_by_row[row] = 1.0
            hits = appended(_hits_by_name({row: keyword}), hits)
        elif not is_part_of_a_name and len(hits) and hits.scores[0] >= SURE_NAME_COSINE:
            nearest_row = int(hits.ids[0])
            likeness_by_row.setdefault(nearest_row, float(hits.scores[0]))
        hits_by_name.append(hits)
    aliases = _hits_by_alias(task, column(likeness_by_row))
    named = likeness_by_row | dict.fromkeys(aliases.ids.tolist(), 1.0)
    entities = take_turns([*hits_by_name, aliases], task.param.top_k)
    if len(entities) == 0:
        ids, scores = _entities_in(task, chunks[: task.chunk_limit])
        why = "in a passage near the question"
        entities = task.ranked("entity", ids, scores, task.param.top_k, why)
    return entities, named


def find_relations(task: SearchTask, chunks: Hits) -> tuple[Hits, Hits]:
    """The relations nearest to the question and its high-level keywords; and the nearest to the
    whole question alone. Where no relation has a vector, those in the `chunks` near the question.
    """
    query = task.query
    if not (task.mode.relations or query.high):  # `high` may stand in for low-level keywords
        return NO_HITS, NO_HITS
    question = query.vectors[:1]
    high_keywords = query.vectors[1 + len(query.low) :]
    vectors = np.concatenate([question, high_keywords])
    reasons = ["near the question", *(f"near “{keyword}”" for keyword in query.high)]
    limit = task.param.top_k
    hits_by_text = nearest(task, "relation", vectors, limit=limit, reasons=reasons)
    if not any(map(len, hits_by_text)):
        near_relations = _relations_in(task, chunks[: task.chunk_limit])
        return fuse([near_relations], limit=limit), NO_HITS
    weights = [QUESTION_WEIGHT, *[1.0] * len(query.high)]
    relations = fuse(hits_by_text, weights=weights, limit=limit)
    nearest_relation = hits_by_text[0][:1]
    return relations, nearest_relation


def _relations_in(task: SearchTask, chunks: Hits) -> Hits:
    """The visible relations between names of the chunks, those of the best chunks first."""
    graph = task.snapshot.graph
    entities, scores_by_entity = _entities_in(task, chunks)
    _, relations = graph.relations_of(entities)
    ids = distinct_rows(relations)
    ids = ids[task.inside("relation", ids)]
    has_both_ends = is_among(graph.ends(ids), entities).all(axis=1)
    ids = ids[has_both_ends]
    positions_of_ends = np.searchsorted(entities, graph.ends(ids))
    scores_of_ends = scores_by_entity[positions_of_ends]
    scores = scores_of_ends.min(axis=1, initial=1)
    return task.ranked("relation", ids, scores, task.param.top_k, "in a passage near the question")


def _entities_in(task: SearchTask, chunks: Hits) -> tuple[Ids, Floats]:
    """The entities of the chunks, ascending, and scores by the best chunk of each."""
    places, entities = task.snapshot.graph.entities_of(chunks.ids)
    ids, first_mentions = np.unique(entities, return_index=True)
    return ids, 1 / (1 + places[first_mentions])


def nearest(
    task: SearchTask, kind: Kind, vectors: Vectors, *, limit: int, reasons: Sequence[str]
) -> list[Hits]:
    """The nearest rows of each vector, with the reason of the vector."""
    if not task.query.embedded:
        return [NO_HITS] * len(reasons)
    allowed = None if task.filtered is None else task.filtered[kind]
    ids, scores = task.snapshot.vectors_by_kind[kind].search(vectors, limit + TIES, allowed)
    return [
        task.settled(kind, Hits.of(row_ids, cosines, reason), limit)
        for row_ids, cosines, reason in zip(ids, scores, reasons, strict=True)
    ]


def _hits_by_name(spellings: Mapping[int, str]) -> Hits:
    reasons = [f"named “{spelling}”" for spelling in spellings.values()]
    return Hits.of([*spellings], np.ones(len(spellings)), reasons)


def _hits_by_alias(task: SearchTask, named: Ids) -> Hits:
    """Further entities for the named entities, by aliases.

    Without them a name of several forms stands for the passages with one form: on dragonball-en-multi-a
    (150 questions) @5 77.2 to 74.5, @10 90.8 to 87.5.
    """
    rows = distinct_rows(alias_pairs(task, named).ravel())
    rows = rows[~is_among(rows, named)]
    return Hits.of(rows, np.ones(len(rows)), "has another name of an entity named")


# ── 2. expansion: the relations around the seeds, and their ends ────────────────

# Times `top_k`: the relations for a model to choose from. Bounds the length of the prompt.
EDGES_TO_CHOOSE_FROM = 3

# Factor of the logarithm of a relation's weight, added to the cosine.
# F: relations -5.0 without (-10.0 in mode `local`); M: none.
OFTEN_MENTIONED = 0.1


def expand(task: SearchTask, seeds: Seeds) -> Subgraph:
    """The relations of the seed entities, fused with the relations hit directly, and the entities at
    the ends of these.
    """
    limit = task.param.top_k
    if task.param.selection != "score":
        limit *= EDGES_TO_CHOOSE_FROM
    relations = expand_relations(task, seeds, limit)
    return Subgraph(expand_entities(task, seeds, relations)[:limit], relations)


def expand_relations(task: SearchTask, seeds: Seeds, limit: int) -> Hits:
    """The relations of the seed entities and the relations hit directly, best first."""
    _, relations_of_seeds = task.snapshot.graph.relations_of(seeds.entities.ids)
    ids = distinct_rows(relations_of_seeds)
    ids = ids[task.inside("relation", ids)]
    by_relevance = task.param.ranking == "relevance"
    if by_relevance:
        scores = relation_relevance(task, ids)
        direct = seeds.relations
    else:
        scores = relation_degrees(task, ids)
        direct_degrees = relation_degrees(task, seeds.relations.ids)
        direct = seeds.relations[np.argsort(-direct_degrees, kind="stable")]
    around = task.ranked("relation", ids, scores, limit, "of an entity found")
    relations = fuse([around, direct], task.param.fusion)
    if by_relevance:
        has_named_end = is_among(task.snapshot.graph.ends(relations.ids), seeds.named_rows)
        joins_names = has_named_end[:, 0] & has_named_end[:, 1]
        relations = appended(relations[joins_names], relations)
    return relations[:limit]


def relation_relevance(task: SearchTask, relations: Ids) -> Floats:
    """Scores by likeness to the question and by weight; a relation without a vector only says that two names
    are mentioned together, and is not like any question.
    """
    cosines = task.cosines("relation", relations)
    weights = np.log1p(task.snapshot.graph.weights(relations))
    scores: Floats = np.nan_to_num(cosines) + OFTEN_MENTIONED * weights
    return scores


def relation_degrees(task: SearchTask, relations: Ids) -> Floats:
    """Scores by the sum of the degrees of both ends, then by weight (the LightRAG overview's rule)."""
    graph = task.snapshot.graph
    ends = graph.ends(relations).ravel()
    degrees_of_ends = graph.degrees(ends).reshape(-1, 2)
    degrees = degrees_of_ends.sum(axis=1)
    weights = graph.weights(relations)
    return np.asarray(degrees + weights / (1.0 + weights))


def expand_entities(task: SearchTask, seeds: Seeds, relations: Hits) -> Hits:
    """The seeds, then the ends of relations, best first."""
    ends = task.snapshot.graph.ends(relations.ids).ravel()
    _, first_places = np.unique(ends, return_index=True)
    first_places.sort()
    scores = relations.scores[first_places // 2]
    reached = Hits.of(ends[first_places], scores, "an end of a relation found")
    return appended(seeds.entities, task.settled("entity", reached))


# ── 3. fusion: the chunks of the walk and the chunks of the text search ─────────


def fuse_text_hits(task: SearchTask, seeds: Seeds) -> Hits:
    """The chunks that the question's text found, if the mode searches by text.

    Vectors that only count words find less than BM25, so their hits come after those of the words.
    Others are ranked by the scores of both: how far a passage stands above the rest tells how sure a
    search is, which ranks do not say. If the question could not be embedded, the hits stand in also
    in modes without text search.
    """
    if not task.mode.chunks and task.query.embedded:
        return NO_HITS
    if task.query.lexical:
        return appended(seeds.lexical, seeds.dense)
    hits = fuse([seeds.dense, seeds.lexical], task.param.fusion)
    if task.param.fusion != "rrf":
        return hits
    relevance = chunk_relevance(task, seeds.lexical, hits.ids, lexical_weight=1.0)
    by_relevance = np.argsort(-relevance, kind="stable")
    return task.settled("chunk", Hits(hits.ids, relevance, hits.why)[by_relevance])


# The walk can say little if all of several names are frequent: it starts at many passages at once (two companies
# with a report a year). And a question of many words says itself what its passages say ("Which company, according to
# the report on ..., and which ..."). Then the text hits count beside the walk. Mix @2/@5/@10, words only, without and
# with the rule for words: multihoprag-a, half a 59.7/79.3/88.8, 60.8/80.1/91.0, half b 65.3/84.3/91.0, 66.8/87.5/93.3;
# hotpotqa-train, half b 65.6/87.7/95.1, 65.6/88.5/94.3; others unchanged. 12 to 16 words do the same. Of names: 3 to 7 do
# the same; two names are several. 2wiki-101-a among 2,380 passages, half b, with the rarest word of each name in place of
# all its words: 72/86/90 to 70/82/86; half a and dragonball-en-multi-a: none.
FREQUENT_NAME = 5  # chunks with all words of a name; in more of them it is frequent
MANY_WORDS = 14

# The weight of the text hits, where the walk has 1, and where vectors only count words. With 0, 0.5 and 1: 120
# questions of dragonball-en-multi-a 54.4/76.8/88.2, 55.6/77.3/90.5, 53.7/76.0/89.1; 240 of -zh- 54.6/76.6/89.3,
# 53.5/77.0/88.2, 52.7/75.6/87.8. 0.35 to 0.7 do the same.
TEXT_WEIGHT_OF_WORDS = 0.5


def fuse_with_text(task: SearchTask, seeds: Seeds, passages: Passages) -> Hits:
    """The chunks of the walk, fused with the text hits if the question has many words, or if all of several
    named entities have frequent names.
    """
    if len(passages.by_text) == 0:
        return passages.walked
    has_many_words = len(content_words(task.query.question)) >= MANY_WORDS
    if not (has_many_words or has_only_frequent_names(task, seeds)):
        return passages.walked
    text_weight = TEXT_WEIGHT_OF_WORDS if task.query.lexical else 1.0
    lists = [passages.walked, passages.by_text]
    return fuse(lists, task.param.fusion, weights=[1.0, text_weight])


def has_only_frequent_names(task: SearchTask, seeds: Seeds) -> bool:
    """Whether the question names several entities, and each name stands whole in many chunks.

    The words of a name count together: as an index grows, each of them is soon frequent ("Romance on the Run").
    """
    if len(seeds.named) < 2:
        return False
    names = entity_names(task, seeds.named_rows.tolist())
    terms_of_names = [search_terms(names.get(row, "")) for row in seeds.named]
    return all(_is_frequent(task, terms) for terms in terms_of_names)


def _is_frequent(task: SearchTask, terms: Sequence[str]) -> bool:
    """Whether more than `FREQUENT_NAME` chunks have all of some terms in one part."""
    if not terms:
        return False
    chunks = task.snapshot.chunks_with_terms(terms, FREQUENT_NAME + 1)
    return len(chunks) > FREQUENT_NAME


def add_text_hits(task: SearchTask, chunks: Hits, text_hits: Hits) -> Hits:
    """The chunks of the walk, followed by the best chunk by text, if the walk has missed the chunk.

    For a reranker, followed by all chunks to rerank in a search by text alone.
    """
    if task.chunk_limit > task.param.chunk_top_k and len(text_hits) > 0:
        return appended(chunks[: task.param.chunk_top_k], text_hits[: task.chunk_limit])
    best = text_hits[:1]
    is_missing = not is_among(best.ids, chunks.ids).all()
    if is_missing and len(chunks) >= task.chunk_limit:
        chunks = chunks[: max(task.chunk_limit - 1, 1)]
    return appended(chunks, best)[: task.chunk_limit]


def appended(chunks: Hits, further: Hits) -> Hits:
    """The chunks, followed by the missing ones of the further chunks, with scores in falling order."""
    missing = further[~is_among(further.ids, chunks.ids)]
    lowest = chunks.scores.min(initial=np.inf)
    missing = Hits(missing.ids, np.minimum(missing.scores, lowest), missing.why)
    return concatenated([chunks, missing])[0]


# ── 4. selection: the facts that are shown ──────────────────────────────────────

# So many are shown, however seldom the walk visits their ends: a fact that a hub has once is seldom visited.
# The answer stands in a shown relation in 0 / 0 / 3 / 6 of 40 questions (musique-a, words only) and 7 / 11 /
# 14 / 15 of 54 (hotpotqa-train) with none, with 10, with 20, and with all relations; mean tokens of a context
# 2,366 / 2,576 / 2,791 / 3,789 and 2,744 / 3,129 / 3,514 / 5,748.
NEAREST_RELATIONS = 20
NEAREST_SHARE = 0.5  # of the cosine of the nearest one, at least


def relevant_facts(task: SearchTask, subgraph: Subgraph, visited: Ids) -> Subgraph:
    """The relations nearest to the question, and the relations with two often visited ends; the often
    visited entities, and after them the ends of the nearest relations.
    """
    entities = subgraph.entities[: task.param.top_k]
    relations = subgraph.relations[: task.param.top_k]
    ends = task.snapshot.graph.ends(relations.ids)
    is_nearest = is_among(relations.ids, nearest_to_question(task, relations.ids))
    is_visited = is_among(ends, visited).all(axis=1)
    relevant = distinct_rows(visited, ends[is_nearest].ravel())
    return Subgraph(
        entities=appended(
            entities[is_among(entities.ids, visited)], entities[is_among(entities.ids, relevant)]
        ),
        relations=relations[is_nearest | is_visited],
    )


def nearest_to_question(task: SearchTask, relations: Ids) -> Ids:
    """The `NEAREST_RELATIONS` most like the question, whatever their weights, without those that are
    much less like it than the nearest one; the first of them if there are no vectors.
    """
    cosines = task.cosines("relation", relations)
    if np.isnan(cosines).all():
        return relations[:NEAREST_RELATIONS]
    cosines = np.nan_to_num(cosines, nan=-1.0)
    nearest = np.argsort(-cosines, kind="stable")[:NEAREST_RELATIONS]
    is_near = cosines[nearest] >= NEAREST_SHARE * cosines.max()
    near_relations: Ids = relations[nearest[is_near]]
    return near_relations


# ── the result ──────────────────────────────────────────────────────────────────


def load_result(
    task: SearchTask, context: Context, facts: Subgraph, *, chunks: Hits, passages: Passages
) -> SearchResult:
    """What was found as plain values, with scores and reasons."""
    entities = load_entities(task, facts.entities.ids)
    relations = load_relations(task, facts.relations.ids)
    degrees = visible_degrees(task, facts.entities.ids).tolist()
    rows = chunks.ids.tolist()
    stored_chunks = task.snapshot.chunks(rows)
    stored_chunks = {row: stored_chunks[row] for row in rows}
    ranked_entities = {
        row: replace(entities[row], degree=degree, score=score, why=why)
        for (row, score, why), degree in zip(facts.entities.rows(), degrees, strict=True)
    }
    ranked_relations = [
        replace(relations[row], score=score, why=why) for row, score, why in facts.relations.rows()
    ]
    ranked_chunks = [
        replace(stored_chunks[row], score=score, why=why)
        for row, score, why in chunks.rows()
        if task.part is None or stored_chunks[row].text.strip()
    ]
    if passages.copies:
        context = replace(context, copies=_sources_of_copies(task, stored_chunks, passages))
    context = replace(
        context,
        entities=tuple(joined_entities(task, ranked_entities)),
        relations=tuple(ranked_relations),
        chunks=tuple(ranked_chunks),
    )
    text_chunk_ids = [
        stored_chunks[row].id for row in passages.by_text.ids.tolist() if row in stored_chunks
    ]
    return SearchResult(
        context=with_documents(task.snapshot, context),
        text_chunk_ids=tuple(text_chunk_ids),
        guaranteed_chunk_id=next(iter(text_chunk_ids), ""),
        facts=facts,
    )


def _sources_of_copies(
    task: SearchTask, chunks: Mapping[int, Chunk], passages: Passages
) -> dict[str, tuple[str, ...]]:
    """The ids of the further documents with each of the chunks, by the id of the chunk."""
    rows = {row for original in chunks for row in passages.copies.get(original, ())}
    copies = task.snapshot.chunks(rows)
    sources: dict[str, tuple[str, ...]] = {}
    for original, chunk in chunks.items():
        rows_of_copies = passages.copies.get(original, ())
        ids = [copies[row].document_id for row in rows_of_copies]
        further_ids = dict.fromkeys([id for id in ids if id != chunk.document_id])
        if further_ids:
            sources[chunk.id] = tuple(further_ids)
    return sources
