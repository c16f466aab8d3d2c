"""The graph in the formats of other programs, and as a web page."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib import resources
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core.edges import Edge
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.languages import STATING_NOTHING, known_language
from lightrag_jsonl.core.types import (
    EDGE_FIELDS,
    NODE_FIELDS,
    UNKNOWN_TYPE,
    Entity,
    Record,
    Relation,
    entity_record,
    relation_record,
)
from lightrag_jsonl.indexing.bearers import as_written
from lightrag_jsonl.indexing.overrides import mentioned_names
from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.network import item_texts, network, xml_value
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import clipped, sanitize
from lightrag_jsonl.tracing import rdf

if TYPE_CHECKING:
    import networkx as nx

GraphFormat: TypeAlias = Literal[
    "graphml", "json", "jsonl", "csv", "nquads", "cypher", "html", "wiki"
]

SUFFIXES: Mapping[str, GraphFormat] = {
    ".graphml": "graphml", ".xml": "graphml", ".json": "json", ".jsonl": "jsonl", ".csv": "csv",
    ".nq": "nquads", ".cypher": "cypher", ".html": "html",
}  # fmt: skip
CSV_COLUMNS = ("kind", "name", "entity_type", "attributes", "aliases", *EDGE_FIELDS)
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # of spreadsheets
MOST_NODES = 499  # of a page; networkx lays out more only with scipy
MOST_LABELS = 80
LABEL_CHARACTERS = 60
FRAME = (700, 500)  # pixels from the middle to the edge
LETTER = 14  # pixels: the size of a name among many
PREDICATE_SIZE = 0.7  # of that of names
COLORS = ("#2f7ed8", "#d1495b", "#3a9d6e", "#c98a1b", "#8e6bbf", "#2a9aa8", "#b5654a", "#8a8f98")
CAPTIONS = {  # the title of a page, what is drawn, and the color of all other types
    "en": ("Knowledge graph", "{} of {} entities, {} of {} relations", "other type, or not known"),
    "zh": ("知识图谱", "{} / {} 个实体，{} / {} 条关系", "其他类型或类型未知"),
}


def graph_format(path: Path) -> GraphFormat:
    """The format of a file by the suffix, a wiki for a folder; `ConfigError` lists the suffixes."""
    if path.is_dir() or not path.suffix:
        return "wiki"
    format = SUFFIXES.get(path.suffix.lower())
    if format is None:
        supported = ", ".join(SUFFIXES)
        raise ConfigError(
            f"{path}: unknown suffix {path.suffix!r}; supported: {supported}, and a folder for a wiki"
        )
    return format


def export_graph(view: StoreView, format: GraphFormat, *, language: str = "en") -> str:
    """The graph of an index as text; "jsonl" holds the records behind the graph."""
    if format == "jsonl":
        lines = [json.dumps(record, ensure_ascii=False) for record in records(view)]
        return "".join(f"{line}\n" for line in lines)
    if format == "wiki":
        raise ConfigError("a wiki is a folder of pages, and no text; export it to a folder")
    formats = SUFFIXES.values()
    if format not in formats:
        raise ConfigError(f"{format!r} is not a format; supported: {', '.join(formats)}")
    if format == "html":
        return _web_page(_network_of(view), known_language(language))
    if format == "graphml":
        return _graphml(_network_of(view))
    entities = view.entities(view.listed("entity"))
    relations = view.relations(view.listed("relation"))
    write = WRITERS[format]
    return write(list(entities.values()), list(relations.values()))


def _network_of(view: StoreView) -> "nx.Graph":
    """The graph that a view shows; nodes in the order of their names."""
    names = view.entity_names(view.entity_rows())
    ordered_names = dict(sorted(names.items(), key=itemgetter(1)))
    return network(GraphIndex.of(view.graph_rows()), ordered_names, lambda: nullcontext(view))


def records(view: StoreView) -> Iterator[Record]:
    """Every stored mention as an `extract-graph` record with document and chunk index, except the
    changes of entities and relations by hand.
    """
    changed = {
        (row, override.names)
        for row, override in view.overrides().items()
        if override.action == "edit"
    }
    for row, chunk in view.chunks().items():
        place: Record = {"document": chunk.document_id, "chunk": chunk.index}
        for entity in view.entity_mentions(chunks=[row]):
            if (row, mentioned_names(entity.mention)) not in changed:
                yield {**entity_record(as_written(entity)), **place}
        for relation in view.relation_mentions(chunks=[row]):
            if (row, mentioned_names(relation.mention)) not in changed:
                yield {**relation_record(as_written(relation)), **place}


# ── for programs ────────────────────────────────────────────────────────────────


def _graphml(graph: "nx.Graph") -> str:
    import networkx as nx

    lines = nx.generate_graphml(graph, named_key_ids=True)
    return "\n".join(('<?xml version="1.0" encoding="utf-8"?>', *lines, ""))


def _node_fields(entity: Entity) -> dict[str, Any]:
    fields = {name: getattr(entity, name) for name in NODE_FIELDS}
    return {"name": entity.name, "entity_type": entity.type, **fields}


def _edge_fields(relation: Relation) -> dict[str, Any]:
    return {name: getattr(relation, name) for name in EDGE_FIELDS}


def _json_text(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    graph = {
        "entities": [_node_fields(entity) for entity in entities],
        "relations": [_edge_fields(relation) for relation in relations],
    }
    text = msgspec.json.format(msgspec.json.encode(graph), indent=1)
    return text.decode() + "\n"


def _csv(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    """A single table; the column `kind` tells entities and relations apart."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for entity in entities:
        writer.writerow({"kind": "entity", **_cells(_node_fields(entity))})
    for relation in relations:
        writer.writerow({"kind": "relation", **_cells(_edge_fields(relation))})
    return text.getvalue()


def _cells(fields: Mapping[str, object]) -> dict[str, Any]:
    """The values of a row. A text that a spreadsheet would run as a formula begins with an apostrophe,
    as OWASP advises ("CSV Injection").
    """
    cells: dict[str, Any] = {}
    for name, value in fields.items():
        cell = xml_value(value)
        if isinstance(cell, str) and cell.startswith(FORMULA_MARKS):
            cell = f"'{cell}"
        cells[name] = cell
    return cells


def _nquads(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    """Each entity with label, type and sources; each relation as a triple for each keyword."""
    triples: list[rdf.Triple] = []
    for entity in entities:
        triples += _entity_triples(entity)
    for relation in relations:
        for keyword in relation.keywords or (relation.predicate,):
            edge = Edge(
                id="",
                source=relation.source,
                predicate=keyword,
                target=relation.target,
            )
            fact = rdf.fact(edge)
            _, predicate, _ = fact
            triples.append(fact)
            triples.append((predicate, rdf.term("rdfs:label"), rdf.literal(keyword)))
    return rdf.serialize({"": triples})


def _entity_triples(entity: Entity) -> list[rdf.Triple]:
    properties = {
        "rdfs:label": entity.name,
        "dcterms:type": entity.type,
        "dcterms:description": entity.description,
    }
    pairs = [(name, rdf.literal(value)) for name, value in properties.items() if value]
    for chunk_id in entity.chunk_ids:
        source = rdf.source_uri("chunk", chunk_id)
        pairs.append(("prov:wasDerivedFrom", rdf.iri(source)))
    name_in_uri = rdf.uri_part(name_key(entity.name))
    subject = rdf.iri(rdf.ENTITY_BASE + name_in_uri)
    return [(subject, rdf.term(name), value) for name, value in pairs]


def _cypher(entities: Iterable[Entity], relations: Iterable[Relation]) -> str:
    """Statements for Neo4j and similar databases, safe to run again: names are matched."""
    lines = []
    for entity in entities:
        node = _node_fields(entity)
        name = _cypher_value(node.pop("name"))
        lines.append(f"MERGE (n:Entity {{name: {name}}}) SET {_assigned('n', node)};")
    for relation in relations:
        edge = _edge_fields(relation)
        source = _cypher_value(edge.pop("source"))
        target = _cypher_value(edge.pop("target"))
        match = f"MATCH (a:Entity {{name: {source}}}), (b:Entity {{name: {target}}})"
        lines.append(f"{match} MERGE (a)-[r:RELATED]->(b) SET {_assigned('r', edge)};")
    return "".join(f"{line}\n" for line in lines)


def _assigned(variable: str, fields: Mapping[str, object]) -> str:
    assignments = [f"{variable}.{name} = {_cypher_value(value)}" for name, value in fields.items()]
    return ", ".join(assignments)


def _cypher_value(value: object) -> str:
    if isinstance(value, tuple):
        value = item_texts(value)
    return json.dumps(value, ensure_ascii=False, default=str)


WRITERS: Mapping[str, Callable[[list[Entity], list[Relation]], str]] = {
    "json": _json_text, "csv": _csv, "nquads": _nquads, "cypher": _cypher,
}  # fmt: skip


# ── for people ──────────────────────────────────────────────────────────────────


def _web_page(graph: "nx.Graph", language: str) -> str:
    """A self-contained page: the entities with most relations, drawn once."""
    from jinja2 import Environment

    degrees = dict(graph.degree)
    most_connected = sorted(degrees, key=lambda name: (-degrees[name], name))[:MOST_NODES]
    drawn = graph.subgraph(most_connected)
    positions = _positions(drawn)
    nodes: list[dict[str, Any]] = []
    for name in most_connected:
        radius = round(4 + math.sqrt(degrees[name]), 1)
        circle = {"name": name, "at": positions[name], "radius": radius}
        nodes.append({**circle, **graph.nodes[name]})
    edges: list[dict[str, Any]] = []
    for _, _, attributes in drawn.edges(data=True):
        line = {
            "from": positions[attributes["source"]],
            "to": positions[attributes["target"]],
            "width": 0.6 + math.log1p(attributes["weight"]) / 2,
        }
        edges.append({**line, **attributes})
    names = _names(nodes)
    size = _letter_size(nodes)
    predicate_size = round(PREDICATE_SIZE * size, 1)
    title, caption, other_types = CAPTIONS[language]
    environment = Environment(autoescape=True, trim_blocks=True)
    template = resources.files(__package__).joinpath("graph_formats.html.jinja").read_text("utf-8")
    page = environment.from_string(template).render(
        language=language,
        title=title,
        shown=caption.format(len(nodes), len(graph), len(edges), graph.number_of_edges()),
        colors=_type_colors(drawn),
        other_color=COLORS[-1],
        other_types=other_types,
        nodes=nodes,
        edges=edges,
        names=names,
        name_size=size,
        predicates=_predicates(edges, names, size=predicate_size),
        predicate_size=predicate_size,
    )
    return sanitize(page)


def _positions(graph: "nx.Graph") -> dict[str, list[float]]:
    """The place of each node on the page, in pixels from the middle."""
    import networkx as nx

    layout = nx.spring_layout(graph, seed=1)
    points = np.array([*layout.values()]).reshape(-1, 2)
    order = points.argsort(0).argsort(0)
    last_rank = max(len(points) - 1, 1)
    ranks = 2 * order / last_rank - 1  # from -1 to 1, as the layout
    spread = (points + 2 * ranks) / 3 * FRAME  # even, or a far part would crowd the rest
    return dict(zip(layout, spread.round(1).tolist(), strict=True))


def _type_colors(graph: "nx.Graph") -> dict[str, str]:
    """A color for each of the most frequent entity types; the last color is that of all others."""
    counts = Counter(entity_type for _, entity_type in graph.nodes(data="entity_type"))
    del counts[UNKNOWN_TYPE]
    frequent = [entity_type for entity_type, _ in counts.most_common()]
    return dict(zip(frequent, COLORS[:-1], strict=False))


class _Label(NamedTuple):
    """A text on the page, with its middle and half of its width."""

    x: float
    y: float
    text: str
    half_width: float
    height: float

    @classmethod
    def at(cls, x: float, y: float, text: str, *, size: float) -> "_Label":
        """The text around a place, moved into the frame; `size` is that of the letters in pixels."""
        letter_widths = sum(1 if is_cjk(char) else 0.57 for char in text)
        half_width = letter_widths * size / 2
        half_frame, _ = FRAME
        room = max(half_frame - half_width, 0)
        x_in_frame = min(max(x, -room), room)
        return cls(
            x=round(x_in_frame, 1),
            y=round(y, 1),
            text=text,
            half_width=half_width,
            height=1.15 * size,
        )

    def overlaps(self, label: "_Label") -> bool:
        beside = abs(self.x - label.x) > self.half_width + label.half_width
        above_or_below = abs(self.y - label.y) > max(self.height, label.height)
        return not beside and not above_or_below

    def is_free_of(self, labels: Iterable["_Label"]) -> bool:
        return not any(self.overlaps(label) for label in labels)

    def covered(self, circles: npt.NDArray[np.float64]) -> int:
        """How many circles the text lies over; `circles` are x, y and radius, shape (n, 3)."""
        x, y, radius = circles.T
        is_beside = np.abs(x - self.x) > self.half_width + radius
        middle = self.y - 0.3 * self.height  # `y` is the line below the letters
        is_above_or_below = np.abs(y - middle) > 0.4 * self.height + radius
        return int(np.count_nonzero(~is_beside & ~is_above_or_below))


def _letter_size(nodes: Sequence[object]) -> float:
    """The size of names in pixels: larger where a page has few nodes."""
    growth = math.sqrt(MOST_LABELS / max(len(nodes), 1))
    return round(LETTER * min(max(growth, 1), 1.6), 1)


def _names(nodes: Sequence[Mapping[str, Any]]) -> list[_Label]:
    """The names of the first nodes, each at a place over no earlier name and, if there is one, over no other node;
    a name without such a place is left out.
    """
    labels: list[_Label] = []
    size = _letter_size(nodes)
    circles = np.array([(*node["at"], node["radius"]) for node in nodes]).reshape(-1, 3)
    for node in nodes:
        places = [place for place in _places_of_name(node, size) if place.is_free_of(labels)]
        if places:
            labels.append(min(places, key=lambda place: place.covered(circles)))
        if len(labels) == MOST_LABELS:
            break
    return labels


def _places_of_name(node: Mapping[str, Any], size: float) -> list[_Label]:
    """The places of a name at its node, the best first: above, below, right, left."""
    x, y = node["at"]
    gap = node["radius"] + 3
    text = clipped(node["name"], LABEL_CHARACTERS)
    above = _Label.at(x, y - gap, text, size=size)
    beside = gap + above.half_width
    return [
        above,
        _Label.at(x, y + gap + 0.8 * size, text, size=size),
        _Label.at(x + beside, y + 0.35 * size, text, size=size),
        _Label.at(x - beside, y + 0.35 * size, text, size=size),
    ]


def _predicates(
    edges: Iterable[Mapping[str, Any]], names: Sequence[_Label], *, size: float
) -> list[_Label]:
    """The predicates of the heaviest relations where there is room, with an arrow to the target; none for names
    that are only mentioned together.
    """
    labels: list[_Label] = []
    heaviest_first = sorted(
        edges, key=lambda edge: (-edge["weight"], edge["source"], edge["target"])
    )
    for edge in heaviest_first:
        predicate, _, _ = edge["keywords"].partition("; ")
        if not predicate or predicate in STATING_NOTHING:
            continue
        x, y = edge["from"]
        end_x, end_y = edge["to"]
        text = f"{predicate} →" if end_x >= x else f"← {predicate}"
        label = _Label.at((x + end_x) / 2, (y + end_y) / 2 + 4, text, size=size)
        is_longer = math.dist(edge["from"], edge["to"]) > 2 * label.half_width
        if is_longer and label.is_free_of(names) and label.is_free_of(labels):
            labels.append(label)
    return labels[:MOST_LABELS]
