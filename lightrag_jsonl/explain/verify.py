"""Checks a stored trace against what is stored now, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lightrag_jsonl.candidates import edge_id
from lightrag_jsonl.explain.events import Stage
from lightrag_jsonl.explain.sources import Library
from lightrag_jsonl.explain.trace import Trace
from lightrag_jsonl.types import Chunk, Citation, Page


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault: the check that found it, and a description.

    It concerns a trace, or, if `trace_id` is "", the texts of a document.
    """

    trace_id: str
    check: str
    detail: str
    document_id: str = ""

    def __str__(self) -> str:
        where = self.trace_id or f"document {self.document_id}"
        return f"{where}: {self.check}: {self.detail}"


def verify(trace: Trace, library: Library) -> tuple[Problem, ...]:
    """All faults of the trace. Deleted sources, and steps that a failed query did not reach, are none."""
    return tuple(
        Problem(trace.id, name, detail)
        for name, check in _CHECKS.items()
        for detail in check(trace, library)
    )


Check = Callable[[Trace, Library], Iterator[str]]

_ORDER: tuple[Stage, ...] = ("session", "keywords", "retrieval", "selection", "answer", "end")
_NEEDED: tuple[Stage, ...] = ("session", "retrieval", "selection", "answer", "end")
_NEEDED_WITHOUT_SEARCH: tuple[Stage, ...] = ("session", "answer", "end")


def _chain(trace: Trace, library: Library) -> Iterator[str]:
    """The stages are in order; a complete query has all of them, a failed one has its error."""
    if list(trace.stages) != [stage for stage in _ORDER if stage in trace.stages]:
        yield f"stages out of order: {', '.join(trace.stages)}"
    yield from (f"no {stage} on record" for stage in _missing(trace))
    if trace.status == "complete" and trace.error is not None:
        yield "complete, but with an error"
    if trace.status == "failed" and not trace.error:
        yield "failed, but without an error"


def _missing(trace: Trace) -> list[Stage]:
    """The needed stages that are not on record: a complete query needs all of them, any other those
    before the last one it reached.
    """
    needed = _NEEDED if trace.mode != "bypass" else _NEEDED_WITHOUT_SEARCH
    reached = [stage for stage in trace.stages if stage != "end"]
    last = "end" if trace.status == "complete" else (reached or ["session"])[-1]
    before = _ORDER[: _ORDER.index(last) + 1]
    return [stage for stage in needed if stage in before and stage not in trace.stages]


def _edges(trace: Trace, library: Library) -> Iterator[str]:
    """Every edge has a chunk, and the id that follows from its labels; selected edges were candidates."""
    candidates = {edge.id: edge for edge in trace.candidates}
    if len(candidates) < len(trace.candidates):
        yield "two candidates share an id"
    for edge in trace.candidates:
        if not edge.chunk_ids:
            yield f"edge {edge.id} has no chunk"
        if edge_id(*edge.labels, length=len(edge.id)) != edge.id:
            yield f"edge {edge.id} does not have the id of its labels"
    for chosen in trace.selected:
        if candidates.get(chosen.edge.id) != chosen.edge:
            yield f"selected edge {chosen.edge.id} was no candidate"
    for name in trace.selected_chunks:
        if name not in trace.retrieved_chunks:
            yield f"selected chunk {name} was not retrieved"


def _shown(trace: Trace, library: Library) -> Iterator[str]:
    """Shown items have distinct numbers and chunks; shown edges were candidates."""
    candidates = {edge.id for edge in trace.candidates}
    numbers = [item.number for item in trace.shown]
    if len(set(numbers)) < len(numbers):
        yield "two shown items share a number"
    for item in trace.shown:
        if not item.chunk_ids:
            yield f"shown item [{item.number}] has no chunk"
        if item.kind == "relation" and item.id not in candidates:
            yield f"shown item [{item.number}] is the edge {item.id}, which was no candidate"
        chunk = library.chunk(item.id) if item.kind == "chunk" else None
        if chunk is not None and not chunk.start <= item.start < item.end <= chunk.end:
            yield f"shown item [{item.number}] reaches outside its chunk"


def _offsets(trace: Trace, library: Library) -> Iterator[str]:
    """Every chunk that still exists is exactly its part of its page."""
    named = [name for edge in trace.candidates for name in edge.chunk_ids]
    for name in dict.fromkeys([*trace.chunk_ids, *named, *trace.retrieved_chunks]):
        chunk = library.chunk(name)
        if chunk is not None and (fault := _offset_fault(chunk, library)):
            yield f"chunk {name} {fault}"


def chunk_fault(chunk: Chunk, page: Page | None) -> str:
    """What is wrong with a chunk's place; "" if it is exactly its part of its page."""
    if page is None:
        return f"is on page {chunk.page} of {chunk.document_id}, which is not stored"
    if page.text[chunk.start : chunk.end] != chunk.text or not chunk.text:
        return f"is not characters {chunk.start}–{chunk.end} of its page"
    return ""


def _offset_fault(chunk: Chunk, library: Library) -> str:
    if library.document(chunk.document_id) is None:
        return f"belongs to the document {chunk.document_id}, which is not stored"
    return chunk_fault(chunk, library.page(chunk.document_id, chunk.page))


def _citations(trace: Trace, library: Library) -> Iterator[str]:
    """Every citation refers to something that was shown, lies inside its chunk, and is quoted exactly."""
    shown = {item.number: item for item in trace.shown}
    for citation in trace.citations:
        item = shown.get(citation.number)
        if item is None:
            yield f"citation [{citation.number}] points at nothing that was shown"
        elif item.kind != citation.kind or citation.chunk_id not in item.chunk_ids:
            yield f"citation [{citation.number}] is not of the item that was shown"
        elif fault := _citation_fault(citation, library.chunk(citation.chunk_id)):
            yield f"citation [{citation.number}] {fault}"
    for number in trace.invented:
        if number in shown:
            yield f"[{number}] is on record as invented, but was shown"


def _citation_fault(citation: Citation, chunk: Chunk | None) -> str:
    if chunk is None:
        return ""
    start, end = citation.start - chunk.start, citation.end - chunk.start
    if (citation.document_id, citation.page) != (chunk.document_id, chunk.page):
        return "names another page than its chunk"
    if not 0 <= start < end <= len(chunk.text):
        return "reaches outside its chunk"
    if chunk.text[start:end] != citation.text:
        return f"does not quote characters {citation.start}–{citation.end} of its page"
    return ""


def _answer(trace: Trace, library: Library) -> Iterator[str]:
    """An answered query has the text of its answer; an answer that nothing was found cites nothing."""
    empty = not (trace.answer or "").strip()
    lost = trace.answer is None or (empty and (trace.citations or trace.invented))
    if "answer" in trace.stages and lost:
        yield "the text is not stored"


_CHECKS: dict[str, Check] = {
    "chain": _chain,
    "edges": _edges,
    "shown": _shown,
    "offsets": _offsets,
    "citations": _citations,
    "answer": _answer,
}
