"""Lets a model choose the relations an answer may be based on, with reasons; or takes them by rank.

The model is shown each relation with a short id, and answers with ids.
"""

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from msgspec import structs

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.edges import Edge, EdgeSelection, candidate_edges
from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Chunk, JsonlResult, Rejection
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.retrieval.context_writer import readable_description
from lightrag_jsonl.retrieval.task import SearchResult
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.strings import clipped, fingerprint

# characters of a description that the model chooses by; keeps prompts short
DESCRIPTION_LENGTH = 160

log = logging.getLogger(__name__)


async def select_edges(
    result: SearchResult,
    question: str,
    param: QueryParam,
    *,
    client: ModelClient,
    meter: UsageMeter,
) -> EdgeSelection:
    """The relations to answer from: all, the first `top_k`, or the model's choice, in its order."""
    relations = result.context.relations
    best = relations[: param.top_k]
    if param.selection == "all":
        return EdgeSelection("all", relations)
    if param.selection == "score" or not best or not client.has_model("select"):
        return EdgeSelection("score", best)
    by_rank = EdgeSelection("llm", best, fallback=True)
    return await _chosen_edges(result, question, by_rank, client=client, meter=meter)


async def _chosen_edges(
    result: SearchResult,
    question: str,
    by_rank: EdgeSelection,
    *,
    client: ModelClient,
    meter: UsageMeter,
) -> EdgeSelection:
    """The model's choice, in its order.

    Rank decides if the model's answer cannot be used or the model cannot be asked: an answer is worth
    more. So it does if the model chose nothing and no chunk was found by text to answer from.
    """
    relations = result.context.relations
    edges = candidate_edges(relations)
    relations_by_id = {edge.id: relation for edge, relation in zip(edges, relations, strict=True)}
    lines = [
        _candidate_line(edge, readable_description(relations_by_id[edge.id])) for edge in edges
    ]
    variables = {"query": question, "edges": lines}
    try:
        records = await client.jsonl("kg-edge-selection", variables, meter=meter)
    except LLMError as error:
        log.warning("no edges were chosen, rank decides: %s", error)
        return structs.replace(by_rank, error=str(error) or type(error).__name__)
    reasons_by_id, rejections = resolve_selection(records.result, relations_by_id)
    if not reasons_by_id and not rejections and _has_text_chunks(result):
        return EdgeSelection("llm")
    if not reasons_by_id:
        log.info("the model chose none of %d edges: rank decides", len(relations_by_id))
        return structs.replace(by_rank, rejections=rejections)
    chosen = {relations_by_id[id]: reason for id, reason in reasons_by_id.items()}
    reasons = {
        (relation.source, relation.target): reason for relation, reason in chosen.items() if reason
    }
    return EdgeSelection("llm", tuple(chosen), reasons, rejections)


def resolve_selection(
    answer: JsonlResult, candidate_ids: Collection[str]
) -> tuple[dict[str, str], tuple[Rejection, ...]]:
    """The chosen ids in the model's order with the model's reasons, and the refused lines: also
    unknown and repeated ids.
    """
    reasons_by_id: dict[str, str] = {}
    rejections = list(answer.rejections)
    for line, record in zip(answer.line_numbers, answer.records, strict=True):
        id = str(record.get("id")).strip().strip("[]#").lower()  # also a number, or in brackets
        text = json.dumps(record, ensure_ascii=False)
        if id in reasons_by_id:
            rejections.append(Rejection(line, text, "duplicate_id", f"{id!r} was chosen before"))
        elif id not in candidate_ids:
            rejections.append(Rejection(line, text, "unknown_id", f"no candidate has id {id!r}"))
        else:
            reason = record.get("reasoning")
            reasons_by_id[id] = reason.strip() if isinstance(reason, str) else ""
    return reasons_by_id, tuple(sorted(rejections, key=lambda rejection: rejection.line))


def with_sources(
    view: StoreView, result: SearchResult, selection: EdgeSelection, limit: int
) -> SearchResult:
    """The result with the chunks that go with the relations a model chose (specification 2, section 1).

    First come the found chunks of chosen relations, and the chunks found by text without a candidate,
    on which the selection has no bearing; then the further chunks of chosen relations. Entities are
    left out: their descriptions may state relations not chosen. If the model chose nothing, all chunks
    found by text remain.
    """
    context = result.context
    by_text = set(result.text_chunk_ids)
    if not selection.relations:
        text_chunks = [chunk for chunk in context.chunks if chunk.id in by_text]
        chunks = tuple(text_chunks[:limit])
        return structs.replace(result, context=_narrowed(context, chunks, none_selected=True))
    source_ids = dict.fromkeys(
        [id for relation in selection.relations for id in relation.chunk_ids]
    )
    candidate_ids = {id for relation in context.relations for id in relation.chunk_ids}
    suitable_ids = source_ids.keys() | (by_text - candidate_ids)
    suitable = [chunk for chunk in context.chunks if chunk.id in suitable_ids]
    further = _load_chunks(view, [*source_ids], suitable)
    narrowed = _narrowed(context, (*suitable, *further)[:limit], none_selected=False)
    return structs.replace(result, context=with_documents(view, narrowed))


def _candidate_line(edge: Edge, description: str) -> str:
    """A relation as the model is shown it: a line of JSON."""
    fields = {"id": edge.id, "s": edge.source, "p": edge.predicate, "o": edge.target}
    if description:
        fields["d"] = clipped(description, DESCRIPTION_LENGTH)
    return json.dumps(fields, ensure_ascii=False)


def _has_text_chunks(result: SearchResult) -> bool:
    chunk_ids = {chunk.id for chunk in result.context.chunks}
    return not chunk_ids.isdisjoint(result.text_chunk_ids)


def _load_chunks(view: StoreView, ids: Sequence[str], present: Sequence[Chunk]) -> list[Chunk]:
    """The chunks with these ids that are not present yet, nor a copy, in the order of the ids."""
    present_ids = {chunk.id for chunk in present}
    missing_ids = [id for id in ids if id not in present_ids]
    chunks_by_id = {chunk.id: chunk for chunk in view.chunks(ids=missing_ids).values()}
    texts = {fingerprint(chunk.text) for chunk in present}
    missing: dict[str, Chunk] = {}
    for id in missing_ids:
        if id in chunks_by_id:
            missing.setdefault(fingerprint(chunks_by_id[id].text), chunks_by_id[id])
    return [chunk for text, chunk in missing.items() if text not in texts]


def _narrowed(context: Context, chunks: tuple[Chunk, ...], *, none_selected: bool) -> Context:
    return replace(context, entities=(), chunks=chunks, none_selected=none_selected)
