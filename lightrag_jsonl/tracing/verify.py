"""Checks what is stored for explanations, without a model: traces, and the texts they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.errors import CorruptError
from lightrag_jsonl.core.types import Chunk, Page
from lightrag_jsonl.indexing.chunking import chunk_id
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.tracing.trace import Sources, Trace, load_trace, look_up_sources


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a trace, or of the document `document_id` if `trace_id` is "".

    `check` is the check that found it, `detail` describes it.
    """

    trace_id: str
    check: str
    detail: str
    document_id: str = ""

    def __str__(self) -> str:
        return f"{self.trace_id or f'document {self.document_id}'}: {self.check}: {self.detail}"


def verify(reader: Reader, trace_ids: Sequence[str] = ()) -> tuple[Problem, ...]:
    """What is wrong with these traces; without ids, with all traces, pages and chunks."""
    found, rows = list[Problem](), {row.id: row for row in reader.traces()}
    for id in trace_ids or rows:
        try:
            trace = load_trace(reader, id)
        except CorruptError as error:
            found.append(Problem(id, "events", str(error.__cause__)))
            continue
        if trace.status != (status := rows[trace.id].status):
            found.append(Problem(trace.id, "events", f"they are {trace.status}, not {status}"))
        found += verify_trace(trace, look_up_sources(reader, trace.chunk_ids))
    for document in () if trace_ids else reader.documents():
        pages = {page.number: page for page in reader.pages(document.id)}
        for chunk in reader.document_chunks([document.id]).values():
            for fault in _offsets(chunk, pages.get(chunk.page)):
                found.append(Problem("", "offsets", fault, document.id))
    return tuple(found)


def verify_trace(trace: Trace, sources: Sources) -> tuple[Problem, ...]:
    """All faults of the trace. Deleted sources are none, nor are steps that a failed query did not
    reach.
    """
    checks = [
        ("chain", _chain(trace)),
        ("edges", _edges(trace)),
        ("citations", _citations(trace, sources)),
        *(("offsets", _offsets(one, sources.page_of(one))) for one in sources.chunks.values()),
    ]
    return tuple(Problem(trace.id, name, detail) for name, found in checks for detail in found)


def _chain(trace: Trace) -> Iterator[str]:
    """No stage is missing before the last one that was reached, nor is the text of an answer."""
    order = ["session", "retrieval", "selection", "answer", "end"]
    if trace.mode == "bypass":
        order = ["session", "answer", "end"]
    reached = [stage for stage in trace.stages if stage in order]
    if trace.status == "failed":  # the end may come at any time
        reached.remove("end")
    if reached != order[: len(reached)]:
        yield f"stages are missing or out of order: {', '.join(trace.stages)}"
    if not trace.answer and (trace.citations or trace.invented):
        yield "the text of the answer is not stored"


def _edges(trace: Trace) -> Iterator[str]:
    """Every edge has a chunk, and those that were selected were found before."""
    for edge in trace.candidates:
        if not edge.chunk_ids:
            yield f"edge {edge.id} has no chunk"
    for chosen in trace.selected:
        if chosen.edge not in trace.candidates:
            yield f"selected edge {chosen.edge.id} was no candidate"


def _offsets(chunk: Chunk, page: Page | None) -> Iterator[str]:
    """A chunk is exactly its part of its page."""
    if page is None:
        yield f"chunk {chunk.id} is on page {chunk.page}, which is not stored"
    elif page.text[chunk.start : chunk.end] != chunk.text or not chunk.text:
        yield f"chunk {chunk.id} is not characters {chunk.start}–{chunk.end} of its page"
    elif chunk.id != chunk_id(chunk.document_id, chunk.page, chunk.start, chunk.text):
        yield f"chunk {chunk.id} is not what it was when it got its id"


def _citations(trace: Trace, sources: Sources) -> Iterator[str]:
    """Every citation refers to something that was shown, and quotes its chunk exactly."""
    shown = {item.number: item for item in trace.shown}
    for citation in trace.citations:
        item, chunk = shown.get(citation.number), sources.chunks.get(citation.chunk_id)
        if item is None or item.kind != citation.kind or citation.chunk_id not in item.chunk_ids:
            yield f"citation [{citation.number}] points at nothing that was shown"
        elif chunk is not None:
            start, end = citation.start - chunk.start, citation.end - chunk.start
            if start < 0 or chunk.text[start:end] != citation.text or chunk.page != citation.page:
                yield f"citation [{citation.number}] does not quote its chunk"
