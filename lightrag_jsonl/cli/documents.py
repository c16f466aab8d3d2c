"""`insert`, `retry`, `resume`, `delete`; `status`, `documents` and `rejections`."""

from __future__ import annotations

import glob
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl import ConfigError, Document, InsertReport, NotFoundError
from lightrag_jsonl.cli.group import INCOMPLETE, Reply, command
from lightrag_jsonl.cli.opening import open_for_insert, open_index
from lightrag_jsonl.cli.options import (
    Setup,
    limit_options,
    models,
    reading_options,
    visible,
    working_dir,
)
from lightrag_jsonl.cli.output import counted, failure_notes, progress_bar, table
from lightrag_jsonl.core.text import decoded
from lightrag_jsonl.indexing.loading import load_documents

STDIN = "-"

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
    loaded = list(load_documents(sources))
    if len(loaded) != 1 or not isinstance(loaded[0], Document):
        raise click.UsageError(f"--id names one document, but {len(loaded)} were given")
    return replace(loaded[0], id=id)


# ── changing the index ──────────────────────────────────────────────────────────


@command(
    click.argument("files", nargs=-1, required=True),
    *models,
    *reading_options,
    *limit_options,
    click.option("--id", callback=visible, help="The document's id (for one text)."),
)
def insert(setup: Setup, files: tuple[str, ...], id: str | None, **options: Any) -> Reply:
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
    with open_for_insert(setup, options) as rag, progress_bar() as progress:
        return _reply(setup, rag.insert(documents, progress=progress))


@command(*models, *limit_options)
def retry(setup: Setup, **options: Any) -> Reply:
    """Read again the chunks that failed, and no others.

    Of a chunk that was read in part, only what is missing is asked for. Model and options are
    those of the last insert, unless others are given.
    """
    with open_index(setup, options) as rag, progress_bar() as progress:
        report = rag.retry(progress=progress)
        nothing = "nothing has failed"
        if waiting := rag.status().documents.get("pending"):
            documents = counted(waiting, "document")
            nothing += f"; {documents} pending: lightrag-jsonl resume -w {setup.working_dir}"
    return _reply(setup, report, nothing=nothing, go_on="retry")


@command(*models, *limit_options)
def resume(setup: Setup, **options: Any) -> Reply:
    """Go on with the documents of an interrupted insert.

    Answers that a model has given already are kept and not asked for again. Model and options
    are those of that insert, unless others are given.
    """
    with open_index(setup, options) as rag, progress_bar() as progress:
        return _reply(setup, rag.resume(progress=progress), nothing="nothing is pending")


@command(click.argument("ids", nargs=-1, required=True), *models)
def delete(setup: Setup, ids: tuple[str, ...]) -> Reply:
    """Remove documents, as if they had never been inserted.

    No model is asked. If one of the IDS is unknown, nothing is removed.

    \b
    Example:
      lightrag-jsonl delete -w kb doc-1f3a5b7c9d0e2f46    (`documents` lists the ids)
    """
    with open_index(setup, {}) as rag:
        return Reply(rag.delete(*ids))


def _reply(
    setup: Setup, report: InsertReport, *, nothing: str = "nothing was read", go_on: str = "resume"
) -> Reply:
    """The report of an insert in words; failures go to stderr."""
    refused = {name: n for name, n in report.extraction.rejections.items() if name != "repaired"}
    words = {
        "documents read": len(report.documents),
        "unchanged": len(report.unchanged),
        "chunks": report.chunks,
        "failed chunks": report.extraction.failed,
        "entities (new or changed)": report.entities,
        "relations (new or changed)": report.relations,
        "refused lines": refused,
        "usage": asdict(report.usage) if report.usage.calls else "",
    }
    if not (report.documents or report.unchanged):
        words = {setup.working_dir: nothing}
    notes = failure_notes(setup.working_dir, report.failures)
    if refused:
        notes.append(f"see: lightrag-jsonl rejections -w {setup.working_dir}")
    if report.stopped:
        notes.append(
            f"{report.stopped}; go on with: lightrag-jsonl {go_on} -w {setup.working_dir}"
        )
    status = INCOMPLETE if report.failures or report.stopped else 0
    return Reply(report, {name: value for name, value in words.items() if value}, status, notes)


# ── what the index holds ────────────────────────────────────────────────────────


@command(working_dir)
def status(setup: Setup) -> Reply:
    """Show what the index holds and how reading went."""
    with open_index(setup) as rag:
        return Reply(rag.status())


@command(working_dir)
def documents(setup: Setup) -> Reply:
    """List the documents, with their ids and states.

    The states are: done; partial (some chunks failed, or were read in part) and failed (all
    chunks failed), both for `retry`; pending (an insert was interrupted), for `resume`.
    """
    with open_index(setup) as rag:
        found = rag.documents()
    return Reply(found, table(found, "id", "state", "chunks", "characters", "title", "source"))


@command(click.argument("ids", nargs=-1), working_dir)
def rejections(setup: Setup, ids: tuple[str, ...]) -> Reply:
    """List the refused lines of a model's answers.

    Of all documents, or of those with IDS. Look at it before you pay for a large corpus: it
    shows what the model gets wrong.
    """
    with open_index(setup) as rag:
        unknown = set(ids) - {document.id for document in rag.documents()}
        if unknown:
            raise NotFoundError(f"no such document: {', '.join(sorted(unknown))}")
        found = rag.rejections(*ids)
    records = [{"document_id": d, "chunk_id": c, **asdict(line)} for d, c, line in found]
    return Reply(records, table(records) or "no line was refused")
