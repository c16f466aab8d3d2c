"""`estimate`, `batch`, `copy`, `import`, `export`, `merge`, `split`: texts, graphs and indexes."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Final, get_args

import click

from lightrag_jsonl import LightRAG, StorageError
from lightrag_jsonl.cli.documents import find_sources, full_ids
from lightrag_jsonl.cli.group import INCOMPLETE, CommandOutput, command, index_command, main
from lightrag_jsonl.cli.options import (
    DIRECTORY,
    FILE,
    FILE_OR_FOLDER,
    TARGET,
    Parameters,
    models,
    option,
    reading_options,
    restore_purged,
    together,
)
from lightrag_jsonl.cli.output import one_line, purged_notes, skipped_notes
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.types import ModelTask
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.export.graph_formats import GraphFormat
from lightrag_jsonl.indexing.progress import progress_bars
from lightrag_jsonl.providers.openai_batches import ProviderBatch
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import check_models, open_index
from lightrag_jsonl.rag.settings import adopt_settings, recorded_settings
from lightrag_jsonl.rag.splitting import check_addition
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.text.strings import counted
from lightrag_jsonl.tools.batch import export_batch, import_batch
from lightrag_jsonl.tools.batch_run import POLL_SECONDS, run_batch
from lightrag_jsonl.tools.copying import copy_index
from lightrag_jsonl.tools.estimate import Estimate
from lightrag_jsonl.tools.estimate import estimate as estimate_documents
from lightrag_jsonl.tools.importer import import_index, read_folder
from lightrag_jsonl.tools.prices import Cost, ModelPrice, cost_of, read_prices

MAX_NOTES: Final = 20

requests_options = together(
    click.argument("files", nargs=-1, type=FILE_OR_FOLDER),
    models,
    reading_options,
    option("--reasoning", "Use the parameters of reasoning models.", is_flag=True),
    restore_purged,
)


@command(
    click.argument("files", nargs=-1, required=True, type=FILE_OR_FOLDER),
    models,
    reading_options,
    option("--prices", "A TOML or JSON file with the prices of models.", FILE),
)
def estimate_command(
    setup: Setup, files: tuple[str, ...], prices: Path | None, index_options: Parameters
) -> CommandOutput:
    """Estimate the cost of indexing FILES with a model.

    No model is called, nothing is stored. Chunks, calls and input tokens come from the real
    prompts; output tokens from a rule fitted to recorded answers. Answers that the index in
    --working-dir (if there is one) has cached cost nothing. Batches usually cost half.

    Prices come from --prices, or else from the package genai-prices, if it is installed. They are for
    a million tokens:

    \b
      {"gpt-4o-mini": {"input": 0.15, "cached_input": 0.075, "output": 0.6,
                       "currency": "USD"}}
    """
    price_by_model = read_prices(prices) if prices is not None else {}
    sources = find_sources(files)
    is_new = recorded_settings(setup.working_dir) is None
    with tempfile.TemporaryDirectory() as scratch:
        if is_new:
            setup = replace(setup, working_dir=Path(scratch), embedder="hash")
        with open_index(setup, index_options, create=is_new) as rag:
            estimate = rag.run(estimate_documents, sources)
            costs = _costs(rag, estimate, price_by_model)
    value = {**asdict(estimate), "total": estimate.usage, **costs}
    return CommandOutput(value, failures=estimate.failures)


def _costs(
    rag: LightRAG, estimate: Estimate, price_by_model: Mapping[str, ModelPrice]
) -> dict[str, str]:
    """The cost in money by the model of each task, or a note on an unknown price; and the sum, where all are
    known in one currency.
    """
    usages: dict[ModelTask, Usage] = {
        "extract": estimate.extraction,
        "summarize": estimate.summaries,
        "see": estimate.seeing,
    }
    words: dict[str, str] = {}
    costs: list[Cost] = []
    for task, usage in usages.items():
        if not rag.engine.client.has_model(task) or not usage.calls:
            continue
        model = rag.engine.client.model(task).name
        cost = cost_of(usage, model, price_by_model)
        if cost is None:
            advice = "give --prices, or install '.[prices]'"
            words[f"cost_{task}"] = f"not known, since no price of {model} is: {advice}"
        else:
            prices = f"({model}, prices: {cost.prices_from})"
            words[f"cost_{task}"] = f"{cost.amount:,.4f} {cost.currency} {prices}"
            costs.append(cost)
    are_known = len(costs) == len(words)
    currencies = {cost.currency for cost in costs}
    if len(words) > 1 and are_known and len(currencies) == 1:
        total = sum(cost.amount for cost in costs)
        words["cost_total"] = f"{total:,.4f} {costs[0].currency}"
    return words


@main.group()
def batch_group() -> None:
    """Extract with the batch API of a provider.

    Many providers charge half for this, and the model's machine may be offline. `batch run` does
    everything at a provider with OpenAI's batch API. Elsewhere, `batch export` writes the requests in OpenAI's batch format, which other providers and `vllm run-batch`
    take as well; `batch import` reads the results. Gleaning and summaries are further rounds:
    export and import again until nothing is left.

    \b
      lightrag-jsonl batch run books/ -w kb --llm gpt-4o-mini
    \b
      lightrag-jsonl batch export books/ -o requests.jsonl -w kb --llm gpt-4o-mini
      … upload requests.jsonl to the provider, wait, download results.jsonl …
      lightrag-jsonl batch import results.jsonl -w kb
      lightrag-jsonl batch export -o requests.jsonl -w kb
    """


@command(
    requests_options,
    option(
        "--poll-seconds",
        f"Seconds between two looks at a batch (default {POLL_SECONDS:.0f}).",
        click.FloatRange(min=0),
        default=POLL_SECONDS,
    ),
    name="run",
    group=batch_group,
)
def run_batches(
    setup: Setup,
    files: tuple[str, ...],
    reasoning: bool,
    restore_purged: bool,
    poll_seconds: float,
    index_options: Parameters,
) -> CommandOutput:
    """Index FILES by batches of the model's provider, and wait until all are answered.

    That may take a day. A run that was interrupted goes on when it is started again, also without
    FILES, and nothing is submitted twice.
    """
    sources = find_sources(files) if files else []
    check_models(setup)
    with open_index(setup, index_options, create=bool(files)) as rag:
        report = rag.run(
            run_batch,
            sources,
            reasoning=reasoning,
            restore_purged=restore_purged,
            poll_seconds=poll_seconds,
            show=_show_batch,
        )
    notes = [
        *skipped_notes(report.skipped),
        *purged_notes(report.purged),
        *_failed_requests(report.failed),
    ]
    return CommandOutput(
        value=report,
        status=INCOMPLETE if report.failed else 0,
        notes=notes,
        failures=report.failures,
    )


def _show_batch(batch: ProviderBatch) -> None:
    answered = batch.answered + batch.failed
    total = counted(batch.total, "requests")
    click.echo(f"{batch.id}: {batch.state}, {answered:,} of {total}", err=True)


def _failed_requests(failed: Sequence[tuple[str, str]]) -> list[str]:
    """The first requests without an answer, with the reasons."""
    notes: list[str] = []
    for request, reason in failed[:MAX_NOTES]:
        notes.append(f"{request[:16]}: {one_line(reason)}")
    return notes


@command(
    requests_options,
    option("-o --output", "The requests.", TARGET, required=True),
    name="export",
    group=batch_group,
)
def export_requests(
    setup: Setup,
    files: tuple[str, ...],
    output: Path,
    reasoning: bool,
    restore_purged: bool,
    index_options: Parameters,
) -> CommandOutput:
    """Write the requests of the next round, after adding FILES, if any, to the pending documents.

    FILES are as for `insert`. A document can be queried once all its answers are imported.
    """
    sources = find_sources(files) if files else []
    with open_index(setup, index_options, create=bool(files)) as rag:
        export = partial(export_batch, reasoning=reasoning, restore_purged=restore_purged)
        report = rag.run(export, output, sources)
    notes = [*skipped_notes(report.skipped), *purged_notes(report.purged)]
    return CommandOutput(report, notes=notes, failures=report.failures)


@index_command(
    click.argument("results", nargs=-1, required=True, type=FILE),
    models,
    option("--finish", "Mark chunks without an answer as failed, for `retry`.", is_flag=True),
    name="import",
    group=batch_group,
)
def import_results(rag: LightRAG, results: tuple[Path, ...], finish: bool) -> CommandOutput:
    """Read the RESULTS of a batch (and its error files), in any order, as often as you like.

    The next export repeats the requests whose results are missing or failed.
    """
    report = rag.run(import_batch, results, finish=finish)
    return CommandOutput(
        value=report,
        status=INCOMPLETE if report.missing or report.unreadable else 0,
        notes=_failed_requests(report.failed),
        failures=report.inserted.failures,
    )


@command(
    click.argument("source", type=FILE_OR_FOLDER), click.argument("target", type=FILE_OR_FOLDER)
)
def copy_command(source: str, target: str) -> CommandOutput:
    """Copy the index in SOURCE to TARGET, which must be empty.

    Both are folders or PostgreSQL URLs. No model is called. A copy that is interrupted leaves the
    target empty, and can be started again.
    """
    with progress_bars(None) as progress:
        return CommandOutput(copy_index(source, target, progress=progress))


@command(click.argument("folder", type=DIRECTORY), models, restore_purged)
def import_command(setup: Setup, folder: Path, restore_purged: bool) -> CommandOutput:
    """Import an index of LightRAG or nano-graphrag.

    FOLDER is the working directory of LightRAG or nano-graphrag. Documents, chunks, entities and
    relations are imported with descriptions and sources; no model is called. New vectors are made by
    --embedder. Data without a counterpart is listed.
    """
    read_folder(folder)  # fails before an index is created
    check_models(setup)
    create = recorded_settings(setup.working_dir) is None
    with open_index(setup, create=create) as rag:
        report = rag.run(import_index, folder, restore_purged=restore_purged)
    notes = [*report.not_imported[:MAX_NOTES], *purged_notes(report.purged)]
    return CommandOutput(report, notes=notes, failures=report.failures)


@index_command(
    click.argument("file", type=FILE_OR_FOLDER, default="-"),
    option(
        "-f --format graph_format",
        "By default that of FILE's suffix; of stdout, graphml.",
        click.Choice(get_args(GraphFormat)),
    ),
)
def export_command(rag: LightRAG, file: str, graph_format: GraphFormat | None) -> CommandOutput:
    """Write the graph, or the records behind it, to FILE or stdout.

    The suffixes are .graphml, .json, .csv, .nq (N-Quads), .cypher, .html (a page that shows the
    entities with most relations) and .jsonl: the records of the chunks, in the form of the prompt
    extract-graph, with the id of the document and the number of the chunk, for `insert_records` of
    the Python package.

    A FILE without a suffix is a folder for a wiki: linked Markdown pages of entities, communities and
    documents, each sentence with its place in the sources. The next export writes what changed.

    \b
      lightrag-jsonl export -w kb wiki/
    """
    if file == "-":
        if click.get_current_context().params["as_json"]:
            return CommandOutput(json.loads(rag.admin.export_text("json")))
        text = rag.admin.export_text(graph_format or "graphml")
        return CommandOutput(text, text.encode())
    written_format = rag.admin.export(file, format=graph_format)
    return CommandOutput({"file": file, "format": written_format})


@command(
    click.argument("indexes", nargs=-1, required=True, type=FILE_OR_FOLDER),
    models,
    option("--summarize", "Then let the model write the summaries that are due.", is_flag=True),
    restore_purged,
)
def merge_command(
    setup: Setup, indexes: tuple[str, ...], summarize: bool, restore_purged: bool
) -> CommandOutput:
    """Merge other INDEXES into that of --working-dir, or a new one.

    The result is the same as inserting all documents, with all edits by hand and merges of names. No
    model is called; cached answers are copied. Documents that the index has already are skipped, so
    an interrupted merge continues when started again. Documents that were purged from it stay out.

    \b
    Example:
      lightrag-jsonl merge part-1 part-2 -w all
    """
    addresses = [as_address(index) for index in dict.fromkeys(indexes)]
    settings_by_index = {address: recorded_settings(address) for address in addresses}
    missing = [str(address) for address, settings in settings_by_index.items() if settings is None]
    if missing:
        raise StorageError(f"no index in {', '.join(missing)}", path=missing[0])
    if recorded_settings(setup.working_dir) is None:
        first, *further_addresses = addresses
        with open_index(replace(setup, working_dir=first)) as rag:
            rag.run(lambda loop_rag: check_addition(loop_rag.engine, further_addresses))
        with closing(open_store(setup.working_dir)) as store:
            adopt_settings(store, settings_by_index[first] or {})
    with open_index(setup) as rag:
        report = rag.merge_from(*addresses, restore_purged=restore_purged)
        if summarize:
            return CommandOutput({"merged": report, "summaries": rag.admin.summarize()})
    notes: list[str] = []
    if report.summaries_due:
        notes.append(f"due: {counted(report.summaries_due, 'summaries')}; --summarize writes them")
    notes += purged_notes(report.purged)
    if report.pending:
        notes.append(
            f"{report.pending:,} pending documents were not merged; `resume` them and merge again"
        )
    return CommandOutput(report, notes=notes)


@index_command(
    click.argument("ids", nargs=-1, required=True),
    option(
        "--into", "The folder or PostgreSQL URL of the new index.", FILE_OR_FOLDER, required=True
    ),
    option("--remove", "Remove the documents here once they are there.", is_flag=True),
)
def split_command(rag: LightRAG, ids: tuple[str, ...], into: str, remove: bool) -> CommandOutput:
    """Make a new index of the documents with these IDS.

    The documents also stay in this index, unless --remove is given. `documents` lists the ids.
    """
    return CommandOutput(rag.split(full_ids(rag, ids), into, remove=remove))
