"""`insert`, `retry`, `resume`, `delete`; `status`, `documents` and `rejections`."""

import glob
import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl import (
    ConfigError,
    Document,
    FileNote,
    InsertReport,
    LightRAG,
    LightRAGError,
    NotFoundError,
    SkippedFile,
)
from lightrag_jsonl.cli.group import INCOMPLETE, Reply, command, index_command
from lightrag_jsonl.cli.options import (
    COUNT,
    NUMBER,
    file_limit_options,
    limit_options,
    models,
    option,
    reading_options,
    take_file_limits,
)
from lightrag_jsonl.cli.output import cost_words, emit, file_notes, skipped_notes, table
from lightrag_jsonl.cluster import insert_on_ray
from lightrag_jsonl.core.encoding import decoded
from lightrag_jsonl.indexing.loading import Given, load_documents, path_id
from lightrag_jsonl.indexing.progress import progress_bars
from lightrag_jsonl.providers.configured import Setup
from lightrag_jsonl.rag.opening import open_index
from lightrag_jsonl.tools.estimate import estimate_upgrade


def find_sources(arguments: Sequence[str]) -> Given | list[Given]:
    """Files, folders, patterns and - for stdin; a single one not in a list, so its errors are raised."""
    found: list[Given] = []
    for argument in dict.fromkeys(arguments):
        if not argument.strip():  # for example from an unset shell variable
            raise click.UsageError("the name of a file is empty")
        if argument == "-":
            found.append(Document(read_stdin(), title="stdin"))
        else:
            is_pattern = glob.has_magic(argument) and not Path(argument).exists()
            found += (matching_files(argument) if is_pattern else []) or [Path(argument)]
    first = found[0]
    if len(found) == 1 and isinstance(first, Path) and not first.exists():
        raise ConfigError(f"no such file: {first}")  # before an index is created
    return first if len(found) == 1 else found


def matching_files(pattern: str) -> list[Path]:
    """The files that a pattern matches, in order; not what lies behind links, as in a folder."""
    parts = Path(pattern).parts
    root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    paths = map(Path, sorted(glob.iglob(pattern, recursive=True)))  # noqa: PTH207
    files = [path for path in paths if path.is_file()]
    skipped = [path for path in files if path.resolve() != root.resolve() / path.relative_to(root)]
    for note in skipped_notes([SkippedFile(str(path), "it is a link") for path in skipped]):
        emit(note, err=True)
    return [path for path in files if path not in skipped]


def known_ids(rag: LightRAG, given: Sequence[str]) -> list[str]:
    """Ids of documents in full, of which that of a file may be given as a path from here."""
    paths = {one: path_id(Path(one)) for one in given}
    with rag._store.reader() as reader:
        known = {one.id for one in reader.documents([*paths, *paths.values()])}
        known |= {one.document.id or "" for one in reader.pending()}
    if unknown := [one for one, path in paths.items() if known.isdisjoint((one, path))]:
        raise NotFoundError(f"no such document: {', '.join(unknown)}; `documents` lists them")
    return [one if one in known else path for one, path in paths.items()]


def read_stdin() -> str:
    """All of stdin, decoded like a text file."""
    return decoded(sys.stdin.buffer.read(), "stdin")


upgrade_options = (
    option(
        "--upgrade",
        "Also extract again what was extracted without a model, with another model or with an older "
        "prompt; prints an estimate first. A chunk that fails keeps its earlier result.",
        is_flag=True,
    ),
    option("--yes", "Start the upgrade without confirmation.", is_flag=True),
)


@command(
    click.argument("files", nargs=-1, required=True),
    *upgrade_options,
    option("--sync", "Remove documents whose files are gone from the given folders.", is_flag=True),
    option("--ray", "Index on the Ray cluster at this address (HOST:6379, auto, local)."),
    *models,
    *reading_options,
    *limit_options,
    *file_limit_options,
    option("--id", "The document's id (for one text)."),
)
def insert(
    setup: Setup,
    files: tuple[str, ...],
    id: str | None,
    sync: bool,
    upgrade: bool,
    yes: bool,
    ray: str | None,
    **options: Any,
) -> Reply:
    """Index texts; the index is created if there is none.

    FILES are files (.txt, .md, .rst, .org, .tex, .ipynb, .eml, .csv, .tsv, .json, .jsonl; with the extra
    `files` .pdf, .docx, .pptx, .xlsx, .html, .xml and .epub; also as .gz), folders, quoted patterns, or - for stdin. A line of a .jsonl
    file is a text, or an object with "text" and optionally "id", "title", "date", "source" and
    other metadata to filter by. A text that is in the index already is skipped; a document with a
    known id and a different text replaces the old one. The id of a file is its path.

    With --ray, each node of a cluster indexes some of the documents (docs/scale.md), with the models
    of its own settings, or those at --base-url, where localhost is the node itself.

    \b
    Examples:
      lightrag-jsonl insert -w kb --language zh 三国演义.txt
      lightrag-jsonl insert -w kb 'notes/**/*.md' papers/
      cat notes/*.txt | lightrag-jsonl insert -w kb --id notes -
      lightrag-jsonl insert -w kb --llm gpt-4o-mini --embedder st:BAAI/bge-m3 book.txt
      lightrag-jsonl insert -w kb --llm qwen3 --ray auto --base-url http://localhost:8000/v1 books/
    """
    if ray is not None and (sync or upgrade):
        raise click.UsageError("--ray cannot be combined with --sync or --upgrade")
    sources = find_sources(files)
    limits = take_file_limits(options)
    if id is not None:
        loaded = [
            item
            for item in load_documents(sources, limits=limits)
            if not isinstance(item, FileNote)
        ]
        if len(loaded) != 1 or not isinstance(loaded[0], Document):
            raise click.UsageError(f"--id names one document, but {len(loaded)} were given")
        sources = replace(loaded[0], id=id)
    with open_index(setup, options, create=True) as rag:
        if ray is None:
            report = _reported(partial(rag.insert, sources, sync=sync, file_limits=limits))
        else:  # it reports dead nodes on stdout
            with progress_bars(None) as progress, redirect_stdout(sys.stderr):
                on_ray = partial(insert_on_ray, setup=setup, progress=progress, file_limits=limits)
                report = _reported(partial(rag.run, on_ray, sources, ray))
        reply = _reply(rag, report, "no documents were inserted")
        if not upgrade or report.stopped:
            return reply
        after = _upgraded(rag, yes)
        both, failures = (*reply.notes, *after.notes), (*reply.failures, *after.failures)
        value = {"inserted": report, "upgraded": after.value}
        return Reply(value, None, after.status, list(dict.fromkeys(both)), failures)


@index_command(*upgrade_options, *models, *limit_options)
def retry(rag: LightRAG, upgrade: bool, yes: bool) -> Reply:
    """Extract failed chunks once more, and complete partial ones.

    The model is called for what is missing only. Model and options are those of the last
    insert, unless others are given.
    """
    if upgrade:
        return _upgraded(rag, yes)
    return _reply(rag, _reported(rag.retry), "no failed chunks", go_on="retry")


def _upgraded(rag: LightRAG, yes: bool) -> Reply:
    """Estimate an upgrade, ask for confirmation, and make it."""
    found = rag.run(estimate_upgrade)
    cost = f"{found.chunks:,} chunks, about {cost_words(found.usage)}"
    if found.chunks and yes:
        emit(f"upgrade: {cost}", err=True)
    elif found.chunks:
        click.confirm(f"upgrade {cost}?", abort=True, err=True)
    report = _reported(partial(rag.retry, upgrade=True))
    return _reply(rag, report, "nothing to upgrade", go_on="retry --upgrade")


@index_command(*models, *limit_options)
def resume(rag: LightRAG) -> Reply:
    """Continue an interrupted insert.

    Model and options are those of that insert, unless others are given.
    """
    return _reply(rag, _reported(rag.resume), "nothing is pending")


def _reported(change: Callable[[], InsertReport]) -> InsertReport:
    """What a change of the index did, also if an error stopped it, which the report then names."""
    try:
        return change()
    except LightRAGError as error:
        if error.report is None:
            raise
        return error.report


def _reply(rag: LightRAG, report: InsertReport, nothing: str, go_on: str = "resume") -> Reply:
    notes: list[str] = []
    folder = rag.working_dir
    notes += skipped_notes(report.skipped)
    notes += file_notes(report.notes)
    if report.extraction.rejections:
        notes.append(f"rejected lines: lightrag-jsonl rejections -w {folder}")
    if report.shortened:
        chunks = len(report.shortened)
        notes.append(f"{chunks} chunks are too long for the embedder: it read their beginning only")
    if report.stopped:
        notes.append(f"{report.stopped}; continue with: lightrag-jsonl {go_on} -w {folder}")
    elif pending := rag.status().documents.get("pending"):
        notes.append(f"documents pending: {pending}; lightrag-jsonl resume -w {folder}")
    words = None if report.documents or report.unchanged or report.deleted else nothing
    return Reply(report, words, INCOMPLETE if report.stopped else 0, notes, report.failures)


@index_command(
    click.argument("ids", nargs=-1),
    option(
        "--purge",
        "Also remove their text from the files, cached answers and traces, and rewrite the database. "
        "Without IDS: for documents deleted earlier.",
        is_flag=True,
    ),
    *models,
)
def delete(rag: LightRAG, ids: tuple[str, ...], purge: bool) -> Reply:
    """Delete documents, as if they had never been inserted. No model is called.

    If one of the IDS is unknown, nothing is removed; `documents` lists them.
    """
    if not ids and not purge:
        raise click.UsageError("name the documents to delete; `documents` lists them")
    return Reply(rag.delete(*known_ids(rag, ids), purge=purge))


@index_command()
def status(rag: LightRAG) -> Reply:
    """Show the contents of the index and extraction statistics."""
    return Reply(rag.status())


@index_command(
    option("-n --limit", "The maximum number.", NUMBER),
    option("--offset", "Skip the first.", COUNT, default=0),
)
def documents(rag: LightRAG, limit: int | None, offset: int) -> Reply:
    """List the documents, with their ids and states.

    The states are: done; partial (some chunks failed or are incomplete) and failed (all
    chunks failed), both for `retry`; pending (an insert was interrupted), for `resume`.
    """
    found = rag.documents(limit=limit, offset=offset)
    return Reply(found, table(found, "id", "state", "chunks", "characters", "title", "source"))


@index_command(click.argument("ids", nargs=-1))
def rejections(rag: LightRAG, ids: tuple[str, ...]) -> Reply:
    """List the rejected lines of the model's answers.

    Of all documents, or of those with IDS. They show what the model gets wrong.
    """
    found = [
        {"document_id": document, "chunk_id": chunk, **asdict(line)}
        for document, chunk, line in rag.rejections(*known_ids(rag, ids))
    ]
    return Reply(found, table(found) or "no lines were rejected")
