"""Chooses the relations an answer may be based on: by a model with reasons, by rank, or all of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.candidates import candidate_edges, resolve_selection
from lightrag_jsonl.errors import LLMError
from lightrag_jsonl.options import Selection
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.types import Rejection, Relation

CANDIDATES = 3  # times `top_k`: the number of relations to choose from

log = logging.getLogger(__name__)


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


def ranked(method: Selection, relations: Sequence[Relation], count: int) -> EdgeSelection:
    """The first `count` relations."""
    kept = tuple(relations)[:count]
    return EdgeSelection(method, kept, (None,) * len(kept))


def kept(selection: EdgeSelection, shown: Iterable[Relation]) -> EdgeSelection:
    """The part of a selection that fitted into the budget."""
    shown = tuple(shown)
    if len(shown) == len(selection.relations):
        return selection
    ends = {(relation.source, relation.target) for relation in shown}
    pairs = [
        (relation, reason)
        for relation, reason in zip(selection.relations, selection.reasons, strict=True)
        if (relation.source, relation.target) in ends
    ]
    return replace(
        selection,
        relations=tuple(relation for relation, _ in pairs),
        reasons=tuple(reason for _, reason in pairs),
    )


async def chosen(
    question: str, relations: Sequence[Relation], *, ask: Ask, count: int, spending: Spending
) -> EdgeSelection:
    """The relations that the model chose, in its order; if it chose none, the first `count`.

    If the model cannot be asked, these are used, too: an answer is worth more than the selection.
    """
    if not relations:
        return EdgeSelection("score")
    edges = candidate_edges(relations)
    lines = [
        json.dumps(
            {"id": edge.id, "s": edge.source, "p": edge.predicate, "o": edge.target},
            ensure_ascii=False,
        )
        for edge in edges
    ]
    try:
        variables = {"query": question, "edges": lines}
        records = await ask.jsonl("kg-edge-selection", variables, spending=spending)
    except LLMError as error:
        log.warning("no edges were chosen, rank decides: %s", error)
        by_rank = ranked("llm", relations, count)
        return replace(by_rank, fallback=True, error=str(error) or type(error).__name__)
    found = resolve_selection(records.result, edges)
    table = _by_labels(relations)
    picked = [(table[item.edge.labels], item.reasoning) for item in found.selected]
    fallback = not picked
    if fallback:
        log.info("the model chose none of %d edges: rank decides", len(edges))
        picked = [(relation, None) for relation in relations[:count]]
    return EdgeSelection(
        "llm",
        tuple(relation for relation, _ in picked),
        tuple(reason for _, reason in picked),
        found.rejections,
        fallback,
    )


def _by_labels(relations: Sequence[Relation]) -> Mapping[tuple[str, str, str], Relation]:
    table: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        table.setdefault((relation.source, relation.predicate, relation.target), relation)
    return table
