"""The records of a query in PROV-O: their URIs, and the triples of each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from lightrag_jsonl.candidates import Edge, SelectedEdge
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.explain.rdf import RDFS, TYPE, XSD, Iri, Literal, Triple
from lightrag_jsonl.text import name_key
from lightrag_jsonl.types import Mode

PROV = "http://www.w3.org/ns/prov#"
TG = "https://trustgraph.ai/ns/"
DCT = "http://purl.org/dc/terms/"
PREFIXES = {"prov": PROV, "tg": TG, "dcterms": DCT}

SOURCE_GRAPH = Iri("urn:graph:source")
RETRIEVAL_GRAPH = Iri("urn:graph:retrieval")

LABEL = Iri(RDFS + "label")
ENTITY = Iri(PROV + "Entity")
ACTIVITY = Iri(PROV + "Activity")
DERIVED = Iri(PROV + "wasDerivedFrom")
GENERATED = Iri(PROV + "wasGeneratedBy")
STARTED = Iri(PROV + "startedAtTime")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

EDGELESS: frozenset[Mode] = frozenset({"naive", "bypass"})
WITH_CHUNKS: frozenset[Mode] = frozenset({"naive", "mix", "walk"})  # retrieve chunks directly


@dataclass(frozen=True, slots=True)
class Bases:
    """What the URIs of entities and predicates begin with; a percent-encoded key follows."""

    entity: str = "urn:entity:"
    predicate: str = "urn:predicate:"

    def __post_init__(self) -> None:
        for base in (self.entity, self.predicate):
            if not _SCHEME.match(base):
                raise ConfigError(f"the base of a URI begins with its scheme, unlike {base!r}")

    def triple(self, edge: Edge) -> Triple:
        """The fact itself, as a triple of URIs."""
        return Triple(
            self.entity_uri(edge.source),
            self.predicate_uri(edge.predicate),
            self.entity_uri(edge.target),
        )

    def entity_uri(self, name: str) -> Iri:
        """The URI of an entity: equal names (by `name_key`) give equal URIs."""
        return Iri(self.entity + encoded(name_key(name)))

    def predicate_uri(self, label: str) -> Iri:
        """The URI of a predicate."""
        return Iri(self.predicate + encoded(name_key(label)))


def tg(name: str) -> Iri:
    """A term of the trustgraph vocabulary."""
    return Iri(TG + name)


def encoded(key: str) -> str:
    """A key, percent-encoded for use anywhere in a URI."""
    return quote(key, safe="", errors="replace")


def session_uri(trace_id: str) -> Iri:
    """The URI of a query, from its question to its end."""
    return Iri(f"urn:trustgraph:session:{encoded(trace_id)}")


def prov_uri(kind: str, trace_id: str) -> Iri:
    """The URI of a step; `kind` is keywords, retrieval, selection or answer."""
    return Iri(f"urn:trustgraph:prov:{kind}:{encoded(trace_id)}")


def edge_uri(trace_id: str, index: int) -> Iri:
    """The URI of the choice of one edge: the `index`th that a query chose, from 0."""
    return Iri(f"urn:trustgraph:prov:edge:{encoded(trace_id)}:{index}")


def answer_text_uri(trace_id: str) -> Iri:
    """The URI of the text that was answered."""
    return Iri(f"urn:trustgraph:answer:{encoded(trace_id)}")


def chunk_uri(chunk_id: str) -> Iri:
    """The URI of a chunk."""
    return Iri(f"urn:chunk:{encoded(chunk_id)}")


def session_triples(trace_id: str, question: str, started_at: datetime) -> tuple[Triple, ...]:
    """Four: its type, label, time and question."""
    uri = session_uri(trace_id)
    return (
        Triple(uri, TYPE, ACTIVITY),
        Triple(uri, LABEL, Literal("Query session")),
        Triple(uri, STARTED, Literal(xsd_time(started_at), XSD + "dateTime")),
        Triple(uri, tg("query"), Literal(question)),
    )


def keyword_triples(trace_id: str, concepts: Iterable[str]) -> tuple[Triple, ...]:
    """Type, label, origin, and one concept for each keyword."""
    uri = prov_uri("keywords", trace_id)
    head = entity_triples(uri, "Keywords", GENERATED, session_uri(trace_id))
    return (*head, *(Triple(uri, tg("concept"), Literal(word)) for word in dict.fromkeys(concepts)))


def retrieval_triples(trace_id: str, mode: Mode, edges: int, chunks: int) -> tuple[Triple, ...]:
    """Type, label, origin, and the numbers of edges and of chunks, if the mode retrieves them."""
    uri = prov_uri("retrieval", trace_id)
    found = list(entity_triples(uri, "Retrieval", GENERATED, session_uri(trace_id)))
    if mode not in EDGELESS:
        found.append(Triple(uri, tg("edgeCount"), integer(edges)))
    if mode in WITH_CHUNKS:
        found.append(Triple(uri, tg("chunkCount"), integer(chunks)))
    return tuple(found)


def selection_triples(
    trace_id: str,
    edges: Iterable[SelectedEdge],
    chunk_ids: Iterable[str],
    *,
    fallback: bool = False,
    bases: Bases | None = None,
) -> tuple[Triple, ...]:
    """Type, label, origin, a link for each chosen edge and chunk, and two triples for each edge."""
    uri = prov_uri("selection", trace_id)
    found = list(entity_triples(uri, "Selection", DERIVED, prov_uri("retrieval", trace_id)))
    for index, chosen in enumerate(edges):
        node = edge_uri(trace_id, index)
        found.append(Triple(uri, tg("selectedEdge"), node))
        found.extend(_edge_triples(node, chosen, bases or Bases()))
    found.extend(Triple(uri, tg("selectedChunk"), chunk_uri(name)) for name in chunk_ids)
    if fallback:
        found.append(Triple(uri, tg("fallback"), Literal("true", XSD + "boolean")))
    return tuple(found)


def answer_triples(trace_id: str) -> tuple[Triple, ...]:
    """Four: its type, label, origin, and where its text is stored."""
    uri = prov_uri("answer", trace_id)
    head = entity_triples(uri, "Answer", DERIVED, prov_uri("selection", trace_id))
    return (*head, Triple(uri, tg("document"), answer_text_uri(trace_id)))


def entity_triples(uri: Iri, label: str, link: Iri, origin: Iri) -> tuple[Triple, ...]:
    """The three triples that every derived record begins with."""
    return Triple(uri, TYPE, ENTITY), Triple(uri, LABEL, Literal(label)), Triple(uri, link, origin)


def integer(value: int) -> Literal:
    """A whole number as `xsd:integer`."""
    return Literal(str(value), XSD + "integer")


def xsd_time(moment: datetime) -> str:
    """The moment in UTC; a moment without a time zone is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _edge_triples(node: Iri, chosen: SelectedEdge, bases: Bases) -> Iterator[Triple]:
    yield Triple(node, tg("edge"), bases.triple(chosen.edge))
    if chosen.reasoning is not None:
        yield Triple(node, tg("reasoning"), Literal(chosen.reasoning))
    elif chosen.score is not None:
        yield Triple(node, tg("score"), Literal(_double(chosen.score), XSD + "double"))


def _double(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else ("INF" if value > 0 else "-INF")
