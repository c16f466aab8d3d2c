"""Personalized PageRank over entities and chunks: where a question's names and nearest chunks lead.

Pure functions on arrays. Nodes are numbered entities first (0 to E - 1), then chunks
(E to E + C - 1); the caller keeps which number is which. A walker follows an edge with
the chance `damping`, and otherwise starts again at a seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
EdgeKind = Literal["seed", "mention", "relation", "synonym"]

DAMPING: Final = 0.5
NAME_SIMILARITY: Final = 0.75  # a name's nearest entity counts from this cosine on
SYNONYM_SIMILARITY: Final = 0.8
SYNONYMS: Final = 5  # synonym edges an entity may ask for
CHUNK_WEIGHT: Final = 0.05
CHUNK_SHARPNESS: Final = 4

_NO_PAIRS: Final = np.empty((0, 2), dtype=np.int64)
_NO_WEIGHTS: Final = np.empty(0, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Edges:
    """What joins the nodes: rows of `mentions` are (entity, chunk), of the others two entities.

    Repeated relations add up; of repeated mentions and synonyms one counts.
    """

    mentions: Ints = field(default_factory=lambda: _NO_PAIRS)
    relations: Ints = field(default_factory=lambda: _NO_PAIRS)
    relation_weights: Floats = field(default_factory=lambda: _NO_WEIGHTS)
    synonyms: Ints = field(default_factory=lambda: _NO_PAIRS)
    similarities: Floats = field(default_factory=lambda: _NO_WEIGHTS)


@dataclass(frozen=True, slots=True)
class Seed:
    """A node the walk starts from, how much, and why."""

    node: int
    weight: float
    why: str


@dataclass(frozen=True, slots=True)
class Step:
    """A node on the way from a seed to a hit, and the edge by which it was reached."""

    node: int
    by: EdgeKind


class WalkGraph:
    """The graph as a column-normalized sparse matrix, kept between questions."""

    def __init__(self, entities: int, chunks: int, edges: Edges) -> None:
        from scipy import sparse

        self.entities, self.chunks = entities, chunks
        mentions = _unique(edges.mentions)
        self.frequency = np.bincount(mentions[:, 0], minlength=entities).astype(np.float32)
        self._joined = np.unique(_keys(_ordered(edges.relations), entities))
        ends, weights = _weighted(edges, mentions, self.frequency, entities, chunks)
        size = entities + chunks
        both = np.concatenate([ends, ends[:, ::-1]])
        values = np.concatenate([weights, weights])
        matrix = sparse.coo_matrix((values, (both[:, 0], both[:, 1])), shape=(size, size)).tocsr()
        total = np.asarray(matrix.sum(axis=0), dtype=np.float32).reshape(-1)
        self._lonely = total == 0
        scale = np.divide(1, total, out=np.zeros_like(total), where=~self._lonely)
        matrix.data *= scale[matrix.indices]
        self._matrix: Any = matrix

    def __len__(self) -> int:
        return self.entities + self.chunks

    @property
    def edges(self) -> int:
        """How many pairs of nodes are joined."""
        return int(self._matrix.nnz) // 2

    def walk(
        self,
        reset: Floats,
        *,
        damping: float = DAMPING,
        tolerance: float = 1e-5,
        iterations: int = 100,
    ) -> Floats:
        """The share of time a walker spends at each node; zeros where `reset` is all zeros.

        Where nothing leads on, the walker starts again.
        """
        start = _normalized(reset)
        here = start
        for _ in range(iterations if start.any() else 0):
            stuck = float(here[self._lonely].sum())
            after = damping * (self._matrix @ here) + (1 - damping + damping * stuck) * start
            change = float(np.abs(after - here).sum())
            here = after
            if change < tolerance:
                break
        return here

    def path(
        self, node: int, scores: Floats, reset: Floats, *, damping: float = DAMPING, limit: int = 6
    ) -> tuple[Step, ...]:
        """Why a node was found: the strongest way back to a seed, seed first."""
        start, steps, seen = _normalized(reset), list[Step](), {node}
        while True:
            before, share = self._strongest(node, scores, seen)
            if before is None or (1 - damping) * start[node] >= damping * share:
                break
            steps.append(Step(node, self._kind(before, node)))
            seen.add(before)
            node = before
            if len(steps) == limit:
                break
        return (Step(node, "seed"), *reversed(steps))

    def _strongest(self, node: int, scores: Floats, seen: set[int]) -> tuple[int | None, float]:
        row = slice(self._matrix.indptr[node], self._matrix.indptr[node + 1])
        neighbours = self._matrix.indices[row]
        inflow = self._matrix.data[row] * scores[neighbours]
        order = np.lexsort((neighbours, -inflow))
        for place in order:
            if int(neighbours[place]) not in seen and inflow[place] > 0:
                return int(neighbours[place]), float(inflow[place])
        return None, 0.0

    def _kind(self, one: int, other: int) -> EdgeKind:
        if max(one, other) >= self.entities:
            return "mention"
        key = _keys(_ordered(np.array([[one, other]], dtype=np.int64)), self.entities)[0]
        place = np.searchsorted(self._joined, key)
        found = place < len(self._joined) and self._joined[place] == key
        return "relation" if found else "synonym"


# ── where it starts ─────────────────────────────────────────────────────────────


def name_seeds(
    graph: WalkGraph,
    names: Sequence[str],
    nearest: Sequence[int],
    similarity: Sequence[float],
    *,
    threshold: float = NAME_SIMILARITY,
) -> list[Seed]:
    """A seed for each name of the question: its nearest entity, if near enough.

    `nearest` holds the entity of the same key or alias (similarity 1) or else the nearest
    by embedding; -1 for none. An entity that many chunks mention says less.
    """
    return [
        Seed(entity, near / max(float(graph.frequency[entity]), 1.0), f"named: {name}")
        for name, entity, near in zip(names, nearest, similarity, strict=True)
        if entity >= 0 and near >= threshold
    ]


def relation_seeds(
    graph: WalkGraph, source: int, target: int, similarity: float, label: str
) -> list[Seed]:
    """Seeds at both ends of the one relation that the whole question matches best."""
    if similarity <= 0:
        return []
    return [
        Seed(entity, similarity / max(float(graph.frequency[entity]), 1.0), f"relation: {label}")
        for entity in (source, target)
    ]


def reset_vector(
    graph: WalkGraph,
    seeds: Iterable[Seed],
    relevance: Floats | None = None,
    *,
    weight: float = CHUNK_WEIGHT,
    sharpness: float = CHUNK_SHARPNESS,
) -> Floats:
    """Where the walker starts: the seeds, and every chunk by its relevance, sharpened.

    Of several seeds at one node the heaviest counts. `relevance` has one value a chunk,
    on any scale: it is brought to 0..1 first.
    """
    reset = np.zeros(len(graph), dtype=np.float32)
    for seed in seeds:
        reset[seed.node] = max(reset[seed.node], np.float32(seed.weight))
    if relevance is not None and graph.chunks:
        reset[graph.entities :] += weight * spread(relevance) ** np.float32(sharpness)
    return reset


def spread(values: Floats) -> Floats:
    """Values brought to the range 0 to 1; all alike become 0."""
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.zeros_like(values)
    return ((values - low) / np.float32(high - low)).astype(np.float32)


def synonym_edges(
    ids: Ints, neighbours: Ints, similarities: Floats, *, threshold: float = SYNONYM_SIMILARITY
) -> tuple[Ints, Floats]:
    """Synonym pairs from a search for the nearest entities: at most `SYNONYMS` for each of `ids`.

    `neighbours` and `similarities` are what `VectorIndex.search` gives for the vectors of
    `ids`, best first; an entity is not its own synonym.
    """
    good = (neighbours >= 0) & (neighbours != ids[:, None]) & (similarities >= threshold)
    good &= np.cumsum(good, axis=1) <= SYNONYMS
    rows, columns = np.nonzero(good)
    pairs = np.stack([ids[rows], neighbours[rows, columns]], axis=1)
    return pairs.astype(np.int64), similarities[rows, columns].astype(np.float32)


# ── helpers ─────────────────────────────────────────────────────────────────────


def _weighted(
    edges: Edges, mentions: Ints, frequency: Floats, entities: int, chunks: int
) -> tuple[Ints, Floats]:
    """Every joined pair once, with its weight."""
    rarity = np.log1p(chunks / frequency[mentions[:, 0]])
    ends = [mentions + np.array([0, entities]), edges.relations, edges.synonyms]
    weights = [rarity, edges.relation_weights, edges.similarities]
    return np.concatenate(ends), np.concatenate(weights).astype(np.float32)


def _normalized(values: Floats) -> Floats:
    total = float(values.sum(dtype=np.float64))
    return (values / total if total > 0 else np.zeros_like(values)).astype(np.float32)


def _ordered(pairs: Ints) -> Ints:
    return np.sort(pairs, axis=1)


def _keys(pairs: Ints, base: int) -> Ints:
    return pairs[:, 0] * np.int64(max(base, 1)) + pairs[:, 1]


def _unique(pairs: Ints) -> Ints:
    return np.unique(pairs, axis=0) if len(pairs) else pairs.reshape(0, 2)
