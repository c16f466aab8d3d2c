"""A trace, the record of one query: reading, sources, provenance and verification."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

from msgspec.structs import asdict

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.answers import Citation, CitedClaim, Keywords, Reading, UncitedClaim
from lightrag_jsonl.core.display import html_table, short_repr
from lightrag_jsonl.core.edges import Edge, SelectedEdge, candidate_edges
from lightrag_jsonl.core.errors import CorruptError, NotFoundError
from lightrag_jsonl.core.modes import MODES, Mode
from lightrag_jsonl.core.options import Selection
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.storage.status import titles
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import counted, sanitize
from lightrag_jsonl.tracing import events as e
from lightrag_jsonl.tracing.rdf import source_uri, trace_id_of

_ALL_CHUNKS = 2**31


@dataclass(frozen=True, slots=True)
class Trace:
    """The record of one query, with the field names of the events.

    - `stages`: the steps so far, also of a killed query.
    - `reading`: what a model read for the question. `candidates`, `retrieved_chunks`: all retrieved edges and chunks. `selected`,
      `selected_chunks`: the edges and chunks for the answer; `selection_error` says why the model
      could not choose. `shown`: the items of the answer's prompt.
    - `answer`: None until complete. `prompt_numbers`: citation n is of the item with the number
      `prompt_numbers[n - 1]` in the prompt. `reused`: the answer was written for an earlier
      question. `truncated`: the model's token limit, a content filter or an error cut the answer
      off. `claims`: the cited claims of the answer, and what is known of each; `uncited`: the statements
      without a citation, each with its nearest sentence.
    """

    id: str
    question: str
    mode: Mode
    started_at: datetime
    generation: int = 0
    stages: tuple[e.Stage, ...] = ("session",)
    status: e.TraceStatus = "incomplete"
    error: str | None = None
    keywords: Keywords = Keywords()
    reading: Reading = Reading()
    candidates: tuple[Edge, ...] = ()
    retrieved_chunks: tuple[str, ...] = ()
    method: Selection | None = None
    selected: tuple[SelectedEdge, ...] = ()
    selected_chunks: tuple[str, ...] = ()
    shown: tuple[e.PromptItem, ...] = ()
    rejections: tuple[t.Rejection, ...] = ()
    fallback: bool = False
    selection_error: str | None = None
    answer: str | None = None
    citations: tuple[Citation, ...] = ()
    invented: tuple[int, ...] = ()
    usage: Usage = Usage()
    reused: bool = False
    truncated: bool = False
    prompt_numbers: tuple[int, ...] = ()
    claims: tuple[CitedClaim, ...] = ()
    uncited: tuple[UncitedClaim, ...] = ()
    sources: tuple[str, ...] = ()
    ended_at: datetime | None = None
    __repr__ = short_repr

    def _repr_html_(self) -> str:
        retrieved = f"{counted(len(self.candidates), 'relations')}, {counted(len(self.retrieved_chunks), 'chunks')}"
        selected = f"{counted(len(self.selected), 'relations')}, {counted(len(self.selected_chunks), 'chunks')}"
        rows = [
            ("status", self.status),
            ("mode", self.mode),
            ("found", retrieved),
            ("chosen", selected),
        ]
        for citation in self.citations:
            rows.append((f"[{citation.number}]", f"{citation.document}: {citation.text}"))
        return html_table(f"{self.question}\n\n{self.answer or self.error or ''}", rows)

    @property
    def none_selected(self) -> bool:
        """Whether the model was asked to choose edges, and chose nothing."""
        had_to_choose = self.method == "llm" and "selection" in self.stages
        return had_to_choose and bool(self.candidates) and not (self.selected or self.fallback)

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """The chunks behind all items of the prompt, hence behind all selected and cited items."""
        return tuple(dict.fromkeys(id for item in self.shown for id in item.chunk_ids))


def assemble_trace(events: Iterable[e.Event]) -> Trace:
    """The trace of one query's events, in order; `ValueError` unless the first is the session."""
    recorded = [event for event in events if not isinstance(event, e.AnswerChunk)]
    if not recorded or not isinstance(recorded[0], e.Session):
        raise ValueError("the first event of a trace is its session")
    fields: dict[str, Any] = {"stages": tuple(dict.fromkeys(event.stage for event in recorded))}
    for event in recorded:
        fields |= asdict(event)
        if isinstance(event, e.End):
            fields["status"] = event.status
    return Trace(id=fields.pop("trace_id"), **fields)


def load_trace(view: StoreView, trace_id: str) -> Trace:
    """The trace with the URI, the id or the unique beginning of an id `trace_id`.

    `NotFoundError` for no trace or several, `CorruptError` for an unreadable trace.
    """
    prefix = trace_id_of(sanitize(trace_id))
    ids = [summary.id for summary in view.traces(prefix=prefix)]
    if len(ids) != 1 and prefix not in ids:
        problem = "more than one trace" if ids else "no trace"
        raise NotFoundError(f"{problem} begins with {prefix!r}")
    id = prefix if prefix in ids else ids[0]
    stored = list(view.trace_events(trace_id=id))
    try:
        return assemble_trace(e.event_from_json(event) for _, event in stored)
    except ValueError as error:
        raise CorruptError(f"trace {id} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document's description, without the text."""

    id: str
    title: str | None = None
    source: str | None = None
    date: str | None = None

    @property
    def name(self) -> str:
        """The title, or the source, or the id; the name of the file if the title came from there."""
        file = PurePath(self.source or "")
        return (file.name if self.title == file.stem else self.title) or self.source or self.id


@dataclass(frozen=True, slots=True)
class Sources:
    """The chunks behind a trace, with pages and documents; without deleted sources."""

    chunks: Mapping[str, t.Chunk] = field(default_factory=dict)
    pages: Mapping[tuple[str, int], t.Page] = field(default_factory=dict)
    documents: Mapping[str, SourceDocument] = field(default_factory=dict)

    def page_of(self, chunk: t.Chunk) -> t.Page | None:
        """The page of a chunk."""
        return self.pages.get((chunk.document_id, chunk.page))

    def where(self, chunk_id: str, words: str = "Chunk {} → Page {} → {}") -> str:
        """A chunk's position in words: `Chunk 1 → Page 1 → d1.txt`, or `source deleted`."""
        chunk = self.chunks.get(chunk_id)
        if chunk is None:
            return "source deleted"
        document = self.documents.get(chunk.document_id) or SourceDocument(chunk.document_id)
        return words.format(chunk.index + 1, chunk.page, document.name)


def look_up_sources(view: StoreView, chunk_ids: Iterable[str]) -> Sources:
    """The chunks with these ids, with pages and documents."""
    ids = dict.fromkeys(chunk_ids)
    stored = {chunk.id: chunk for chunk in view.chunks(ids=ids).values()}
    chunks = {id: stored[id] for id in ids if id in stored}
    pages: dict[tuple[str, int], t.Page] = {}
    for document_id, number in dict.fromkeys(
        (chunk.document_id, chunk.page) for chunk in chunks.values()
    ):
        for page in view.pages([document_id], number):
            pages[document_id, number] = page
    documents = describe_documents(view, {chunk.document_id for chunk in chunks.values()})
    return Sources(chunks=chunks, pages=pages, documents=documents)


def describe_documents(view: StoreView, ids: Collection[str]) -> dict[str, SourceDocument]:
    """The stored documents among these, by id."""
    stored = view.documents(ids)
    titles_by_id = titles(view, stored)
    return {
        document.id: SourceDocument(
            id=document.id,
            title=titles_by_id[document.id],
            source=document.source,
            date=document.date,
        )
        for document in stored
    }


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """A chunk, and the edges that it states."""

    chunk: t.Chunk
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class DocumentProvenance:
    """A document with its chunks in order, and the queries whose prompts held a part of it."""

    document: SourceDocument
    chunks: tuple[ChunkFacts, ...]
    traces: tuple[t.TraceSummary, ...]


@dataclass(frozen=True, slots=True)
class EdgeProvenance:
    """An edge as stored now, every chunk that states it, and the queries that selected it."""

    edge: Edge
    sources: Sources
    traces: tuple[t.TraceSummary, ...]


def document_provenance(view: StoreView, document_id: str) -> DocumentProvenance:
    """The edges of a document, chunk by chunk; `document_id` may be the id, the name or the URI.

    `NotFoundError` for no document, or for several of the same name.
    """
    document = _document_called(view, document_id)
    chunk_facts: list[ChunkFacts] = []
    for row, chunk in view.chunks(documents=[document.id]).items():
        relations = view.relations(view.mentioned_relations([row]), chunk_limit=1)
        from_chunk = [replace(relation, chunk_ids=(chunk.id,)) for relation in relations.values()]
        chunk_facts.append(ChunkFacts(chunk, candidate_edges(from_chunk)))
    traces = _traces_with(view, [facts.chunk.id for facts in chunk_facts])
    return DocumentProvenance(document, tuple(chunk_facts), traces)


def _document_called(view: StoreView, name: str) -> SourceDocument:
    """The document with the id, title, source, name or URI `name`; `NotFoundError` unless unique."""
    documents = describe_documents(view, [name])
    if name in documents:
        return documents[name]
    documents = describe_documents(view, [document.id for document in view.documents()])
    on_one_line = " ".join(name.split())
    matches = [
        document
        for id, document in documents.items()
        if name in (document.title, document.source)
        or on_one_line in (" ".join(document.name.split()), source_uri("document", id))
    ]
    if len(matches) == 1:
        return matches[0]
    ids = ", ".join(document.id for document in matches)
    hint = f"; several are called so: {ids}" if matches else ""
    raise NotFoundError(f"no such document: {name}{hint}")


def edge_provenance(view: StoreView, source: str, predicate: str, target: str) -> EdgeProvenance:
    """The provenance of an edge, by any spelling of the ends and any keyword of the predicate.

    `NotFoundError` without an edge; the error names the existing edge if only the predicate differs.
    """
    relation = _relation_between(view, source, target)
    if relation is None:
        raise NotFoundError(f"no edge between {source} and {target}")
    (edge,) = candidate_edges([relation])
    words = (edge.predicate, *relation.keywords, *relation.reverse_keywords)
    if name_key(predicate) not in map(name_key, words):
        raise NotFoundError(
            f"no edge ({source}, {predicate}, {target}); there is ({', '.join(edge.labels)})"
        )
    traces = _traces_with(view, [f'"id":"{edge.id}'])
    return EdgeProvenance(edge, look_up_sources(view, edge.chunk_ids), traces)


def _relation_between(view: StoreView, source: str, target: str) -> t.Relation | None:
    ids = view.entity_ids([name_key(source), name_key(target)]).values()
    if len(ids) != 2:
        return None
    first, second = sorted(ids)
    rows = view.relation_rows(pairs=[(first, second)])
    return next(iter(view.relations(rows, chunk_limit=_ALL_CHUNKS).values()), None)


def _traces_with(view: StoreView, marks: Sequence[str]) -> tuple[t.TraceSummary, ...]:
    """The queries with one of these texts in the stored selection, the newest first."""
    events = view.trace_events(stage="selection")
    ids = {id for id, event in events if any(mark in event for mark in marks)}
    return tuple(summary for summary in view.traces() if summary.id in ids)


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a trace, or of a document if `trace_id` is "", with the name of the check."""

    trace_id: str
    check: str
    detail: str
    document_id: str = ""

    def __str__(self) -> str:
        return f"{self.trace_id or f'document {self.document_id}'}: {self.check}: {self.detail}"


def verify_traces(view: StoreView, trace_ids: Sequence[str] = ()) -> tuple[Problem, ...]:
    """The faults of these traces; without ids, of all traces, pages and chunks."""
    summaries = {summary.id: summary for summary in view.traces()}
    faults: list[Problem] = []
    for id in trace_ids or summaries:
        try:
            trace = load_trace(view, id)
        except CorruptError as error:
            faults.append(Problem(id, "events", str(error.__cause__)))
            continue
        status = summaries[trace.id].status
        if trace.status != status:
            faults.append(Problem(trace.id, "events", f"they are {trace.status}, not {status}"))
        faults += verify_trace(trace, look_up_sources(view, trace.chunk_ids))
    if not trace_ids:
        faults += _document_faults(view)
    return tuple(faults)


def _document_faults(view: StoreView) -> Iterator[Problem]:
    """The chunks of all documents with a text other than the part of the page."""
    for document in view.documents():
        pages = {page.number: page for page in view.pages([document.id])}
        for chunk in view.chunks(documents=[document.id]).values():
            for detail in _offset_faults(chunk, pages.get(chunk.page)):
                yield Problem("", "offsets", detail, document.id)


def verify_trace(trace: Trace, sources: Sources) -> tuple[Problem, ...]:
    """All faults of a trace; a deleted source is no fault, nor is a missing step of a failed query."""
    checks = [
        ("chain", _stage_faults(trace)),
        ("edges", _edge_faults(trace)),
        ("citations", _citation_faults(trace, sources)),
    ]
    for chunk in sources.chunks.values():
        checks.append(("offsets", _offset_faults(chunk, sources.page_of(chunk))))
    return tuple(
        Problem(trace.id, check, detail) for check, details in checks for detail in details
    )


def _stage_faults(trace: Trace) -> Iterator[str]:
    """Missing stages before the last stage of the trace, and a missing text of the answer."""
    between = ["retrieval", "selection"] if MODES[trace.mode].searches else []
    order = ["session", *between, "answer", "end"]
    reached = [stage for stage in trace.stages if stage in order]
    if trace.status == "failed":  # the end may come at any time
        reached.remove("end")
    if reached != order[: len(reached)]:
        yield f"stages are missing or out of order: {', '.join(trace.stages)}"
    if not trace.answer and (trace.citations or trace.invented):
        yield "the text of the answer is not stored"


def _edge_faults(trace: Trace) -> Iterator[str]:
    """Edges without a chunk, and selected edges that were no candidates."""
    for edge in trace.candidates:
        if not edge.chunk_ids:
            yield f"edge {edge.id} has no chunk"
    for selected in trace.selected:
        if selected.edge not in trace.candidates:
            yield f"selected edge {selected.edge.id} was not a candidate"


def _offset_faults(chunk: t.Chunk, page: t.Page | None) -> Iterator[str]:
    """A difference between a chunk and the part of the page at the chunk's offsets."""
    if page is None:
        yield f"chunk {chunk.id} is on page {chunk.page}, which is not stored"
    elif page.text[chunk.start : chunk.end] != chunk.text or not chunk.text:
        yield f"chunk {chunk.id} is not characters {chunk.start}–{chunk.end} of its page"
    elif chunk.id != t.chunk_id(chunk.document_id, chunk.page, chunk.start, chunk.text):
        yield f"chunk {chunk.id} does not match its id"


def _citation_faults(trace: Trace, sources: Sources) -> Iterator[str]:
    """Citations of no item of the prompt, and citations that do not quote the chunk exactly."""
    items = e.cited_items(trace.shown, trace.prompt_numbers)
    for citation in trace.citations:
        item = items.get(citation.number)
        chunk = sources.chunks.get(citation.chunk_id)
        if item is None or item.kind != citation.kind or citation.chunk_id not in item.chunk_ids:
            yield f"citation [{citation.number}] refers to nothing that was sent to the model"
        elif chunk is not None:
            start = citation.start - chunk.start
            end = citation.end - chunk.start
            if start < 0 or chunk.text[start:end] != citation.text or chunk.page != citation.page:
                yield f"citation [{citation.number}] does not quote its chunk"
