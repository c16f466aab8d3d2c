"""Ranks entities and chunks by personalized PageRank around what was found, and says why.

The walk runs on the neighbourhood of the entities and relations found, which is made for each
question: the chunks that mention them, the entities that these mention, and so once more. So its
cost does not grow with the index, and nothing is kept between questions. Nodes are numbers:
entities first (0 to E - 1), then chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from lightrag_jsonl.retrieval.fusion import (
    NO_HITS,
    Hits,
    SearchTask,
    Seeds,
    Subgraph,
    among,
    column,
    distinct,
)
from lightrag_jsonl.storage.store import Snapshot
from lightrag_jsonl.storage.vector_index import Floats, Ids

CHUNK_LIMITS: Final = (300, 600)  # chunks reached by each of the two hops
FREQUENT: Final = 200  # mentions or relations; entities with more of them lead no further
DAMPING: Final = 0.7  # the probability of following an edge; else the walker starts again
TOLERANCE: Final = 3e-3
RELATION_SIMILARITY: Final = 0.5  # the least cosine at which a relation's ends are starts
SYNONYM_SIMILARITY: Final = 0.8
SYNONYMS: Final = 5  # each entity gets edges to at most so many synonyms
LEADING: Final = 40  # synonyms are looked for of so many found entities
NEAR_CHUNKS: Final = 100  # at most so many chunks are starts
SHARPNESS: Final = 4
LEAST: Final = 0.1  # the relevance of the last chunk that is a start, where the first has 1

# How lexical relevance counts, where dense relevance has 1; and the weight of all near chunks,
# where all other starts have 1: with vectors, and where vectors only count words or are missing.
LEXICAL_WEIGHT: Final = {False: 0.5, True: 2.0}
NEAR_WEIGHT: Final = {False: 0.2, True: 1.0}

START, MENTION, RELATION, SYNONYM = range(-1, 3)  # how a node is reached
_WORDS: Final = ("mentioned with", "related to", "nearly the same as")

NamesOf: TypeAlias = Callable[[Collection[int]], Mapping[int, str]]
Path: TypeAlias = Sequence[tuple[int, int]]  # nodes, and how each is reached; the start first


@dataclass(frozen=True, slots=True)
class WalkGraph:
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


def walk_around(
    task: SearchTask, seeds: Seeds, subgraph: Subgraph, names_of: NamesOf
) -> tuple[Hits, Hits]:
    """Entities (if the mode ranks them so) and chunks, ranked by personalized PageRank.

    The walk starts at the entities that the question names, at the ends of the relation nearest to
    it and, with little weight, at each chunk near the question. So a chunk ranks high if many facts
    point at it, if these are specific, and if it resembles the question. `names_of` gives the names
    of entities by row id, for the reasons.
    """
    graph = neighbourhood(task, seeds, subgraph)
    split = len(graph.entities)
    reset = start_weights(task, graph, seeds)
    shares = walk(graph, reset)
    entities = NO_HITS
    if task.mode.ranked_by_walk:
        entities = Hits.ranked(graph.entities, shares[:split], task.param.top_k)
    chunks = Hits.ranked(graph.chunks, shares[split:], task.chunk_limit)
    entities, chunks = entities[entities.scores > 0], chunks[chunks.scores > 0]
    nodes = [graph.entities.searchsorted(entities.ids), graph.chunks.searchsorted(chunks.ids)]
    last = last_steps(graph, reset)
    paths = [path_to(graph, last, int(node)) for node in (*nodes[0], *(nodes[1] + split))]
    why = _reasons(task.snapshot, graph, seeds, paths, names_of)
    return (
        Hits.of(entities.ids, entities.scores, why[: len(entities)]),
        Hits.of(chunks.ids, chunks.scores, why[len(entities) :]),
    )


# ── the graph ───────────────────────────────────────────────────────────────────


def neighbourhood(task: SearchTask, seeds: Seeds, subgraph: Subgraph) -> WalkGraph:
    """The graph around the entities and relations found, and around chunks near the question: all
    of these if the mode searches chunks, else those that mention something found.
    """
    index = task.snapshot.graph
    found = distinct(subgraph.entities.ids, index.ends(subgraph.relations.ids).ravel())
    mentioned, chunks = found, seeds.chunks
    if not task.mode.chunks:
        which, entities = index.entities_of(chunks)
        chunks = chunks[distinct(which[among(entities, found)])]
    for limit in CHUNK_LIMITS:
        chunks = distinct(chunks, _chunks_around(task, distinct(mentioned), seeds, limit))
        which, mentioned = index.entities_of(chunks)
    entities, nodes = np.unique(np.concatenate([mentioned, found]), return_inverse=True)
    mentions = np.stack([nodes[: len(mentioned)], which], axis=1)
    rare = found[index.degrees(found) <= FREQUENT]
    relations = distinct(index.relations_of(rare)[1], subgraph.relations.ids)
    if task.filtered is not None:
        relations = relations[among(relations, task.filtered.relation)]
    ends = index.ends(relations)
    joined = np.minimum(entities.searchsorted(ends), len(entities) - 1)
    joined = joined[(entities[joined] == ends).all(axis=1)]
    pairs, similarities = synonyms(task.snapshot, subgraph.entities.ids[:LEADING], found)
    return walk_graph(
        entities, chunks, mentions, joined, entities.searchsorted(pairs), similarities
    )


def _chunks_around(task: SearchTask, entities: Ids, seeds: Seeds, limit: int) -> Ids:
    """The chunks that mention these entities, those of named and of rare entities first."""
    which, chunks = task.snapshot.graph.chunks_of(entities)
    counts = np.bincount(which, minlength=len(entities))
    leading = counts[which] <= FREQUENT
    which, chunks = which[leading], chunks[leading]
    pull = (1 / np.maximum(counts, 1) + among(entities, seeds.named_rows))[which]
    if task.filtered is not None:
        inside = among(chunks, task.filtered.chunk)
        chunks, pull = chunks[inside], pull[inside]
    each, group = np.unique(chunks, return_inverse=True)
    total: Floats = np.bincount(group, pull, len(each)).astype(np.float64)
    return Hits.ranked(each, total, limit).ids


def walk_graph(
    entities: Ids, chunks: Ids, mentions: Ids, relations: Ids, synonyms: Ids, similarities: Floats
) -> WalkGraph:
    """The graph with these edges, of shape (n, 2): rows of `mentions` are positions of an entity and
    of a chunk, rows of the others of two entities.

    A mention weighs more if fewer chunks mention the entity; a relation weighs 1, a synonym its
    similarity.
    """
    frequency = np.bincount(mentions[:, 0], minlength=len(entities))
    rarity = np.log1p(len(chunks) / frequency[mentions[:, 0]])
    mentions = mentions + np.array([0, len(entities)])
    pairs = np.concatenate([mentions, relations, synonyms])
    weights = np.concatenate([rarity, np.ones(len(relations)), similarities])
    types = np.repeat([MENTION, RELATION, SYNONYM], [len(rarity), len(relations), len(synonyms)])
    senders, receivers = np.concatenate([pairs, pairs[:, ::-1]]).T
    weights, types = np.tile(weights, 2), np.tile(types, 2)
    total = np.bincount(senders, weights, len(entities) + len(chunks))
    return WalkGraph(entities, chunks, senders, receivers, weights / total[senders], types)


def synonyms(snapshot: Snapshot, leading: Ids, others: Ids) -> tuple[Ids, Floats]:
    """Pairs of nearly equal entities, one in `leading` and one in `others`; and their cosines."""
    vectors = snapshot.vector_matrix("entity", leading)
    near, cosines = snapshot.search_vectors("entity", vectors, SYNONYMS + 1, others)
    row, rank = np.nonzero((cosines >= SYNONYM_SIMILARITY) & (near != leading[:, None]))
    pairs = np.sort(np.stack([leading[row], near[row, rank]], axis=1), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    return pairs, cosines[row, rank][first]


# ── the walk ────────────────────────────────────────────────────────────────────


def start_weights(task: SearchTask, graph: WalkGraph, seeds: Seeds) -> Floats:
    """How likely the walker starts at each node; they add up to 1, or are all 0.

    Entities weigh by their likeness over the number of chunks that mention them, chunks by their
    sharpened relevance. So neither the size of the corpus nor the frequency of names matters.
    """
    sure = dict(seeds.named)
    for row, alike, _ in seeds.asked.rows():
        if alike >= RELATION_SIMILARITY:
            for end in task.snapshot.graph.ends(column([row])).ravel().tolist():
                sure[end] = max(alike, sure.get(end, 0.0))
    reset = np.zeros(len(graph.entities) + len(graph.chunks))
    mentions = np.bincount(graph.senders[graph.edge_types == MENTION], minlength=len(reset))
    for row, alike in sure.items():
        node = int(graph.entities.searchsorted(row))
        if node < len(graph.entities) and graph.entities[node] == row:
            reset[node] = alike / max(mentions[node], 1)
    near = Hits.ranked(*_relevance(task, graph, seeds), NEAR_CHUNKS)
    near = near[near.scores > 0]
    nodes = len(graph.entities) + graph.chunks.searchsorted(near.ids)
    reset = _normalized(reset)
    sharp = np.maximum(_spread(near.scores), LEAST) ** SHARPNESS
    reset[nodes] = NEAR_WEIGHT[task.query.lexical] * _normalized(sharp)
    return _normalized(reset)


def _relevance(task: SearchTask, graph: WalkGraph, seeds: Seeds) -> tuple[Ids, Floats]:
    """The chunks of the graph that the question's text found, and how relevant they are."""
    chunks = seeds.chunks[among(seeds.chunks, graph.chunks)]
    dense: Floats = np.zeros(len(chunks))
    if task.query.vectors is not None:
        question = task.query.vectors[:1]
        dense = task.snapshot.vector_scores("chunk", question, chunks)[0]
        dense[np.isnan(dense)] = 0.0
    words = dict(zip(seeds.lexical.ids.tolist(), seeds.lexical.scores.tolist(), strict=True))
    lexical = np.array([words.get(chunk, 0.0) for chunk in chunks.tolist()])
    most = lexical.max(initial=0.0) or 1.0
    return chunks, _spread(dense) + LEXICAL_WEIGHT[task.query.lexical] * lexical / most


def walk(graph: WalkGraph, reset: Floats, *, tolerance: float = TOLERANCE) -> Floats:
    """The share of time a walker spends at each node, who starts anew as `reset` says, also from
    nodes without edges. The shares add up to 1; they are zeros if `reset` is.
    """
    here, change = reset, np.inf
    while change >= tolerance and reset.any():
        sent = graph.chances * here.take(graph.senders)
        after = np.bincount(graph.receivers, sent * DAMPING, len(here)).astype(np.float64)
        after += reset * (1 - after.sum())
        here, change = after, float(np.abs(after - here).sum())
    return here


def _normalized(values: Floats) -> Floats:
    return values / (values.sum() or 1.0)


def _spread(values: Floats) -> Floats:
    """Values scaled to the range 0 to 1; all 1 if they are equal."""
    low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
    return (values - low) / (high - low) if high > low else np.ones_like(values)


# ── why it found what it found ──────────────────────────────────────────────────


def last_steps(graph: WalkGraph, reset: Floats) -> Ids:
    """The last step of the most probable path from a start to each node: the number of a step, or
    -1 if the path is the start itself, or there is none.
    """
    with np.errstate(divide="ignore"):
        costs = -np.log(reset)
    last, step_costs = np.full(len(reset), -1), -np.log(DAMPING * graph.chances)
    while True:
        through, least = costs.take(graph.senders) + step_costs, costs.copy()
        np.minimum.at(least, graph.receivers, through)
        best = (through == least[graph.receivers]) & (through < costs[graph.receivers])
        if not best.any():
            return last
        last[graph.receivers[best]] = np.flatnonzero(best)
        costs = least


def path_to(graph: WalkGraph, last: Ids, node: int) -> Path:
    """The most probable path to a node."""
    path = []
    while (step := int(last[node])) >= 0:
        path.append((node, int(graph.edge_types[step])))
        node = int(graph.senders[step])
    return [(node, START), *reversed(path)]


def _reasons(
    snapshot: Snapshot, graph: WalkGraph, seeds: Seeds, paths: Sequence[Path], names_of: NamesOf
) -> list[str]:
    """Paths in words: why each began, then every node on its way and how it is reached."""
    split = len(graph.entities)
    rows = {node: int(graph.entities[node]) for path in paths for node, _ in path if node < split}
    asked = snapshot.graph.ends(seeds.asked.ids).ravel().tolist()
    names = names_of({*rows.values(), *asked})
    between = " — ".join([names.get(end, "") for end in asked])
    starts = dict.fromkeys(asked, f"end of the relation nearest to the question: {between}")
    starts |= {row: f"named in the question: {names.get(row, '')}" for row in seeds.named}

    def step(node: int, kind: int) -> str:
        label = "a passage" if node >= split else names.get(rows[node]) or "an entity"
        if kind == START:
            return f"{label} ({starts.get(rows.get(node, 0), 'near the question')})"
        return f"{_WORDS[kind]} {label}"

    return ["; ".join([step(*one) for one in path]) for path in paths]
