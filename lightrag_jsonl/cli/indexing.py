"""`insert`, `retry`, `resume` and `delete`: change an index."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lightrag_jsonl.cli.opening import (
    going_on,
    inserting,
    older_documents,
    put_model_back,
    recorded,
)
from lightrag_jsonl.cli.options import (
    FILE,
    Setup,
    as_json,
    models,
    number_option,
    visible,
    with_options,
)
from lightrag_jsonl.cli.output import counted, emit_json, one_line, say, told_usage
from lightrag_jsonl.cli.progress import interruptible, progress_bar
from lightrag_jsonl.cli.sources import find_sources, with_id
from lightrag_jsonl.errors import NotFoundError

if TYPE_CHECKING:
    from lightrag_jsonl.types import Failure, InsertReport

INCOMPLETE = 3
SHOWN_FAILURES = 20
NONE_OR_MORE = click.IntRange(min=0)


cutting_options = (
    number_option("--chunk-tokens", help="Tokens in a chunk (default 1200)."),
    number_option(
        "--chunk-overlap", type=NONE_OR_MORE, help="Tokens neighbours share (default 100)."
    ),
    click.option(
        "--extraction",
        type=click.Choice(["extract-graph", "agent-kg-extract", "extract-with-ontologies"]),
        help="The prompt that asks a model for facts (default extract-graph).",
    ),
    click.option(
        "--ontology",
        type=FILE,
        metavar="FILE",
        help="A JSON or YAML file of classes and properties.",
    ),
    click.option(
        "--entity-type",
        "entity_types",
        multiple=True,
        callback=visible,
        metavar="NAME",
        help="A type of entity to look for; may be repeated.",
    ),
)
gleaning_options = (
    number_option(
        "--gleanings",
        "max_gleanings",
        type=NONE_OR_MORE,
        help="How often to ask the model again for what it missed (default 1).",
    ),
)
running_options = (
    *gleaning_options,
    number_option(
        "--concurrency", "max_concurrent_calls", help="Model calls at a time (default 16)."
    ),
    number_option("--max-calls", help="Stop after so many model calls; their answers are kept."),
    number_option("--max-input-tokens", help="Stop after so many tokens read."),
    number_option("--max-output-tokens", help="Stop after so many tokens written."),
)


@click.command()
@click.argument("files", nargs=-1, required=True)
@models
@with_options(cutting_options, running_options)
@click.option(
    "--id", "id", metavar="ID", callback=visible, help="The document's id (for one text)."
)
@as_json
def insert(
    setup: Setup, files: tuple[str, ...], id: str | None, as_json: bool, **given: Any
) -> None:
    """Read texts into the index, which is created if there is none.

    FILES are files (.txt, .md, .jsonl), folders, quoted patterns, or - for stdin. A line of
    a .jsonl file is a text, or an object with "text" and optionally "id", "title", "date",
    "source" and other metadata to filter by. A text that is in the index already is not read
    again; a document with a known id and a different text replaces the old one.

    \b
    Examples:
      lightrag-jsonl insert -w kb book.txt
      lightrag-jsonl insert -w kb --language zh 三国演义.txt
      lightrag-jsonl insert -w kb 'notes/**/*.md' papers/
      pdftotext paper.pdf - | lightrag-jsonl insert -w kb --id paper -
      lightrag-jsonl insert -w kb --llm gpt-4o-mini --embedder st:BAAI/bge-m3 book.txt
    """
    sources = find_sources(files)
    documents = sources if id is None else with_id(sources, id)
    options, known = given_options(given), recorded(setup.working_dir)
    with _patiently(setup.working_dir), inserting(setup, options) as rag, progress_bar() as watcher:
        report = rag.insert(documents, watcher=watcher)
    if not (report.documents or report.stopped):  # nothing was read, and nothing is waiting
        put_model_back(setup.working_dir, known)
    _tell_older(setup.working_dir, report)
    _tell(setup.working_dir, report, as_json=as_json)


@click.command()
@models
@with_options(running_options)
@as_json
def retry(setup: Setup, as_json: bool, **given: Any) -> None:
    """Read again the chunks that failed, and no others.

    Of a chunk that was read in part, only what is missing is asked for. Model and options are
    those of the last insert, unless others are given.
    """
    folder, options = setup.working_dir, given_options(given)
    with _patiently(folder), going_on(setup, options) as rag, progress_bar() as watcher:
        report = rag.retry(watcher=watcher)
        waiting = rag.status().documents.get("pending", 0)
    nothing = "nothing has failed"
    if waiting:
        wait = f"{counted(waiting, 'document')} wait{'s' * (waiting == 1)}"
        nothing += f", but {wait} to be read: lightrag-jsonl resume -w {folder}"
    _tell(folder, report, as_json=as_json, nothing=nothing, again="retry")


@click.command()
@models
@with_options(running_options)
@as_json
def resume(setup: Setup, as_json: bool, **given: Any) -> None:
    """Go on with the documents of an interrupted insert.

    Answers that a model has given already are kept and not asked for again. Model and options
    are those of that insert, unless others are given.
    """
    folder, options = setup.working_dir, given_options(given)
    with _patiently(folder), going_on(setup, options) as rag, progress_bar() as watcher:
        report = rag.resume(watcher=watcher)
    _tell(setup.working_dir, report, as_json=as_json, nothing="nothing is waiting")


@click.command()
@click.argument("ids", nargs=-1, required=True)
@models
@as_json
def delete(setup: Setup, ids: tuple[str, ...], as_json: bool) -> None:
    """Remove documents, as if they had never been inserted.

    No model is asked. If one of the IDS is unknown, nothing is removed.

    \b
    Example:
      lightrag-jsonl delete -w kb doc-1f3a5b7c9d0e2f46    (`documents` lists the ids)
    """
    with going_on(setup, {}) as rag:
        try:
            report = rag.delete(*ids)
        except NotFoundError as error:
            where = f"lightrag-jsonl documents -w {setup.working_dir}"
            raise NotFoundError(f"{error}; the ids are listed by: {where}") from error
    if as_json:
        emit_json(report)
        return
    say(
        f"removed {counted(len(report.documents), 'document')} "
        f"({counted(report.chunks, 'chunk')}), "
        f"{counted(report.entities, 'entity', 'entities')} and "
        f"{counted(report.relations, 'relation')} that nothing else mentions"
    )


# ── the report ──────────────────────────────────────────────────────────────────


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, by their names in `IndexOptions`; paths are made absolute."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    return {n: v.resolve() if isinstance(v, Path) else v for n, v in given.items()}


def _patiently(working_dir: Path) -> AbstractContextManager[None]:
    return interruptible(
        "whole documents, and whatever a model answered, are kept; go on with: "
        f"lightrag-jsonl resume -w {working_dir}"
    )


def _tell(
    working_dir: Path,
    report: InsertReport,
    *,
    as_json: bool,
    nothing: str = "nothing was read",
    again: str = "resume",
) -> None:
    if as_json:
        emit_json(report)
    else:
        _tell_people(working_dir, report, nothing, again)
    if report.failures or report.stopped:
        raise click.exceptions.Exit(INCOMPLETE)


def _tell_older(working_dir: Path, report: InsertReport) -> None:
    """Point out that documents with the earlier texts of changed files are still in the index."""
    if not report.documents:
        return
    older = older_documents(working_dir, (*report.documents, *report.unchanged))
    if older:
        ids = " ".join(map(shlex.quote, older[:SHOWN_FAILURES]))
        say(
            f"{counted(len(older), 'earlier text')} of changed files stayed in the index; "
            f"to remove: lightrag-jsonl delete -w {working_dir} {ids}",
            err=True,
        )


def _tell_people(working_dir: Path, report: InsertReport, nothing: str, again: str) -> None:
    if report.documents:
        chunks, failed = counted(report.chunks, "chunk"), report.extraction.failed
        if failed:
            chunks += f", {'all' if failed == report.chunks > 1 else f'{failed:,}'} failed"
        say(
            f"{working_dir}: read {counted(len(report.documents), 'document')} ({chunks}); new or changed: "
            f"{counted(report.entities, 'entity', 'entities')}, "
            f"{counted(report.relations, 'relation')}"
        )
    elif not report.unchanged:
        say(f"{working_dir}: {'no document is complete yet' if report.stopped else nothing}")
    if report.unchanged:
        say(
            f"{working_dir}: {counted(len(report.unchanged), 'document')} known already, not read again"
        )
    if report.usage.calls:
        say(told_usage(report.usage))
    refused = {**report.extraction.rejections}
    refused.pop("repaired", None)
    if refused:
        reasons = ", ".join(f"{name} {number:,}" for name, number in refused.items())
        say(f"refused: {reasons} (see: lightrag-jsonl rejections -w {working_dir})")
    if report.stopped:
        say(report.stopped, err=True)
        say(f"the rest waits for: lightrag-jsonl {again} -w {working_dir}", err=True)
    tell_failures(working_dir, report.failures)


def tell_failures(working_dir: Path, failures: Sequence[Failure]) -> None:
    """Print the first failures, grouped by reason, and what can be done about them."""
    if not failures:
        return
    say(f"{counted(len(failures), 'failure')}:", err=True)
    alike: dict[str, list[str]] = {}
    for failure in failures:
        where = (
            f"{failure.document_id}, {failure.chunk_id}"
            if failure.chunk_id
            else failure.document_id
        )
        alike.setdefault(failure.reason.removeprefix(f"{failure.document_id}: "), []).append(where)
    for reason, places in list(alike.items())[:SHOWN_FAILURES]:
        others = f" (and {len(places) - 1:,} more, for the same reason)" if places[1:] else ""
        say(f"  {one_line(places[0])}{others}: {one_line(reason)}", err=True)
    if len(alike) > SHOWN_FAILURES:
        say(f"  … and {len(alike) - SHOWN_FAILURES:,} more reasons (--json shows all)", err=True)
    if any(failure.chunk_id for failure in failures):
        say(f"ask again for the chunks: lightrag-jsonl retry -w {working_dir}", err=True)
