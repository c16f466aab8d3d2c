"""Lets a model choose the relations an answer may be based on, with reasons; or takes them by rank.

The model is shown each relation with a short id, and answers with ids.
"""

import json
import logging
from collections.abc import Collection
from dataclasses import replace

from lightrag_jsonl.core.edges import Edge, EdgeSelection, candidate_edges
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.text import clipped
from lightrag_jsonl.core.types import Context, JsonlResult, Rejection
from lightrag_jsonl.llm.client import ModelClient, UsageMeter

DESCRIPTION_LENGTH = 160  # characters of a description that the model chooses by

log = logging.getLogger(__name__)


async def select_edges(
    found: Context,
    param: QueryParam,
    client: ModelClient,
    meter: UsageMeter,
    *,
    may_be_none: bool = False,
) -> EdgeSelection:
    """The relations to answer from: all, the first `top_k`, or those that the model chose, in its
    order. If its answer cannot be used or it cannot be asked, rank decides: an answer is worth more.
    So it does if the model chose none, unless that `may_be_none`, since there are passages.
    """
    best = found.relations[: param.top_k]
    if param.selection == "all":
        return EdgeSelection("all", found.relations)
    if param.selection == "score" or not best or not client.has_model:
        return EdgeSelection("score", best)
    by_rank = EdgeSelection("llm", best, fallback=True)
    edges = candidate_edges(found.relations)
    by_id = {edge.id: one for edge, one in zip(edges, found.relations, strict=True)}
    lines = [_candidate(edge, by_id[edge.id].description) for edge in edges]
    variables = {"query": found.question, "edges": lines}
    try:
        records = await client.jsonl("kg-edge-selection", variables, meter=meter)
    except LLMError as error:
        log.warning("no edges were chosen, rank decides: %s", error)
        return replace(by_rank, error=str(error) or type(error).__name__)
    chosen, rejections = resolve_selection(records.result, by_id)
    if not chosen and not rejections and may_be_none:
        return EdgeSelection("llm")
    if not chosen:
        log.info("the model chose none of %d edges: rank decides", len(by_id))
        return replace(by_rank, rejections=rejections)
    picked = {by_id[id]: reason for id, reason in chosen.items()}
    reasons = {(one.source, one.target): reason for one, reason in picked.items() if reason}
    return EdgeSelection("llm", tuple(picked), reasons, rejections)


def _candidate(edge: Edge, description: str) -> str:
    """An edge as the model is shown it: a line of JSON."""
    fields = {"id": edge.id, "s": edge.source, "p": edge.predicate, "o": edge.target}
    if description:
        fields["d"] = clipped(description, DESCRIPTION_LENGTH)
    return json.dumps(fields, ensure_ascii=False)


def resolve_selection(
    result: JsonlResult, known: Collection[str]
) -> tuple[dict[str, str], tuple[Rejection, ...]]:
    """The chosen ids in the model's order with its reasons, and what was refused: unknown and
    repeated ids, too.
    """
    chosen: dict[str, str] = {}
    refused = list(result.rejections)
    for line, record in zip(result.line_numbers, result.records, strict=True):
        id = str(record.get("id")).strip().strip("[]#").lower()  # also a number, or in brackets
        reason = record.get("reasoning")
        if id in known and id not in chosen:
            chosen[id] = reason.strip() if isinstance(reason, str) else ""
            continue
        text, known_before = json.dumps(record, ensure_ascii=False), id in chosen
        detail = f"{id!r} was chosen before" if known_before else f"no candidate has id {id!r}"
        fault = Rejection(line, text, "duplicate_id" if known_before else "unknown_id", detail)
        refused.append(fault)
    return chosen, tuple(sorted(refused, key=lambda one: one.line))
