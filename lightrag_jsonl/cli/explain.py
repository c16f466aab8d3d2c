"""`explain`: how answers came about; and the events of `query --explain`, as they happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from lightrag_jsonl.cli.opening import open_for_reading
from lightrag_jsonl.cli.options import TARGET, Setup, folder, number_option
from lightrag_jsonl.cli.output import Reply, counted, emit, one_line, replying, table
from lightrag_jsonl.core.errors import NotFoundError
from lightrag_jsonl.core.types import TraceSummary
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.tracing.events import AnswerChunk, End, Event, KeywordsFound, Selection
from lightrag_jsonl.tracing.prov import source_uri, stage_uri
from lightrag_jsonl.tracing.source_lookup import Sources, look_up_sources
from lightrag_jsonl.tracing.trace import Trace

if TYPE_CHECKING:
    from lightrag_jsonl.rag import LightRAG
    from lightrag_jsonl.tracing.provenance import DocumentProvenance
    from lightrag_jsonl.tracing.rdf import Format, Version

QUESTION_COLUMNS = 60


@click.group()
def explain() -> None:
    """Show how answers came about, and their sources.

    What was found, what was chosen and why, and where the texts say so. Every query leaves a
    trace; its id may be shortened as long as it stays unambiguous. Without an id, the commands
    are about the newest query. `query --explain` shows the same as it happens.
    """


@explain.command("list")
@folder
@number_option("-n", "--limit", default=20, show_default=True)
@replying
def list_(setup: Setup, limit: int) -> Reply:
    """List the newest queries: id, status, time, mode and question.

    The status is complete, failed, or incomplete: still running, or killed before its end.
    """
    with open_for_reading(setup) as rag:
        found = rag.traces.list(limit=limit)
    rows = [
        (
            one.id,
            one.status,
            _time(datetime.fromtimestamp(one.started_at, UTC)),
            one.mode,
            one_line(one.question, QUESTION_COLUMNS),
        )
        for one in found
    ]
    header = ("id", "status", "started at (UTC)", "mode", "question")
    return Reply(found, table(rows, header) if rows else "no queries recorded")


@explain.command()
@click.argument("id", required=False)
@folder
@click.option("--html", type=TARGET, metavar="FILE", help="Write a web page to FILE.")
@replying
def show(setup: Setup, id: str | None, html: Path | None) -> Reply:
    """Show how the answer ID came about, or write it as a web page.

    The page is self-contained: it needs no network, and a click on a citation opens its passage.

    \b
    Example:
      lightrag-jsonl explain show 3f2a --html answer.html
    """
    with open_for_reading(setup) as rag:
        trace = rag.traces.get(_id(rag, id))
        sources = rag.traces.sources(trace)
        if html:
            page = rag.traces.page(trace.id)
            html.write_text(page, encoding="utf-8")
    words = f"{html}: {len(page):,} characters" if html else "\n".join(_trace_lines(trace, sources))
    return Reply({"trace": trace, "sources": _positions(trace.chunk_ids, sources)}, words)


@explain.command()
@click.argument("subject")
@click.argument("predicate")
@click.argument("object")
@folder
@replying
def edge(setup: Setup, subject: str, predicate: str, object: str) -> Reply:
    """Show where the edge SUBJECT PREDICATE OBJECT was read, and which queries chose it.

    SUBJECT and OBJECT may be spelled in any way; PREDICATE may be any keyword of the edge.

    \b
    Example:
      lightrag-jsonl explain edge "Marie Curie" discovered radium
    """
    with open_for_reading(setup) as rag:
        found = rag.traces.edge_provenance(subject, predicate, object)
    lines = [f"Edge: ({', '.join(found.edge.labels)})  {found.edge.id}"]
    for id in found.edge.chunk_ids:
        chunk = found.sources.chunks[id]
        lines.append(f"  Source: {found.sources.where(id)}, characters {chunk.start}–{chunk.end}")
    lines += _query_lines(found.traces)
    positions = _positions(found.edge.chunk_ids, found.sources)
    plain = {"edge": found.edge, "sources": positions, "traces": found.traces}
    return Reply(plain, "\n".join(lines))


@explain.command()
@click.argument("document")
@folder
@replying
def documents(setup: Setup, document: str) -> Reply:
    """Show what was read from DOCUMENT: its pages, their chunks, and the edges of each chunk."""
    with open_for_reading(setup) as rag:
        found = rag.traces.document_provenance(document)
    return Reply(found, "\n".join([*_document_lines(found), *_query_lines(found.traces)]))


@explain.command()
@click.argument("id", required=False)
@folder
@click.option(
    "--format",
    "format_",
    type=click.Choice(["nquads", "turtle", "trig", "jsonld"]),
    default="nquads",
    show_default=True,
)
@click.option(
    "--rdf",
    type=click.Choice(["1.2", "star", "1.1"]),
    help="1.2 has triple terms <<( s p o )>>, star the older << s p o >>, 1.1 rdf:Statement nodes. "
    "Default 1.2; for jsonld 1.1, the only one it can carry.",
)
@click.option("--with-source", is_flag=True, help="Add the chain to chunks, pages and documents.")
@click.option("--entity-base", metavar="URI", help="Prefix of entity URIs (default urn:entity:).")
@click.option(
    "--predicate-base", metavar="URI", help="Prefix of predicate URIs (default urn:predicate:)."
)
@click.option("-o", "--output", type=TARGET, metavar="FILE", help="Write to FILE, not stdout.")
@replying
def export(
    setup: Setup,
    id: str | None,
    format_: str,
    rdf: str | None,
    with_source: bool,
    entity_base: str | None,
    predicate_base: str | None,
    output: Path | None,
) -> Reply:
    """Write the trace ID as RDF (PROV-O), sorted, so that equal traces give equal bytes.

    Formats other than nquads are written by pyoxigraph: pip install 'pyoxigraph>=0.5'.

    \b
    Example:
      lightrag-jsonl explain export 3f2a --format trig --with-source -o answer.trig
    """
    version = rdf or ("1.1" if format_ == "jsonld" else "1.2")
    if format_ == "jsonld" and version != "1.1":
        raise click.UsageError("JSON-LD cannot carry triple terms: it needs --rdf 1.1")
    with open_for_reading(setup) as rag:
        name = _id(rag, id)
        text = rag.traces.export(
            name,
            format=cast("Format", format_),
            rdf=cast("Version", version),
            with_source=with_source,
            entity_base=entity_base,
            predicate_base=predicate_base,
        )
    plain = {"id": name, "format": format_, "rdf": version}
    if output is None:
        return Reply({**plain, "text": text}, text.removesuffix("\n"))
    output.write_text(text, encoding="utf-8", newline="\n")
    return Reply({**plain, "file": output}, f"{output}: {len(text):,} characters")


@explain.command()
@click.argument("ids", nargs=-1)
@folder
@replying
def verify(setup: Setup, ids: tuple[str, ...]) -> Reply:
    """Check the traces IDS, or else all traces and all texts; exit 1 if something is wrong.

    The steps are complete, every edge has a chunk, every chunk is an exact slice of its page,
    every citation is of something that was shown, the answer is stored. No model is asked.
    """
    with open_for_reading(setup) as rag:
        problems = rag.traces.verify(*ids)
        number = len(ids) or len(rag.traces.list(limit=None))
    verdict = counted(len(problems), "problem") if problems else "OK"
    lines = [*map(str, problems), f"{counted(number, 'trace')} checked: {verdict}"]
    return Reply({"traces": number, "problems": problems}, "\n".join(lines), 1 if problems else 0)


@explain.command()
@folder
@number_option("--keep", type=click.IntRange(min=0), required=True, help="Keep the newest N.")
@replying
def gc(setup: Setup, keep: int) -> Reply:
    """Delete all but the newest traces."""
    with open_for_reading(setup) as rag:
        number = rag.traces.delete(keep=keep)
    return Reply({"deleted": number}, f"{counted(number, 'trace')} deleted")


# ── for people ──────────────────────────────────────────────────────────────────


def event_printer(store: Store) -> Callable[[Event], None]:
    """A listener that prints each event of a query to stderr; pieces of the answer are left out."""

    def print_event(event: Event) -> None:
        if isinstance(event, AnswerChunk):
            return
        if isinstance(event, End):
            if event.error:
                emit(f"[failed] {one_line(event.error)}", err=True)
            return
        emit(f"[{event.stage}] {event.uri}", err=True)
        if isinstance(event, KeywordsFound):
            words = (*event.keywords.high_level, *event.keywords.low_level)
            emit(f"    {', '.join(words) or 'none'}", err=True)
        if isinstance(event, Selection):
            edges = [id for chosen in event.selected for id in chosen.edge.chunk_ids]
            with store.reader() as reader:
                sources = look_up_sources(reader, [*edges, *event.selected_chunks])
            for line in _selection_lines(event, sources):
                emit(f"    {line}", err=True)

    return print_event


def _selection_lines(found: Selection | Trace, sources: Sources) -> Iterator[str]:
    """What was chosen, why, and where it was read."""
    if found.selected or not found.selected_chunks:
        yield f"Selected {len(found.selected)} edge(s)"
    for chosen in found.selected:
        yield f"Edge: ({', '.join(chosen.edge.labels)})"
        if chosen.reasoning is not None:
            yield f"Reason: {one_line(chosen.reasoning)}"
        elif chosen.score is not None:
            yield f"Score: {chosen.score:.3g}"
        yield from (f"Source: {sources.where(id)}" for id in chosen.edge.chunk_ids)
    if found.selected_chunks:
        yield f"Selected {len(found.selected_chunks)} chunk(s)"
        yield from (f"Source: {sources.where(id)}" for id in found.selected_chunks)
    for rejection in found.rejections:
        yield f"Refused: line {rejection.line}: {rejection.reason} {rejection.detail}".rstrip()
    if found.fallback:
        yield f"Selected by rank: {found.selection_error or 'the model chose none'}"


def _trace_lines(trace: Trace, sources: Sources) -> Iterator[str]:
    ended = f" – {_time(trace.ended_at)}" if trace.ended_at else ""
    keywords = (*trace.keywords.high_level, *trace.keywords.low_level)
    details: dict[str, Iterable[str]] = {
        "session": (
            trace.question,
            f"{trace.status}, mode {trace.mode}, {_time(trace.started_at)}{ended}",
        ),
        "keywords": (", ".join(keywords),),
        "retrieval": (f"{len(trace.candidates)} edge(s), {len(trace.retrieved_chunks)} chunk(s)",),
        "selection": _selection_lines(trace, sources),
        "answer": _answer_lines(trace, sources),
    }
    for stage, lines in details.items():
        if stage in trace.stages:
            yield f"[{stage}] {stage_uri(stage, trace.id)}"
            yield from (f"    {line}" for line in lines)
    if trace.error:
        yield f"[failed] {one_line(trace.error)}"


def _answer_lines(trace: Trace, sources: Sources) -> Iterator[str]:
    if trace.reused:
        yield "(written for an earlier, similar question)"
    yield from (trace.answer or "").split("\n")
    if trace.truncated:
        yield "(not complete: the model reached its token limit)"
    for one in trace.citations:
        yield f"[{one.number}] {sources.where(one.chunk_id)}, characters {one.start}–{one.end}"
    yield from (f"[{number}] was cited, but never shown" for number in trace.invented)


def _document_lines(found: DocumentProvenance) -> Iterator[str]:
    yield f"{one_line(found.document.name)}  {source_uri('document', found.document.id)}"
    for page in found.pages:
        yield f"  Page {page.number}  ({counted(len(page.text), 'character')})"
        for facts in found.chunks:
            chunk = facts.chunk
            if chunk.page == page.number:
                yield f"    Chunk {chunk.index + 1}  {chunk.id}  characters {chunk.start}–{chunk.end}"
                for edge in facts.edges:
                    yield f"      Edge: ({', '.join(edge.labels)})  {edge.id}"


def _query_lines(traces: Iterable[TraceSummary]) -> Iterator[str]:
    for one in traces:
        yield f"  used by {one.id}  {one.status}  {one_line(one.question, QUESTION_COLUMNS)}"


def _positions(chunk_ids: Iterable[str], sources: Sources) -> list[dict[str, object]]:
    """The positions of chunks, for JSON; a deleted chunk has no offsets."""
    found: list[dict[str, object]] = []
    for id in dict.fromkeys(chunk_ids):
        chunk = sources.chunks.get(id)
        position = {"chunk_id": id, "where": sources.where(id), "deleted": chunk is None}
        if chunk is not None:
            span = {"page": chunk.page, "start": chunk.start, "end": chunk.end}
            position |= {"document_id": chunk.document_id, **span}
        found.append(position)
    return found


def _id(rag: LightRAG, id: str | None) -> str:
    """The id that was given, or that of the newest query."""
    newest = rag.traces.list(limit=1) if id is None else ()
    if id is None and not newest:
        raise NotFoundError("no queries recorded")
    return newest[0].id if id is None else id


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
