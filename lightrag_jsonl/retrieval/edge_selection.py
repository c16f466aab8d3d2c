"""Chooses the relations an answer may be based on: by a model with reasons, by rank, or all of them.

The model is shown each relation with a short id, and answers with ids.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeAlias

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import Selection
from lightrag_jsonl.core.types import Json, JsonlResult, Rejection, RejectionReason, Relation
from lightrag_jsonl.llm.client import ModelClient, UsageMeter

ID_LENGTH = 8

Labels: TypeAlias = tuple[str, str, str]  # subject, predicate and object

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
    def labels(self) -> Labels:
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

    @classmethod
    def by_rank(cls, method: Selection, relations: Sequence[Relation]) -> EdgeSelection:
        """All of these relations, without reasons."""
        return cls(method, tuple(relations), (None,) * len(relations))

    def only(self, shown: Sequence[Relation]) -> EdgeSelection:
        """The part of the selection that was shown to the model, since it fitted into the budget."""
        ends = {(relation.source, relation.target) for relation in shown}
        pairs = zip(self.relations, self.reasons, strict=True)
        kept = [(one, why) for one, why in pairs if (one.source, one.target) in ends]
        relations, reasons = zip(*kept, strict=True) if kept else ((), ())
        return replace(self, relations=relations, reasons=reasons)


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
            {"id": one.id, "s": one.source, "p": one.predicate, "o": one.target}, ensure_ascii=False
        )
        for one in edges
    ]
    by_rank = replace(EdgeSelection.by_rank("llm", relations[:count]), fallback=True)
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
    picked = tuple(by_labels[item.edge.labels] for item in chosen)
    return EdgeSelection("llm", picked, tuple(item.reasoning for item in chosen), rejections)


# ── ids ─────────────────────────────────────────────────────────────────────────


def labels(relation: Relation) -> Labels:
    """Subject, predicate and object of a relation."""
    return relation.source, relation.predicate, relation.target


def candidate_edges(relations: Sequence[Relation]) -> tuple[Edge, ...]:
    """The relations as edges in the order given, without repetitions, each with a unique id."""
    distinct = {labels(relation): relation for relation in reversed(relations)}
    triples = list(dict.fromkeys(map(labels, relations)))
    return tuple(
        Edge(id, *triple, distinct[triple].chunk_ids, distinct[triple].score)
        for id, triple in zip(edge_ids(triples), triples, strict=True)
    )


def edge_id(source: str, predicate: str, target: str, *, length: int = ID_LENGTH) -> str:
    """The first `length` digits of SHA-256 of `source|predicate|target`."""
    text = "|".join((source, predicate, target))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def edge_ids(triples: Sequence[Labels]) -> tuple[str, ...]:
    """An id for each of some distinct triples: eight digits, more only if different ones collide."""
    seen: Counter[str] = Counter()
    whole: list[str] = []
    for triple in triples:
        digits = edge_id(*triple, length=64)
        whole.append(f"{digits}{seen[digits]}")  # the labels "a|b" and "c" join like "a" and "b|c"
        seen[digits] += 1
    lengths = dict.fromkeys(whole, ID_LENGTH)
    while len(lengths) > len(short := Counter(digits[: lengths[digits]] for digits in whole)):
        for digits in whole:
            lengths[digits] += short[digits[: lengths[digits]]] > 1
    return tuple(digits[: lengths[digits]] for digits in whole)


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
