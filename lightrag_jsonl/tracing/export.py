"""Exports a trace as RDF and, if wanted, the chain from what was selected to its documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lightrag_jsonl.core.types import Chunk, Page
from lightrag_jsonl.tracing import prov, rdf
from lightrag_jsonl.tracing.events import Answered, Retrieval, Selection, Session
from lightrag_jsonl.tracing.prov import DEFAULT_BASES, Bases, page_uri, source_uri
from lightrag_jsonl.tracing.rdf import Triple, literal
from lightrag_jsonl.tracing.source_lookup import SourceDocument, Sources
from lightrag_jsonl.tracing.trace import Trace

SOURCE_GRAPH = "urn:graph:source"
RETRIEVAL_GRAPH = "urn:graph:retrieval"


def export(
    trace: Trace,
    *,
    format: rdf.Format = "nquads",
    version: rdf.Version = "1.2",
    sources: Sources | None = None,
    bases: Bases = DEFAULT_BASES,
) -> str:
    """Write the records of a query, but for its keywords; equal traces give equal bytes.

    `sources` add the selected facts (in the default graph), and for each the chain from every chunk
    that states it to page and document. Deleted sources have no chain.
    """
    graphs: dict[str, Iterable[Triple]] = {RETRIEVAL_GRAPH: trace_triples(trace, bases)}
    if sources is not None:
        graphs[""] = _facts(trace, bases)
        graphs[SOURCE_GRAPH] = _chains(trace, bases, sources)
    return rdf.serialize(graphs, format=format, version=version)


def trace_triples(trace: Trace, bases: Bases = DEFAULT_BASES) -> Iterator[Triple]:
    """The records of the steps that the query reached."""
    id, mode = trace.id, trace.mode
    yield from Session(id, trace.question, mode, trace.started_at).triples
    if "retrieval" in trace.stages:
        yield from Retrieval(id, mode, trace.candidates, trace.retrieved_chunks).triples
    if "selection" in trace.stages:
        chosen = trace.selected, trace.selected_chunks
        selection = Selection(id, "score", *chosen, fallback=trace.fallback)
        yield from selection.triples_under(bases)
    if trace.answer is not None:
        yield from Answered(id, trace.answer).triples


def _facts(trace: Trace, bases: Bases) -> Iterator[Triple]:
    for chosen in trace.selected:
        fact = bases.triple(chosen.edge)
        yield fact
        for resource, label in zip(fact, chosen.edge.labels, strict=True):
            yield resource, rdf.term("rdfs:label"), literal(label)


def _chains(trace: Trace, bases: Bases, sources: Sources) -> Iterator[Triple]:
    """The chain of each chunk that states a selected fact, or was selected itself."""
    stated: dict[str, list[Triple]] = {id: [] for id in trace.selected_chunks}
    for chosen in trace.selected:
        for id in chosen.edge.chunk_ids:
            stated.setdefault(id, []).append(bases.triple(chosen.edge))
    for chunk in filter(None, map(sources.chunks.get, stated)):
        page, document = sources.page_of(chunk), sources.documents.get(chunk.document_id)
        if page is not None and document is not None:
            yield from _chain(stated[chunk.id], chunk, page, document)


def _chain(
    facts: list[Triple], chunk: Chunk, page: Page, document: SourceDocument
) -> Iterator[Triple]:
    chunk_uri, document_uri = source_uri("chunk", chunk.id), source_uri("document", document.id)
    number = chunk.index + 1
    if facts:
        contained = [("tg:contains", rdf.triple_term(fact)) for fact in facts]
        subgraph_uri = source_uri("subgraph", chunk.id)
        yield from prov.derived_triples(
            subgraph_uri, f"Facts of chunk {number}", chunk_uri, *contained
        )
    span = {"chunkIndex": chunk.index, "charOffset": chunk.start, "charLength": len(chunk.text)}
    numbers = [(f"tg:{name}", literal(value, "xsd:integer")) for name, value in span.items()]
    yield from prov.derived_triples(chunk_uri, f"Chunk {number}", page_uri(page), *numbers)
    page_number = "tg:pageNumber", literal(page.number, "xsd:integer")
    yield from prov.derived_triples(
        page_uri(page), f"Page {page.number}", document_uri, page_number
    )
    properties = {
        "rdfs:label": document.name,
        "dcterms:title": document.title,
        "dcterms:source": document.source,
        "dcterms:date": document.date,
        "dcterms:format": document.media_type,
    }
    known = [(name, literal(value)) for name, value in properties.items() if value]
    yield from rdf.triples_of(document_uri, ("rdf:type", rdf.term("prov:Entity")), *known)
