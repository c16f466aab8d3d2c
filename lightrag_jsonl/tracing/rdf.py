"""RDF triples as text: N-Quads are written here, Turtle, TriG and JSON-LD by pyoxigraph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, get_args
from urllib.parse import quote

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import digest, sanitize

Format = Literal["nquads", "turtle", "trig", "jsonld"]
Version = Literal["1.2", "star", "1.1"]
Triple: TypeAlias = tuple[str, str, str]
"""Subject, predicate and object, each in N-Quads notation."""

PREFIXES = {
    "dcterms": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "tg": "https://trustgraph.ai/ns/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_IRI_ALLOWED = ":/?#@!$&'()*+,;=%"
_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|<(?!<)[^>]*>|<<\(|\)>>')


def iri(uri: str) -> str:
    """A URI, percent-encoded where necessary."""
    return f"<{quote(_LONE_PERCENT.sub('%25', sanitize(uri)), safe=_IRI_ALLOWED)}>"


def term(name: str) -> str:
    """The IRI of a prefixed name such as "prov:Entity"."""
    prefix, _, local = name.partition(":")
    return iri(PREFIXES[prefix] + local)


def literal(value: object, datatype: str = "") -> str:
    """A plain string, or a value of a datatype such as "xsd:integer"."""
    text = json.dumps(sanitize(str(value)), ensure_ascii=False)
    return f"{text}^^{term(datatype)}" if datatype else text


def triple_term(triple: Triple) -> str:
    """A triple of IRIs as the object of another one."""
    return f"<<( {' '.join(triple)} )>>"


def triples_of(uri: str, *pairs: tuple[str, str]) -> tuple[Triple, ...]:
    """Triples about one subject, from (prefixed name of the predicate, object)."""
    return tuple([(iri(uri), term(name), value) for name, value in pairs])


def serialize(
    graphs: Mapping[str, Iterable[Triple]], *, format: Format = "nquads", version: Version = "1.2"
) -> str:
    """Write the triples of graphs by URI ("": the default graph); equal sets give equal text."""
    for name, value, known in (("format", format, Format), ("rdf", version, Version)):
        if value not in get_args(known):
            raise ConfigError(f"{name} must be one of {', '.join(get_args(known))}, not {value!r}")
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
    return _starred(text) if version == "star" else text


def _reified(triples: Iterable[Triple]) -> Iterator[Triple]:
    """For RDF 1.1: each triple term becomes an `rdf:Statement` node, named by what it says."""
    for subject, predicate, value in triples:
        if value.startswith("<<("):
            node, parts = "urn:statement:" + digest(value), value.split(" ")[1:4]
            names = ("rdf:subject", "rdf:predicate", "rdf:object")
            statement = ("rdf:type", term("rdf:Statement")), *zip(names, parts, strict=True)
            yield from triples_of(node, *statement)
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
    found = list(parse(nquads, RdfFormat.N_QUADS))
    if format == "turtle":  # which has no graphs: the triples of all, without repetitions
        found = list(dict.fromkeys(quad.triple for quad in found))
    written = serialize(found, format=formats[format], prefixes=PREFIXES) or b""
    return written.decode().rstrip("\n") + "\n"


def _starred(text: str) -> str:
    """RDF 1.2's `<<( s p o )>>` in the older notation, without touching literals and IRIs."""
    older = {"<<(": "<<", ")>>": ">>"}
    return _TOKENS.sub(lambda token: older.get(token[0], token[0]), text)
