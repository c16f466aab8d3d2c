"""`estimate`, `batch`, `copy`, `import`, `export`, `merge`, `split`: texts, graphs and indexes."""

import json
import tempfile
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl import LightRAG, StorageError
from lightrag_jsonl.cli.documents import find_sources, known_ids
from lightrag_jsonl.cli.group import INCOMPLETE, Reply, command, index_command, main
from lightrag_jsonl.cli.options import FILE, FOLDER, TARGET, models, option, reading_options
from lightrag_jsonl.cli.output import one_line, skipped_notes
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.indexing.progress import progress_bars
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.export import SUFFIXES, GraphFormat
from lightrag_jsonl.rag.opening import open_index
from lightrag_jsonl.rag.settings import adopt_settings, recorded_settings
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.tools.batch import export_batch, import_batch
from lightrag_jsonl.tools.copying import copy_index
from lightrag_jsonl.tools.estimate import estimate as estimate_documents
from lightrag_jsonl.tools.importer import import_index, read_folder

SHOWN = 20


@command(click.argument("files", nargs=-1, required=True), *models, *reading_options)
def estimate(setup: Setup, files: tuple[str, ...], **options: Any) -> Reply:
    """Estimate the cost of indexing FILES with a model.

    No model is called, nothing is stored. Chunks, calls and input tokens come from the real
    prompts; output tokens from a rule fitted to recorded answers. Answers that the index in
    --working-dir (if there is one) has cached cost nothing. Batches usually cost half.
    """
    sources = find_sources(files)
    is_new = recorded_settings(setup.working_dir) is None
    with tempfile.TemporaryDirectory() as scratch:
        if is_new:
            setup = replace(setup, working_dir=Path(scratch), embedder="hash")
        with open_index(setup, options, create=is_new) as rag:
            found = rag.run(estimate_documents, sources)
    return Reply({**asdict(found), "total": found.usage}, failures=found.failures)


@main.group()
def batch() -> None:
    """Extract with the batch API of a provider.

    Many providers charge half for this, and the model's machine may be offline. `batch export`
    writes the requests in OpenAI's batch format, which other providers and `vllm run-batch`
    take as well; `batch import` reads the results. Gleaning and summaries are further rounds:
    export and import again until nothing is left.

    \b
      lightrag-jsonl batch export books/ -o requests.jsonl -w kb --llm gpt-4o-mini
      … upload requests.jsonl to the provider, wait, download results.jsonl …
      lightrag-jsonl batch import results.jsonl -w kb
      lightrag-jsonl batch export -o requests.jsonl -w kb
    """


@command(
    click.argument("files", nargs=-1),
    option("-o --output", "The requests.", TARGET, required=True),
    *models,
    *reading_options,
    option("--reasoning", "Use the parameters of reasoning models.", is_flag=True),
    name="export",
    group=batch,
)
def export_requests(
    setup: Setup, files: tuple[str, ...], output: Path, reasoning: bool, **options: Any
) -> Reply:
    """Write the requests of the next round, after adding FILES, if any, to the pending documents.

    FILES are as for `insert`. A document can be queried once all its answers are imported.
    """
    sources = find_sources(files) if files else []
    with open_index(setup, options, create=bool(files)) as rag:
        report = rag.run(export_batch, output, sources, reasoning=reasoning)
    notes = list(skipped_notes(report.skipped))
    return Reply(report, notes=notes, failures=report.failures)


@index_command(
    click.argument("results", nargs=-1, required=True, type=FILE),
    *models,
    option("--finish", "Mark chunks without an answer as failed, for `retry`.", is_flag=True),
    name="import",
    group=batch,
)
def import_results(rag: LightRAG, results: tuple[Path, ...], finish: bool) -> Reply:
    """Read the RESULTS of a batch (and its error files), in any order, as often as you like.

    The next export repeats the requests whose results are missing or failed.
    """
    report = rag.run(import_batch, results, finish=finish)
    failed = [f"{request[:16]}: {one_line(why)}" for request, why in report.failed[:SHOWN]]
    status = INCOMPLETE if report.missing or report.unreadable else 0
    return Reply(report, None, status, failed, report.inserted.failures)


@command(click.argument("source"), click.argument("target"))
def copy(source: str, target: str) -> Reply:
    """Copy the index in SOURCE to TARGET, which must be empty.

    Both are folders or PostgreSQL URLs. No model is called. A copy that is interrupted leaves the
    target empty, and can be started again.
    """
    with progress_bars(None) as progress:
        return Reply(copy_index(source, target, progress=progress))


@command(click.argument("folder", type=FOLDER), *models, name="import")
def import_folder(setup: Setup, folder: Path) -> Reply:
    """Import an index of LightRAG or nano-graphrag.

    FOLDER is its working directory. Its documents, chunks, entities and relations are imported
    with their descriptions and sources; no model is called. New vectors are made by --embedder.
    What has no counterpart is listed.
    """
    read_folder(folder)  # fails before an index is created
    create = recorded_settings(setup.working_dir) is None
    with open_index(setup, create=create) as rag:
        report = rag.run(import_index, folder)
    return Reply(report, notes=report.not_imported[:SHOWN], failures=report.failures)


@index_command(
    click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-"),
    option(
        "-f --format format_",
        "By default that of FILE's suffix; of stdout, graphml.",
        click.Choice(list(dict.fromkeys(SUFFIXES.values()))),
    ),
)
def export(rag: LightRAG, file: str, format_: GraphFormat | None) -> Reply:
    """Write the graph, or the records behind it, to FILE or stdout.

    The suffixes are .graphml, .json, .csv, .nq (N-Quads), .cypher, .html (a page that shows the
    entities with most relations) and .jsonl: the records of the chunks, in the form of the prompt
    extract-graph, with their document's id and their chunk's number, so that `insert_records` of
    the Python package can read them.
    """
    if file == "-":
        text = rag.admin.export_text(format_ or "graphml")
        return Reply(json.loads(rag.admin.export_text("json")), text.encode())
    return Reply({"file": file, "format": rag.admin.export(file, format=format_)})


@command(
    click.argument("indexes", nargs=-1, required=True),
    *models,
    option("--summarize", "Then let the model write the summaries that are due.", is_flag=True),
)
def merge(setup: Setup, indexes: tuple[str, ...], summarize: bool) -> Reply:
    """Merge other INDEXES into that of --working-dir, or a new one.

    The result is the same as inserting their documents there, with their edits by hand and merges
    of names. No model is called; cached answers are copied. Documents that are there already are
    skipped, so an interrupted merge continues when it is started again.

    \b
    Example:
      lightrag-jsonl merge part-1 part-2 -w all
    """
    found = {one: recorded_settings(as_address(one)) for one in indexes}
    if missing := [one for one, settings in found.items() if settings is None]:
        raise StorageError(f"no index in {', '.join(missing)}", path=missing[0])
    if recorded_settings(setup.working_dir) is None:
        with closing(open_store(setup.working_dir)) as store:
            adopt_settings(store, found[indexes[0]] or {})
    with open_index(setup) as rag:
        report = rag.merge_from(*indexes)
        if summarize:
            return Reply({"merged": report, "summaries": rag.admin.summarize()})
    notes = [
        (report.summaries_due, "summaries are due; --summarize writes them"),
        (report.pending, "pending documents were not merged; `resume` them and merge again"),
    ]
    return Reply(report, notes=[f"{count:,} {words}" for count, words in notes if count])


@index_command(
    click.argument("ids", nargs=-1, required=True),
    option("--into", "The folder or PostgreSQL URL of the new index.", required=True),
    option("--remove", "Remove the documents here once they are there.", is_flag=True),
)
def split(rag: LightRAG, ids: tuple[str, ...], into: str, remove: bool) -> Reply:
    """Make a new index of the documents with these IDS.

    They stay in this index, too, unless --remove is given. `documents` lists the ids.
    """
    return Reply(rag.split(known_ids(rag, ids), into, remove=remove))
