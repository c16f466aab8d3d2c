"""Statistics of a graph, and whether it connects the passages that questions need together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lightrag_jsonl.evaluation.lookup import Lookup
from lightrag_jsonl.evaluation.questions import EvalQuestion


@dataclass(frozen=True, slots=True)
class Linkage:
    """How many of the pairs of passages that support a question are connected by the graph.

    `by_entity`: both mention the same entity. `by_relation`: a relation joins an entity of one and
    an entity of the other. `linked`: either.
    """

    pairs: int
    by_entity: int
    by_relation: int
    linked: int

    @property
    def share(self) -> float:
        """The share of linked pairs; 0 if there are no pairs."""
        return self.linked / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True)
class GraphHealth:
    """Counts of an index's graph; `degrees` maps quantiles ("p50", …, "max") to relations per entity."""

    chunks: int
    entities: int
    relations: int
    isolated: int
    silent_chunks: int
    mean_degree: float
    degrees: Mapping[str, int]
    linkage: Linkage


def graph_health(lookup: Lookup, questions: Sequence[EvalQuestion] = ()) -> GraphHealth:
    """The graph of an index; `isolated` entities have no relation, `silent_chunks` no entity.

    Raises `ConfigError` if a supporting id is not in the index.
    """
    rows = lookup.chunk_rows(name for question in questions for name in question.supporting)
    mentions = lookup.mentions()
    with lookup.snapshot() as snapshot:
        chunks = snapshot.connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
        degrees = snapshot.graph.degrees(snapshot.graph.entity_ids()).tolist()
        ends = [(low, high) for low, high in snapshot.graph.all_ends.tolist()]
    heard = {chunk for found in mentions.values() for chunk in found}
    return GraphHealth(
        chunks=int(chunks),
        entities=len(degrees),
        relations=len(ends),
        isolated=sum(degree == 0 for degree in degrees),
        silent_chunks=int(chunks) - len(heard),
        mean_degree=round(float(np.mean(degrees)), 2) if degrees else 0.0,
        degrees=_quantiles(degrees),
        linkage=_linkage(_pairs(questions, rows), _told(mentions), _neighbours(ends)),
    )


# ── helpers ─────────────────────────────────────────────────────────────────────

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
Chunks = frozenset[int]


def _quantiles(degrees: Sequence[int]) -> dict[str, int]:
    if not degrees:
        return dict.fromkeys(QUANTILES, 0)
    return {name: int(np.quantile(degrees, share)) for name, share in QUANTILES.items()}


def _pairs(
    questions: Iterable[EvalQuestion], rows: Mapping[str, Chunks]
) -> list[tuple[Chunks, Chunks]]:
    return [
        (rows[one], rows[other])
        for question in questions
        for one, other in itertools.combinations(question.supporting, 2)
    ]


def _told(mentions: Mapping[int, Iterable[int]]) -> dict[int, set[int]]:
    """The entities of each chunk."""
    told: dict[int, set[int]] = {}
    for entity, chunks in mentions.items():
        for chunk in chunks:
            told.setdefault(chunk, set()).add(entity)
    return told


def _neighbours(ends: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for low, high in ends:
        found.setdefault(low, set()).add(high)
        found.setdefault(high, set()).add(low)
    return found


def _linkage(
    pairs: Sequence[tuple[Chunks, Chunks]],
    told: Mapping[int, set[int]],
    neighbours: Mapping[int, set[int]],
) -> Linkage:
    shared = related = linked = 0
    for one, other in pairs:
        ours = {entity for chunk in one for entity in told.get(chunk, ())}
        theirs = {entity for chunk in other for entity in told.get(chunk, ())}
        meets = bool(ours & theirs)
        leads = any(neighbours.get(entity, set()) & theirs for entity in ours)
        shared, related, linked = shared + meets, related + leads, linked + (meets or leads)
    return Linkage(len(pairs), shared, related, linked)
