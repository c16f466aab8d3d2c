"""From a document to the facts read from it and the answers based on it, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.errors import NotFoundError
from lightrag_jsonl.core.text import name_key
from lightrag_jsonl.core.types import Chunk, Relation, TraceSummary
from lightrag_jsonl.retrieval.edge_selection import Edge, edge_id, labels
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.tracing.trace import (
    SourceDocument,
    Sources,
    describe_documents,
    look_up_sources,
)

_EVERY_CHUNK = 2**31


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """A chunk, and the edges that it states."""

    chunk: Chunk
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class DocumentProvenance:
    """A document with its chunks in order, and the queries that were shown part of it."""

    document: SourceDocument
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
    documents = describe_documents(reader, [document_id])
    if document_id not in documents:
        raise NotFoundError(f"no such document: {document_id}")
    found = []
    for row, chunk in reader.document_chunks([document_id]).items():
        relations = reader.relations(reader.mentioned_relations([row]), chunk_limit=1)
        edges = [_edge(relation, (chunk.id,)) for relation in relations.values()]
        found.append(ChunkFacts(chunk, tuple(edges)))
    traces = _queries(reader, [facts.chunk.id for facts in found])
    return DocumentProvenance(documents[document_id], tuple(found), traces)


def edge_provenance(reader: Reader, source: str, predicate: str, target: str) -> EdgeProvenance:
    """Where an edge was read; ends are found by any spelling, the predicate by any of its keywords.

    `NotFoundError` if there is none; if only the predicate differs, it names the edge that exists.
    """
    relation = _relation_between(reader, source, target)
    edge = _edge(relation, relation.chunk_ids)
    if name_key(predicate) not in map(name_key, (edge.predicate, *relation.keywords)):
        raise NotFoundError(
            f"no edge ({source}, {predicate}, {target}); there is ({', '.join(edge.labels)})"
        )
    traces = _queries(reader, [f'"id":"{edge.id}'])
    return EdgeProvenance(edge, look_up_sources(reader, edge.chunk_ids), traces)


def _relation_between(reader: Reader, source: str, target: str) -> Relation:
    ids = sorted(reader.entity_ids([name_key(source), name_key(target)]).values())
    rows = reader.relation_rows(pairs=[(ids[0], ids[1])]) if len(ids) == 2 else ()
    for relation in reader.relations(rows, chunk_limit=_EVERY_CHUNK).values():
        return relation
    raise NotFoundError(f"no edge between {source} and {target}")


def _edge(relation: Relation, chunk_ids: tuple[str, ...]) -> Edge:
    return Edge(edge_id(*labels(relation)), *labels(relation), chunk_ids)


def _queries(reader: Reader, marks: Sequence[str]) -> tuple[TraceSummary, ...]:
    """The queries whose stored selection has one of these texts in it, the newest first."""
    ids = set()
    for id, event in reader.events_of_stage("selection"):
        if any(mark in event for mark in marks):
            ids.add(id)
    return tuple(found for found in reader.traces() if found.id in ids)
