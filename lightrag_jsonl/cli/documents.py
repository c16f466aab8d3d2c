"""`insert`, `retry`, `resume`, `delete`, and what the index holds: `status`, `documents`,
`rejections`.
"""

from __future__ import annotations

import glob
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl.cli.opening import (
    given_options,
    llm_name,
    open_for_insert,
    open_for_reading,
    open_for_writing,
    recorded,
)
from lightrag_jsonl.cli.options import (
    Setup,
    chunk_options,
    folder,
    limit_options,
    models,
    visible,
    with_options,
)
from lightrag_jsonl.cli.output import (
    INCOMPLETE,
    Reply,
    counted,
    emit_failures,
    format_usage,
    one_line,
    progress_bar,
    replying,
    table,
)
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.text import decoded
from lightrag_jsonl.core.types import Document, ExtractionReport, InsertReport, Status

STDIN = "-"
LINE_COLUMNS = 60

# ── which texts ─────────────────────────────────────────────────────────────────


def find_sources(arguments: Sequence[str]) -> Path | Document | list[Path | Document]:
    """Files, folders, patterns and - for stdin, in order.

    A single source is returned as such, not in a list: then an error in it ends the command.
    """
    found: list[Path | Document] = []
    for argument in dict.fromkeys(arguments):
        if not argument.strip():  # for example from an unset shell variable
            raise click.UsageError("the name of a file is empty")
        if argument == STDIN:
            found.append(Document(read_stdin(), title="stdin"))
        elif glob.has_magic(argument) and not Path(argument).exists():
            found += _matching(argument)
        else:
            found.append(Path(argument))
    first = found[0]
    if len(found) == 1 and isinstance(first, Path) and not first.exists():
        raise ConfigError(f"no such file: {first}")  # before an index is created
    return first if len(found) == 1 else found


def read_stdin() -> str:
    """All of stdin, decoded like a text file."""
    return decoded(sys.stdin.buffer.read(), "stdin")


def _matching(pattern: str) -> list[Path]:
    paths = sorted(map(Path, glob.iglob(pattern, recursive=True)))  # noqa: PTH207 (may be absolute)
    files = [path for path in paths if not path.is_dir()]
    if not files:
        raise ConfigError(f"no file matches {pattern}")
    return files


def _with_id(sources: Path | Document | list[Path | Document], id: str) -> Document:
    from lightrag_jsonl.indexing.loading import load_documents

    loaded = list(load_documents(sources))
    if len(loaded) != 1 or not isinstance(loaded[0], Document):
        raise click.UsageError(f"--id names one document, but {len(loaded)} were given")
    return replace(loaded[0], id=id)


# ── changing the index ──────────────────────────────────────────────────────────


@click.command()
@click.argument("files", nargs=-1, required=True)
@models
@with_options(chunk_options, limit_options)
@click.option(
    "--id", "id", metavar="ID", callback=visible, help="The document's id (for one text)."
)
@replying
def insert(setup: Setup, files: tuple[str, ...], id: str | None, **given: Any) -> Reply:
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
    documents = sources if id is None else _with_id(sources, id)
    with open_for_insert(setup, given_options(given)) as rag, progress_bar() as progress:
        report = rag.insert(documents, progress=progress)
    return _reply(setup, report)


@click.command()
@models
@with_options(limit_options)
@replying
def retry(setup: Setup, **given: Any) -> Reply:
    """Read again the chunks that failed, and no others.

    Of a chunk that was read in part, only what is missing is asked for. Model and options are
    those of the last insert, unless others are given.
    """
    with open_for_writing(setup, given_options(given)) as rag, progress_bar() as progress:
        report = rag.retry(progress=progress)
        waiting = rag.status().documents.get("pending", 0)
    nothing = "nothing has failed"
    if waiting:
        nothing += f"; {counted(waiting, 'document')} pending: lightrag-jsonl resume -w "
        nothing += str(setup.working_dir)
    return _reply(setup, report, nothing=nothing, command="retry")


@click.command()
@models
@with_options(limit_options)
@replying
def resume(setup: Setup, **given: Any) -> Reply:
    """Go on with the documents of an interrupted insert.

    Answers that a model has given already are kept and not asked for again. Model and options
    are those of that insert, unless others are given.
    """
    with open_for_writing(setup, given_options(given)) as rag, progress_bar() as progress:
        report = rag.resume(progress=progress)
    return _reply(setup, report, nothing="nothing is pending")


@click.command()
@click.argument("ids", nargs=-1, required=True)
@models
@replying
def delete(setup: Setup, ids: tuple[str, ...]) -> Reply:
    """Remove documents, as if they had never been inserted.

    No model is asked. If one of the IDS is unknown, nothing is removed.

    \b
    Example:
      lightrag-jsonl delete -w kb doc-1f3a5b7c9d0e2f46    (`documents` lists the ids)
    """
    with open_for_writing(setup, {}) as rag:
        try:
            report = rag.delete(*ids)
        except NotFoundError as error:
            listing = f"lightrag-jsonl documents -w {setup.working_dir}"
            raise NotFoundError(f"{error}; the ids are listed by: {listing}") from error
    words = (
        f"removed {counted(len(report.documents), 'document')} "
        f"({counted(report.chunks, 'chunk')}), "
        f"{counted(report.entities, 'entity', 'entities')} and "
        f"{counted(report.relations, 'relation')} that nothing else mentions"
    )
    return Reply(report, words)


def _reply(
    setup: Setup,
    report: InsertReport,
    *,
    nothing: str = "nothing was read",
    command: str = "resume",
) -> Reply:
    """The report of an insert in words; failures go to stderr."""
    lines = []
    if report.documents:
        failed = f", {report.extraction.failed:,} failed" if report.extraction.failed else ""
        lines.append(
            f"{setup.working_dir}: read {counted(len(report.documents), 'document')} "
            f"({counted(report.chunks, 'chunk')}{failed}); new or changed: "
            f"{counted(report.entities, 'entity', 'entities')}, "
            f"{counted(report.relations, 'relation')}"
        )
    elif not report.unchanged:
        lines.append(f"{setup.working_dir}: {nothing}")
    if report.unchanged:
        lines.append(f"{counted(len(report.unchanged), 'document')} unchanged, not read again")
    if report.usage.calls:
        lines.append(format_usage(report.usage))
    refused = {n: c for n, c in report.extraction.rejections.items() if n != "repaired"}
    if refused:
        reasons = ", ".join(f"{name} {number:,}" for name, number in refused.items())
        lines.append(f"refused: {reasons} (see: lightrag-jsonl rejections -w {setup.working_dir})")
    if report.stopped:
        lines.append(
            f"{report.stopped}; go on with: lightrag-jsonl {command} -w {setup.working_dir}"
        )
    emit_failures(setup.working_dir, report.failures)
    return Reply(report, "\n".join(lines), INCOMPLETE if report.failures or report.stopped else 0)


# ── what the index holds ────────────────────────────────────────────────────────


@click.command()
@folder
@replying
def status(setup: Setup) -> Reply:
    """Show what the index holds and how reading went."""
    with open_for_reading(setup) as rag:
        found = replace(rag.status(), llm=llm_name(setup, recorded(setup.working_dir)))
    return Reply(found, table(_status_rows(found)))


@click.command()
@folder
@replying
def documents(setup: Setup) -> Reply:
    """List the documents, with their ids and states.

    The states are: done; partial (some chunks failed, or were read in part) and failed (all
    chunks failed), both for `retry`; pending (an insert was interrupted), for `resume`.
    """
    with open_for_reading(setup) as rag:
        found = rag.documents()
    rows = [
        (
            one.id,
            one.state,
            one.chunks,
            len(one.failures),
            one.characters,
            one.title or "",
            one.source or "",
        )
        for one in found
    ]
    header = ("id", "state", "chunks", "failed", "characters", "title", "source")
    return Reply(found, table(rows, header))


@click.command()
@click.argument("ids", nargs=-1)
@folder
@replying
def rejections(setup: Setup, ids: tuple[str, ...]) -> Reply:
    """List the refused lines of a model's answers.

    Of all documents, or of those with IDS. Look at it before you pay for a large corpus: it
    shows what the model gets wrong.
    """
    with open_for_reading(setup) as rag:
        unknown = set(ids) - {document.id for document in rag.documents()}
        if unknown:
            raise NotFoundError(f"no such document: {', '.join(sorted(unknown))}")
        found = rag.rejections(*ids)
    plain = [{"document_id": d, "chunk_id": c, **asdict(r)} for d, c, r in found]
    rows = [
        (d, c, r.line, r.reason, one_line(r.detail, LINE_COLUMNS), one_line(r.text, LINE_COLUMNS))
        for d, c, r in found
    ]
    header = ("document", "chunk", "line", "reason", "detail", "text")
    return Reply(plain, table(rows, header) if rows else "no line was refused")


def _status_rows(status: Status) -> list[tuple[str, object]]:
    states = ", ".join(f"{number:,} {state}" for state, number in status.documents.items())
    return [
        ("folder", status.working_dir),
        ("documents", f"{sum(status.documents.values()):,}" + (f" ({states})" if states else "")),
        ("chunks", f"{status.chunks:,}"),
        ("entities", f"{status.entities:,}"),
        ("relations", f"{status.relations:,}"),
        ("language", status.language),
        ("model", status.llm),
        ("embedder", f"{status.embedder} ({status.dim} dimensions)"),
        ("tokenizer", status.tokenizer),
        ("size", f"{status.bytes_on_disk / 1e6:,.1f} MB, format {status.format}"),
        *_extraction_rows(status.extraction),
    ]


def _extraction_rows(report: ExtractionReport) -> list[tuple[str, object]]:
    """How extraction went; counts that are zero are left out."""
    states = ("ok", "empty", "partial", "failed")
    chunks = [f"{getattr(report, name):,} {name}" for name in states if getattr(report, name)]
    rejected = ", ".join(f"{name} {number:,}" for name, number in report.rejections.items())
    usage = report.usage
    rows = (
        ("chunks read", ", ".join(chunks)),
        ("records", f"{report.records:,}"),
        ("refused or repaired", rejected),
        ("not in the text", report.ungrounded or ""),
        ("cut off", report.truncated or ""),
        ("resumed", report.resumed or ""),
        ("gleaned", ", ".join(f"{number:,}" for number in report.gleaned)),
        ("usage", format_usage(usage) if usage.calls else ""),
    )
    return [(name, value) for name, value in rows if value]
