"""The URIs of a trace's records and of what they refer to, and the triples that describe them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import digest, name_key
from lightrag_jsonl.core.types import Page
from lightrag_jsonl.retrieval.edge_selection import Edge
from lightrag_jsonl.tracing.rdf import Triple, iri, literal, term, triples_of

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_URI_NAMES = {"session": "session", "end": "session", "chunk": "answer"}


@dataclass(frozen=True, slots=True)
class Bases:
    """What the URIs of entities and predicates begin with; a percent-encoded key follows.

    `ConfigError` if one does not begin with a scheme.
    """

    entity: str = "urn:entity:"
    predicate: str = "urn:predicate:"

    def __post_init__(self) -> None:
        for base in (self.entity, self.predicate):
            if not _SCHEME.match(base):
                raise ConfigError(f"the base of a URI begins with its scheme, unlike {base!r}")

    def triple(self, edge: Edge) -> Triple:
        """The fact itself; names that are equal (by `name_key`) have the same URI."""
        source, predicate, target = [encoded(name_key(label)) for label in edge.labels]
        ends = iri(self.entity + source), iri(self.entity + target)
        return ends[0], iri(self.predicate + predicate), ends[1]


DEFAULT_BASES = Bases()


def encoded(key: str) -> str:
    """A key, percent-encoded for use anywhere in a URI."""
    return quote(key, safe="", errors="replace")


def stage_uri(stage: str, trace_id: str) -> str:
    """The URI of what a stage records: "session" and "end" the query, "chunk" the answer's text."""
    return f"urn:trustgraph:{_URI_NAMES.get(stage, f'prov:{stage}')}:{encoded(trace_id)}"


def source_uri(kind: Literal["chunk", "document", "subgraph"], id: str) -> str:
    """The URI of a chunk, of a document, or of everything that one chunk states."""
    return f"urn:{kind}:{encoded(id)}"


def page_uri(page: Page) -> str:
    """The URI of a page, derived from its document, number and text."""
    return "urn:page:" + digest(page.document_id, str(page.number), page.text)


def derived_triples(
    uri: str,
    label: str,
    origin: str,
    *more: tuple[str, str],
    link: str = "prov:wasDerivedFrom",
) -> tuple[Triple, ...]:
    """A record's triples: its type, its label, the record that it comes from, and more."""
    entity = ("rdf:type", term("prov:Entity")), ("rdfs:label", literal(label))
    return triples_of(uri, *entity, (link, iri(origin)), *more)
