"""Chooses the relations an answer may be based on: by a model with reasons, by rank, or all of them.

The model is shown each relation with a short id, and answers with ids.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import Selection
from lightrag_jsonl.core.types import Json, JsonlResult, Rejection, RejectionReason, Relation
from lightrag_jsonl.llm.client import ModelClient, UsageMeter

ID_LENGTH = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation to choose from: its labels, the score of its rank, and the chunks it came from."""

    id: str
    source: str
    predicate: str
    target: str
    chunk_ids: tuple[str, ...] = ()
    score: float = 0.0

    @property
    def labels(self) -> tuple[str, str, str]:
        """Subject, predicate and object."""
        return self.source, self.predicate, self.target


@dataclass(frozen=True, slots=True)
class SelectedEdge:
    """A chosen edge, with the model's reason or the score by which it was chosen."""

    edge: Edge
    reasoning: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class EdgeSelection:
    """The chosen relations, best first, each with the model's reason if it gave one.

    `method` is how they were to be chosen. With `fallback` the model chose none, and rank decided;
    `error` says why the model could not be asked.
    """

    method: Selection
    relations: tuple[Relation, ...] = ()
    reasons: tuple[str | None, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    fallback: bool = False
    error: str | None = None

    def shown(self, relations: Sequence[Relation]) -> EdgeSelection:
        """The part of the selection that is among these relations, which fitted into the budget."""
        if len(relations) == len(self.relations):
            return self
        ends = {(relation.source, relation.target) for relation in relations}
        pairs = zip(self.relations, self.reasons, strict=True)
        kept = [(one, why) for one, why in pairs if (one.source, one.target) in ends]
        return replace(
            self, relations=tuple(one for one, _ in kept), reasons=tuple(why for _, why in kept)
        )


def select_by_rank(
    method: Selection, relations: Sequence[Relation], count: int | None
) -> EdgeSelection:
    """The first `count` relations, or all."""
    kept = tuple(relations[:count])
    return EdgeSelection(method, kept, (None,) * len(kept))


async def select_by_model(
    question: str,
    relations: Sequence[Relation],
    *,
    client: ModelClient,
    count: int,
    meter: UsageMeter,
) -> EdgeSelection:
    """The relations that the model chose, in its order; if it chose none, the first `count`.

    If the model cannot be asked, these are used, too: an answer is worth more than the selection.
    """
    if not relations:
        return EdgeSelection("score")
    edges = candidate_edges(relations)
    lines = [
        json.dumps(
            dict(zip(("id", "s", "p", "o"), (edge.id, *edge.labels), strict=True)), ensure_ascii=False
        )
        for edge in edges
    ]
    by_rank = replace(select_by_rank("llm", relations, count), fallback=True)
    try:
        variables = {"query": question, "edges": lines}
        records = await client.jsonl("kg-edge-selection", variables, meter=meter)
    except LLMError as error:
        log.warning("no edges were chosen, rank decides: %s", error)
        return replace(by_rank, error=str(error) or type(error).__name__)
    chosen, rejections = resolve_selection(records.result, edges)
    if not chosen:
        log.info("the model chose none of %d edges: rank decides", len(edges))
        return replace(by_rank, rejections=rejections)
    by_labels = {labels(relation): relation for relation in reversed(relations)}
    return EdgeSelection(
        "llm",
        tuple(by_labels[item.edge.labels] for item in chosen),
        tuple(item.reasoning for item in chosen),
        rejections,
    )


# ── ids ─────────────────────────────────────────────────────────────────────────


def labels(relation: Relation) -> tuple[str, str, str]:
    """Subject, predicate and object of a relation."""
    return relation.source, relation.predicate, relation.target


def candidate_edges(relations: Iterable[Relation]) -> tuple[Edge, ...]:
    """The relations as edges in the order given, without repetitions, each with a unique id."""
    distinct: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        distinct.setdefault(labels(relation), relation)
    return tuple(
        Edge(id, *triple, chunk_ids=relation.chunk_ids, score=relation.score)
        for id, (triple, relation) in zip(edge_ids(list(distinct)), distinct.items(), strict=True)
    )


def edge_id(source: str, predicate: str, target: str, *, length: int = ID_LENGTH) -> str:
    """The first `length` digits of SHA-256 of `source|predicate|target`."""
    text = "|".join((source, predicate, target))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def edge_ids(triples: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    """An id for each triple: eight digits, more only if different triples collide."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number, triple in enumerate(triples):
        groups[edge_id(*triple)].append(number)
    ids: dict[int, str] = {}
    for group in groups.values():
        digits = [edge_id(*triples[number], length=64) for number in group]
        digits = [f"{full}{digits[:at].count(full)}" for at, full in enumerate(digits)]
        length = ID_LENGTH
        while len({full[:length] for full in digits}) < len(group):
            length += 1
        ids |= {number: full[:length] for number, full in zip(group, digits, strict=True)}
    return tuple(ids[number] for number in range(len(triples)))


def resolve_selection(
    result: JsonlResult, edges: Iterable[Edge]
) -> tuple[tuple[SelectedEdge, ...], tuple[Rejection, ...]]:
    """The chosen edges in the model's order, and what was refused: unknown and repeated ids, too."""
    by_id = {edge.id: edge for edge in edges}
    chosen: dict[str, SelectedEdge] = {}
    refused = list(result.rejections)
    for line, record in zip(result.line_numbers, result.records, strict=True):
        id, reason = _plain_id(record.get("id")), record.get("reasoning")
        if id in by_id and id not in chosen:
            text = reason.strip() if isinstance(reason, str) else ""
            chosen[id] = SelectedEdge(by_id[id], text or None)
            continue
        fault: RejectionReason = "duplicate_id" if id in chosen else "unknown_id"
        detail = f"{id!r} was chosen before" if id in chosen else f"no candidate has id {id!r}"
        refused.append(Rejection(line, json.dumps(record, ensure_ascii=False), fault, detail))
    return tuple(chosen.values()), tuple(sorted(refused, key=lambda one: one.line))


def _plain_id(value: Json) -> str:
    """The id a model meant, written as a number, in brackets or in capitals."""
    return str(value).strip().strip("[]#").lower() if isinstance(value, str | int) else ""
