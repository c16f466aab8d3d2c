"""Checks what is stored for explanations, without a model: traces, and the texts they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.errors import CorruptError
from lightrag_jsonl.core.types import Chunk, Page, TraceSummary
from lightrag_jsonl.indexing.chunking import chunk_id
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.tracing.events import Stage
from lightrag_jsonl.tracing.source_lookup import Sources, look_up_sources
from lightrag_jsonl.tracing.trace import Trace
from lightrag_jsonl.tracing.trace_store import find, stored_trace

_ORDER: tuple[Stage, ...] = ("session", "keywords", "retrieval", "selection", "answer", "end")


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


def verify(reader: Reader, trace_ids: Sequence[str] = ()) -> tuple[Problem, ...]:
    """What is wrong with these traces; without ids, with all traces, pages and chunks."""
    wanted = {find(reader, id) for id in trace_ids}
    found: list[Problem] = []
    for row in reader.traces():
        if row.id in wanted or not wanted:
            found += _stored_problems(reader, row)
    for document in () if wanted else reader.documents():
        pages = {page.number: page for page in reader.pages(document.id)}
        for chunk in reader.document_chunks([document.id]).values():
            for fault in _chunk_faults(chunk, pages.get(chunk.page)):
                found.append(Problem("", "offsets", fault, document.id))
    return tuple(found)


def _stored_problems(reader: Reader, row: TraceSummary) -> Iterator[Problem]:
    try:
        trace = stored_trace(reader, row.id)
    except CorruptError as error:
        yield Problem(row.id, "events", str(error.__cause__))
        return
    if trace.status != row.status:
        yield Problem(row.id, "events", f"they are {trace.status}, not {row.status}")
    edges = [id for edge in trace.candidates for id in edge.chunk_ids]
    sources = look_up_sources(reader, [*trace.chunk_ids, *edges, *trace.retrieved_chunks])
    yield from verify_trace(trace, sources)


def verify_trace(trace: Trace, sources: Sources) -> tuple[Problem, ...]:
    """All faults of the trace. Deleted sources are none, nor are steps that a failed query did not
    reach.
    """
    chunks = sources.chunks.values()
    checks = {
        "chain": _chain(trace),
        "edges": _edges(trace),
        "shown": _shown(trace, sources),
        "offsets": (fault for c in chunks for fault in _chunk_faults(c, sources.page_of(c))),
        "citations": _citations(trace, sources),
    }
    return tuple(
        Problem(trace.id, name, detail) for name, found in checks.items() for detail in found
    )


def _chain(trace: Trace) -> Iterator[str]:
    """The stages are in order, and none is missing before the last one that was reached."""
    if list(trace.stages) != [stage for stage in _ORDER if stage in trace.stages]:
        yield f"stages out of order: {', '.join(trace.stages)}"
    optional = {"keywords", "retrieval", "selection"} if trace.mode == "bypass" else {"keywords"}
    reached = [stage for stage in trace.stages if stage != "end" or trace.status == "complete"]
    for stage in _ORDER[: _ORDER.index(reached[-1])]:
        if stage not in optional and stage not in trace.stages:
            yield f"no {stage} on record"
    if not trace.answer and (trace.citations or trace.invented):
        yield "the text of the answer is not stored"


def _edges(trace: Trace) -> Iterator[str]:
    """Every edge has a chunk; selected edges and chunks were found before."""
    for edge in trace.candidates:
        if not edge.chunk_ids:
            yield f"edge {edge.id} has no chunk"
    for chosen in trace.selected:
        if chosen.edge not in trace.candidates:
            yield f"selected edge {chosen.edge.id} was no candidate"
    for id in trace.selected_chunks:
        if id not in trace.retrieved_chunks:
            yield f"selected chunk {id} was not retrieved"


def _shown(trace: Trace, sources: Sources) -> Iterator[str]:
    """Shown items have chunks and numbers in order; edges were candidates, and passages lie inside
    their chunk.
    """
    candidates = {edge.id for edge in trace.candidates}
    for number, item in enumerate(trace.shown, 1):
        chunk = sources.chunks.get(item.id) if item.kind == "chunk" else None
        if item.number != number:
            yield f"shown item [{item.number}] stands at [{number}]"
        elif not item.chunk_ids:
            yield f"shown item [{number}] has no chunk"
        elif item.kind == "relation" and item.id not in candidates:
            yield f"shown item [{number}] is the edge {item.id}, which was no candidate"
        elif chunk and not chunk.start <= item.start < item.end <= chunk.end:
            yield f"shown item [{number}] reaches outside its chunk"


def _chunk_faults(chunk: Chunk, page: Page | None) -> Iterator[str]:
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
        item = shown.get(citation.number)
        chunk = sources.chunks.get(citation.chunk_id)
        if item is None:
            yield f"citation [{citation.number}] points at nothing that was shown"
        elif item.kind != citation.kind or citation.chunk_id not in item.chunk_ids:
            yield f"citation [{citation.number}] is not of the item that was shown"
        elif chunk is not None:
            start, end = citation.start - chunk.start, citation.end - chunk.start
            if start < 0 or chunk.text[start:end] != citation.text or chunk.page != citation.page:
                yield f"citation [{citation.number}] does not quote its chunk"
    for number in trace.invented:
        if number in shown:
            yield f"[{number}] is on record as invented, but was shown"
