"""`estimate`, `batch`, `import` and `export`: texts and graphs in other forms."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lightrag_jsonl.cli.documents import find_sources
from lightrag_jsonl.cli.opening import (
    NO_MODEL,
    given_options,
    has_index,
    open_for_insert,
    open_for_reading,
    open_for_writing,
)
from lightrag_jsonl.cli.options import (
    FILE,
    TARGET,
    Setup,
    as_json,
    chunk_options,
    folder,
    gleaning_options,
    models,
    with_options,
)
from lightrag_jsonl.cli.output import (
    INCOMPLETE,
    Reply,
    counted,
    emit_failures,
    emit_json,
    one_line,
    progress_bar,
    replying,
    table,
    to_json,
)
from lightrag_jsonl.core.types import Json

if TYPE_CHECKING:
    from lightrag_jsonl.rag import LightRAG

BATCH_DISCOUNT = 0.5  # what providers charge for a batch, as a share of their price
SHOWN = 20
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# ── estimate ────────────────────────────────────────────────────────────────────


@click.command()
@click.argument("files", nargs=-1, required=True)
@models
@with_options(chunk_options, gleaning_options)
@click.option("--price-input", type=click.FloatRange(0), help="Price of a million tokens read.")
@click.option("--price-cached", type=click.FloatRange(0), help="Of a million cached tokens read.")
@click.option("--price-output", type=click.FloatRange(0), help="Of a million tokens written.")
@replying
def estimate(
    setup: Setup,
    files: tuple[str, ...],
    price_input: float | None,
    price_cached: float | None,
    price_output: float | None,
    **given: Any,
) -> Reply:
    """Estimate what reading FILES with a model would cost.

    No model is asked, nothing is stored. Chunks, calls and input tokens come from the real
    prompts; output tokens from a rule fitted to recorded answers. Answers that the index in
    --working-dir (if there is one) has cached cost nothing.

    \b
    Examples:
      lightrag-jsonl estimate books/
      lightrag-jsonl estimate book.txt --price-input 0.15 --price-cached 0.075 --price-output 0.6
    """
    from lightrag_jsonl.tools.estimate import estimate as estimate_documents

    if (price_input is None) != (price_output is None):
        raise click.UsageError("--price-input and --price-output go together")
    sources = find_sources(files)
    with ExitStack() as stack:
        if has_index(setup.working_dir):
            rag = stack.enter_context(open_for_writing(setup, given_options(given)))
        else:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            alone = replace(setup, working_dir=scratch, embedder=None)
            rag = stack.enter_context(open_for_insert(alone, given_options(given)))
        found = rag.run(estimate_documents, sources)
    usages = (("extraction", found.extraction), ("summaries (roughly)", found.summaries))
    rows = [
        (name, used.calls, used.input_tokens, used.cached_tokens, used.output_tokens)
        for name, used in (*usages, ("total", found.usage))
    ]
    lines = [
        f"{counted(found.documents, 'document')}, {counted(found.chunks, 'chunk')}, "
        f"{found.text_tokens:,} tokens of text",
        table(rows, ("", "calls", "tokens in", "cacheable", "tokens out")),
    ]
    cost = None
    if price_input is not None and price_output is not None:
        cost = found.cost(input=price_input, output=price_output, cached=price_cached)
        half = cost * BATCH_DISCOUNT
        lines.append(f"at these prices: {cost:,.4f} (in batches usually half: {half:,.4f})")
    emit_failures(setup.working_dir, found.failures)
    value = {**asdict(found), "usage": found.usage, "cost": cost}
    return Reply(value, "\n".join(lines), INCOMPLETE if found.failures else 0)


# ── batches ─────────────────────────────────────────────────────────────────────


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
@click.option("-o", "--output", type=TARGET, required=True, metavar="FILE", help="The requests.")
@models
@with_options(chunk_options, gleaning_options)
@click.option(
    "--reasoning",
    is_flag=True,
    help="For reasoning models: send max_completion_tokens instead of max_tokens, no temperature.",
)
@replying
def export_requests(
    setup: Setup, files: tuple[str, ...], output: Path, reasoning: bool, **given: Any
) -> Reply:
    """Write the requests of the next round, after adding FILES, if any, to the pending documents.

    FILES are as for `insert`. A document can be queried once all its answers are imported.
    """
    from lightrag_jsonl.tools.batch import export_batch

    if files and setup.llm in (None, NO_MODEL):
        raise click.UsageError("batch files ask a model: name one with --llm")
    options, sources = given_options(given), find_sources(files) if files else []
    with open_for_insert(setup, options) if files else open_for_writing(setup, options) as rag:
        report = rag.run(export_batch, output, sources, reasoning=reasoning)
    if report.requests:
        words = (
            f"{counted(report.requests, 'request')} ({report.round}) in {', '.join(report.files)}; "
            f"{counted(report.pending, 'document')} pending\n"
            f"read the results with: lightrag-jsonl batch import RESULTS -w {setup.working_dir}"
        )
    else:
        words = f"{setup.working_dir}: no requests left"
    emit_failures(setup.working_dir, report.failures)
    return Reply(report, words, INCOMPLETE if report.failures else 0)


@batch.command("import")
@click.argument("results", nargs=-1, required=True, type=FILE)
@models
@click.option(
    "--finish",
    is_flag=True,
    help="Stop waiting: chunks without an answer count as failed (`retry` asks for them).",
)
@replying
def import_results(setup: Setup, results: tuple[Path, ...], finish: bool) -> Reply:
    """Read the RESULTS of a batch (and its error files), in any order, as often as you like.

    The next export asks again for results that are missing or failed.
    """
    from lightrag_jsonl.tools.batch import import_batch

    with open_for_writing(setup, {}) as rag:
        report = rag.run(import_batch, results, finish=finish)
    counts = {
        "answered": report.answered,
        "missing or failed": report.missing,
        "unused": report.unused,
        "unreadable lines": report.unreadable,
        "documents complete": len(report.inserted.documents),
        "documents pending": report.pending,
        f"requests left ({report.round})": report.requests,
    }
    lines = [f"{name}: {number:,}" for name, number in counts.items() if number]
    lines += [f"  {request[:16]}: {one_line(why)}" for request, why in report.failed[:SHOWN]]
    emit_failures(setup.working_dir, report.inserted.failures)
    incomplete = report.missing or report.unreadable or report.inserted.failures
    return Reply(report, "\n".join(lines), INCOMPLETE if incomplete else 0)


# ── import ──────────────────────────────────────────────────────────────────────


@click.command("import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@models
@replying
def import_folder(setup: Setup, folder: Path) -> Reply:
    """Import an index of LightRAG or nano-graphrag.

    FOLDER is its working directory. Its documents, chunks, entities and relations are imported
    with their descriptions and sources; no model is asked. New vectors are made by --embedder.
    What has no counterpart is listed.

    \b
    Examples:
      lightrag-jsonl import ./rag_storage -w kb
      lightrag-jsonl import ./recipes -w kb --language zh
    """
    from lightrag_jsonl.tools.importer import import_index, read_folder

    read_folder(folder)  # fails before an index is created
    existing = has_index(setup.working_dir)
    with (
        open_for_writing(setup, {}) if existing else open_for_insert(setup, {}) as rag,
        progress_bar() as progress,
    ):
        report = rag.run(import_index, folder, progress=progress)
    read, stored = asdict(report.read), asdict(report.stored)
    lines = [table([(name, read[name], stored[name]) for name in read], ("", "read", "stored"))]
    if report.not_imported:
        lines.append(f"{counted(len(report.not_imported), 'item')} not imported, or changed:")
    for item in report.not_imported[:SHOWN]:
        lines.append(f"  {item.kind} {one_line(item.name, 80)}: {item.reason}")
    emit_failures(setup.working_dir, report.failures)
    return Reply(report, "\n".join(lines), INCOMPLETE if report.failures else 0)


# ── export ──────────────────────────────────────────────────────────────────────


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@folder
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(["graphml", "json", "jsonl"]),
    help="graphml or json: the merged graph; jsonl: the records of each chunk, one per line "
    "(default by FILE's suffix, else graphml).",
)
@as_json
def export(setup: Setup, file: str, format_: str | None, as_json: bool) -> None:
    """Write the graph, or the records behind it, to FILE or stdout.

    The records are in the form of the prompt extract-graph, with their document's id and their
    chunk's number, so that `insert_records` of the Python package can read them.

    \b
    Examples:
      lightrag-jsonl export -w kb graph.graphml
      lightrag-jsonl export -w kb --format jsonl > records.jsonl
    """
    suffix = Path(file).suffix.lower().removeprefix(".")
    default = "json" if as_json and file == "-" else suffix if suffix in FORMATS else "graphml"
    chosen = format_ or default
    with open_for_reading(setup) as rag:
        lines = list(FORMATS[chosen](rag))
    text = "".join(f"{line}\n" for line in lines)
    if file == "-":
        click.echo(text, nl=False)
        return
    Path(file).write_text(text, encoding="utf-8", newline="\n")
    if as_json:
        emit_json({"file": file, "format": chosen, "lines": len(lines)})


def _graphml(rag: LightRAG) -> Iterator[str]:
    """The merged graph as GraphML, which has no lists: these are joined to text."""
    import networkx as nx

    graph = nx.Graph()
    for name, data in rag.graph.nodes(data=True):
        graph.add_node(_xml(name), **_scalars(data))
    for low, high, data in rag.graph.edges(data=True):
        graph.add_edge(_xml(low), _xml(high), **_scalars(data))
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield from nx.generate_graphml(graph, named_key_ids=True)


def _json(rag: LightRAG) -> Iterator[str]:
    """The merged graph as one JSON object."""
    nodes, edges = rag.graph.nodes(data=True), rag.graph.edges(data=True)
    entities = [{"name": name, **data} for name, data in nodes]
    graph = {"entities": entities, "relations": [data for _, _, data in edges]}
    yield json.dumps(to_json(graph), ensure_ascii=False, indent=1)


def _jsonl(rag: LightRAG) -> Iterator[str]:
    """The records of every chunk, in the order of documents and chunks."""
    for record in rag.admin.records():
        yield json.dumps(record, ensure_ascii=False)


FORMATS: Mapping[str, Callable[[LightRAG], Iterator[str]]] = {
    "graphml": _graphml,
    "json": _json,
    "jsonl": _jsonl,
}


def _scalars(data: Mapping[str, object]) -> dict[str, str | int | float]:
    """The fields of an entity or relation as GraphML can hold them."""
    plain = {name: to_json(value) for name, value in data.items()}
    return {
        name: value if isinstance(value, int | float) else _xml(_joined(value))
        for name, value in plain.items()
        if value is not None
    }


def _joined(value: Json) -> str:
    if isinstance(value, list):
        return "; ".join(": ".join(map(str, v)) if isinstance(v, list) else str(v) for v in value)
    return str(value)


def _xml(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
