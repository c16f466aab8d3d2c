"""`insert`, `retry`, `resume`, `delete`; `status`, `documents` and `rejections`."""

import glob
import itertools
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import click

from lightrag_jsonl import (
    ConfigError,
    Document,
    InsertReport,
    LightRAG,
    LightRAGError,
    NotFoundError,
)
from lightrag_jsonl.cli.group import INCOMPLETE, CommandOutput, command, index_command
from lightrag_jsonl.cli.options import (
    FILE_OR_FOLDER,
    NON_NEGATIVE,
    POSITIVE,
    Parameters,
    file_limit_options,
    further,
    limit_options,
    models,
    option,
    read_chunks,
    read_mode,
    read_stdin,
    reading_options,
    upgrade_options,
)
from lightrag_jsonl.cli.output import (
    confirm,
    emit,
    file_notes,
    in_words,
    money_words,
    one_line,
    priced_words,
    purged_notes,
    shown_path,
    skipped_notes,
    table,
)
from lightrag_jsonl.cli.watching import FileChanges, file_stamps, watched_changes
from lightrag_jsonl.cluster import connected_cluster, insert_on_ray
from lightrag_jsonl.core.claims import GraphDifference
from lightrag_jsonl.core.index_reports import FileNote, ReadingState, SkippedFile, Status
from lightrag_jsonl.core.options import ReadMode
from lightrag_jsonl.indexing.loading import (
    ADDRESS,
    IF_MEANT,
    NO_ADDRESS,
    load_documents,
    path_id,
)
from lightrag_jsonl.indexing.progress import progress_bars
from lightrag_jsonl.providers.addresses import remember_addresses
from lightrag_jsonl.providers.model_names import NO_MODEL
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import check_models, completed, given_addresses, open_index
from lightrag_jsonl.rag.settings import recorded_settings
from lightrag_jsonl.readers.limits import FileLimits
from lightrag_jsonl.text.numbers import natural_order
from lightrag_jsonl.text.strings import counted
from lightrag_jsonl.tools.estimate import estimate_upgrade

STDIN = "stdin"  # the title of a text without a name
NAMES_SHOWN = 5  # of what is new or gone
NOTE_COLUMNS = 160

InputDocument: TypeAlias = Path | Document


def find_sources(
    arguments: Sequence[str], *, allow_empty: bool | None = None
) -> InputDocument | list[InputDocument]:
    """The files and folders of arguments: paths, patterns, or - for a text from stdin.

    A single source is returned without a list, so that errors of reading are raised. With
    `allow_empty` a source may be missing; with False the error names the option to allow that.
    """
    sources: list[InputDocument] = []
    for argument in dict.fromkeys(arguments):
        if ADDRESS.fullmatch(argument.strip()):
            raise ConfigError(NO_ADDRESS.format(argument.strip()))
        if argument == "-":
            sources.append(Document(read_stdin(), title=STDIN))
        else:
            is_pattern = glob.has_magic(argument) and not Path(argument).exists()
            files = matching_files(argument) if is_pattern else []
            sources += files or [Path(argument)]
    first = sources[0]
    is_gone = len(sources) == 1 and isinstance(first, Path) and not first.exists()
    if is_gone and not allow_empty:  # before an index is created
        advice = "" if allow_empty is None else f". {IF_MEANT}"
        raise ConfigError(f"no such file: {first}{advice}")
    return first if len(sources) == 1 else sources


def matching_files(pattern: str) -> list[Path]:
    """The files matching a pattern, in order; links are skipped, as in a folder."""
    parts = Path(pattern).parts
    root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    paths = sorted(map(Path, glob.iglob(pattern, recursive=True)), key=natural_order)  # noqa: PTH207
    files: list[Path] = []
    links: list[SkippedFile] = []
    for path in paths:
        if not path.is_file():
            continue
        if path.resolve() == root.resolve() / path.relative_to(root):
            files.append(path)
        else:
            links.append(SkippedFile(str(path), "it is a link"))
    for note in skipped_notes(links):
        emit(note, err=True)
    return files


def full_ids(rag: LightRAG, arguments: Sequence[str], *, purge: bool = False) -> list[str]:
    """The full ids of documents; for the id of a file, a relative path will do.

    For a `purge`, documents held only by a snapshot count, too.
    """
    path_ids = {argument: path_id(Path(argument)) for argument in arguments}
    ids = [*path_ids, *path_ids.values()]
    stored_ids = rag.run(lambda loop_rag: loop_rag.engine.indexing.deletable_ids(ids, purge=purge))
    missing = [name for name, id in path_ids.items() if stored_ids.isdisjoint((name, id))]
    if missing:
        raise NotFoundError(f"no such document: {', '.join(missing)}; `documents` lists all ids")
    return [argument if argument in stored_ids else id for argument, id in path_ids.items()]


@command(
    click.argument("files", nargs=-1, required=True, type=FILE_OR_FOLDER),
    models,
    upgrade_options,
    option(
        "--sync",
        "Also remove documents whose files are gone.",
        is_flag=True,
    ),
    further(
        "--allow-empty",
        "With --sync: a folder without readable files, or one that is gone, is meant to be so, and all its "
        "documents are removed.",
        is_flag=True,
    ),
    further(
        "--watch",
        "Go on after the insert: files that are new or changed in the given folders are inserted, with --sync "
        "those that are gone are removed, until Ctrl-C.",
        is_flag=True,
    ),
    further("--ray", "Index on the Ray cluster at this address (HOST:6379, auto, local)."),
    further("--shard-characters", "With --ray: characters that a node reads at a time.", POSITIVE),
    read_mode,
    read_chunks,
    reading_options,
    limit_options,
    file_limit_options,
    option("--id", "The document's id (for one text)."),
    further("--restore-purged", "Bring back texts that were purged from the index.", is_flag=True),
)
def insert_command(
    setup: Setup,
    files: tuple[str, ...],
    id: str | None,
    sync: bool,
    allow_empty: bool,
    watch: bool,
    upgrade: bool,
    yes: bool,
    max_tokens: int | None,
    ray: str | None,
    shard_characters: int | None,
    read: ReadMode | None,
    file_limits: FileLimits,
    restore_purged: bool,
    index_options: Parameters,
) -> CommandOutput:
    """Read files, folders or a text from stdin (-) into an index.

    The index is made if there is none. Known documents are skipped; a known id (a file's is its
    path) with another text replaces the document. Kinds of files: docs/files.md. More options:
    `lightrag-jsonl help models`, `help reading`, `help limits`.

    \b
    Examples:
      lightrag-jsonl insert -w kb notes/ report.pdf
      lightrag-jsonl insert -w kb -l zh --llm qwen3:8b 三国演义.txt
    """
    _check_combination(click.get_current_context().params)
    sources = find_sources(files, allow_empty=allow_empty if sync else None)
    if id is not None:
        sources = _single_document(sources, id, file_limits, sees=_sees(setup))
    check_models(setup)
    watched = _watched_paths(sources) if watch else []
    look = partial(file_stamps, watched, file_limits, sees=watch and _sees(setup))
    first_stamps = look()
    cluster = nullcontext() if ray is None else _connected(ray)
    with cluster, open_index(setup, index_options, create=True) as rag:
        if ray is None:
            insert = partial(rag.insert, sync=sync, allow_empty=allow_empty, read=read)
        else:
            insert = partial(_insert_on_ray, rag, ray, setup, shard_characters, read)
        report = _reported(
            partial(insert, sources, file_limits=file_limits, restore_purged=restore_purged)
        )
        output = _output(rag, report, "no documents were inserted")
        if watch and not report.stopped:
            emit(f"inserted: {len(report.documents)}; watching, Ctrl-C ends", err=True)
            changes = watched_changes(look, first_stamps)
            with suppress(KeyboardInterrupt):  # the report names documents left pending by it
                for change in changes:
                    _insert_changes(rag, change, watched if sync else None, file_limits)
            return replace(output, notes=list(_report_notes(rag, report, rag.status(), "resume")))
        if not upgrade or report.stopped:
            return output
        return _joined_output(output, _upgraded(rag, setup, yes, max_tokens))


def _check_combination(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for options of `insert` that exclude each other."""
    if options["ray"] and (options["sync"] or options["upgrade"]):
        raise click.UsageError("--ray cannot be combined with --sync or --upgrade")
    if options["shard_characters"] and not options["ray"]:
        raise click.UsageError("--shard-characters belongs to --ray")
    if options["allow_empty"] and not options["sync"]:
        raise click.UsageError("--allow-empty belongs to --sync")
    if options["watch"] and (options["ray"] or options["upgrade"] or options["id"]):
        raise click.UsageError("--watch cannot be combined with --ray, --upgrade or --id")


def _joined_output(inserted: CommandOutput, upgraded: CommandOutput) -> CommandOutput:
    """The output of an insert with an upgrade."""
    return CommandOutput(
        value={"inserted": inserted.value, "upgraded": upgraded.value},
        status=upgraded.status,
        notes=list(dict.fromkeys([*inserted.notes, *upgraded.notes])),
        failures=[*inserted.failures, *upgraded.failures],
    )


def _sees(setup: Setup) -> bool:
    """Whether a model reads pictures."""
    return "see" in completed(setup, recorded_settings(setup.working_dir)).models


def _watched_paths(sources: InputDocument | list[InputDocument]) -> list[Path]:
    """The files and folders to watch; `UsageError` for a text."""
    all_sources = sources if isinstance(sources, list) else [sources]
    paths = [source for source in all_sources if isinstance(source, Path)]
    if not paths:
        raise click.UsageError("--watch needs files or folders")
    return paths


def _insert_changes(
    rag: LightRAG, changes: FileChanges, synced: Sequence[Path] | None, limits: FileLimits
) -> None:
    """Insert changed files, with `synced` folders remove deleted files, and print a report."""
    reports: list[InsertReport] = []
    try:
        if changes.changed:
            reports.append(rag.insert(list(changes.changed), file_limits=limits))
        if changes.removed and synced is not None:
            reports.append(rag.insert(list(synced), sync=True, file_limits=limits))
    except LightRAGError as error:
        emit(f"not inserted: {error}", err=True)
    for report in reports:
        for kind, ids in (("inserted", report.documents), ("removed", report.deleted)):
            for id in ids:
                emit(f"{kind}: {shown_path(id)}", err=True)
        for failure in report.failures:
            emit(f"not inserted: {failure.reason}", err=True)
        for note in file_notes(report.notes):
            emit(note, err=True)


def _single_document(
    sources: InputDocument | list[InputDocument], id: str, limits: FileLimits, *, sees: bool
) -> Document:
    """The only document of the sources, with the id given by --id."""
    items = load_documents(sources, limits=limits, sees=sees)
    loaded = [item for item in items if not isinstance(item, FileNote)]
    document = loaded[0] if len(loaded) == 1 else None
    if not isinstance(document, Document):
        raise click.UsageError(f"--id names one document, but {len(loaded)} were given")
    title = id if document.title == STDIN else document.title
    return replace(document, id=id, title=title)


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """A connection to a cluster, before an index is made. Ray reports itself, and dead nodes, on stdout,
    which is for the output of the command.
    """
    with redirect_stdout(sys.stderr), connected_cluster(address):
        yield


def _insert_on_ray(
    rag: LightRAG,
    address: str,
    setup: Setup,
    shard_characters: int | None,
    read: ReadMode | None,
    sources: InputDocument | list[InputDocument],
    *,
    file_limits: FileLimits,
    restore_purged: bool,
) -> InsertReport:
    if read is not None:
        rag.run(lambda loop_rag: loop_rag.engine.record_read_mode(read))
    with progress_bars(None) as progress:
        return rag.run(
            insert_on_ray,
            sources,
            address,
            setup=setup,
            shard_characters=shard_characters,
            progress=progress,
            file_limits=file_limits,
            restore_purged=restore_purged,
        )


@command(upgrade_options, models, limit_options)
def retry_command(
    setup: Setup,
    upgrade: bool,
    yes: bool,
    max_tokens: int | None,
    index_options: Mapping[str, Any] | None = None,
) -> CommandOutput:
    """Extract failed chunks once more, and complete partial ones.

    With --upgrade, the rest of an index that is read when it is asked is read: first the passages
    that questions found most often, then those with the most frequent names.

    The model is called only for missing results. Model and options are as in the last insert,
    unless changed here. More options: `lightrag-jsonl help models`, `help reading`, `help limits`.
    """
    with open_index(setup, index_options) as rag:
        if upgrade:
            return _upgraded(rag, setup, yes, max_tokens)
        return _output(rag, _reported(rag.retry), "no failed chunks", go_on="retry")


def _upgraded(
    rag: LightRAG, setup: Setup, yes: bool, max_tokens: int | None = None
) -> CommandOutput:
    """Estimate an upgrade, ask for confirmation, and do the upgrade."""
    estimate = rag.run(estimate_upgrade)
    cost = f"{counted(estimate.chunks, 'chunks')}, about {priced_words(rag, estimate.usage)}"
    if max_tokens is not None:
        cost += f", of which {max_tokens:,} tokens at most"
    if estimate.chunks and yes:
        emit(f"upgrade: {cost}", err=True)
    elif estimate.chunks:
        confirm(f"upgrade {cost}?")
    remember_addresses(setup.working_dir, given_addresses(setup))  # the index records the model
    report = _reported(partial(rag.retry, upgrade=True, max_tokens=max_tokens))
    return _output(rag, report, "nothing to upgrade", go_on="retry --upgrade")


@index_command(models, limit_options)
def resume_command(rag: LightRAG) -> CommandOutput:
    """Continue an interrupted insert.

    Files not yet read by the insert are not among the pending documents: repeat `insert` with the
    same files; finished documents cost nothing again.

    Model and options are as in the interrupted insert, unless changed here.
    """
    return _output(rag, _reported(rag.resume), "nothing is pending")


def _reported(change: Callable[[], InsertReport]) -> InsertReport:
    """The report on a change of the index, with the error if the change was stopped."""
    try:
        return change()
    except LightRAGError as error:
        if error.report is None:
            raise
        return error.report


def _output(
    rag: LightRAG, report: InsertReport, display_if_empty: str, *, go_on: str = "resume"
) -> CommandOutput:
    has_changed = report.documents or report.unchanged or report.deleted
    status = rag.status()
    return CommandOutput(
        value=report,
        display=_summary(rag, report, status) if has_changed else display_if_empty,
        status=INCOMPLETE if report.stopped else 0,
        notes=list(_report_notes(rag, report, status, go_on)),
        failures=report.failures,
    )


def _summary(rag: LightRAG, report: InsertReport, status: Status) -> str:
    """The results of a change in at most five lines: documents, contents, reader, losses, next steps."""
    extraction = report.extraction
    counts = {
        "read": len(report.documents),
        "known already": len(report.unchanged),
        "deleted": len(report.deleted),
    }
    documents = [f"{count:,} {change}" for change, count in counts.items() if count]
    losses = [
        (extraction.empty, "chunks", "without a name"),
        (extraction.partial, "chunks", "read in part"),
        (extraction.failed, "chunks", "failed"),
        (sum(extraction.rejections.values()), "lines", "of the model rejected"),
    ]
    told_losses = [f"{counted(count, nouns)} {loss}" for count, nouns, loss in losses if count]
    contents = (
        counted(report.chunks, "new chunks"),
        counted(report.entities, "entities"),
        counted(report.relations, "relations"),
    )
    folder = shlex.quote(str(rag.working_dir))
    lines = {
        "documents": ", ".join(documents),
        "index": ", ".join(contents),
        "read by": _reader_words(rag, report, status),
        "losses": ", ".join(told_losses),
        "next": f'lightrag-jsonl query -w {folder} "…"',
    }
    return "\n".join([f"{name:<11}{text}" for name, text in lines.items() if text])


def _reader_words(rag: LightRAG, report: InsertReport, status: Status) -> str:
    """The reader of the documents, and the cost; "" where nothing was read."""
    client = rag.engine.client
    if not (report.documents or report.usage.calls):
        return ""
    if not client.has_model("extract"):
        return "language rules, without a model (lightrag-jsonl help models)"
    model = client.model("extract").name
    if report.usage.calls:
        return f"{model}: {priced_words(rag, report.usage)}"
    if status.reading.read == "asked":
        return f"language rules; {model} reads what questions find"
    if report.chunks <= report.extraction.failed:
        return ""
    return f"{model}, from answers stored earlier"


def _report_notes(rag: LightRAG, report: InsertReport, status: Status, go_on: str) -> Iterator[str]:
    """The losses of a change, and the commands to go on with."""
    folder = rag.working_dir
    yield from skipped_notes(report.skipped)
    yield from file_notes(report.notes)
    yield from purged_notes(report.purged)
    if report.extraction.rejections:
        yield f"rejected lines: lightrag-jsonl rejections -w {folder}"
    if report.difference is not None:
        yield from _difference_notes(report.difference)
    if report.shortened:
        chunks = counted(len(report.shortened), "chunks")
        yield f"too long for the embedder, which read only the beginning: {chunks}"
    if report.stopped:
        yield f"{report.stopped}; continue with: lightrag-jsonl {go_on} -w {folder}"
        return
    if pending := status.documents.get("pending"):
        yield f"documents pending: {pending}; lightrag-jsonl resume -w {folder}"
    if status.reading.read == "all" and status.reading.chunks_unread and status.llm != NO_MODEL:
        chunks = counted(status.reading.chunks_unread, "chunks")
        upgrade = f"lightrag-jsonl retry --upgrade -w {folder}"
        yield f"read by language rules: {chunks}; to read them with {status.llm}: {upgrade}"


def _difference_notes(difference: GraphDifference) -> Iterator[str]:
    """Lines on new, removed and contradicted parts of the graph, with the first names."""
    for change, entities, relations in (
        ("new", difference.new_entities, difference.new_relations),
        ("gone", difference.gone_entities, difference.gone_relations),
    ):
        if entities or relations:
            names = [*entities[:NAMES_SHOWN], *map(" – ".join, relations[:NAMES_SHOWN])]
            listed = ", ".join(names)
            entity_count = counted(len(entities), "entities")
            relation_count = counted(len(relations), "relations")
            note = f"{change}: {entity_count}, {relation_count}: {listed}"
            yield one_line(note, NOTE_COLUMNS)
    for conflict in difference.new_conflicts[:NAMES_SHOWN]:
        claims = [f"{claim.text} ({claim.document})" for claim in (conflict.first, conflict.second)]
        yield f"contradicted: {conflict.subject}: {one_line(' / '.join(claims))}"
    if len(difference.new_conflicts) > NAMES_SHOWN:
        yield f"contradicted: {len(difference.new_conflicts):,} in all; `lightrag-jsonl conflicts` lists them"


@index_command(
    click.argument("ids", nargs=-1),
    option(
        "--purge",
        "Also remove their text from the files, cached answers and traces, and rewrite the database. "
        "Without IDS: for documents deleted earlier.",
        is_flag=True,
    ),
    models,
)
def delete_command(rag: LightRAG, ids: tuple[str, ...], purge: bool) -> CommandOutput:
    """Delete documents, as if they had never been inserted. No model is called.

    If one of the IDS is unknown, nothing is removed; `documents` lists the ids.
    """
    if not ids and not purge:
        raise click.UsageError("name the documents to delete; `documents` lists the ids")
    return CommandOutput(rag.delete(*full_ids(rag, ids, purge=purge), purge=purge))


@index_command()
def status_command(rag: LightRAG) -> CommandOutput:
    """Show the contents and the reader of the index."""
    status = rag.status()
    figures = status
    if status.reading.read == "all" and not status.reading.questions:
        figures = replace(status, reading=ReadingState())  # says nothing where no question reads
    notes: list[str] = []
    if money := money_words(rag, status.extraction.usage).removeprefix(", "):
        notes.append(f"spent on extraction: {money} (descriptions and answers are not counted)")
    return CommandOutput(status, in_words(figures), notes=notes)


@index_command(
    option("-n --limit", "The maximum number.", POSITIVE),
    option("--offset", "Skip the first.", NON_NEGATIVE, default=0),
)
def documents_command(rag: LightRAG, limit: int | None, offset: int) -> CommandOutput:
    """List the documents, with their ids and states.

    The states are: done; partial (some chunks failed or are incomplete) and failed (all
    chunks failed), both for `retry`; pending (an insert was interrupted), for `resume`.
    """
    documents = rag.documents(limit=limit, offset=offset)
    rows = [replace(document, id=shown_path(document.id)) for document in documents]
    display = table(
        rows, "id", "state", "title", "chunks", "characters", "source", "content_keywords"
    )
    return CommandOutput(documents, display)


@index_command(click.argument("ids", nargs=-1))
def rejections_command(rag: LightRAG, ids: tuple[str, ...]) -> CommandOutput:
    """List the rejected lines of the model's answers.

    Of all documents, or of the documents with these IDS. The lines show the mistakes of the model.
    """
    rows: list[dict[str, object]] = []
    for document_id, chunk_id, line in rag.rejections(*full_ids(rag, ids)):
        place = {"document_id": document_id, "chunk_id": chunk_id}
        rows.append({**place, **asdict(line)})
    return CommandOutput(rows, table(rows) or "no lines were rejected")
