"""`insert`, `retry`, `resume`, `delete`; `status`, `documents` and `rejections`."""

from __future__ import annotations

import glob
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl import ConfigError, Document, InsertReport, LightRAG, NotFoundError
from lightrag_jsonl.cli.group import INCOMPLETE, Reply, command, index_command
from lightrag_jsonl.cli.opening import open_index
from lightrag_jsonl.cli.options import Setup, limit_options, models, option, reading_options
from lightrag_jsonl.cli.output import progress_bar, table
from lightrag_jsonl.core.text import decoded
from lightrag_jsonl.indexing.loading import Given, load_documents


def find_sources(arguments: Sequence[str]) -> Given | list[Given]:
    """Files, folders, patterns and - for stdin, in order.

    A single source is returned as such, not in a list: then an error in it ends the command.
    """
    found: list[Given] = []
    for argument in dict.fromkeys(arguments):
        if not argument.strip():  # for example from an unset shell variable
            raise click.UsageError("the name of a file is empty")
        if argument == "-":
            found.append(Document(read_stdin(), title="stdin"))
        else:
            is_pattern = glob.has_magic(argument) and not Path(argument).exists()
            paths = sorted(glob.iglob(argument, recursive=True)) if is_pattern else []  # noqa: PTH207
            found += [Path(one) for one in paths if Path(one).is_file()] or [Path(argument)]
    first = found[0]
    if len(found) == 1 and isinstance(first, Path) and not first.exists():
        raise ConfigError(f"no such file: {first}")  # before an index is created
    return first if len(found) == 1 else found


def read_stdin() -> str:
    """All of stdin, decoded like a text file."""
    return decoded(sys.stdin.buffer.read(), "stdin")


@command(
    click.argument("files", nargs=-1, required=True),
    *models,
    *reading_options,
    *limit_options,
    option("--id", "The document's id (for one text)."),
)
def insert(setup: Setup, files: tuple[str, ...], id: str | None, **options: Any) -> Reply:
    """Read texts into the index, which is created if there is none.

    FILES are files (.txt, .md, .jsonl), folders, quoted patterns, or - for stdin. A line of
    a .jsonl file is a text, or an object with "text" and optionally "id", "title", "date",
    "source" and other metadata to filter by. A text that is in the index already is not read
    again; a document with a known id and a different text replaces the old one.

    \b
    Examples:
      lightrag-jsonl insert -w kb --language zh 三国演义.txt
      lightrag-jsonl insert -w kb 'notes/**/*.md' papers/
      pdftotext paper.pdf - | lightrag-jsonl insert -w kb --id paper -
      lightrag-jsonl insert -w kb --llm gpt-4o-mini --embedder st:BAAI/bge-m3 book.txt
    """
    sources = find_sources(files)
    if id is not None:
        loaded = list(load_documents(sources))
        if len(loaded) != 1 or not isinstance(loaded[0], Document):
            raise click.UsageError(f"--id names one document, but {len(loaded)} were given")
        sources = replace(loaded[0], id=id)
    with open_index(setup, options, create=True) as rag, progress_bar() as progress:
        return _reply(rag, rag.insert(sources, progress=progress), "nothing was read")


@index_command(*models, *limit_options)
def retry(rag: LightRAG) -> Reply:
    """Read again the chunks that failed, and no others.

    Of chunks read in part only what is missing is asked for. Model and options are those of the last insert, unless others are given.
    """
    with progress_bar() as progress:
        report = rag.retry(progress=progress)
    return _reply(rag, report, "nothing has failed", go_on="retry")


@index_command(*models, *limit_options)
def resume(rag: LightRAG) -> Reply:
    """Go on with the documents of an interrupted insert.

    Model and options are those of that insert, unless others are given.
    """
    with progress_bar() as progress:
        return _reply(rag, rag.resume(progress=progress), "nothing is pending")


def _reply(rag: LightRAG, report: InsertReport, nothing: str, go_on: str = "resume") -> Reply:
    """The report of an insert, and what to do next."""
    notes, folder = [], rag.working_dir
    if report.extraction.rejections:
        notes.append(f"refused lines: lightrag-jsonl rejections -w {folder}")
    if report.stopped:
        notes.append(f"{report.stopped}; go on with: lightrag-jsonl {go_on} -w {folder}")
    elif pending := rag.status().documents.get("pending"):
        notes.append(f"documents pending: {pending}; lightrag-jsonl resume -w {folder}")
    words = None if report.documents or report.unchanged else nothing
    return Reply(report, words, INCOMPLETE if report.stopped else 0, notes, report.failures)


@index_command(click.argument("ids", nargs=-1, required=True), *models)
def delete(rag: LightRAG, ids: tuple[str, ...]) -> Reply:
    """Remove documents, as if they had never been inserted. No model is asked.

    If one of the IDS is unknown, nothing is removed; `documents` lists them.
    """
    return Reply(rag.delete(*ids))


@index_command()
def status(rag: LightRAG) -> Reply:
    """Show what the index holds and how reading went."""
    return Reply(rag.status())


@index_command()
def documents(rag: LightRAG) -> Reply:
    """List the documents, with their ids and states.

    The states are: done; partial (some chunks failed, or were read in part) and failed (all
    chunks failed), both for `retry`; pending (an insert was interrupted), for `resume`.
    """
    found = rag.documents()
    return Reply(found, table(found, "id", "state", "chunks", "characters", "title", "source"))


@index_command(click.argument("ids", nargs=-1))
def rejections(rag: LightRAG, ids: tuple[str, ...]) -> Reply:
    """List the refused lines of a model's answers.

    Of all documents, or of those with IDS. They show what the model gets wrong.
    """
    unknown = set(ids) - {document.id for document in rag.documents()}
    if unknown:
        raise NotFoundError(f"no such document: {', '.join(sorted(unknown))}")
    found = [
        {"document_id": document, "chunk_id": chunk, **asdict(line)}
        for document, chunk, line in rag.rejections(*ids)
    ]
    return Reply(found, table(found) or "no line was refused")
