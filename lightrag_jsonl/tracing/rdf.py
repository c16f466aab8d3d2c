"""RDF: the URIs in a trace, triples as text, and the serialization of triples."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

import msgspec

from lightrag_jsonl.core.edges import Edge
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Page
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import digest, sanitize

Format = Literal["nquads", "turtle", "trig", "jsonld"]
Version = Literal["1.2", "star", "1.1"]
Triple: TypeAlias = tuple[str, str, str]  # subject, predicate and object, as N-Quads write them
PropertyValue: TypeAlias = tuple[str, str]  # the prefixed name of a predicate, and the object

ENTITY_BASE = "urn:entity:"
PREDICATE_BASE = "urn:predicate:"
PREFIXES = {
    "dcterms": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "tg": "https://trustgraph.ai/ns/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_URI_NAMES = {"session": "session", "end": "session", "chunk": "answer"}
_TRACE_URI = pattern_of(r"urn:trustgraph:(?:prov:)?[a-z]+:([^:]+)(?::[0-9]+)?")
_DATATYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "double"}
_STAR_NOTATION = {"<<(": "<<", ")>>": ">>"}
_TOKENS = pattern_of(r'"(?:[^"\\]|\\.)*"|<(?!<)[^>]*>|<<\(|\)>>')


def stage_uri(stage: str, trace_id: str) -> str:
    """The URI of a stage's record: of the query for "session" and "end", of the answer's text for
    "chunk".
    """
    return f"urn:trustgraph:{_URI_NAMES.get(stage, f'prov:{stage}')}:{uri_part(trace_id)}"


def trace_id_of(uri: str) -> str:
    """The id of the trace in the URI of a stage, an edge or an answer; any other text unchanged."""
    match = _TRACE_URI.fullmatch(uri)
    return unquote(match[1]) if match else uri


def source_uri(kind: Literal["chunk", "document", "subgraph"], id: str) -> str:
    """The URI of a chunk, of a document, or of all facts of a chunk."""
    return f"urn:{kind}:{uri_part(id)}"


def page_uri(page: Page) -> str:
    """The URI of a page, derived from document, number and text."""
    return "urn:page:" + digest(page.document_id, str(page.number), page.text)


def uri_part(key: str) -> str:
    """A key as a part of a URI."""
    return quote(key, safe="", errors="replace")


def iri(uri: str) -> str:
    """The term of a URI with percent-encoded parts."""
    return f"<{uri}>"


def term(name: str) -> str:
    """The IRI of a prefixed name such as "prov:Entity"."""
    prefix, _, local = name.partition(":")
    return iri(PREFIXES[prefix] + local)


def literal(value: str | bool | int | float | datetime) -> str:
    """The literal of a value, with the datatype of the value's type."""
    if isinstance(value, str):
        return msgspec.json.encode(sanitize(value)).decode()
    text = msgspec.json.encode(value).decode().strip('"')
    return f'"{text}"^^{term("xsd:" + _DATATYPES.get(type(value), "dateTime"))}'


def triple_term(triple: Triple) -> str:
    """A triple of IRIs as the object of another triple."""
    return f"<<( {' '.join(triple)} )>>"


def fact(edge: Edge) -> Triple:
    """The triple of an edge; equal names (by `name_key`) have the same URI."""
    source, predicate, target = [uri_part(name_key(label)) for label in edge.labels]
    return iri(ENTITY_BASE + source), iri(PREDICATE_BASE + predicate), iri(ENTITY_BASE + target)


def triples_of(uri: str, properties: Iterable[PropertyValue]) -> tuple[Triple, ...]:
    """Triples about one subject."""
    return tuple((iri(uri), term(name), value) for name, value in properties)


def entity_triples(
    uri: str,
    label: str,
    origin: str,
    properties: Iterable[PropertyValue] = (),
    *,
    link: str = "prov:wasDerivedFrom",
) -> tuple[Triple, ...]:
    """Triples of a record: type, label, the record of the `origin`, and further properties."""
    basics = [
        ("rdf:type", term("prov:Entity")),
        ("rdfs:label", literal(label)),
        (link, iri(origin)),
    ]
    return triples_of(uri, [*basics, *properties])


def serialize(
    graphs: Mapping[str, Iterable[Triple]], *, format: Format = "nquads", version: Version = "1.2"
) -> str:
    """Write the triples of graphs by URI ("": the default graph); equal sets give equal text."""
    if format == "jsonld" and version != "1.1":
        raise ConfigError('JSON-LD cannot carry triple terms: use rdf="1.1"')
    lines = {
        " ".join([*triple, *([iri(graph)] if graph else []), ".\n"])
        for graph, triples in graphs.items()
        for triple in (_reified(triples) if version == "1.1" else triples)
    }
    text = "".join(sorted(lines))
    if format != "nquads":
        text = _by_pyoxigraph(text, format)
    if version == "star":  # the older notation, without touching literals and IRIs
        text = _TOKENS.sub(lambda token: _STAR_NOTATION.get(token[0], token[0]), text)
    return text


def _reified(triples: Iterable[Triple]) -> Iterator[Triple]:
    """For RDF 1.1: each triple term becomes an `rdf:Statement` node, named by a digest."""
    for subject, predicate, value in triples:
        if value.startswith("<<("):
            node = "urn:statement:" + digest(value)
            _, stated_subject, stated_predicate, stated_object, _ = value.split(" ")
            statement = [
                ("rdf:type", term("rdf:Statement")),
                ("rdf:subject", stated_subject),
                ("rdf:predicate", stated_predicate),
                ("rdf:object", stated_object),
            ]
            yield from triples_of(node, statement)
            value = iri(node)
        yield subject, predicate, value


def _by_pyoxigraph(nquads: str, format: Format) -> str:
    try:
        from pyoxigraph import RdfFormat, parse, serialize
    except ImportError as missing:
        raise ConfigError(
            f"{format} is written by pyoxigraph 0.5 or newer: pip install 'pyoxigraph>=0.5'"
        ) from missing
    formats = {"turtle": RdfFormat.TURTLE, "trig": RdfFormat.TRIG, "jsonld": RdfFormat.JSON_LD}
    statements = list(parse(nquads, RdfFormat.N_QUADS))
    if format == "turtle":  # without graphs: the triples of all graphs, without repetitions
        statements = list(dict.fromkeys(quad.triple for quad in statements))
    serialized = serialize(statements, format=formats[format], prefixes=PREFIXES) or b""
    return serialized.decode().rstrip("\n") + "\n"
