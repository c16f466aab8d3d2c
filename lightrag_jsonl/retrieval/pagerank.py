"""The walk: personalized PageRank around the entities, relations and chunks that a question led to.

`walk_around` is the whole step: starts, shares of time, most visited nodes, and the path to each. The
numbers are measured as those of `retrieval/ranking.py` are; M, C and F are the same questions.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from lightrag_jsonl.retrieval.filtering import entity_names
from lightrag_jsonl.retrieval.hits import Hits, column
from lightrag_jsonl.retrieval.passages import SPARE_CHUNKS
from lightrag_jsonl.retrieval.task import SearchTask, Seeds, Subgraph
from lightrag_jsonl.retrieval.walk_graph import (
    MENTION_EDGE,
    START,
    WalkGraph,
    chunk_relevance,
    neighborhood,
    sharpened,
    spread,
    without_parts_of_names,
)
from lightrag_jsonl.storage.graph_index import is_among
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.terms import search_terms

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
# in four of five folds (musique-a, hotpotqa-train, zh-cmrc2018).
NEAR_WEIGHT = 0.2

# In place of it where vectors only count words. In English the starts are mainly the names; in a
# Chinese question the subject stands in the words, since the nearest relation is often the relation of a
# name alone. Mix @5 with 0.2 / 0.5 / 1 / 2: musique-a 73.3 / 72.1 / 64.2 / 60.0, hotpotqa-train 85.5 /
# 87.5 / 84.5 / 83.5; C: @5 -3.3 without. 2 in Chinese: dragonball-zh-multi-a, held-out half.
NEAR_WEIGHT_OF_WORDS = 0.5
NEAR_WEIGHT_OF_BIGRAMS = 2.0

_EDGE_WORDS = ("mentioned with", "related to", "nearly the same as", "also called")  # by edge type

Path: TypeAlias = Sequence[tuple[int, int]]  # nodes, each with the type of the edge to it


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
    near_weight = NEAR_WEIGHT
    if task.query.lexical:
        is_chinese = has_cjk(task.query.question)
        near_weight = NEAR_WEIGHT_OF_BIGRAMS if is_chinese else NEAR_WEIGHT_OF_WORDS
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
    mentioning = graph.senders[graph.edge_types == MENTION_EDGE]
    mention_counts = np.bincount(mentioning, minlength=graph.size)[nodes]
    likeness = np.array([likeness_by_row[row] for row in rows.tolist()])
    weights = np.zeros(graph.size)
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
        new_shares = np.bincount(graph.receivers, sent * DAMPING, len(shares)).astype(np.float64)
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
        path.append((node, int(graph.edge_types[step])))
        node = int(graph.senders[step])
    return [(node, START), *reversed(path)]


def describe_paths(
    task: SearchTask, graph: WalkGraph, seeds: Seeds, paths: Sequence[Path]
) -> list[str]:
    """Paths in words: why each begins, then every node on the way and how it is reached."""
    rows = dict(enumerate(graph.entities.tolist()))
    ends = task.snapshot.graph.ends(seeds.nearest_relation.ids).ravel().tolist()
    passed: set[int] = set()
    for path in paths:
        passed.update([rows[node] for node, _ in path if node in rows])
    names = entity_names(task, {*passed, *ends})
    pair = " — ".join([names.get(end, "") for end in ends])
    beginnings = dict.fromkeys(ends, f"end of the relation nearest to the question: {pair}")
    for row in seeds.named:
        name = names.get(row, "")
        beginnings[row] = f"named in the question: {name}"

    def step_in_words(node: int, edge_type: int) -> str:
        label = "a passage"
        if node in rows:
            label = names.get(rows[node]) or "an entity"
        if edge_type == START:
            return f"{label} ({beginnings.get(rows.get(node, 0), 'near the question')})"
        return f"{_EDGE_WORDS[edge_type]} {label}"

    return [
        "; ".join([step_in_words(node, edge_type) for node, edge_type in path]) for path in paths
    ]
