"""`explain`: how answers came about; and the events of `query --explain`, live."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, get_args

import click

from lightrag_jsonl import LightRAG, NotFoundError
from lightrag_jsonl.cli.group import CommandOutput, index_command, main
from lightrag_jsonl.cli.options import NON_NEGATIVE, POSITIVE, TARGET, option
from lightrag_jsonl.cli.output import cost_words, emit, in_words, one_line, table
from lightrag_jsonl.core.answers import Citation, marked_lines
from lightrag_jsonl.core.files import write_whole
from lightrag_jsonl.core.types import TraceSummary
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.tracing import events, rdf
from lightrag_jsonl.tracing.rdf import source_uri
from lightrag_jsonl.tracing.trace import Sources, look_up_sources

RDF_FORMATS: Final = click.Choice(get_args(rdf.Format))
RDF_VERSIONS: Final = click.Choice(get_args(rdf.Version))
trace_id_argument = click.argument("id", required=False)


@main.group()
def explain_group() -> None:
    """Show how answers came about, and their sources.

    Every query leaves a trace: the results of the search, the selection with its reasons, and the
    sources in the texts. The id of a trace may be shortened as long as it stays unambiguous; without
    an id, the commands are about the newest query. `query --explain` shows the steps as they happen.
    """


@index_command(
    option("-n --limit", "How many.", POSITIVE, default=20), name="list", group=explain_group
)
def list_queries(rag: LightRAG, limit: int) -> CommandOutput:
    """List the newest queries: id, status, time (UTC), mode and question.

    The status is complete, failed, or incomplete: still running, or killed before its end.
    """
    traces = rag.traces.list(limit=limit)
    return CommandOutput(traces, _query_table(traces) or "no queries recorded")


@index_command(
    trace_id_argument,
    option("--html", "Write a web page to FILE.", TARGET),
    name="show",
    group=explain_group,
)
def show_trace(rag: LightRAG, id: str | None, html: Path | None) -> CommandOutput:
    """Show how the answer ID came about, or write it as a web page.

    The page needs no network, and a click on a citation opens the passage.
    """
    trace = rag.traces.get(_trace_id(rag, id))
    value = {"trace": trace, "sources": _located(trace.chunk_ids, rag.traces.sources(trace))}
    if html is not None:
        write_whole(html, rag.traces.page(trace.id).encode())
        return CommandOutput(value, f"written: {html}")
    with rag.engine.store.view() as view:
        lines: list[str] = []
        for _, event_json in view.trace_events(trace_id=trace.id):
            lines += _event_lines(events.event_from_json(event_json), view)
    return CommandOutput(value, "\n".join(lines))


@index_command(
    click.argument("subject"),
    click.argument("predicate"),
    click.argument("object"),
    name="edge",
    group=explain_group,
)
def explain_edge(rag: LightRAG, subject: str, predicate: str, object: str) -> CommandOutput:
    """Show the sources of the edge SUBJECT PREDICATE OBJECT, and which queries selected it.

    SUBJECT and OBJECT may be spelled in any way; PREDICATE may be any keyword of the edge.
    """
    provenance = rag.traces.edge_provenance(subject, predicate, object)
    edge = provenance.edge
    sources = _located(edge.chunk_ids, provenance.sources)
    lines = [f"Edge: ({', '.join(edge.labels)})  {edge.id}"]
    lines += [f"  Source: {source['where']}" for source in sources]
    lines += _query_lines(provenance.traces)
    value = {"edge": edge, "sources": sources, "traces": provenance.traces}
    return CommandOutput(value, "\n".join(lines))


@index_command(click.argument("document"), name="documents", group=explain_group)
def explain_document(rag: LightRAG, document: str) -> CommandOutput:
    """Show the chunks and edges extracted from DOCUMENT (id, name or URI)."""
    provenance = rag.traces.document_provenance(document)
    source = provenance.document
    lines = [f"{one_line(source.name)}  {source_uri('document', source.id)}"]
    for facts in provenance.chunks:
        lines.append(f"  Page {facts.chunk.page}  {source_uri('chunk', facts.chunk.id)}")
        lines += [f"    Edge: ({', '.join(edge.labels)})  {edge.id}" for edge in facts.edges]
    lines += _query_lines(provenance.traces)
    return CommandOutput(provenance, "\n".join(lines))


@index_command(
    trace_id_argument,
    option("--format", "The default is nquads.", RDF_FORMATS, default="nquads"),
    option(
        "--rdf version",
        "1.2 has triple terms <<( s p o )>>, star the older << s p o >>, 1.1 rdf:Statement nodes. "
        "Default 1.2; for jsonld 1.1, the only one it can carry.",
        RDF_VERSIONS,
    ),
    option("--with-source", "Add the chain to chunks, pages and documents.", is_flag=True),
    name="export",
    group=explain_group,
)
def export_recorded_trace(
    rag: LightRAG,
    id: str | None,
    format: rdf.Format,
    version: rdf.Version | None,
    with_source: bool,
) -> CommandOutput:
    """Write the trace ID as RDF (PROV-O), sorted, so that equal traces give equal bytes.

    Formats other than nquads are written by pyoxigraph: pip install 'pyoxigraph>=0.5'.
    """
    if version is None:
        version = "1.1" if format == "jsonld" else "1.2"
    trace_id = _trace_id(rag, id)
    text = rag.traces.export(trace_id, format=format, rdf=version, with_source=with_source)
    value = {
        "id": trace_id,
        "format": format,
        "rdf": version,
        "with_source": with_source,
        "text": text,
    }
    return CommandOutput(value, text.encode())


@index_command(click.argument("ids", nargs=-1), name="verify", group=explain_group)
def verify_recorded_traces(rag: LightRAG, ids: tuple[str, ...]) -> CommandOutput:
    """Verify the traces IDS, or all traces and texts; exit 1 if there is a problem.

    The steps are complete, every edge has a chunk, every chunk is an exact slice of its page,
    every citation refers to an item sent to the model, the answer is stored. No model is called.
    """
    problems = rag.traces.verify(*ids)
    value = {"traces": len(ids or rag.traces.list(limit=None)), "problems": problems}
    notes = [str(problem) for problem in problems]
    return CommandOutput(value, status=1 if problems else 0, notes=notes)


@index_command(
    option("--keep", "How many.", NON_NEGATIVE, required=True), name="gc", group=explain_group
)
def delete_old_traces(rag: LightRAG, keep: int) -> CommandOutput:
    """Delete all traces but the newest."""
    return CommandOutput({"deleted": rag.traces.delete(keep=keep)})


def _trace_id(rag: LightRAG, id: str | None) -> str:
    """The id, or else the id of the newest query."""
    if id is not None:
        return id
    newest = rag.traces.list(limit=1)
    if not newest:
        raise NotFoundError("no queries recorded")
    return newest[0].id


def _located(chunk_ids: Iterable[str], sources: Sources) -> list[dict[str, object]]:
    """The places of chunks; a deleted chunk is null."""
    return [
        {"chunk_id": id, "where": sources.where(id), "chunk": sources.chunks.get(id)}
        for id in dict.fromkeys(chunk_ids)
    ]


def event_printer(rag: LightRAG) -> Callable[[events.Event], None]:
    """A listener for printing each event of a query to stderr, except the answer."""

    def print_event(event: events.Event) -> None:
        with rag.engine.store.view() as view:
            lines = list(_event_lines(event, view))
        if isinstance(event, events.Answered):
            lines = lines[:1]
        for line in lines:
            emit(line, err=True)

    return print_event


def _event_lines(event: events.Event, view: StoreView) -> Iterator[str]:
    if isinstance(event, events.End):
        if event.error:
            yield f"[failed] {one_line(event.error)}"
    elif isinstance(event, events.ReadingProgress):
        yield f"[reading] {event.chunks_done} of {event.chunks_known}"
    elif not isinstance(event, events.AnswerChunk):
        details = in_words(event).split("\n")
        if isinstance(event, events.SelectionMade):
            details = list(_selection_lines(event, view))
        elif isinstance(event, events.ChunksRead):
            details = list(_reading_lines(event, view))
        elif isinstance(event, events.Answered):
            details = [*event.answer.split("\n"), *_citation_lines(event, view)]
        yield f"[{event.stage}] {event.uri}"
        for line in details:
            yield f"    {line}"


def _reading_lines(event: events.ChunksRead, view: StoreView) -> Iterator[str]:
    reading = event.reading
    yield f"Read {len(reading.chunk_ids)} chunk(s): {cost_words(reading.usage)}"
    sources = look_up_sources(view, reading.chunk_ids)
    yield from _source_lines(sources, reading.chunk_ids)
    if reading.problem:
        yield f"Not read: {one_line(reading.problem)}"


def _selection_lines(event: events.SelectionMade, view: StoreView) -> Iterator[str]:
    ids = [id for chosen in event.selected for id in chosen.edge.chunk_ids]
    sources = look_up_sources(view, [*ids, *event.selected_chunks])
    if event.selected or event.method == "llm" or not event.selected_chunks:
        yield f"Selected {len(event.selected)} edge(s)"
    for chosen in event.selected:
        yield f"Edge: ({', '.join(chosen.edge.labels)})"
        if chosen.reasoning is not None:
            yield f"Reason: {one_line(chosen.reasoning)}"
        elif chosen.score is not None:
            yield f"Score: {chosen.score:.3g}"
        yield from _source_lines(sources, chosen.edge.chunk_ids)
    if event.selected_chunks:
        yield f"Selected {len(event.selected_chunks)} chunk(s)"
        yield from _source_lines(sources, event.selected_chunks)
    for line in event.rejections:
        yield f"Rejected: line {line.line}: {line.reason} {line.detail}".rstrip()
    if event.method == "llm" and not event.selected and not event.fallback:
        yield "The model selected no edge: only directly matched passages were kept"
    if event.fallback:
        yield f"Selected by rank: {event.selection_error or 'the model selected none'}"


def _source_lines(sources: Sources, chunk_ids: Iterable[str]) -> Iterator[str]:
    for id in chunk_ids:
        yield f"Source: {sources.where(id)}"


def _citation_lines(event: events.Answered, view: StoreView) -> Iterator[str]:
    nearest = [claim.nearest for claim in event.uncited if claim.nearest is not None]
    quoted = [*event.citations, *nearest]
    sources = look_up_sources(view, [citation.chunk_id for citation in quoted])
    for citation in event.citations:
        number = citation.number
        item = event.prompt_numbers[number - 1]
        yield f"[{number}] {_passage_words(citation, sources)} (item {item} of the prompt)"
    yield from marked_lines(event.answer, event.claims, event.citations)
    for claim in event.uncited:
        if claim.nearest is not None:
            passage = _passage_words(claim.nearest, sources)
            yield f"(≈{claim.number}) not cited; nearest: {passage}"
    for number in event.invented:
        yield f"[{number}] was cited, but not sent to the model"


def _passage_words(citation: Citation, sources: Sources) -> str:
    place = sources.where(citation.chunk_id)
    return f"{place}, characters {citation.start}–{citation.end}"


def _query_table(traces: Iterable[TraceSummary]) -> str:
    rows = []
    for trace in traces:
        time = datetime.fromtimestamp(trace.started_at, UTC)
        started_at = f"{time:%Y-%m-%d %H:%M:%S}"
        rows.append({**asdict(trace), "started_at": started_at})
    return table(rows, "id", "status", "started_at", "mode", "question")


def _query_lines(traces: Iterable[TraceSummary]) -> list[str]:
    return ["used by:", _query_table(traces)] if traces else []
