"""The graph in the formats of other programs, and as one web page."""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import numpy as np

from lightrag_jsonl.core.edges import Edge
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import clipped, is_cjk, name_key, sanitize
from lightrag_jsonl.core.types import Entity, Record, Relation, known_language
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.tracing import rdf

if TYPE_CHECKING:
    import networkx as nx

GraphFormat: TypeAlias = Literal["graphml", "json", "jsonl", "csv", "nquads", "cypher", "html"]

SUFFIXES: Mapping[str, GraphFormat] = {
    ".graphml": "graphml", ".xml": "graphml", ".json": "json", ".jsonl": "jsonl", ".csv": "csv",
    ".nq": "nquads", ".cypher": "cypher", ".html": "html",
}  # fmt: skip
NODE_FIELDS = ("description", "chunk_ids", "created_at", "attributes", "aliases")
EDGE_FIELDS = (
    "source", "target", "keywords", "reverse_keywords", "description", "weight", "chunk_ids",
    "created_at",
)  # fmt: skip
COLUMNS = ("kind", "name", "entity_type", "attributes", "aliases", *EDGE_FIELDS)
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MOST_NODES = 499  # of a page; networkx lays out more only with scipy
MOST_LABELS = 80
LABEL_LENGTH = 40  # characters
LINE = 16  # pixels between labels
COLORS = ("#2f7ed8", "#d1495b", "#3a9d6e", "#c98a1b", "#8e6bbf", "#2a9aa8", "#b5654a", "#8a8f98")
WORDS = {
    "en": ("Knowledge graph", "{} of {} entities, {} of {} relations"),
    "zh": ("知识图谱", "{} / {} 个实体，{} / {} 条关系"),
}


def graph_format(path: Path) -> GraphFormat:
    """The format that a file's suffix stands for; `ConfigError` lists the known ones."""
    format = SUFFIXES.get(path.suffix.lower())
    if format is None:
        known = ", ".join(SUFFIXES)
        raise ConfigError(f"{path}: unknown suffix {path.suffix!r}; supported: {known}")
    return format


def export_graph(view: StoreView, format: GraphFormat, *, language: str = "en") -> str:
    """The graph of an index as text; "jsonl" holds the records behind it."""
    if format == "jsonl":
        return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records(view))
    if format not in {*SUFFIXES.values()}:
        raise ConfigError(f"{format!r} is not a format; supported: {', '.join(SUFFIXES.values())}")
    entities = [*view.entities(view.listed("entity")).values()]
    relations = [*view.relations(view.listed("relation")).values()]
    if format == "html":
        return _page(entities, relations, known_language(language))
    return WRITERS[format](entities, relations)


def network(entities: Iterable[Entity], relations: Iterable[Relation]) -> "nx.Graph":
    """A frozen networkx graph: nodes by entity name, with the attributes of `Entity` and `Relation`.

    All of these but weights are texts, as GraphML wants them: lists are joined with "; ", pairs
    are "name: value", times are in ISO form, and characters that XML forbids are U+FFFD.
    """
    import networkx as nx

    graph = nx.Graph()
    for entity in entities:
        shown = {name: _xml(getattr(entity, name)) for name in NODE_FIELDS}
        graph.add_node(_xml(entity.name), entity_type=_xml(entity.type), **shown)
    for relation in relations:
        shown = {name: _xml(getattr(relation, name)) for name in EDGE_FIELDS}
        graph.add_edge(shown["source"], shown["target"], **shown)
    return nx.freeze(graph)


def records(view: StoreView) -> Iterator[Record]:
    """Every stored mention as an `extract-graph` record with its document and chunk index, except
    edits and deletions by hand.
    """
    for row, chunk in view.chunks().items():
        position: Mapping[str, str | int] = {"document": chunk.document_id, "chunk": chunk.index}
        for entity in view.entity_mentions(chunks=[row]):
            one = entity.mention
            fields = {"name": one.name, "entity_type": one.type, "description": one.description}
            aliases: Record = {"aliases": [*one.aliases]} if one.aliases else {}
            if one.claim in ("", "create"):
                yield {"type": "entity", **fields, **aliases, **position}
        for relation in view.relation_mentions(chunks=[row]):
            fields = asdict(relation.mention)
            if fields.pop("claim") in ("", "create"):
                words = {"keywords": [*fields["keywords"]]}
                yield {"type": "relationship", **fields, **words, **position}


# ── for programs ────────────────────────────────────────────────────────────────


def _xml(value: object) -> Any:
    """A value for GraphML."""
    if isinstance(value, float):
        return value
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, tuple):
        value = "; ".join(one if isinstance(one, str) else ": ".join(one) for one in value)
    return NOT_XML.sub("\ufffd", "" if value is None else str(value))


def _graphml(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    import networkx as nx

    lines = nx.generate_graphml(network(entities, relations), named_key_ids=True)
    return "\n".join(('<?xml version="1.0" encoding="utf-8"?>', *lines, ""))


def _fields(
    entities: Iterable[Entity], relations: Iterable[Relation]
) -> list[list[dict[str, Any]]]:
    nodes = [
        {"name": one.name, "entity_type": one.type}
        | {field: getattr(one, field) for field in NODE_FIELDS}
        for one in entities
    ]
    return [nodes, [{field: getattr(one, field) for field in EDGE_FIELDS} for one in relations]]


def _json(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    nodes, edges = _fields(entities, relations)
    data = msgspec.json.encode({"entities": nodes, "relations": edges})
    return msgspec.json.format(data, indent=1).decode() + "\n"


def _csv(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    """One table, whose column `kind` tells entities and relations apart."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for kind, rows in zip(("entity", "relation"), _fields(entities, relations), strict=True):
        for row in rows:
            writer.writerow({"kind": kind, **{name: _xml(value) for name, value in row.items()}})
    return text.getvalue()


def _nquads(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    """Each entity with its label, type and sources; each relation as one triple a keyword."""
    triples: list[rdf.Triple] = []
    for one in entities:
        uri = rdf.ENTITY_BASE + rdf.encoded(name_key(one.name))
        about = {
            "rdfs:label": one.name,
            "dcterms:type": one.type,
            "dcterms:description": one.description,
        }
        pairs = [(name, rdf.literal(value)) for name, value in about.items() if value]
        for id in one.chunk_ids:
            pairs.append(("prov:wasDerivedFrom", rdf.iri(rdf.source_uri("chunk", id))))
        triples += rdf.triples_of(uri, *pairs)
    for relation in relations:
        for word in relation.keywords or (relation.predicate,):
            fact = rdf.fact(Edge("", relation.source, word, relation.target))
            triples += [fact, (fact[1], rdf.term("rdfs:label"), rdf.literal(word))]
    return rdf.serialize({"": triples})


def _cypher(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    """Statements for Neo4j and the like, which may be run again: names are matched."""
    lines = []
    nodes, edges = _fields(entities, relations)
    for row in nodes:
        name = _quoted(row.pop("name"))
        lines.append(f"MERGE (n:Entity {{name: {name}}}) SET {_assigned('n', row)};")
    for row in edges:
        ends = _quoted(row.pop("source")), _quoted(row.pop("target"))
        match = "MATCH (a:Entity {{name: {}}}), (b:Entity {{name: {}}})".format(*ends)
        lines.append(f"{match} MERGE (a)-[r:RELATED]->(b) SET {_assigned('r', row)};")
    return "".join(f"{line}\n" for line in lines)


def _assigned(variable: str, row: Mapping[str, object]) -> str:
    return ", ".join(f"{variable}.{name} = {_quoted(value)}" for name, value in row.items())


def _quoted(value: object) -> str:
    if isinstance(value, tuple):
        value = [one if isinstance(one, str) else ": ".join(one) for one in value]
    return json.dumps(value, ensure_ascii=False, default=str)


WRITERS: Mapping[str, Callable[[list[Entity], list[Relation]], str]] = {
    "graphml": _graphml, "json": _json, "csv": _csv, "nquads": _nquads, "cypher": _cypher,
}  # fmt: skip


# ── for people ──────────────────────────────────────────────────────────────────


def _page(entities: list[Entity], relations: list[Relation], language: str) -> str:
    """A page that loads nothing: the entities with most relations, drawn once."""
    import networkx as nx
    from jinja2 import Environment

    graph = network(entities, relations)
    degrees = sorted(graph.degree, key=lambda pair: (-pair[1], pair[0]))[:MOST_NODES]
    drawn = graph.subgraph([name for name, _ in degrees])
    layout = nx.spring_layout(drawn, seed=1)
    points = np.array([*layout.values()]).reshape(-1, 2)
    ranks = 2 * points.argsort(0).argsort(0) / max(len(points) - 1, 1) - 1
    spread = (points + 2 * ranks) / 3 * (700, 500)  # even, or a far part would crowd the rest
    places = dict(zip(layout, spread.round(1).tolist(), strict=True))
    frequent = Counter(type for _, type in drawn.nodes(data="entity_type")).most_common()
    colors = dict(zip([type for type, _ in frequent], COLORS, strict=False))
    nodes = [
        {"name": name, "at": places[name], "radius": round(4 + math.sqrt(degree), 1)}
        | graph.nodes[name]
        for name, degree in degrees
    ]
    edges = [
        {"from": places[low], "to": places[high], "width": 0.6 + math.log1p(data["weight"]) / 2}
        | data
        for low, high, data in drawn.edges(data=True)
    ]
    title, shown = WORDS[language]
    template = resources.files(__package__).joinpath("graph.html.jinja").read_text("utf-8")
    page = (
        Environment(autoescape=True, trim_blocks=True)
        .from_string(template)
        .render(
            language=language,
            title=title,
            shown=shown.format(len(nodes), len(entities), len(edges), len(relations)),
            colors=colors,
            other_color=COLORS[-1],
            nodes=nodes,
            edges=edges,
            labels=_labels(nodes),
        )
    )
    return sanitize(page)


def _labels(nodes: Iterable[Mapping[str, Any]]) -> list[tuple[float, float, str, float]]:
    """The names of the first nodes: places and half their widths. None covers one before it."""
    labels = list[tuple[float, float, str, float]]()
    for node in nodes:
        (x, y), name = node["at"], clipped(node["name"], LABEL_LENGTH)
        y, half = round(y - node["radius"] - 3, 1), sum(7 if is_cjk(char) else 4 for char in name)
        if all(abs(x - a) > half + b or abs(y - c) > LINE for a, c, _, b in labels):
            labels.append((x, y, name, half))
    return labels[:MOST_LABELS]
