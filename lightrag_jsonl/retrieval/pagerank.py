"""Ranks entities and chunks by personalized PageRank around what was found, and says why.

The walk runs on the neighbourhood of the entities and relations found, which is made for each
question: the chunks that mention them, the entities that these mention, and so once more. So its
cost does not grow with the index, and nothing is kept between questions. Nodes are numbers:
entities first (0 to E - 1), then chunks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.retrieval import facts, fusion
from lightrag_jsonl.retrieval.fusion import Hits, SearchTask, Seeds, Subgraph, distinct
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import Snapshot

CHUNK_LIMITS = (200, 300)  # chunks reached by each of the two hops
FREQUENT = 200  # mentions or relations; entities with more of them lead no further
DAMPING = 0.7  # the probability of following an edge; else the walker starts again
TOLERANCE = 3e-3
RELATION_SIMILARITY = 0.5  # the least cosine at which a relation's ends are starts
SYNONYM_SIMILARITY = 0.8
SYNONYMS = 5  # each entity gets edges to at most so many synonyms
LEADING = 40  # synonyms are looked for of so many found entities
NEAR_CHUNKS = 100  # at most so many chunks are starts
SHARPNESS = 4
LEAST_CHUNKS = 10  # so many are shown, whatever part of the visits the first of them hold
LEAST = 0.1  # the relevance of the last chunk that is a start, where the first has 1

# The weight of all near chunks, where all other starts have 1, and where vectors only count words:
# what is asked stands in the words then, since the nearest relation is often one of a name alone.
NEAR_WEIGHT = {False: 0.2, True: 2.0}
LEXICAL_WEIGHT = 0.75  # the most that lexical relevance counts, where dense relevance has 1
ONLY_WORDS = 2.0  # likewise, where vectors only count words
COMPARED = 10  # first chunks by vectors and by words, whose difference gives words their weight

START, MENTION, RELATION, SYNONYM, ALIAS = range(-1, 4)  # how a node is reached
_POSSESSIVES = ("'s ", "' ", "的")  # after an owner, in name keys
_WORDS = ("mentioned with", "related to", "nearly the same as", "also called")

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


class Walked(NamedTuple):
    """What a walk reached: entities (if the mode ranks them so) and chunks, best first, with reasons;
    and the entities that it visits at least `relevance_floor` times as often as the most visited one
    among those it did not start at.
    """

    entities: Hits
    chunks: Hits
    relevant: Ids


def walk_around(task: SearchTask, seeds: Seeds, subgraph: Subgraph) -> Walked:
    """Ranks entities and chunks by personalized PageRank.

    The walk starts at the entities that the question names, at the ends of the relation nearest to
    it and, with little weight, at each chunk near the question. So a chunk ranks high if many facts
    point at it, if these are specific, and if it resembles the question. Chunks end where they hold
    `coverage` of the visits of the best ones, but not before the tenth.
    """
    graph = neighbourhood(task, seeds, subgraph)
    reset = start_weights(task, graph, seeds)
    shares, last = walk(graph, reset), last_steps(graph, reset)

    def ranked(rows: Ids, first_node: int, limit: int) -> Hits:
        if not limit:
            return fusion.NO_HITS
        hits = Hits.ranked(rows, shares[first_node : first_node + len(rows)], limit)
        hits = hits[hits.scores > 0]
        nodes = first_node + rows.searchsorted(hits.ids)
        paths = [path_to(graph, last, node) for node in nodes.tolist()]
        return Hits.of(hits.ids, hits.scores, _reasons(task, graph, seeds, paths))

    entities = ranked(graph.entities, 0, task.param.top_k if task.mode.ranked_by_walk else 0)
    chunks = ranked(graph.chunks, len(graph.entities), task.chunk_limit)
    covered = np.cumsum(chunks.scores) < task.param.coverage * chunks.scores.sum()
    chunks = chunks[: max(LEAST_CHUNKS, int(covered.sum()) + 1)]
    split = len(graph.entities)
    most = shares[:split][reset[:split] == 0].max(initial=0.0)  # starts are always visited often
    relevant = graph.entities[shares[:split] >= task.param.relevance_floor * most]
    return Walked(entities, chunks, relevant)


# ── the graph ───────────────────────────────────────────────────────────────────


def neighbourhood(task: SearchTask, seeds: Seeds, subgraph: Subgraph) -> WalkGraph:
    """The graph around the entities and relations found, and around chunks near the question: all
    of these if the mode searches chunks, else those that mention something found.
    """
    index = task.snapshot.graph
    found = distinct(subgraph.entities.ids, index.ends(subgraph.relations.ids).ravel())
    called, certainties = facts.also_called(task, subgraph.entities.ids[:LEADING])
    found = distinct(found, called.ravel())
    mentioned, chunks = found, seeds.chunks
    if not task.mode.chunks:
        which, entities = index.entities_of(chunks)
        chunks = chunks[distinct(which[np.isin(entities, found)])]
    for limit in CHUNK_LIMITS:
        chunks = distinct(chunks, _chunks_around(task, distinct(mentioned), seeds, limit))
        which, mentioned = index.entities_of(chunks)
    entities, nodes = np.unique(np.concatenate([mentioned, found]), return_inverse=True)
    mentions = np.stack([nodes[: len(mentioned)], which], axis=1)
    rare = found[index.degrees(found) <= FREQUENT]
    relations = distinct(index.relations_of(rare)[1], subgraph.relations.ids)
    ends = index.ends(relations[task.inside("relation", relations)])
    joined = np.minimum(entities.searchsorted(ends), len(entities) - 1)
    joined = joined[(entities[joined] == ends).all(axis=1)]
    pairs, similarities = synonyms(task.snapshot, subgraph.entities.ids[:LEADING], found)
    kinds = [(joined, np.ones(len(joined)))]
    kinds += [(entities.searchsorted(pairs), similarities)]
    kinds += [(entities.searchsorted(called), certainties)]
    return walk_graph(entities, chunks, mentions, kinds)


def _chunks_around(task: SearchTask, entities: Ids, seeds: Seeds, limit: int) -> Ids:
    """The chunks that mention these entities, those of named and of rare entities first, and those
    that the question's text found.
    """
    which, chunks = task.snapshot.graph.chunks_of(entities)
    counts = np.bincount(which, minlength=len(entities))
    leading = counts[which] <= FREQUENT
    which, chunks = which[leading], chunks[leading]
    pull = (1 / np.maximum(counts, 1) + np.isin(entities, seeds.named_rows))[which]
    pull += np.isin(chunks, seeds.chunks)
    inside = task.inside("chunk", chunks)
    chunks, pull = chunks[inside], pull[inside]
    each, group = np.unique(chunks, return_inverse=True)
    total: Floats = np.bincount(group, pull, len(each)).astype(np.float64)
    return Hits.ranked(each, total, limit).ids


def walk_graph(
    entities: Ids, chunks: Ids, mentions: Ids, others: Sequence[tuple[Ids, Floats]]
) -> WalkGraph:
    """The graph with these edges, of shape (n, 2): rows of `mentions` are positions of an entity and
    of a chunk. Those of `others`, which have their weights, are of two entities: first relations,
    then synonyms, then aliases. A mention weighs more if fewer chunks mention the entity.
    """
    frequency = np.bincount(mentions[:, 0], minlength=len(entities))
    rarity = np.log1p(len(chunks) / frequency[mentions[:, 0]])
    kinds = [(mentions + np.array([0, len(entities)]), rarity), *others]
    pairs, weights = map(np.concatenate, zip(*kinds, strict=True))
    types = np.repeat(np.arange(len(kinds)), [len(edges) for edges, _ in kinds])
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
    sharpened relevance. So neither the size of the corpus nor the frequency of names matters. An end
    of the relation asked about is no start if its name only says whose it is ("Scrooge's partner", of
    the Scrooge that the question names).
    """
    sure = dict(seeds.named)
    asked = seeds.asked[seeds.asked.scores >= RELATION_SIMILARITY]
    ends = task.snapshot.graph.ends(asked.ids).ravel().tolist()
    names = {end: f" {name_key(name)}" for end, name in facts.names(task, ends).items()}
    owners = [
        name + mark for end, name in names.items() if end in seeds.named for mark in _POSSESSIVES
    ]
    for end, alike in zip(ends, asked.scores.repeat(2).tolist(), strict=True):
        if end in seeds.named or not any(owner in names.get(end, "") for owner in owners):
            sure[end] = max(alike, sure.get(end, 0.0))
    named = fusion.column(sorted(sure))
    named = named[np.isin(named, graph.entities)]
    starts = graph.entities.searchsorted(named)
    reset = np.zeros(len(graph.entities) + len(graph.chunks))
    mentions = np.bincount(graph.senders[graph.edge_types == MENTION], minlength=len(reset))
    likeness = np.array([sure[row] for row in named.tolist()])
    reset[starts] = likeness / np.maximum(mentions[starts], 1)
    near = Hits.ranked(*_relevance(task, graph, seeds), NEAR_CHUNKS)
    near = near[near.scores > 0]
    nodes = len(graph.entities) + graph.chunks.searchsorted(near.ids)
    reset = _normalized(reset)
    sharp = np.maximum(_spread(near.scores), LEAST) ** SHARPNESS
    reset[nodes] = NEAR_WEIGHT[task.query.lexical] * _normalized(sharp)
    return _normalized(reset)


def _relevance(task: SearchTask, graph: WalkGraph, seeds: Seeds) -> tuple[Ids, Floats]:
    """The chunks of the graph that the question's text found, and how relevant they are."""
    chunks = seeds.chunks[np.isin(seeds.chunks, graph.chunks)]
    scores = task.snapshot.vector_scores("chunk", task.query.vectors[:1], chunks)
    dense = np.nan_to_num(scores[0], nan=0.0)
    words = dict(zip(seeds.lexical.ids.tolist(), seeds.lexical.scores.tolist(), strict=True))
    lexical = np.array([words.get(chunk, 0.0) for chunk in chunks.tolist()])
    most = lexical.max(initial=0.0) or 1.0
    return chunks, _spread(dense) + _lexical_weight(task, seeds) * lexical / most


def _lexical_weight(task: SearchTask, seeds: Seeds) -> float:
    """Words count more, the less they find what vectors find anyway."""
    if task.query.lexical:
        return ONLY_WORDS
    both = np.intersect1d(seeds.dense.ids[:COMPARED], seeds.lexical.ids[:COMPARED])
    return LEXICAL_WEIGHT * (1 - len(both) / COMPARED)


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
        best = through == least.take(graph.receivers)
        best &= through < costs.take(graph.receivers)
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


def _reasons(task: SearchTask, graph: WalkGraph, seeds: Seeds, paths: Sequence[Path]) -> list[str]:
    """Paths in words: why each began, then every node on its way and how it is reached."""
    rows = dict(enumerate(graph.entities.tolist()))
    asked = task.snapshot.graph.ends(seeds.asked.ids).ravel().tolist()
    passed = {rows[node] for path in paths for node, _ in path if node in rows}
    names = facts.names(task, {*passed, *asked})
    between = " — ".join([names.get(end, "") for end in asked])
    starts = dict.fromkeys(asked, f"end of the relation nearest to the question: {between}")
    starts |= {row: f"named in the question: {names.get(row, '')}" for row in seeds.named}

    def step(node: int, kind: int) -> str:
        label = names.get(rows[node]) or "an entity" if node in rows else "a passage"
        if kind == START:
            return f"{label} ({starts.get(rows.get(node, 0), 'near the question')})"
        return f"{_WORDS[kind]} {label}"

    return ["; ".join([step(*one) for one in path]) for path in paths]
