"""RDF terms, and their writers: N-Quads here, Turtle, TriG and JSON-LD by pyoxigraph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal as OneOf
from typing import NamedTuple, get_args
from urllib.parse import quote

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.text import digest, sanitize

Format = OneOf["nquads", "turtle", "trig", "jsonld"]
Version = OneOf["1.2", "star", "1.1"]

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"


class Iri(str):
    """An IRI; characters that are not allowed in one are percent-encoded when it is written."""

    __slots__ = ()


class Literal(NamedTuple):
    """A literal; without a datatype it is a plain string."""

    value: str
    datatype: str = ""


class Triple(NamedTuple):
    """A statement; as the object of another one it is a triple term."""

    subject: Iri
    predicate: Iri
    object: Iri | Literal | Triple


class Quad(NamedTuple):
    """A statement in a named graph; in the default graph if `graph` is None."""

    triple: Triple
    graph: Iri | None = None


TYPE = Iri(RDF + "type")


def serialize(
    quads: Iterable[Quad],
    *,
    format: Format = "nquads",
    rdf: Version = "1.2",
    prefixes: Mapping[str, str] | None = None,
) -> str:
    """Write the quads; equal sets of quads give equal text."""
    _check(format, rdf)
    if format == "nquads":
        return to_nquads(quads, rdf=rdf)
    canonical = to_nquads(quads, rdf="1.1" if rdf == "1.1" else "1.2")
    written = _by_pyoxigraph(canonical, format, {**(prefixes or {}), "xsd": XSD, "rdfs": RDFS})
    return _starred(written) if rdf == "star" else written


def to_nquads(quads: Iterable[Quad], *, rdf: Version = "1.2") -> str:
    """N-Quads, sorted, each line once."""
    if rdf == "1.1":
        quads = reified(quads)
    lines = {_quad_line(quad, star=rdf == "star") for quad in quads}
    return "".join(sorted(lines))


def reified(quads: Iterable[Quad]) -> Iterator[Quad]:
    """For RDF 1.1: each triple term becomes an `rdf:Statement` node, named by what it says."""
    for (subject, predicate, thing), graph in quads:
        if not isinstance(thing, Triple):
            yield Quad(Triple(subject, predicate, thing), graph)
            continue
        node = Iri("urn:statement:" + digest(_term(thing)))
        statement = (
            Triple(node, TYPE, Iri(RDF + "Statement")),
            Triple(node, Iri(RDF + "subject"), thing.subject),
            Triple(node, Iri(RDF + "predicate"), thing.predicate),
            Triple(node, Iri(RDF + "object"), thing.object),
        )
        yield Quad(Triple(subject, predicate, node), graph)
        yield from reified(Quad(triple, graph) for triple in statement)


_IRI_ALLOWED = ":/?#@!$&'()*+,;=%"
_STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_ESCAPED = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|<(?!<)[^>]*>|<<\(|\)>>')


def _check(format: str, rdf: str) -> None:
    if format not in get_args(Format):
        raise ConfigError(f"format must be one of {', '.join(get_args(Format))}, not {format!r}")
    if rdf not in get_args(Version):
        raise ConfigError(f"rdf must be one of {', '.join(get_args(Version))}, not {rdf!r}")
    if format == "jsonld" and rdf != "1.1":
        raise ConfigError('JSON-LD cannot carry triple terms: use rdf="1.1"')


def _quad_line(quad: Quad, *, star: bool) -> str:
    subject, predicate, thing = quad.triple
    graph = f" {_iri(quad.graph)}" if quad.graph is not None else ""
    return f"{_iri(subject)} {_iri(predicate)} {_term(thing, star=star)}{graph} .\n"


def _term(term: Iri | Literal | Triple, *, star: bool = False) -> str:
    if isinstance(term, Iri):
        return _iri(term)
    if isinstance(term, Literal):
        kind = f"^^{_iri(term.datatype)}" if term.datatype else ""
        return f'"{_ESCAPED.sub(_escape, sanitize(term.value))}"{kind}'
    inner = f"{_iri(term.subject)} {_iri(term.predicate)} {_term(term.object, star=star)}"
    return f"<< {inner} >>" if star else f"<<( {inner} )>>"


def _iri(iri: str) -> str:
    plain = iri if iri.isascii() else sanitize(iri)
    return f"<{quote(_STRAY_PERCENT.sub('%25', plain), safe=_IRI_ALLOWED)}>"


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found.group()) or f"\\u{ord(found.group()):04X}"


def _by_pyoxigraph(nquads: str, format: Format, prefixes: Mapping[str, str]) -> str:
    try:
        from pyoxigraph import RdfFormat, parse, serialize
    except ImportError as missing:
        raise ConfigError(
            f"{format} is written by pyoxigraph 0.5 or newer: pip install 'pyoxigraph>=0.5'"
        ) from missing
    names = {"turtle": RdfFormat.TURTLE, "trig": RdfFormat.TRIG, "jsonld": RdfFormat.JSON_LD}
    quads = list(parse(nquads, RdfFormat.N_QUADS))
    # Turtle has no graphs: the triples of all, without repetitions, in order.
    triples = dict.fromkeys(quad.triple for quad in quads)
    written = serialize(
        triples if format == "turtle" else quads,
        format=names[format],
        prefixes=dict(sorted(prefixes.items())),
    )
    text = (written or b"").decode("utf-8")
    return text if text.endswith("\n") else text + "\n"


def _starred(text: str) -> str:
    """RDF 1.2's `<<( s p o )>>` in the older notation, without touching literals and IRIs."""
    older = {"<<(": "<<", ")>>": ">>"}
    return _TOKENS.sub(lambda token: older.get(token.group(), token.group()), text)
