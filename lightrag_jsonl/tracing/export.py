"""Exports a trace as RDF, optionally with the chains from selected facts to documents."""

import json
import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.languages import Language, known_language
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.tracing import rdf
from lightrag_jsonl.tracing.events import Answered, ChunksRead, Retrieval, SelectionMade, Session
from lightrag_jsonl.tracing.rdf import Triple, entity_triples, literal, source_uri
from lightrag_jsonl.tracing.trace import SourceDocument, Sources, Trace

# The labels of records: of a chunk, of its facts, of a page; the labels of steps as their events write them.
SOURCE_LABELS: Mapping[Language, tuple[str, str, str]] = {
    "en": ("Chunk {}", "Facts of chunk {}", "Page {}"),
    "zh": ("第 {} 块", "第 {} 块的事实", "第 {} 页"),
}
STEP_LABELS = {"Query session": "提问", "Retrieval": "检索", "Selection": "筛选", "Answer": "回答"}


def export_trace(
    trace: Trace,
    *,
    format: rdf.Format = "nquads",
    version: rdf.Version = "1.2",
    sources: Sources | None = None,
    entity_base: str | None = None,
    predicate_base: str | None = None,
    language: str = "en",
) -> str:
    """The records of a query without the keywords, labelled in a `language`; equal traces give equal
    bytes.

    `sources` add the selected facts (in the default graph), and the chain from every chunk with a
    selected fact to page and document. Deleted sources have no chain. `ConfigError` if a base of URIs
    does not begin with a scheme.
    """
    words = known_language(language)
    steps = [*trace_triples(trace)]
    if words == "zh":
        steps = [_with_chinese_label(triple) for triple in steps]
    graphs: dict[str, Iterable[Triple]] = {"urn:graph:retrieval": steps}
    if sources is not None:
        chains = _chains(trace, sources, words)
        graphs |= {"": _facts(trace), "urn:graph:source": chains}
    for old, new in ((rdf.ENTITY_BASE, entity_base), (rdf.PREDICATE_BASE, predicate_base)):
        if new is not None:
            graphs = {name: list(_rebased(graph, old, new)) for name, graph in graphs.items()}
    return rdf.serialize(graphs, format=format, version=version)


def trace_triples(trace: Trace) -> Iterator[Triple]:
    """The records of all steps of the query so far."""
    for step in (Session, ChunksRead, Retrieval, SelectionMade, Answered):
        if step.__struct_config__.tag in trace.stages:
            fields = {name: getattr(trace, name) for name in step.__struct_fields__[1:]}
            yield from step(trace_id=trace.id, **fields).triples


def _with_chinese_label(triple: Triple) -> Triple:
    subject, predicate, value = triple
    if predicate != rdf.term("rdfs:label"):
        return triple
    label = json.loads(value)
    return subject, predicate, literal(STEP_LABELS.get(label, label))


def _facts(trace: Trace) -> Iterator[Triple]:
    for selected in trace.selected:
        fact = rdf.fact(selected.edge)
        yield fact
        for resource, label in zip(fact, selected.edge.labels, strict=True):
            yield resource, rdf.term("rdfs:label"), literal(label)


def _chains(trace: Trace, sources: Sources, language: Language) -> Iterator[Triple]:
    facts_by_chunk: dict[str, list[Triple]] = {id: [] for id in trace.selected_chunks}
    for selected in trace.selected:
        for id in selected.edge.chunk_ids:
            facts_by_chunk.setdefault(id, []).append(rdf.fact(selected.edge))
    for id, facts in facts_by_chunk.items():
        chunk = sources.chunks.get(id)
        if chunk is not None:
            yield from _source_chain(chunk, facts, sources, language)


def _source_chain(
    chunk: Chunk, facts: Sequence[Triple], sources: Sources, language: Language
) -> Iterator[Triple]:
    """A chunk with its facts, page and document."""
    page = sources.pages[chunk.document_id, chunk.page]
    document = sources.documents[chunk.document_id]
    chunk_uri = source_uri("chunk", chunk.id)
    page_uri = rdf.page_uri(page)
    document_uri = source_uri("document", document.id)
    chunk_label, facts_label, page_label = SOURCE_LABELS[language]
    if facts:
        contents = [("tg:contains", rdf.triple_term(fact)) for fact in facts]
        subgraph = source_uri("subgraph", chunk.id)
        label = facts_label.format(chunk.index + 1)
        yield from entity_triples(subgraph, label, chunk_uri, contents)
    place = [
        ("tg:chunkIndex", literal(chunk.index)),
        ("tg:charOffset", literal(chunk.start)),
        ("tg:charLength", literal(len(chunk.text))),
    ]
    yield from entity_triples(chunk_uri, chunk_label.format(chunk.index + 1), page_uri, place)
    number = ("tg:pageNumber", literal(page.number))
    yield from entity_triples(page_uri, page_label.format(page.number), document_uri, [number])
    yield from _description(document_uri, document)


def _description(uri: str, document: SourceDocument) -> Iterator[Triple]:
    properties = {
        "rdfs:label": document.name,
        "dcterms:title": document.title,
        "dcterms:source": document.source,
        "dcterms:date": document.date,
        "dcterms:format": mimetypes.guess_type(document.source or "")[0] or "text/plain",
    }
    stated = [(name, literal(value)) for name, value in properties.items() if value]
    yield from rdf.triples_of(uri, [("rdf:type", rdf.term("prov:Entity")), *stated])


def _rebased(graph: Iterable[Triple], old: str, new: str) -> Iterator[Triple]:
    """The triples with the URIs under another base; literals stay as they are."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", new):
        raise ConfigError(f"the base of a URI begins with its scheme, unlike {new!r}")
    start = f"<{old}"
    base = "<" + quote(sanitize(new), safe=":/?#@!$&'()*+,;=%")
    for subject, predicate, value in graph:
        moved = value if value.startswith('"') else value.replace(start, base)
        yield subject.replace(start, base), predicate.replace(start, base), moved
