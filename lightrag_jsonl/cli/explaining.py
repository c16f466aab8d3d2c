"""`explain`: how answers came about; and `query --explain`, which shows it as it happens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from lightrag_jsonl.cli.opening import looking, reading
from lightrag_jsonl.cli.options import Setup, as_json, folder, number_option
from lightrag_jsonl.cli.output import Reply, counted, emit_json, one_line, replying, say, table
from lightrag_jsonl.errors import NotFoundError
from lightrag_jsonl.indexfiles import check_not_of_index

if TYPE_CHECKING:
    from lightrag_jsonl.explain.events import Event, Selection
    from lightrag_jsonl.explain.origins import DocumentOrigins
    from lightrag_jsonl.explain.rdf import Format, Version
    from lightrag_jsonl.explain.sources import Sources
    from lightrag_jsonl.explain.trace import Trace
    from lightrag_jsonl.sync import LightRAG
    from lightrag_jsonl.types import TraceSummary

QUESTION_COLUMNS = 60
FORMATS = ("nquads", "turtle", "trig", "jsonld")
VERSIONS = ("1.2", "star", "1.1")
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def explain() -> None:
    """Show how answers came about, and their sources.

    What was found, what was chosen and why, and where the texts say so. Every query leaves a
    trace; its id may be shortened as long as it stays unambiguous. `query --explain` shows the
    same as it happens.
    """


@explain.command("list")
@folder
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True)
@replying
def list_(setup: Setup, limit: int) -> Reply:
    """List the newest queries: id, status, time, mode and question.

    The status is complete, failed, or incomplete: still running, or killed before its end.
    """
    with looking(setup) as rag:
        found = rag.traces(limit=limit)
    header = ("id", "status", "asked at (UTC)", "mode", "question")
    rows = list(map(_row, found))
    return Reply(found, table(rows, header) if rows else "no query is on record")


@explain.command()
@click.argument("id", required=False)
@folder
@click.option("--html", type=FILE, metavar="FILE", help="Write a web page to FILE.")
@replying
def show(setup: Setup, id: str | None, html: Path | None) -> Reply:
    """Show how the answer ID came about, or write it as a web page.

    Without an ID, this is about the newest query. The page is self-contained: it needs no
    network, and a click on a citation opens its passage.

    \b
    Example:
      lightrag-jsonl explain show 3f2a --html answer.html
    """
    with looking(setup) as rag:
        if html:
            check_not_of_index(html)
        trace = _trace(rag, id)
        sources = rag.sources(trace)
        page = rag.trace_html(trace.id) if html else ""
    words = "\n".join(_told(trace, sources))
    if html:
        html.write_text(page, encoding="utf-8")
        words = f"{html}: {len(page):,} characters"
    return Reply({"trace": trace, "sources": _places(trace.chunk_ids, sources)}, words)


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
    with looking(setup) as rag:
        found = rag.edge_origins(subject, predicate, object)
    lines = [f"Edge: ({', '.join(found.edge.labels)})  {found.edge.id}"]
    for name in found.edge.chunk_ids:
        chunk = found.sources.chunks[name]
        lines.append(f"  Source: {found.sources.where(name)}, characters {chunk.start}–{chunk.end}")
    lines += _traces(found.traces, "chosen by")
    places = _places(found.edge.chunk_ids, found.sources)
    plain = {"edge": found.edge, "sources": places, "traces": found.traces}
    return Reply(plain, "\n".join(lines))


@explain.command()
@click.argument("id", required=False)
@folder
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="nquads", show_default=True
)
@click.option(
    "--rdf",
    type=click.Choice(VERSIONS),
    help="1.2 has triple terms <<( s p o )>>, star the older << s p o >>, 1.1 rdf:Statement nodes. "
    "Default 1.2; for jsonld 1.1, the only one it can carry.",
)
@click.option("--with-source", is_flag=True, help="Add the chain to chunks, pages and documents.")
@click.option(
    "--entity-base", metavar="URI", help="The prefix of entities' URIs (default urn:entity:)."
)
@click.option(
    "--predicate-base",
    metavar="URI",
    help="The prefix of predicates' URIs (default urn:predicate:).",
)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write to FILE, not stdout.")
@as_json
def export(
    setup: Setup,
    id: str | None,
    format_: str,
    rdf: str | None,
    with_source: bool,
    entity_base: str | None,
    predicate_base: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the trace ID as RDF (PROV-O), sorted, so that equal traces give equal bytes.

    Without an ID, this is about the newest query. Formats other than nquads are written by
    pyoxigraph: pip install 'pyoxigraph>=0.5'.

    \b
    Example:
      lightrag-jsonl explain export 3f2a --format trig --with-source -o answer.trig
    """
    form = cast("Format", format_)
    version = cast("Version", rdf or ("1.1" if form == "jsonld" else "1.2"))
    if form == "jsonld" and version != "1.1":
        raise click.UsageError("JSON-LD cannot carry triple terms: it needs --rdf 1.1")
    with looking(setup) as rag:
        if output:
            check_not_of_index(output)
        name = _trace(rag, id).id
        text = rag.export_trace(
            name,
            format=form,
            rdf=version,
            with_source=with_source,
            entity_base=entity_base,
            predicate_base=predicate_base,
        )
    if output:
        output.write_text(text, encoding="utf-8", newline="\n")
    if as_json:
        told = {"file": output} if output else {"text": text}
        emit_json({"id": name, "format": form, "rdf": version, **told})
    elif not output:
        click.echo(text, nl=False)


@explain.command()
@click.argument("ids", nargs=-1)
@folder
@replying
def verify(setup: Setup, ids: tuple[str, ...]) -> Reply:
    """Check the traces IDS, or else all traces and all texts; exit 1 if something is wrong.

    The steps are complete, every edge has a chunk, every chunk is an exact slice of its page,
    every citation is of something that was shown, the answer is stored. No model is asked.
    """
    with looking(setup) as rag:
        problems = rag.verify(*ids)
        number = len(ids) or len(rag.traces(limit=-1))
    verdict = counted(len(problems), "problem") if problems else "all is well"
    lines = [*map(str, problems), f"{counted(number, 'trace')} checked: {verdict}"]
    return Reply({"traces": number, "problems": problems}, "\n".join(lines), 1 if problems else 0)


@explain.command()
@click.argument("document")
@folder
@replying
def documents(setup: Setup, document: str) -> Reply:
    """Show what was read from DOCUMENT: its pages, their chunks, and the edges that each chunk states."""
    with looking(setup) as rag:
        found = rag.document_origins(document)
    return Reply(found, "\n".join([*_tree(found), *_traces(found.traces, "shown to")]))


@explain.command()
@folder
@number_option("--keep", type=click.IntRange(min=0), required=True, help="Keep the newest N.")
@replying
def gc(setup: Setup, keep: int) -> Reply:
    """Delete all but the newest traces."""
    with looking(setup) as rag:
        gone = rag.forget_traces(keep=keep)
    return Reply({"forgotten": gone}, f"{counted(gone, 'trace')} forgotten")


# ── as it happens ───────────────────────────────────────────────────────────────


class Live:
    """A `Listener` that prints each event of a query to stderr."""

    def __init__(self, working_dir: Path) -> None:
        self._working_dir = working_dir

    def __call__(self, event: Event) -> None:
        """Print one event; pieces of the answer are left to stdout."""
        from lightrag_jsonl.explain.events import AnswerChunk, End, KeywordsFound, Selection

        if isinstance(event, AnswerChunk):
            return
        if isinstance(event, End):
            if event.error:
                say(f"[failed] {one_line(event.error)}", err=True)
            return
        say(f"[{event.stage}] {event.uri}", err=True)
        if isinstance(event, KeywordsFound):
            words = (*event.keywords.high_level, *event.keywords.low_level)
            say(f"    {', '.join(words) or 'none'}", err=True)
        if isinstance(event, Selection):
            for line in _selection(event, self._sources(event)):
                say(f"    {line}", err=True)

    def _sources(self, event: Selection) -> Sources:
        from lightrag_jsonl.explain.library import StoredLibrary
        from lightrag_jsonl.explain.sources import look_up

        names = [name for chosen in event.edges for name in chosen.edge.chunk_ids]
        with reading(self._working_dir) as connection:
            return look_up([*names, *event.chunk_ids], StoredLibrary(connection))


# ── for people ──────────────────────────────────────────────────────────────────


def _selection(event: Selection, sources: Sources) -> Iterator[str]:
    """Lines on what was chosen, why, and where it was read."""
    if event.edges or not event.chunk_ids:
        yield f"Selected {len(event.edges)} edge(s)"
    for chosen in event.edges:
        yield f"Edge: ({', '.join(chosen.edge.labels)})"
        if chosen.reasoning is not None:
            yield f"Reason: {one_line(chosen.reasoning)}"
        elif chosen.score is not None:
            yield f"Score: {chosen.score:.3g}"
        yield from (f"Source: {sources.where(name)}" for name in chosen.edge.chunk_ids)
    if event.chunk_ids:
        yield f"Selected {len(event.chunk_ids)} chunk(s)"
        yield from (f"Source: {sources.where(name)}" for name in event.chunk_ids)
    for rejection in event.rejections:
        detail = f" ({rejection.detail})" if rejection.detail else ""
        yield f"Refused: line {rejection.line}: {rejection.reason}{detail}"
    if event.fallback:
        yield f"The best by rank were taken: {event.error or 'the model chose none'}"


def _told(trace: Trace, sources: Sources) -> Iterator[str]:
    """The lines that show a trace."""
    from lightrag_jsonl.explain.prov import prov_uri, session_uri
    from lightrag_jsonl.explain.trace import selection_of

    yield f"[session] {session_uri(trace.id)}"
    yield f"    {trace.question}"
    ended = f" – {_time(trace.ended_at)}" if trace.ended_at else ""
    yield f"    {trace.status}, mode {trace.mode}, {_time(trace.started_at)}{ended}"
    if "keywords" in trace.stages:
        words = (*trace.keywords.high_level, *trace.keywords.low_level)
        yield from (f"[keywords] {prov_uri('keywords', trace.id)}", f"    {', '.join(words)}")
    if "retrieval" in trace.stages:
        yield f"[retrieval] {prov_uri('retrieval', trace.id)}"
        yield f"    {len(trace.candidates)} edge(s), {len(trace.retrieved_chunks)} chunk(s)"
    if "selection" in trace.stages:
        yield f"[selection] {prov_uri('selection', trace.id)}"
        yield from (f"    {line}" for line in _selection(selection_of(trace), sources))
    if trace.answer is not None:
        yield f"[answer] {prov_uri('answer', trace.id)}"
        if trace.reused:
            yield "    (written for an earlier, similar question)"
        yield from (f"    {line}" for line in trace.answer.split("\n"))
        if trace.truncated:
            yield "    (not complete: the model reached its token limit)"
        yield from (f"    {line}" for line in _citations(trace, sources))
    if trace.error:
        yield f"[failed] {one_line(trace.error)}"


def _citations(trace: Trace, sources: Sources) -> Iterator[str]:
    for citation in trace.citations:
        place = sources.where(citation.chunk_id)
        yield f"[{citation.number}] {place}, characters {citation.start}–{citation.end}"
    for number in trace.invented:
        yield f"[{number}] was cited, but never shown"


def _places(chunk_ids: Iterable[str], sources: Sources) -> list[dict[str, object]]:
    """The places of chunks, for JSON; a deleted chunk has no offsets."""
    found: list[dict[str, object]] = []
    for name in dict.fromkeys(chunk_ids):
        chunk = sources.chunks.get(name)
        place = {"chunk_id": name, "where": sources.where(name), "deleted": chunk is None}
        if chunk is not None:
            span = {"page": chunk.page, "start": chunk.start, "end": chunk.end}
            place |= {"document_id": chunk.document_id, **span}
        found.append(place)
    return found


def _tree(found: DocumentOrigins) -> Iterator[str]:
    from lightrag_jsonl.explain.export import document_uri, page_uri
    from lightrag_jsonl.explain.prov import chunk_uri

    yield f"{one_line(found.document.name)}  {document_uri(found.document.id)}"
    for page in found.pages:
        yield f"  Page {page.number}  {page_uri(page)}  ({counted(len(page.text), 'character')})"
        for facts in found.chunks:
            chunk = facts.chunk
            if chunk.page != page.number:
                continue
            yield f"    Chunk {chunk.index + 1}  {chunk_uri(chunk.id)}  characters {chunk.start}–{chunk.end}"
            for edge in facts.edges:
                yield f"      Edge: ({', '.join(edge.labels)})  {edge.id}"


def _trace(rag: LightRAG, id: str | None) -> Trace:
    """The trace with this id, or the newest one."""
    newest = rag.traces(limit=1) if id is None else ()
    if id is None and not newest:
        raise NotFoundError("no query is on record")
    return rag.trace(newest[0].id if id is None else id)


def _traces(traces: tuple[TraceSummary, ...], how: str) -> Iterator[str]:
    for one in traces:
        yield f"  {how} {one.id}  {one.status}  {one_line(one.question, QUESTION_COLUMNS)}"


def _row(one: TraceSummary) -> tuple[str, ...]:
    asked = _time(datetime.fromtimestamp(one.started_at, UTC))
    return (one.id, one.status, asked, one.mode, one_line(one.question, QUESTION_COLUMNS))


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
