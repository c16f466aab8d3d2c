"""The index as the place where a trace's ids are looked up, and an answer's numbers resolved."""

from __future__ import annotations

import mimetypes
import sqlite3

from lightrag_jsonl.explain.citations import Citable, Cited, resolve_citations
from lightrag_jsonl.explain.sources import SourceDocument
from lightrag_jsonl.markers import markers
from lightrag_jsonl.storage import documents
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.types import Chunk, Context, Entity, Page, Relation

CITED_CHUNKS = 5  # of an entity or relation: where it was first read
REMEMBERED = 2_000  # chunks and documents that are kept at hand
REMEMBERED_CHARACTERS = 50_000_000  # of pages


class StoredLibrary:
    """Looks ids up in one read transaction (the `Library` protocol), each mostly once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._chunks: dict[str, Chunk | None] = {}
        self._pages: dict[tuple[str, int], Page | None] = {}
        self._characters = 0
        self._documents: dict[str, SourceDocument | None] = {}

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk as it is stored, or None."""
        if chunk_id not in self._chunks:
            if len(self._chunks) >= REMEMBERED:
                self._chunks.clear()
            found = documents.chunks_by_id(self._connection, [chunk_id])
            self._chunks[chunk_id] = found.get(chunk_id)
        return self._chunks[chunk_id]

    def page(self, document_id: str, number: int) -> Page | None:
        """A page of a document, or None."""
        place = document_id, number
        if place not in self._pages:
            if self._characters > REMEMBERED_CHARACTERS:
                self._pages.clear()
                self._characters = 0
            found = documents.page(self._connection, document_id, number)
            self._pages[place] = found
            self._characters += len(found.text) if found else 0
        return self._pages[place]

    def document(self, document_id: str) -> SourceDocument | None:
        """What is known of a document, or None."""
        if document_id not in self._documents:
            if len(self._documents) >= REMEMBERED:
                self._documents.clear()
            found = documents.documents(self._connection, [document_id])
            self._documents[document_id] = described(found[0]) if found else None
        return self._documents[document_id]


def described(stored: documents.StoredDocument) -> SourceDocument:
    """A stored document without its text."""
    kind = mimetypes.guess_type(stored.source)[0] if stored.source else None
    media_type = kind or "text/plain"
    return SourceDocument(stored.id, stored.title, stored.source, stored.date, media_type)


def cite(database: Database, text: str, context: Context) -> Cited:
    """The citations of an answer written from `context`; only what it cites is looked up."""
    wanted = {number for mark in markers(text) for number in mark.numbers}
    chunk_ids: dict[int, tuple[str, ...]] = {}
    own: dict[int, Citable] = {}
    facts: list[Entity | Relation] = [*context.entities, *context.relations]
    for number, item in enumerate(facts, 1):
        if number in wanted:
            chunk_ids[number] = item.chunk_ids[:CITED_CHUNKS]
    first = len(context.entities) + len(context.relations) + 1
    for number, chunk in enumerate(context.chunks, first):
        if number in wanted:
            own[number] = Citable("chunk", chunk.id, (chunk,))
    with database.reading() as connection:
        every = [name for names in chunk_ids.values() for name in names]
        found = documents.chunks_by_id(connection, dict.fromkeys(every))
    for number, names in chunk_ids.items():
        chunks = tuple(found[name] for name in names if name in found)
        own[number] = _fact(number, context, chunks)
    return resolve_citations(text, own, context.documents)


def _fact(number: int, context: Context, chunks: tuple[Chunk, ...]) -> Citable:
    if number <= len(context.entities):
        return Citable("entity", context.entities[number - 1].name, chunks)
    relation = context.relations[number - len(context.entities) - 1]
    label = f"{relation.source} — {relation.predicate} → {relation.target}"
    return Citable("relation", label, chunks)
