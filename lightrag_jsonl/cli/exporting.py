"""`export`: the graph as GraphML or JSON, the records it was folded from as JSONL."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

import click

from lightrag_jsonl.cli.opening import require_index
from lightrag_jsonl.cli.options import Setup, as_json, folder
from lightrag_jsonl.cli.output import emit_json, to_json

if TYPE_CHECKING:
    from lightrag_jsonl.types import Entity, Relation

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@click.command()
@click.argument("file", type=click.File("w", encoding="utf-8", atomic=True), default="-")
@folder
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(["graphml", "json", "jsonl"]),
    default="graphml",
    show_default=True,
    help="graphml or json: the merged graph; jsonl: what each chunk said, one record a line.",
)
@as_json
def export(setup: Setup, file: TextIO, format_: str, as_json: bool) -> None:
    """Write the graph, or the records behind it, to FILE or stdout.

    The records are those of the prompt extract-graph, with the id of their document and the
    number of their chunk, so that `rag.insert_records` takes them back. --json reports how
    much was written (to a FILE; on stdout it means --format json).

    \b
    Examples:
      lightrag-jsonl export -w kb graph.graphml
      lightrag-jsonl export -w kb --format jsonl > records.jsonl
    """
    on_stdout = file.name in ("-", "<stdout>")
    format_ = "json" if as_json and on_stdout else format_
    written = 0
    with _reading(setup) as connection:
        for written, line in enumerate(FORMATS[format_](connection), 1):
            click.echo(line, file=file)
    if as_json and not on_stdout:
        emit_json({"file": file.name, "format": format_, "lines": written})


@contextlib.contextmanager
def _reading(setup: Setup) -> Iterator[sqlite3.Connection]:
    from lightrag_jsonl.storage.database import Database

    require_index(setup.working_dir)
    with contextlib.closing(Database(setup.working_dir)) as database:
        with database.reading() as connection:
            yield connection


# ── the graph ───────────────────────────────────────────────────────────────────


def graphml_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """The merged graph as GraphML; lists are joined, since GraphML has none."""
    import networkx as nx

    graph = nx.Graph()
    entities, relations = _merged(connection)
    for entity in entities:
        graph.add_node(_xml(entity.name), **_scalars(entity, but=("name", "attributes")))
    for relation in relations:
        ends = (_xml(relation.source), _xml(relation.target))
        scalars = _scalars(relation, but=())
        graph.add_edge(*ends, **scalars)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield from nx.generate_graphml(graph, named_key_ids=True)


def json_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """The merged graph as one JSON object, one entity or relation a line."""
    entities, relations = _merged(connection)
    yield '{"entities": ['
    yield from _items(_fields(entity) for entity in entities)
    yield '], "relations": ['
    yield from _items(_fields(relation) for relation in relations)
    yield "]}"


def _merged(connection: sqlite3.Connection) -> tuple[list[Entity], list[Relation]]:
    from lightrag_jsonl.storage import reading

    nodes = [row[0] for row in connection.execute("SELECT id FROM entities ORDER BY key")]
    edges = [row[0] for row in connection.execute("SELECT id FROM relations ORDER BY low, high")]
    entities = reading.entities(connection, nodes)
    relations = reading.relations(connection, edges)
    return [entities[id] for id in nodes], [relations[id] for id in edges]


def _fields(one: Entity | Relation) -> dict[str, object]:
    plain = to_json(one)
    assert isinstance(plain, dict)
    return {name: value for name, value in plain.items() if name not in ("score", "why")}


def _scalars(one: Entity | Relation, *, but: tuple[str, ...]) -> dict[str, str | int | float]:
    """What GraphML can hold of an entity or relation."""
    found: dict[str, str | int | float] = {}
    for name, value in _fields(one).items():
        if name in but or value is None:
            continue
        if isinstance(value, list):
            value = "; ".join(map(str, value))
        found[name] = value if isinstance(value, int | float) else _xml(str(value))
    return found


def _xml(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)


def _items(values: Iterator[dict[str, object]]) -> Iterator[str]:
    before = None
    for value in values:
        if before is not None:
            yield before + ","
        before = json.dumps(value, ensure_ascii=False)
    if before is not None:
        yield before


# ── the records ─────────────────────────────────────────────────────────────────


def record_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """What every chunk said, in the order of documents and chunks."""
    from lightrag_jsonl.storage import claims, documents

    for stored in documents.documents(connection):
        chunks = documents.chunks_of(connection, [stored.row])
        found: dict[int, list[dict[str, object]]] = {row: [] for row in chunks}
        for entity in claims.entity_claims(connection, chunks):
            said = entity.mention
            found[entity.chunk].append(
                {
                    "type": "entity",
                    "name": said.name,
                    "entity_type": said.type,
                    "description": said.description,
                    **({"attributes": dict(said.attributes)} if said.attributes else {}),
                }
            )
        for relation in claims.relation_claims(connection, chunks):
            found[relation.chunk].append(
                {"type": "relationship", **_fields_of(relation.mention)}
            )
        for row, records in found.items():
            where = {"document": stored.id, "chunk": chunks[row].index}
            for record in records:
                yield json.dumps({**record, **where}, ensure_ascii=False)


def _fields_of(mention: object) -> Mapping[str, object]:
    plain = to_json(mention)
    assert isinstance(plain, dict)
    return plain


FORMATS: Mapping[str, Callable[[sqlite3.Connection], Iterator[str]]] = {
    "graphml": graphml_lines,
    "json": json_lines,
    "jsonl": record_lines,
}
