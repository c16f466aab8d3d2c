"""`export`: the graph as GraphML or JSON, the records it was merged from as JSONL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.opening import looking
from lightrag_jsonl.cli.options import Setup, as_json, folder
from lightrag_jsonl.cli.output import emit_json, to_json
from lightrag_jsonl.files import check_target
from lightrag_jsonl.types import Json

if TYPE_CHECKING:
    from lightrag_jsonl.sync import LightRAG

STDOUT = "-"
UTF_8 = "utf-8"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default=STDOUT)
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
    --json on stdout means --format json; with a FILE it reports what was written.

    \b
    Examples:
      lightrag-jsonl export -w kb graph.graphml
      lightrag-jsonl export -w kb --format jsonl > records.jsonl
    """
    if file != STDOUT:
        check_target(file)
    if as_json and file == STDOUT:
        if format_ not in (None, "json"):
            raise click.UsageError(f"--json on stdout means --format json, not {format_}")
        format_ = "json"
    if format_ is None:
        ending = Path(file).suffix.lower().removeprefix(".")
        format_ = ending if ending in FORMATS else "graphml"
    written, whole = 0, _may_be_replaced(Path(file))
    with looking(setup) as rag, click.open_file(file, "w", encoding=UTF_8, atomic=whole) as out:
        for line in FORMATS[format_](rag):
            click.echo(line, file=out)
            written += 1
    if as_json and file != STDOUT:
        emit_json({"file": file, "format": format_, "lines": written})


def _may_be_replaced(path: Path) -> bool:
    """Whether a finished file may replace this path: not if it is a device, a pipe or a link."""
    return not path.is_symlink() and (path.is_file() or not path.exists())


def graphml_lines(rag: LightRAG) -> Iterator[str]:
    """The merged graph as GraphML, which has no lists: these are joined to text."""
    import networkx as nx

    graph = nx.Graph()
    for name, data in rag.graph.nodes(data=True):
        graph.add_node(_xml(name), **_scalars(data))
    for low, high, data in rag.graph.edges(data=True):
        graph.add_edge(_xml(low), _xml(high), **_scalars(data))
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield from nx.generate_graphml(graph, named_key_ids=True)


def json_lines(rag: LightRAG) -> Iterator[str]:
    """The merged graph as one JSON object, one entity or relation per line."""
    yield '{"entities": ['
    yield from _items({"name": name, **data} for name, data in rag.graph.nodes(data=True))
    yield '], "relations": ['
    yield from _items(data for _, _, data in rag.graph.edges(data=True))
    yield "]}"


def record_lines(rag: LightRAG) -> Iterator[str]:
    """The records of every chunk, in the order of documents and chunks."""
    for record in rag.records():
        yield json.dumps(record, ensure_ascii=False)


FORMATS: Mapping[str, Callable[[LightRAG], Iterator[str]]] = {
    "graphml": graphml_lines,
    "json": json_lines,
    "jsonl": record_lines,
}


def _items(values: Iterator[Mapping[str, object]]) -> Iterator[str]:
    """Each value as a line of JSON, with a comma after all but the last."""
    before = None
    for value in values:
        if before is not None:
            yield before + ","
        before = json.dumps(to_json(value), ensure_ascii=False)
    if before is not None:
        yield before


def _scalars(data: Mapping[str, object]) -> dict[str, str | int | float]:
    """The fields of an entity or relation as GraphML can hold them."""
    found: dict[str, str | int | float] = {}
    for name, value in data.items():
        plain = to_json(value)
        if isinstance(plain, int | float):
            found[name] = plain
        elif plain is not None:
            found[name] = _xml(_joined(plain))
    return found


def _joined(value: Json) -> str:
    if isinstance(value, list):
        return "; ".join(": ".join(map(str, v)) if isinstance(v, list) else str(v) for v in value)
    return str(value)


def _xml(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
