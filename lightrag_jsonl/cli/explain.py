"""`explain`: how answers came about; and the events of `query --explain`, as they happen."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl import LightRAG, NotFoundError, TraceSummary
from lightrag_jsonl.cli.group import Reply, index_command, main
from lightrag_jsonl.cli.options import COUNT, NUMBER, TARGET, option
from lightrag_jsonl.cli.output import emit, in_words, one_line, table
from lightrag_jsonl.core.types import unsupported_lines
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.tracing import events
from lightrag_jsonl.tracing.rdf import source_uri
from lightrag_jsonl.tracing.trace import Sources, look_up_sources

FORMATS = click.Choice(["nquads", "turtle", "trig", "jsonld"])
trace_id = click.argument("id", required=False)


@main.group()
def explain() -> None:
    """Show how answers came about, and their sources.

    What was found, what was selected and why, and the sources in the texts. Every query leaves a
    trace; its id may be shortened as long as it stays unambiguous. Without an id, the commands
    are about the newest query. `query --explain` shows the same as it happens.
    """


@index_command(option("-n --limit", "How many.", NUMBER, default=20), name="list", group=explain)
def list_(rag: LightRAG, limit: int) -> Reply:
    """List the newest queries: id, status, time (UTC), mode and question.

    The status is complete, failed, or incomplete: still running, or killed before its end.
    """
    found = rag.traces.list(limit=limit)
    return Reply(found, _query_table(found) or "no queries recorded")


@index_command(trace_id, option("--html", "Write a web page to FILE.", TARGET), group=explain)
def show(rag: LightRAG, id: str | None, html: Path | None) -> Reply:
    """Show how the answer ID came about, or write it as a web page.

    The page is self-contained: it needs no network, and a click on a citation opens its passage.
    """
    trace = rag.traces.get(_id(rag, id))
    value = {"trace": trace, "sources": _located(trace.chunk_ids, rag.traces.sources(trace))}
    if html is not None:
        html.write_text(rag.traces.page(trace.id), encoding="utf-8")
        return Reply(value, f"written: {html}")
    with rag.engine.store.view() as view:
        happened = [event for _, event in view.trace_events(trace_id=trace.id)]
        parsed = map(events.event_from_json, happened)
        lines = [line for event in parsed for line in _event_lines(event, view)]
    return Reply(value, "\n".join(lines))


@index_command(*map(click.argument, ("subject", "predicate", "object")), group=explain)
def edge(rag: LightRAG, **labels: str) -> Reply:
    """Show the sources of the edge SUBJECT PREDICATE OBJECT, and which queries selected it.

    SUBJECT and OBJECT may be spelled in any way; PREDICATE may be any keyword of the edge.
    """
    found = rag.traces.edge_provenance(labels["subject"], labels["predicate"], labels["object"])
    sources = _located(found.edge.chunk_ids, found.sources)
    lines = [f"Edge: ({', '.join(found.edge.labels)})  {found.edge.id}"]
    lines += [f"  Source: {one['where']}" for one in sources]
    value = {"edge": found.edge, "sources": sources, "traces": found.traces}
    return Reply(value, "\n".join([*lines, *_users(found.traces)]))


@index_command(click.argument("document"), group=explain)
def documents(rag: LightRAG, document: str) -> Reply:
    """Show what was extracted from DOCUMENT (id, name or URI): its chunks and their edges."""
    found = rag.traces.document_provenance(document)
    lines = [f"{one_line(found.document.name)}  {source_uri('document', found.document.id)}"]
    for facts in found.chunks:
        lines.append(f"  Page {facts.chunk.page}  {source_uri('chunk', facts.chunk.id)}")
        lines += [f"    Edge: ({', '.join(edge.labels)})  {edge.id}" for edge in facts.edges]
    return Reply(found, "\n".join([*lines, *_users(found.traces)]))


@index_command(
    trace_id,
    option("--format", "The default is nquads.", FORMATS, default="nquads"),
    option(
        "--rdf",
        "1.2 has triple terms <<( s p o )>>, star the older << s p o >>, 1.1 rdf:Statement nodes. "
        "Default 1.2; for jsonld 1.1, the only one it can carry.",
        click.Choice(["1.2", "star", "1.1"]),
    ),
    option("--with-source", "Add the chain to chunks, pages and documents.", is_flag=True),
    group=explain,
)
def export(rag: LightRAG, id: str | None, **given: Any) -> Reply:
    """Write the trace ID as RDF (PROV-O), sorted, so that equal traces give equal bytes.

    Formats other than nquads are written by pyoxigraph: pip install 'pyoxigraph>=0.5'.
    """
    given["rdf"] = given["rdf"] or ("1.1" if given["format"] == "jsonld" else "1.2")
    name = _id(rag, id)
    text = rag.traces.export(name, **given)
    return Reply({"id": name, **given, "text": text}, text.encode())


@index_command(click.argument("ids", nargs=-1), group=explain)
def verify(rag: LightRAG, ids: tuple[str, ...]) -> Reply:
    """Verify the traces IDS, or all traces and texts; exit 1 if there is a problem.

    The steps are complete, every edge has a chunk, every chunk is an exact slice of its page,
    every citation refers to an item sent to the model, the answer is stored. No model is called.
    """
    problems = rag.traces.verify(*ids)
    value = {"traces": len(ids or rag.traces.list(limit=None)), "problems": problems}
    return Reply(value, status=1 if problems else 0, notes=[*map(str, problems)])


@index_command(option("--keep", "How many.", COUNT, required=True), group=explain)
def gc(rag: LightRAG, keep: int) -> Reply:
    """Delete all traces but the newest."""
    return Reply({"deleted": rag.traces.delete(keep=keep)})


def _id(rag: LightRAG, id: str | None) -> str:
    if id is not None:
        return id
    if newest := rag.traces.list(limit=1):
        return newest[0].id
    raise NotFoundError("no queries recorded")


def _located(chunk_ids: Iterable[str], sources: Sources) -> list[dict[str, object]]:
    """Where chunks are; a deleted one is null."""
    return [
        {"chunk_id": id, "where": sources.where(id), "chunk": sources.chunks.get(id)}
        for id in dict.fromkeys(chunk_ids)
    ]


def event_printer(rag: LightRAG) -> Callable[[events.Event], None]:
    """A listener that prints each event of a query to stderr, but for the answer itself."""

    def print_event(event: events.Event) -> None:
        with rag.engine.store.view() as view:
            lines = list(_event_lines(event, view))
        for line in lines[:1] if isinstance(event, events.Answered) else lines:
            emit(line, err=True)

    return print_event


def _event_lines(event: events.Event, view: StoreView) -> Iterator[str]:
    if isinstance(event, events.End):
        if event.error:
            yield f"[failed] {one_line(event.error)}"
    elif not isinstance(event, events.AnswerChunk):
        details = in_words(event).split("\n")
        if isinstance(event, events.SelectionMade):
            details = [*_selection_lines(event, view)]
        elif isinstance(event, events.Answered):
            details = [*event.answer.split("\n"), *_citation_lines(event, view)]
        yield f"[{event.stage}] {event.uri}"
        yield from (f"    {line}" for line in details)


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
        yield from (f"Source: {sources.where(id)}" for id in chosen.edge.chunk_ids)
    if event.selected_chunks:
        yield f"Selected {len(event.selected_chunks)} chunk(s)"
        yield from (f"Source: {sources.where(id)}" for id in event.selected_chunks)
    for one in event.rejections:
        yield f"Rejected: line {one.line}: {one.reason} {one.detail}".rstrip()
    if event.method == "llm" and not event.selected and not event.fallback:
        yield "The model selected no edge: only directly matched passages were kept"
    if event.fallback:
        yield f"Selected by rank: {event.selection_error or 'the model selected none'}"


def _citation_lines(event: events.Answered, view: StoreView) -> Iterator[str]:
    sources = look_up_sources(view, [citation.chunk_id for citation in event.citations])
    for one in event.citations:
        where = f"characters {one.start}–{one.end}" if one.supported else "unsupported"
        item = event.prompt_numbers[one.number - 1]
        yield f"[{one.number}] {sources.where(one.chunk_id)}, {where} (item {item} of the prompt)"
    yield from unsupported_lines(event.answer, event.claims)
    yield from (f"[{number}] was cited, but not sent to the model" for number in event.invented)


def _query_table(traces: Iterable[TraceSummary]) -> str:
    rows = []
    for one in traces:
        started_at = f"{datetime.fromtimestamp(one.started_at, UTC):%Y-%m-%d %H:%M:%S}"
        rows.append({**asdict(one), "started_at": started_at})
    return table(rows, "id", "status", "started_at", "mode", "question")


def _users(traces: Iterable[TraceSummary]) -> list[str]:
    return ["used by:", _query_table(traces)] if traces else []
