"""`estimate`, `batch`, `import` and `export`: texts and graphs in other forms."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.documents import find_sources
from lightrag_jsonl.cli.group import INCOMPLETE, Reply, command, index_command, main
from lightrag_jsonl.cli.opening import open_index, recorded
from lightrag_jsonl.cli.options import FILE, FOLDER, TARGET, Setup, models, option, reading_options
from lightrag_jsonl.cli.output import json_lines, one_line, progress_bar, to_json
from lightrag_jsonl.tools.batch import export_batch, import_batch
from lightrag_jsonl.tools.estimate import estimate as estimate_documents
from lightrag_jsonl.tools.importer import import_index, read_folder

SHOWN = 20
PRICE = click.FloatRange(0)
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@command(
    click.argument("files", nargs=-1, required=True),
    *models,
    *reading_options,
    option("--prices", "READ CACHED WRITTEN: of a million tokens each.", PRICE, nargs=3),
)
def estimate(
    setup: Setup, files: tuple[str, ...], prices: tuple[float, ...] | None, **options: Any
) -> Reply:
    """Estimate what reading FILES with a model would cost.

    No model is asked, nothing is stored. Chunks, calls and input tokens come from the real
    prompts; output tokens from a rule fitted to recorded answers. Answers that the index in
    --working-dir (if there is one) has cached cost nothing. Batches usually cost half.
    """
    sources = find_sources(files)
    is_new = recorded(setup.working_dir) is None
    with tempfile.TemporaryDirectory() as scratch:
        if is_new:
            setup = replace(setup, working_dir=Path(scratch), embedder="hash")
        with open_index(setup, options, create=is_new) as rag:
            found = rag.run(estimate_documents, sources)
    value = {**asdict(found), "total": found.usage}
    if prices is not None:
        value["cost"] = found.cost(input=prices[0], cached=prices[1], output=prices[2])
    return Reply(value, failures=found.failures)


@main.group()
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


@command(
    click.argument("files", nargs=-1),
    option("-o --output", "The requests.", TARGET, required=True),
    *models,
    *reading_options,
    option("--reasoning", "Write the requests as reasoning models take them.", is_flag=True),
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
    return Reply(report, failures=report.failures)


@command(
    click.argument("results", nargs=-1, required=True, type=FILE),
    *models,
    option("--finish", "Count chunks without an answer as failed, for `retry`.", is_flag=True),
    name="import",
    group=batch,
)
def import_results(setup: Setup, results: tuple[Path, ...], finish: bool) -> Reply:
    """Read the RESULTS of a batch (and its error files), in any order, as often as you like.

    The next export asks again for results that are missing or failed.
    """
    with open_index(setup, {}) as rag:
        report = rag.run(import_batch, results, finish=finish)
    refused = [f"{request[:16]}: {one_line(why)}" for request, why in report.failed[:SHOWN]]
    status = INCOMPLETE if report.missing or report.unreadable else 0
    return Reply(report, None, status, refused, report.inserted.failures)


@command(click.argument("folder", type=FOLDER), *models, name="import")
def import_folder(setup: Setup, folder: Path) -> Reply:
    """Import an index of LightRAG or nano-graphrag.

    FOLDER is its working directory. Its documents, chunks, entities and relations are imported
    with their descriptions and sources; no model is asked. New vectors are made by --embedder.
    What has no counterpart is listed.
    """
    read_folder(folder)  # fails before an index is created
    create = recorded(setup.working_dir) is None
    with open_index(setup, {}, create=create) as rag, progress_bar() as progress:
        report = rag.run(import_index, folder, progress=progress)
    return Reply(report, notes=report.not_imported[:SHOWN], failures=report.failures)


@index_command(
    click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-"),
    option(
        "-f --format format_",
        "graphml or json: the merged graph; jsonl: the records of each chunk, one per line "
        "(default by FILE's suffix, else graphml).",
        click.Choice(["graphml", "json", "jsonl"]),
    ),
)
def export(rag: LightRAG, file: str, format_: str | None) -> Reply:
    """Write the graph, or the records behind it, to FILE or stdout.

    The records are in the form of the prompt extract-graph, with their document's id and their
    chunk's number, so that `insert_records` of the Python package can read them.
    """
    suffix = Path(file).suffix.lower().removeprefix(".")
    chosen = format_ or (suffix if suffix in ("json", "jsonl") else "graphml")
    nodes, edges = rag.graph.nodes(data=True), rag.graph.edges(data=True)
    entities = [{"name": name, **data} for name, data in nodes]
    graph = to_json({"entities": entities, "relations": [data for _, _, data in edges]})
    if chosen == "jsonl":
        data = json_lines(rag.admin.records())
    elif chosen == "json":
        data = json.dumps(graph, ensure_ascii=False, indent=1).encode() + b"\n"
    else:
        data = "".join(f"{line}\n" for line in _graphml(rag)).encode()
    if file == "-":
        return Reply(graph, data)
    Path(file).write_bytes(data)
    return Reply({"file": file, "format": chosen}, "")


def _graphml(rag: LightRAG) -> Iterator[str]:
    import networkx as nx

    graph = nx.Graph()
    for name, data in rag.graph.nodes(data=True):
        graph.add_node(_xml(name), **_scalars(data))
    for low, high, data in rag.graph.edges(data=True):
        graph.add_edge(_xml(low), _xml(high), **_scalars(data))
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield from nx.generate_graphml(graph, named_key_ids=True)


def _scalars(data: Mapping[str, object]) -> dict[str, str | float]:
    """The fields of an entity or relation; GraphML has no lists: these are joined to text."""
    return {
        name: value if isinstance(value, float) else _xml(value) for name, value in data.items()
    }


def _xml(value: object) -> str:
    """A text for GraphML: lists joined, pairs as "name: value", without what XML forbids."""
    if isinstance(value, tuple):
        value = "; ".join(one if isinstance(one, str) else ": ".join(one) for one in value)
    return NOT_XML.sub("\ufffd", str(value))
