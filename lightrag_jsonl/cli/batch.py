"""`batch export` and `batch import`: extraction by batch files, often at half the price."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lightrag_jsonl.cli.indexing import (
    INCOMPLETE,
    cutting_options,
    given_options,
    gleaning_options,
    tell_failures,
)
from lightrag_jsonl.cli.opening import NO_MODEL, going_on, inserting
from lightrag_jsonl.cli.options import FILE, Setup, as_json, models, with_options
from lightrag_jsonl.cli.output import counted, emit_json, one_line, say
from lightrag_jsonl.cli.sources import find_sources

if TYPE_CHECKING:
    from lightrag_jsonl.batching import BatchExport, BatchImport

SHOWN = 20


@click.group()
def batch() -> None:
    """Have a model read texts by way of batch files.

    Many providers charge half for this, and it works with an offline machine. `batch export`
    writes the requests in OpenAI's batch format, which other providers and `vllm run-batch`
    take as well; `batch import` reads the results. Gleaning and summaries are further rounds:
    export and import again until nothing is left.

    \b
      lightrag-jsonl batch export books/ -o requests.jsonl -w kb --llm gpt-4o-mini
      … upload requests.jsonl to the provider, wait, download results.jsonl …
      lightrag-jsonl batch import results.jsonl -w kb
      lightrag-jsonl batch export -o requests.jsonl -w kb
    """


@batch.command("export")
@click.argument("files", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="Where to write the requests; each 50,000 more go to a further, numbered file.",
)
@models
@with_options(cutting_options, gleaning_options)
@click.option(
    "--reasoning",
    is_flag=True,
    help="For reasoning models: send max_completion_tokens instead of max_tokens, no temperature.",
)
@as_json
def export_requests(
    setup: Setup,
    files: tuple[str, ...],
    output: Path,
    reasoning: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Write the requests of the next round, after adding FILES, if any, to the waiting documents.

    FILES are as for `insert`. A document can be queried once all its answers are imported.
    """
    if files and setup.llm in (None, NO_MODEL):
        raise click.UsageError("batch files ask a model: name one with --llm")
    options = given_options(given)
    sources = find_sources(files) if files else []
    with inserting(setup, options) if files else going_on(setup, options) as rag:
        report = rag.export_batch(output, sources, reasoning=reasoning)
    if as_json:
        emit_json(report)
    else:
        _tell_export(setup.working_dir, report)
    if report.failures:
        raise click.exceptions.Exit(INCOMPLETE)


@batch.command("import")
@click.argument("results", nargs=-1, required=True, type=FILE)
@models
@click.option(
    "--finish",
    is_flag=True,
    help="Stop waiting: chunks without an answer count as failed (`retry` asks for them).",
)
@as_json
def import_results(setup: Setup, results: tuple[Path, ...], finish: bool, as_json: bool) -> None:
    """Read the RESULTS of a batch (and its error files), in any order, as often as you like.

    The next export asks again for results that are missing or failed. If a request has several
    results, the first good one counts.
    """
    with going_on(setup, {}) as rag:
        report = rag.import_batch(*results, finish=finish)
    if as_json:
        emit_json(report)
    else:
        _tell_import(setup.working_dir, report)
    if report.missing or report.unreadable or report.inserted.failures:
        raise click.exceptions.Exit(INCOMPLETE)


def _tell_export(working_dir: Path, report: BatchExport) -> None:
    if report.unchanged:
        say(f"{counted(len(report.unchanged), 'document')} known already, not asked for again")
    if report.round == "done":
        say(f"{working_dir}: nothing is left to ask")
    else:
        say(
            f"{counted(report.requests, 'request')} ({report.round}) in {', '.join(report.files)}; "
            f"{counted(report.waiting, 'document')} waiting"
        )
        say(f"read the results with: lightrag-jsonl batch import RESULTS -w {working_dir}")
    tell_failures(working_dir, report.failures)


def _tell_import(working_dir: Path, report: BatchImport) -> None:
    usage = report.usage
    say(
        f"{counted(report.answered, 'answer')} ({usage.input_tokens:,} tokens in, "
        f"{usage.output_tokens:,} out)"
    )
    others = {
        "missing or failed": report.missing,
        "duplicates": report.doubled,
        "known already": report.known,
        "kept for later": report.kept,
        "for unknown requests": report.unknown,
        "unreadable lines": report.unreadable,
    }
    if any(others.values()):
        say(", ".join(f"{number:,} {what}" for what, number in others.items() if number))
    for request, reason in report.failed[:SHOWN]:
        say(f"  {request[:16]}: {one_line(reason)}", err=True)
    done = report.inserted
    if done.documents:
        say(f"{counted(len(done.documents), 'document')} ({counted(done.chunks, 'chunk')}) visible")
    tell_failures(working_dir, done.failures)
    if report.round == "done":
        say("nothing is left to ask")
    else:
        say(
            f"next: {counted(report.requests, 'request')} ({report.round}), "
            f"{counted(report.waiting, 'document')} waiting; write them with: "
            f"lightrag-jsonl batch export -o FILE -w {working_dir}"
        )
