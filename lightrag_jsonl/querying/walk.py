"""Personalized PageRank over entities and chunks, starting at a question's names and nearest chunks.

Pure functions on arrays. Nodes are numbers: entities first (0 to E - 1), then chunks (E to E + C -
1). At each step a walker follows an edge with probability `damping`, and otherwise starts again at
a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.querying.transitions import Floats, Greatest, Ints, transitions
from lightrag_jsonl.sorting import firsts

EdgeKind = Literal["seed", "mention", "relation", "synonym"]

DAMPING: Final = 0.7
NAME_SIMILARITY: Final = 0.75  # the least cosine at which a name's nearest entity is a seed
RELATION_SIMILARITY: Final = 0.5  # likewise for the relation nearest to the whole question
SYNONYM_SIMILARITY: Final = 0.8
SYNONYMS: Final = 5  # each entity gets edges to at most so many synonyms
NEAR_CHUNKS: Final = 100  # at most so many chunks are seeds
SHARPNESS: Final = 4
EARLIEST: Final = 5  # convergence is checked from this step on

NO_PAIRS: Final = np.empty((0, 2), dtype=np.int64)
NO_IDS: Final = np.empty(0, dtype=np.int64)
NO_WEIGHTS: Final = np.empty(0)


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges: rows of `mentions` are (entity, chunk), rows of the others two entities.

    Each is an (n, 2) array of distinct pairs of distinct nodes, in either direction. `leaves`
    counts, for each chunk, the further entities it mentions that have no other edge. A walker would
    come straight back from those, so they are not nodes.
    """

    mentions: Ints = field(default_factory=lambda: NO_PAIRS)
    relations: Ints = field(default_factory=lambda: NO_PAIRS)
    synonyms: Ints = field(default_factory=lambda: NO_PAIRS)
    similarities: Floats = field(default_factory=lambda: NO_WEIGHTS)
    leaves: Ints = field(default_factory=lambda: NO_IDS)


@dataclass(frozen=True, slots=True)
class Nearness:
    """How much likeness of texts counts.

    `lexical` is the weight of lexical relevance, where dense relevance has 1. `mass` is the weight
    of all near chunks together, where all seeds together have 1.
    """

    lexical: float = 0.5
    mass: float = 0.2


MEANINGS: Final = Nearness()
WORDS: Final = Nearness(lexical=2.0, mass=1.0)  # if vectors only count words, or there are none


@dataclass(frozen=True, slots=True)
class Seed:
    """A node the walk starts from, its weight, and the reason."""

    node: int
    weight: float
    why: str


class Step(NamedTuple):
    """A node on the path from a seed to a hit, and the kind of edge by which it was reached."""

    node: int
    by: EdgeKind


class WalkGraph:
    """The graph as a column-normalized sparse matrix, which can be kept between questions.

    A mention weighs more if fewer chunks mention the entity; a relation weighs 1, a synonym its
    similarity.
    """

    def __init__(self, entities: int, chunks: int, edges: Edges) -> None:
        self.entities, self.chunks = entities, chunks
        mentioned, chunk = edges.mentions.T
        relations, synonyms = edges.relations.T, edges.synonyms.T
        self.frequency = np.bincount(mentioned, minlength=entities)
        self._related = np.sort(_keys(_unordered(edges.relations), entities))
        rarity = np.log1p(chunks / self.frequency.take(mentioned))
        leaving = np.zeros(entities + chunks)
        if len(edges.leaves):
            leaving[entities:] = edges.leaves * np.log1p(chunks)
        self._matrix, total = transitions(
            np.concatenate([mentioned, relations[0], synonyms[0]]),
            np.concatenate([chunk + entities, relations[1], synonyms[1]]),
            np.concatenate([rarity, np.ones(len(edges.relations)), edges.similarities]),
            leaving,
        )
        self._lonely = np.flatnonzero(total == 0)
        self._leaving = leaving / np.where(total, total, 1)

    def __len__(self) -> int:
        return self.entities + self.chunks

    def walk(
        self,
        reset: Floats,
        *,
        damping: float = DAMPING,
        tolerance: float = 1e-3,
        iterations: int = 100,
    ) -> Floats:
        """The share of time a walker spends at each node; zeros if `reset` is all zeros.

        From a node without edges the walker starts again. The shares add up to 1, less the time
        spent at leaves.
        """
        start = _normalized(reset)
        here, back = start, self._leaving * damping**2
        again = start * (1 - damping)
        for number in range(iterations if start.any() else 0):
            after: Floats = self._matrix @ here
            after *= damping
            after += back * here
            after += again
            if len(self._lonely):
                after += start * (damping * here[self._lonely].sum())
            before, here = here, after
            if number >= EARLIEST and np.abs(here - before).sum() < tolerance:
                break
        return here

    def neighbours(self, node: int) -> tuple[Ints, Floats]:
        """The neighbours of a node, and the probability of a step from each of them to the node."""
        return self._matrix.row(node)

    def strongest(self, scores: Floats) -> Greatest:
        """From a node to (neighbour, amount): which one sends it most under the walk's `scores`; -1
        for none.
        """
        return self._matrix.greatest(scores)

    def kind(self, one: int, other: int) -> EdgeKind:
        """The kind of edge between two neighbours."""
        if max(one, other) >= self.entities:
            return "mention"
        key = min(one, other) * self.entities + max(one, other)
        place = int(self._related.searchsorted(key))
        related = place < len(self._related) and self._related[place] == key
        return "relation" if related else "synonym"


class Paths:
    """Explains why nodes were found: the strongest path to each from a seed.

    `scores` are the result of the walk from `reset`; a path has at most `limit` steps.
    """

    def __init__(
        self,
        graph: WalkGraph,
        scores: Floats,
        reset: Floats,
        *,
        damping: float = DAMPING,
        limit: int = 6,
    ) -> None:
        self._graph, self._scores, self._reset = graph, scores, reset
        self._again = (1 - damping) / max(float(reset.sum()), 1e-30)
        self._damping, self._limit = damping, limit
        self._strongest: Greatest = graph.strongest(scores)
        self._senders: dict[int, list[tuple[int, float]]] = {}

    def to(self, node: int) -> tuple[Step, ...]:
        """The steps to a node, the seed first."""
        back, seen = list[Step](), {node}
        while len(back) < self._limit:
            before, inflow = self._strongest(node)
            if before in seen:
                before, inflow = self._strongest_but(node, seen)
            if before < 0 or self._again * float(self._reset[node]) >= self._damping * inflow:
                break
            back.append(Step(node, self._graph.kind(before, node)))
            seen.add(before)
            node = before
        return (Step(node, "seed"), *reversed(back))

    def _strongest_but(self, node: int, seen: set[int]) -> tuple[int, float]:
        """The neighbour, not in `seen`, that sends most, and how much; -1 for none."""
        if node not in self._senders:
            self._senders[node] = self._strongest_few(node)
        return next((sent for sent in self._senders[node] if sent[0] not in seen), (-1, 0.0))

    def _strongest_few(self, node: int) -> list[tuple[int, float]]:
        """The neighbours that send most, and how much: enough to find one that is not on the path yet.

        A neighbour may occur twice, since two edges may join it.
        """
        neighbours, chances = self._graph.neighbours(node)
        sent = chances * self._scores.take(neighbours)
        most = np.argsort(-sent, kind="stable")[: 2 * self._limit + 1]
        most = most[sent[most] > 0]
        return list(zip(neighbours[most].tolist(), sent[most].tolist(), strict=True))


# ── where it starts ─────────────────────────────────────────────────────────────


def name_seeds(
    graph: WalkGraph,
    names: Sequence[str],
    nearest: Sequence[int],
    similarity: Sequence[float],
    *,
    threshold: float = NAME_SIMILARITY,
) -> list[Seed]:
    """A seed for each name in the question: its nearest entity, if near enough.

    `nearest` holds the entity with the same key or alias (similarity 1), or else the nearest by
    vector; -1 for none. An entity with many mentions gets less weight.
    """
    return [
        Seed(entity, near / _mentions(graph, entity), f"named in the question: {name}")
        for name, entity, near in zip(names, nearest, similarity, strict=True)
        if entity >= 0 and near >= threshold
    ]


def relation_seeds(
    graph: WalkGraph,
    ends: tuple[int, int],
    similarity: float,
    label: str,
    *,
    threshold: float = RELATION_SIMILARITY,
) -> list[Seed]:
    """Seeds at both ends of the relation that matches the whole question best, if it is near enough.

    -1 stands for an end that is not on the ground.
    """
    if similarity < threshold:
        return []
    why = f"end of the relation nearest to the question: {label}"
    return [
        Seed(entity, similarity / _mentions(graph, entity), why) for entity in ends if entity >= 0
    ]


def relevance(dense: Floats, lexical: Floats, near: Nearness = MEANINGS) -> Floats:
    """Dense and lexical scores of the same chunks on one scale; 0 if a search did not find a chunk."""
    most = float(lexical.max(initial=0.0))
    words = lexical / most if most > 0 else np.zeros_like(lexical)
    return _spread(dense) + near.lexical * words


def reset_vector(
    graph: WalkGraph,
    seeds: Iterable[Seed],
    chunks: Ints = NO_IDS,
    near: Floats = NO_WEIGHTS,
    *,
    mass: float = MEANINGS.mass,
) -> Floats:
    """Where the walker starts: at the seeds, and at the nearest chunks by their sharpened relevance.

    `chunks` are numbered from 0, and `near` is their relevance on any scale; values up to 0 are
    ignored. If several seeds are at one node, the heaviest counts. Weights are normalized, so
    neither the size of the corpus nor the frequency of the names matters.
    """
    reset = np.zeros(len(graph))
    for seed in seeds:
        reset[seed.node] = max(reset[seed.node], seed.weight)
    reset = _normalized(reset)
    best = np.lexsort((chunks, -near))[:NEAR_CHUNKS]
    best = best[near[best] > 0]
    sharp = _spread(near[best]) ** SHARPNESS
    reset[graph.entities + chunks[best]] += mass * _normalized(sharp)
    return reset


# ── why it found what it found ──────────────────────────────────────────────────


def why(steps: Sequence[Step], seeds: Mapping[int, str], label: Callable[[int], str]) -> str:
    """A path in words: why it began, then each node it passed and by which edge."""
    first = steps[0].node
    begin = seeds.get(first, "near the question")
    rest = [f"{_BY[step.by]} {label(step.node)}" for step in steps[1:]]
    return "; ".join([f"{label(first)} ({begin})", *rest])


_BY: Final[dict[EdgeKind, str]] = {
    "seed": "starts at",
    "mention": "mentioned with",
    "relation": "related to",
    "synonym": "nearly the same as",
}


# ── building ────────────────────────────────────────────────────────────────────


def synonym_edges(
    asking: Ints, others: Ints, similarities: npt.NDArray[np.floating[Any]]
) -> tuple[Ints, Floats]:
    """Pairs of synonyms, each pair once, and their similarities.

    The arguments are candidates in any order: an entity, a possible synonym (-1 for none) and their
    similarity. Each entity gets at most `SYNONYMS` synonyms, its nearest, and is not its own
    synonym.
    """
    good = (similarities >= SYNONYM_SIMILARITY) & (others != asking) & (others >= 0)
    asking, others, near = asking[good], others[good], similarities[good].astype(np.float64)
    if not len(asking):
        return NO_PAIRS, NO_WEIGHTS
    if len(asking) > SYNONYMS:
        order = np.lexsort((others, -near, asking))
        asking, others, near = asking[order], others[order], near[order]
        starts = firsts(asking)
        ranks = np.arange(len(asking)) - starts.repeat(np.diff(starts, append=len(asking)))
        first = ranks < SYNONYMS
        asking, others, near = asking[first], others[first], near[first]
    pairs = np.stack([np.minimum(asking, others), np.maximum(asking, others)]).T
    keys = _keys(pairs, int(pairs.max()) + 1)
    order = np.lexsort((-near, keys))
    each = order[firsts(keys[order])]
    return pairs[each], near[each]


def _unordered(pairs: Ints) -> Ints:
    return np.sort(pairs.reshape(-1, 2), axis=1)


def best(values: Floats, limit: int) -> Ints:
    """The places of the `limit` greatest values above 0, the greatest first, ties by place."""
    if limit < 1:
        return NO_IDS
    least = np.partition(values, -limit)[-limit] if len(values) > limit else 0
    places = np.flatnonzero((values >= least) & (values > 0))
    return places[np.argsort(-values[places], kind="stable")][:limit]


def _keys(pairs: Ints, base: int) -> Ints:
    return pairs[:, 0] * np.int64(max(base, 1)) + pairs[:, 1]


# ── small arithmetic ────────────────────────────────────────────────────────────


def _mentions(graph: WalkGraph, entity: int) -> float:
    return max(float(graph.frequency[entity]), 1.0)


def _normalized(values: Floats) -> Floats:
    total = float(values.sum())
    return values / total if total > 0 else np.zeros_like(values)


def _spread(values: Floats) -> Floats:
    """Values scaled to the range 0 to 1; all 1 if they are equal."""
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.ones_like(values)
