"""From a document to the facts read from it and the answers based on it, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lightrag_jsonl.core.errors import CorruptError, NotFoundError
from lightrag_jsonl.core.text import name_key
from lightrag_jsonl.core.types import Chunk, Page, Relation, TraceSummary
from lightrag_jsonl.retrieval.edge_selection import Edge, edge_id, labels
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.tracing.events import Selection, event_from_json
from lightrag_jsonl.tracing.source_lookup import SourceDocument, Sources, look_up_sources
from lightrag_jsonl.tracing.trace_store import summaries

_EVERY_CHUNK = 2**31


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """A chunk, and the edges that it states."""

    chunk: Chunk
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class DocumentProvenance:
    """A document with its pages and chunks in order, and the queries that were shown part of it."""

    document: SourceDocument
    pages: tuple[Page, ...]
    chunks: tuple[ChunkFacts, ...]
    traces: tuple[TraceSummary, ...]


@dataclass(frozen=True, slots=True)
class EdgeProvenance:
    """An edge as it is stored now, every chunk that states it, and the queries that chose it."""

    edge: Edge
    sources: Sources
    traces: tuple[TraceSummary, ...]


def document_provenance(reader: Reader, document_id: str) -> DocumentProvenance:
    """What was read from a document, chunk by chunk; `NotFoundError` where there is none."""
    documents = reader.documents([document_id])
    if not documents:
        raise NotFoundError(f"no such document: {document_id}")
    chunks = reader.document_chunks([document_id])
    stated: dict[int, dict[int, None]] = {row: {} for row in chunks}
    for mention in reader.relation_mentions(chunks=chunks):
        if mention.relation is not None:
            stated[mention.chunk][mention.relation] = None
    relations = reader.relations({id for ids in stated.values() for id in ids}, chunk_limit=1)
    facts = [
        ChunkFacts(chunk, tuple(_edge(relations[id], (chunk.id,)) for id in stated[row]))
        for row, chunk in chunks.items()
    ]
    own = {chunk.id for chunk in chunks.values()}
    traces = _queries(
        reader, lambda found: any(not own.isdisjoint(item.chunk_ids) for item in found.shown)
    )
    document = SourceDocument.of(documents[0])
    return DocumentProvenance(document, reader.pages(document_id), tuple(facts), traces)


def edge_provenance(reader: Reader, source: str, predicate: str, target: str) -> EdgeProvenance:
    """Where an edge was read; ends are found by any spelling, the predicate by any of its keywords.

    `NotFoundError` names the entity or edge that does not exist; if only the predicate differs, it
    also names the edge that does.
    """
    relation = _relation_between(reader, source, target)
    edge = _edge(relation, relation.chunk_ids)
    if name_key(predicate) not in {name_key(w) for w in (edge.predicate, *relation.keywords)}:
        raise NotFoundError(
            f"no edge ({source}, {predicate}, {target}); there is ({', '.join(edge.labels)})"
        )
    traces = _queries(
        reader, lambda found: edge.labels in [one.edge.labels for one in found.selected]
    )
    return EdgeProvenance(edge, look_up_sources(reader, edge.chunk_ids), traces)


def _relation_between(reader: Reader, source: str, target: str) -> Relation:
    keys = [name_key(source), name_key(target)]
    ids = reader.entity_ids(keys)
    for name, key in zip((source, target), keys, strict=True):
        if key not in ids:
            raise NotFoundError(f"no such entity: {name}")
    low, high = sorted(ids[key] for key in keys)
    found = reader.relations(reader.relation_rows(pairs=[(low, high)]), chunk_limit=_EVERY_CHUNK)
    if not found:
        raise NotFoundError(f"no edge between {source} and {target}")
    return next(iter(found.values()))


def _edge(relation: Relation, chunk_ids: tuple[str, ...]) -> Edge:
    return Edge(edge_id(*labels(relation)), *labels(relation), chunk_ids)


def _queries(reader: Reader, wanted: Callable[[Selection], bool]) -> tuple[TraceSummary, ...]:
    """The queries whose selection meets a condition, the newest first."""
    ids = set()
    for id, text in reader.events_of_stage("selection"):
        try:
            event = event_from_json(text)
        except ValueError as error:
            raise CorruptError(f"trace {id} cannot be read: {error}") from error
        if isinstance(event, Selection) and wanted(event):
            ids.add(id)
    return tuple(found for found in summaries(reader) if found.id in ids)
