"""Traces the origin of facts: from a document to the facts read from it, and back."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from lightrag_jsonl.candidates import ID_LENGTH, Edge, edge_id
from lightrag_jsonl.errors import CorruptError, NotFoundError
from lightrag_jsonl.explain.events import Selection
from lightrag_jsonl.explain.library import StoredLibrary, described
from lightrag_jsonl.explain.sources import SourceDocument, Sources, look_up
from lightrag_jsonl.explain.trace import event_from_json
from lightrag_jsonl.storage import documents, reading, traces
from lightrag_jsonl.text import name_key
from lightrag_jsonl.types import Chunk, Page, Relation, TraceSummary


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """A chunk, and the edges that it states."""

    chunk: Chunk
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class DocumentOrigins:
    """A document with its pages and chunks in order, and the queries that were shown part of it."""

    document: SourceDocument
    pages: tuple[Page, ...]
    chunks: tuple[ChunkFacts, ...]
    traces: tuple[TraceSummary, ...]


@dataclass(frozen=True, slots=True)
class EdgeOrigins:
    """An edge as it is stored now, every chunk that states it, and the queries that chose it."""

    edge: Edge
    sources: Sources
    traces: tuple[TraceSummary, ...]


def document_origins(connection: sqlite3.Connection, document_id: str) -> DocumentOrigins:
    """What was read from a document, chunk by chunk; `NotFoundError` where there is none."""
    found = documents.documents(connection, [document_id])
    if not found:
        raise NotFoundError(f"no such document: {document_id}")
    chunks = documents.chunks_of(connection, [found[0].row])
    return DocumentOrigins(
        described(found[0]),
        documents.pages(connection, document_id),
        tuple(
            ChunkFacts(chunk, tuple(_stated(connection, row, chunk)))
            for row, chunk in chunks.items()
        ),
        _summaries(connection, _resting_on(connection, {chunk.id for chunk in chunks.values()})),
    )


def edge_origins(
    connection: sqlite3.Connection, source: str, predicate: str, target: str
) -> EdgeOrigins:
    """Where an edge was read; ends are found by any spelling, the predicate by any of its keywords.

    `NotFoundError` names the entity or edge that does not exist; if only the predicate differs, it
    also names the edge that does.
    """
    relation = _relation(connection, source, target)
    keys = {name_key(word) for word in (relation.predicate, *relation.keywords)}
    if name_key(predicate) not in keys:
        raise NotFoundError(
            f"no edge ({source}, {predicate}, {target}); there is "
            f"({relation.source}, {relation.predicate}, {relation.target})"
        )
    edge = _edge(relation)
    return EdgeOrigins(
        edge,
        look_up(edge.chunk_ids, StoredLibrary(connection)),
        _summaries(connection, _choosing(connection, edge)),
    )


_CHUNK_ID = re.compile(r"chunk-[0-9a-f]{16}")


def _relation(connection: sqlite3.Connection, source: str, target: str) -> Relation:
    ends = {name: name_key(name) for name in (source, target)}
    rows = reading.entity_ids(connection, ends.values())
    for name, key in ends.items():
        if key not in rows:
            raise NotFoundError(f"no such entity: {name}")
    row = reading.relation_between(connection, rows[ends[source]], rows[ends[target]])
    if row is None:
        raise NotFoundError(f"no edge between {source} and {target}")
    return reading.relations(connection, [row])[row]


def _edge(relation: Relation, chunk_ids: tuple[str, ...] | None = None) -> Edge:
    labels = relation.source, relation.predicate, relation.target
    names = relation.chunk_ids if chunk_ids is None else chunk_ids
    return Edge(edge_id(*labels), *labels, names)


def _stated(connection: sqlite3.Connection, row: int, chunk: Chunk) -> Iterator[Edge]:
    ids = reading.mentioned(connection, "relation", [row])
    found = reading.relations(connection, ids, chunk_limit=1)
    for id in ids:
        if id in found:
            yield _edge(found[id], (chunk.id,))


def _resting_on(connection: sqlite3.Connection, chunk_ids: set[str]) -> set[str]:
    """The queries whose selection contains one of the chunks."""
    return {
        id
        for id, event in traces.selections(connection)
        if not chunk_ids.isdisjoint(_CHUNK_ID.findall(event))
    }


def _choosing(connection: sqlite3.Connection, edge: Edge) -> set[str]:
    """The queries that chose an edge with these labels, whatever the length of its id."""
    chosen = set()
    for id, text in traces.selections(connection):
        if edge.id[:ID_LENGTH] not in text:
            continue
        try:
            event = event_from_json(text)
        except (ValueError, TypeError) as error:
            raise CorruptError(f"trace {id} cannot be read: {error}") from error
        if isinstance(event, Selection):
            chosen |= {id for one in event.edges if one.edge.labels == edge.labels}
    return chosen


def _summaries(connection: sqlite3.Connection, ids: set[str]) -> tuple[TraceSummary, ...]:
    every = traces.listed(connection) if ids else []
    return tuple(TraceSummary(*row) for row in every if row[0] in ids)  # type: ignore[arg-type]
