"""The walk: personalized PageRank around the entities, relations and chunks that a question led to.

The graph is the neighborhood of what was found: the chunks that mention the entities, the entities of
these chunks, and both once more. It is made for each question, so the cost does not grow with the
index, and nothing is kept between questions. Nodes are numbers: entities first (0 to E - 1), then chunks.
`walk_around` is the whole step: starts, shares of time, most visited nodes, and the path to each. The
numbers are measured as those of `retrieval/ranking.py` are; M, C and F are the same questions.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from lightrag_jsonl.retrieval.filtering import entity_names
from lightrag_jsonl.retrieval.hits import EQUAL, Hits, column
from lightrag_jsonl.retrieval.passages import SPARE_CHUNKS
from lightrag_jsonl.retrieval.task import SearchTask, Seeds, Subgraph
from lightrag_jsonl.storage.graph_index import distinct_rows, is_among
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.text.terms import search_terms

# Bounds of the time that a walk takes on a large index.
CHUNK_LIMITS = (200, 300)  # chunks reached by each of the two hops
FREQUENT = 200  # mentions or relations; entities with more of them lead no further

# The threshold of HippoRAG (NeurIPS 2024). Frozen questions of tests/retrieval: no synonyms, no difference.
SYNONYM_COSINE = 0.8  # the least cosine of two entities that count as nearly the same
SYNONYMS = 5  # each entity gets edges to at most so many synonyms

# Exponent of a chunk's relevance, where it starts a walk and where a named entity leads to it.
# As a start: C: @2 -8.3, @5 -3.3 with 0, that is, with equal starts; M: @5 +7.1 with 8. After a named
# entity, mix @2/@5 with 0 and 4 (MiniLM; E and Z: dragonball-en-multi-a and -zh-, 200 questions each, words
# only): musique-a 59.4/83.1, 60.8/83.1; hotpotqa-train 67.5/89.5, 69.5/90.5; 2wiki-101-a 77.0/96.0, 78.0/96.0;
# E 37.6/65.2, 44.0/72.1; Z 40.8/69.8, 39.8/71.1. After every entity, multi-hop questions lose: @5 83.1 to 79.8
# on musique-a.
SHARPNESS = 4

# Relevance of the last chunk that is a start or preferred, where the first has 1. M, C, F: none.
LEAST_RELEVANCE = 0.1

# How much lexical relevance counts for the walk, where dense relevance has 1. Mix @2/@5/@10 with 0.75 in place of 0.5
# (MiniLM): musique-a -0.8/-1.2/+0.9, hotpotqa-train -2.0/0/0, 2wiki-101-a +1.0/0/0. F: passages -5.0 without
# words, in mode `local`.
LEXICAL_WEIGHT = 0.5
LEXICAL_WEIGHT_OF_WORDS = 2.0  # where vectors only count words. C: @2 -11.7, @5 -5.0 without

# What an edge says of the node that it leads to; the type of an edge is a position here.
EDGE_TYPES = ("mentioned with", "related to", "nearly the same as")


class WalkGraph(Struct, frozen=True, kw_only=True):
    """Entities and chunks (row ids, ascending) as nodes, with the steps between them.

    A step leads from a sender to a receiver, with a probability and a type; the steps from a node
    add up to 1.
    """

    entities: Ids
    chunks: Ids
    senders: Ids
    receivers: Ids
    chances: Floats
    edge_types: Ids


def neighborhood(task: SearchTask, seeds: Seeds, subgraph: Subgraph) -> WalkGraph:
    """The graph around the entities and relations found, and around the chunks near the question: all
    near chunks if the mode searches chunks, else the near chunks with an entity found.
    """
    index = task.snapshot.graph
    leading = subgraph.entities.ids[: task.param.top_k]
    relation_ends = index.ends(subgraph.relations.ids).ravel()
    core = distinct_rows(subgraph.entities.ids, relation_ends)
    chunks = seeds.chunks if task.mode.chunks else _mentioning(task, seeds.chunks, core)
    mentioned = core
    for limit in CHUNK_LIMITS:
        reached = _chunks_around(task, distinct_rows(mentioned), limit)
        chunks = distinct_rows(chunks, reached)
        chunk_positions, mentioned = index.entities_of(chunks)
    entities = distinct_rows(mentioned, core)
    mentions = np.stack([entities.searchsorted(mentioned), chunk_positions], axis=1)
    relations = _relation_edges(task, entities, core, subgraph)
    synonyms, cosines = synonym_pairs(task.snapshot, leading, core)
    return connect_nodes(
        entities,
        chunks,
        mentions=mentions,
        preferences=chunk_preferences(task, seeds, entities, chunks, mentions=mentions),
        relations=relations,
        synonyms=(entities.searchsorted(synonyms), cosines),
    )


def connect_nodes(
    entities: Ids,
    chunks: Ids,
    *,
    mentions: Ids,
    preferences: Floats,
    relations: Ids,
    synonyms: tuple[Ids, Floats],
) -> WalkGraph:
    """The graph with edges of all `EDGE_TYPES`, each in both directions.

    Edges have shape (n, 2). A row of `mentions` has the positions of an entity and of a chunk, a row of
    the other types the positions of two entities. Synonyms come with weights. The step from the entity
    of a mention to its chunk is weighted by the mention's `preferences`, besides its rarity.
    """
    weighted_edges = (  # in the order of `EDGE_TYPES`
        (mentions + np.array([0, len(entities)]), mention_rarity(mentions, len(chunks))),
        (relations, np.ones(len(relations))),
        synonyms,
    )
    pairs = np.concatenate([edges for edges, _ in weighted_edges])
    weights_of_pairs = np.concatenate([weights for _, weights in weighted_edges])
    weights = np.tile(weights_of_pairs, 2)
    weights[: len(mentions)] *= preferences
    edge_counts = [len(edges) for edges, _ in weighted_edges]
    edge_types = np.repeat(range(len(EDGE_TYPES)), edge_counts)
    turned_pairs = pairs[:, ::-1]
    senders, receivers = np.concatenate([pairs, turned_pairs]).T
    totals = np.bincount(senders, weights, len(entities) + len(chunks))
    return WalkGraph(
        entities=entities,
        chunks=chunks,
        senders=senders,
        receivers=receivers,
        chances=weights / totals[senders],
        edge_types=np.tile(edge_types, 2),
    )


def mention_rarity(mentions: Ids, chunk_count: int) -> Floats:
    """The weight of each mention: the fewer chunks mention an entity, the more each mention weighs.

    ln(1 + chunks / chunks that mention the entity), a smoothed inverse document frequency.
    """
    entities = mentions[:, 0]
    frequencies = np.bincount(entities)
    rarity: Floats = np.log1p(chunk_count / frequencies[entities])
    return rarity


def chunk_preferences(
    task: SearchTask, seeds: Seeds, entities: Ids, chunks: Ids, *, mentions: Ids
) -> Floats:
    """How much a walker at the entity of each mention prefers the chunk, from `LEAST_RELEVANCE` **
    `SHARPNESS` to 1.

    Among the chunks of an entity that the question names, the chunk most relevant to the question is
    preferred. Other entities have no preference: chunks there answer what the question does not say.
    """
    entity_positions, chunk_positions = mentions.T
    relevance_of_chunks = chunk_relevance(task, seeds.lexical, chunks)
    relevance = relevance_of_chunks[chunk_positions]
    lowest = np.full(len(entities), np.inf)
    np.minimum.at(lowest, entity_positions, relevance)
    highest = np.full(len(entities), -np.inf)
    np.maximum.at(highest, entity_positions, relevance)
    above_lowest = relevance - lowest[entity_positions]
    width = (highest - lowest)[entity_positions]
    is_named = is_among(entities, seeds.named_rows)
    has_choice = is_named[entity_positions] & (width > 0)
    relative_relevance = np.divide(
        above_lowest, width, out=np.ones(len(mentions)), where=has_choice
    )
    return sharpened(relative_relevance)


# ── relevance of chunks ─────────────────────────────────────────────────────────


def chunk_relevance(
    task: SearchTask, lexical_hits: Hits, chunks: Ids, *, lexical_weight: float | None = None
) -> Floats:
    """How relevant chunks are to the question: the scores by vectors and by words, each scaled to 1 at
    most, added up; words by default with their weight for the walk.
    """
    if lexical_weight is None:
        lexical_weight = LEXICAL_WEIGHT_OF_WORDS if task.query.lexical else LEXICAL_WEIGHT
    cosines = task.cosines("chunk", chunks)
    lexical_scores = {row: score for row, score, _ in lexical_hits.rows()}
    lexical = np.array([lexical_scores.get(chunk, 0.0) for chunk in chunks.tolist()])
    highest = lexical.max(initial=0.0) or 1.0
    dense_relevance = spread(np.nan_to_num(cosines, nan=0.0))
    lexical_relevance = lexical_weight * lexical / highest
    relevance: Floats = dense_relevance + lexical_relevance
    return relevance


def without_parts_of_names(task: SearchTask, seeds: Seeds) -> Hits:
    """The hits by words, in their order; a word of a name counts only in the chunks with the whole name.

    The more texts there are, the more of them are about others with the same first name; without this they
    stand before the second hop.
    """
    hits = seeds.lexical
    rows = hits.ids.tolist()
    scores = hits.scores.copy()
    question_words = frozenset(search_terms(task.query.question))
    for name in entity_names(task, seeds.named_rows.tolist()).values():
        words = search_terms(name)
        if len(words) < 2 or not question_words.issuperset(words):
            continue
        scores_by_word = [
            dict(task.snapshot.search_terms([word], len(rows), rows)) for word in words
        ]
        parts = np.array(
            [[scores_of_word.get(row, 0.0) for row in rows] for scores_of_word in scores_by_word]
        )
        has_whole_name = parts.all(axis=0)
        scores -= np.where(has_whole_name, 0.0, parts.sum(axis=0))
    return Hits(hits.ids, np.maximum(scores, 0.0), hits.why)


def sharpened(relevance: Floats) -> Floats:
    """Relevance from 0 to 1 as a weight: what is less relevant weighs much less, but never nothing."""
    weights: Floats = np.maximum(relevance, LEAST_RELEVANCE) ** SHARPNESS
    return weights


def spread(values: Floats) -> Floats:
    """Values scaled to the range 0 to 1; all 1 if they are equal."""
    low = values.min(initial=np.inf)
    high = values.max(initial=-np.inf)
    if high <= low:
        return np.ones_like(values)
    scaled: Floats = (values - low) / (high - low)
    return scaled


def synonym_pairs(snapshot: Snapshot, leading: Ids, candidates: Ids) -> tuple[Ids, Floats]:
    """Pairs of nearly equal entities, one in `leading` and one in `candidates`; and their cosines."""
    vectors = snapshot.vectors_by_kind["entity"]
    neighbors, cosines = vectors.search(vectors.matrix(leading), SYNONYMS + 1, candidates)
    is_synonym = (cosines >= SYNONYM_COSINE) & (neighbors != leading[:, None])
    row, rank = np.nonzero(is_synonym)
    directed_pairs = np.stack([leading[row], neighbors[row, rank]], axis=1)
    cosines_of_pairs = cosines[row, rank]
    pairs, first = np.unique(np.sort(directed_pairs, axis=1), axis=0, return_index=True)
    return pairs, cosines_of_pairs[first]


# ── rows of the neighborhood ────────────────────────────────────────────────────


def _mentioning(task: SearchTask, chunks: Ids, entities: Ids) -> Ids:
    """The chunks that mention one of the entities."""
    positions, mentioned = task.snapshot.graph.entities_of(chunks)
    is_mention = is_among(mentioned, entities)
    return chunks[distinct_rows(positions[is_mention])]


def _chunks_around(task: SearchTask, entities: Ids, limit: int) -> Ids:
    """The chunks of some entities, ascending; of more than the limit those of rare entities."""
    frequencies = task.snapshot.graph.mention_counts(entities)
    leads_further = frequencies <= FREQUENT
    positions, chunks = task.snapshot.graph.chunks_of(entities[leads_further])
    visible = task.inside("chunk", chunks)
    distinct_chunks, groups = np.unique(chunks[visible], return_inverse=True)
    if len(distinct_chunks) <= limit:
        return distinct_chunks
    rarity = 1 / np.maximum(frequencies[leads_further], 1)
    pull: Floats = np.bincount(groups, rarity[positions[visible]]).astype(np.float64)
    least = np.partition(pull, -limit)[-limit]
    is_least = np.isclose(pull, least, rtol=EQUAL, atol=0.0)
    above = distinct_chunks[(pull > least) & ~is_least]
    last = task.ranked("chunk", distinct_chunks[is_least], pull[is_least], limit - len(above))
    return distinct_rows(above, last.ids)


def _relation_edges(task: SearchTask, entities: Ids, core: Ids, subgraph: Subgraph) -> Ids:
    """Positions in `entities` of both ends of the relations found, and of all relations of rare
    entities found; those with an end outside are left out.
    """
    index = task.snapshot.graph
    rare = core[index.degrees(core) <= FREQUENT]
    _, relations_of_rare = index.relations_of(rare)
    relations = distinct_rows(relations_of_rare, subgraph.relations.ids)
    visible = task.inside("relation", relations)
    ends = index.ends(relations[visible])
    positions = np.minimum(entities.searchsorted(ends), len(entities) - 1)
    both_inside = (entities[positions] == ends).all(axis=1)
    edges: Ids = positions[both_inside]
    return edges


# ── the whole step ────────────────────────────────────────────────────────────

# The probability of following an edge; else the walker starts again. `benchmarks.crossvalidation`
# chooses 0.7 among 0.6 to 0.8 in four of five folds; frozen questions: passages -12.5 without a walk.
DAMPING = 0.7
CHANGE_LIMIT = 3e-3  # the walk ends when the shares of all nodes together change by less

# So many chunks are found, whatever part of the visits the first chunks hold.
# M: @10 -1.2 with half; no gain for 793 tokens more with double.
LEAST_CHUNKS = 10

# The least cosine at which the ends of the nearest relation are starts: where few passages have been read, the
# nearest relation is often one of those alone. F: passages -2.5 without these starts; M, C: none.
START_RELATION_COSINE = 0.5

# Weight of all start chunks together, where all other starts have 1. `benchmarks.crossvalidation` chooses it
# in four of five folds (musique-a, hotpotqa-train, zh-cmrc2018; MiniLM).
NEAR_WEIGHT = 0.2

# In place of it where vectors only count words. Mix @5 with 0.2 / 0.35 / 0.5 on halves `a`, which it was chosen on:
# multihoprag-a 76.8 (less than naive) / 78.0 / 78.9, musique-a 76.5 / 76.5 / 76.5, with records 78.8 / 78.8 / 74.2; on
# halves `b`: 86.2 / 85.8 / 86.5, 74.1 / 72.2 / 68.5, with records 75.5 / 71.8 / 64.4.
NEAR_WEIGHT_OF_WORDS = 0.35

Path: TypeAlias = Sequence[tuple[int, str]]  # nodes, each with what the edge to it says; "" first


class WalkHits(Struct, frozen=True):
    """The chunks of a walk, best first, with reasons.

    Of the chunks, `chunk_count` are enough, and spare ones follow. `relevant` are the entities with at
    least `relevance_floor` times the visits of the most visited entity beyond the starts.
    """

    chunks: Hits
    chunk_count: int
    relevant: Ids


def walk_around(task: SearchTask, seeds: Seeds, subgraph: Subgraph) -> WalkHits:
    """Ranks chunks by personalized PageRank.

    The walk starts at the entities named in the question, at the ends of the relation nearest to the
    question and, with little weight, at each chunk near the question. A chunk ranks high if many and
    specific facts point at the chunk, and if the chunk resembles the question. The last chunk is where
    `coverage` of the visits of the best chunks is reached, but at least number `LEAST_CHUNKS`.
    """
    graph = neighborhood(task, seeds, subgraph)
    starts = start_weights(task, graph, seeds)
    shares = walk(graph, starts)
    steps = last_steps(graph, starts)
    entity_count = len(graph.entities)

    limit = task.chunk_limit + SPARE_CHUNKS
    chunk_shares = shares[entity_count:]
    is_visited = chunk_shares > 0
    visited = task.ranked("chunk", graph.chunks[is_visited], chunk_shares[is_visited], limit)
    visits = visited.scores[: task.chunk_limit]
    is_covered = np.cumsum(visits) < task.param.coverage * visits.sum()
    chunk_count = max(LEAST_CHUNKS, int(is_covered.sum()) + 1)
    chunks = visited[: chunk_count + SPARE_CHUNKS]
    nodes = entity_count + graph.chunks.searchsorted(chunks.ids)
    paths = [path_to(graph, steps, node) for node in nodes.tolist()]
    reasons = describe_paths(task, graph, seeds, paths)
    return WalkHits(
        chunks=Hits.of(chunks.ids, chunks.scores, reasons),
        chunk_count=min(chunk_count, task.chunk_limit),
        relevant=_often_visited(task, graph, starts=starts, shares=shares),
    )


# ── where the walk starts ────────────────────────────────────────────────────────


def start_weights(task: SearchTask, graph: WalkGraph, seeds: Seeds) -> Floats:
    """The probability of a start at each node; the weights add up to 1, or are all 0.

    An entity weighs by its likeness over the frequency of its name, a chunk by its sharpened relevance.
    """
    weights = _shares_of_one(_entity_starts(task, graph, seeds))
    chunks = seeds.chunks[is_among(seeds.chunks, graph.chunks)]
    relevance = chunk_relevance(task, without_parts_of_names(task, seeds), chunks)
    is_near = relevance > 0
    nodes = len(graph.entities) + graph.chunks.searchsorted(chunks[is_near])
    preferences = sharpened(spread(relevance[is_near]))
    near_weight = NEAR_WEIGHT_OF_WORDS if task.query.lexical else NEAR_WEIGHT
    weights[nodes] = near_weight * _shares_of_one(preferences)
    return _shares_of_one(weights)


def _entity_starts(task: SearchTask, graph: WalkGraph, seeds: Seeds) -> Floats:
    """For each node that is an entity to start at, its likeness over the frequency of its name: the
    number of chunks that mention the entity or, if there are more, of parts of chunks with its name.
    """
    likeness_by_row = _likeness_of_starts(task, seeds)
    rows = column(sorted(likeness_by_row))
    rows = rows[is_among(rows, graph.entities)]
    nodes = graph.entities.searchsorted(rows)
    entity_count = len(graph.entities)
    mentioned = graph.senders[graph.receivers >= entity_count]  # once for each chunk
    mention_counts = np.bincount(mentioned, minlength=entity_count)[nodes]
    likeness = np.array([likeness_by_row[row] for row in rows.tolist()])
    weights = np.zeros(entity_count + len(graph.chunks))
    frequencies = np.maximum(mention_counts, name_frequencies(task, rows))
    weights[nodes] = likeness / np.maximum(frequencies, 1)
    return weights


def name_frequencies(task: SearchTask, entities: Ids) -> Ids:
    """In how many parts of chunks the rarest word of each entity's name occurs.

    A name that is a common word ("time", mentioned once as an entity) is no rare name. Mix @2/@5 with
    mentions alone and with this: musique-a 60.8/83.1, 63.3/83.1; hotpotqa-train 69.5/90.5, 70.0/91.5;
    2wiki-101-a 78.0/96.0, 79.0/95.5 (MiniLM); dragonball-en-multi-a 44.0/72.1, 53.9/76.1 and -zh- 39.8/71.1,
    51.7/74.8 (words only, 200 questions).
    """
    names = entity_names(task, entities.tolist())
    terms_by_entity = {row: search_terms(name) for row, name in names.items()}
    all_terms = {term for terms in terms_by_entity.values() for term in terms}
    _, counts = task.snapshot.term_counts(sorted(all_terms))
    return column(
        min([counts[term] for term in terms_by_entity.get(row, ())], default=0)
        for row in entities.tolist()
    )


def _likeness_of_starts(task: SearchTask, seeds: Seeds) -> dict[int, float]:
    """The likeness of the named entities, and of the ends of the relation nearest to the question."""
    likeness_by_row = dict(seeds.named)
    relation = seeds.nearest_relation
    relation = relation[relation.scores >= START_RELATION_COSINE]
    ends = task.snapshot.graph.ends(relation.ids).ravel().tolist()
    for end, cosine in zip(ends, relation.scores.repeat(2).tolist(), strict=True):
        likeness_by_row[end] = max(cosine, likeness_by_row.get(end, 0.0))
    return likeness_by_row


def _often_visited(task: SearchTask, graph: WalkGraph, *, starts: Floats, shares: Floats) -> Ids:
    """The entities that reach the relevance floor; starts are always visited often."""
    entity_count = len(graph.entities)
    is_start = starts[:entity_count] != 0
    entity_shares = shares[:entity_count]
    highest = entity_shares[~is_start].max(initial=0.0)
    relevant: Ids = graph.entities[entity_shares >= task.param.relevance_floor * highest]
    return relevant


def _shares_of_one(values: Floats) -> Floats:
    return values / (values.sum() or 1.0)


# ── the walk ─────────────────────────────────────────────────────────────────────


def walk(graph: WalkGraph, starts: Floats, *, change_limit: float = CHANGE_LIMIT) -> Floats:
    """The share of time that a walker spends at each node.

    The walker starts anew as `starts` says, also from nodes without edges. The shares add up to 1;
    they are zeros if `starts` is.
    """
    shares = starts
    change = np.inf
    while change >= change_limit and starts.any():
        sent = graph.chances * shares.take(graph.senders)
        received = np.bincount(graph.receivers, sent * DAMPING, len(shares))
        new_shares = received.astype(np.float64)
        new_shares += starts * (1 - new_shares.sum())
        change = float(np.abs(new_shares - shares).sum())
        shares = new_shares
    return shares


# ── why a node was reached ──────────────────────────────────────────────────────


def last_steps(graph: WalkGraph, starts: Floats) -> Ids:
    """The last step of the most probable path from a start to each node: the number of a step, or
    -1 if the path is the start itself, or there is no path.
    """
    with np.errstate(divide="ignore"):
        costs = -np.log(starts)
    steps = np.full(len(starts), -1)
    step_costs = -np.log(DAMPING * graph.chances)
    while True:
        path_costs = costs.take(graph.senders) + step_costs
        least_costs = costs.copy()
        np.minimum.at(least_costs, graph.receivers, path_costs)
        is_best = path_costs == least_costs.take(graph.receivers)
        is_better = is_best & (path_costs < costs.take(graph.receivers))
        if not is_better.any():
            return steps
        steps[graph.receivers[is_better]] = np.flatnonzero(is_better)
        costs = least_costs


def path_to(graph: WalkGraph, steps: Ids, node: int) -> Path:
    """The most probable path to a node, from its start on."""
    path = []
    while (step := int(steps[node])) >= 0:
        path.append((node, EDGE_TYPES[graph.edge_types[step]]))
        node = int(graph.senders[step])
    return [(node, ""), *reversed(path)]


def describe_paths(
    task: SearchTask, graph: WalkGraph, seeds: Seeds, paths: Sequence[Path]
) -> list[str]:
    """Paths in words: why each begins, then every node on the way and how it is reached."""
    rows = dict(enumerate(graph.entities.tolist()))
    ends = task.snapshot.graph.ends(seeds.nearest_relation.ids).ravel().tolist()
    passed = {rows[node] for path in paths for node, _ in path if node in rows}
    names = entity_names(task, {*passed, *ends})
    pair = " — ".join([names.get(end, "") for end in ends])
    beginnings = dict.fromkeys(ends, f"end of the relation nearest to the question: {pair}")
    for row in seeds.named:
        name = names.get(row, "")
        beginnings[row] = f"named in the question: {name}"
    descriptions: list[str] = []
    for path in paths:
        steps: list[str] = []
        for node, edge in path:
            label = "a passage"
            if node in rows:
                label = names.get(rows[node]) or "an entity"
            beginning = beginnings.get(rows.get(node, 0), "near the question")
            steps.append(f"{edge} {label}" if edge else f"{label} ({beginning})")
        descriptions.append("; ".join(steps))
    return descriptions
