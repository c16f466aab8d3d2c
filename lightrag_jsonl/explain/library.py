"""Looks up a trace's ids in the index, and resolves the citations of an answer."""

from __future__ import annotations

import mimetypes
import sqlite3
from collections.abc import Mapping
from typing import TypeAlias

from lightrag_jsonl.explain.citations import Citable, Cited, resolve_citations
from lightrag_jsonl.explain.sources import SourceDocument
from lightrag_jsonl.markers import markers
from lightrag_jsonl.storage import documents
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.types import Chunk, Context, Entity, Page, Relation

CITED_CHUNKS = 5  # an entity or relation is cited by the first so many chunks
REMEMBERED = 2_000  # cached chunks and documents
REMEMBERED_CHARACTERS = 50_000_000  # of cached pages

Item: TypeAlias = Entity | Relation | Chunk


class StoredLibrary:
    """Looks up ids in one read transaction (the `Library` protocol), with a cache."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._chunks: dict[str, Chunk | None] = {}
        self._pages: dict[tuple[str, int], Page | None] = {}
        self._characters = 0
        self._documents: dict[str, SourceDocument | None] = {}

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The stored chunk, or None."""
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
        """A document's description, or None."""
        if document_id not in self._documents:
            if len(self._documents) >= REMEMBERED:
                self._documents.clear()
            found = documents.documents(self._connection, [document_id])
            self._documents[document_id] = described(found[0]) if found else None
        return self._documents[document_id]


def described(stored: documents.StoredDocument) -> SourceDocument:
    """A stored document as a `SourceDocument`."""
    kind = mimetypes.guess_type(stored.source)[0] if stored.source else None
    media_type = kind or "text/plain"
    return SourceDocument(stored.id, stored.title, stored.source, stored.date, media_type)


def cite(database: Database, text: str, context: Context) -> Cited:
    """The citations of an answer written from `context`; only cited items are looked up."""
    items: list[Item] = [*context.entities, *context.relations, *context.chunks]
    shown = dict(enumerate(items, 1))
    wanted = {number for mark in markers(text) for number in mark.numbers}
    cited = {number: shown[number] for number in sorted(wanted & shown.keys())}
    names = [name for item in cited.values() for name in _read_in(item)]
    with database.reading() as connection:
        found = documents.chunks_by_id(connection, dict.fromkeys(names))
    own = {number: _citable(item, found) for number, item in cited.items()}
    return resolve_citations(text, own, context.documents)


def _read_in(item: Item) -> tuple[str, ...]:
    """The first chunks in which a fact was read."""
    return () if isinstance(item, Chunk) else item.chunk_ids[:CITED_CHUNKS]


def _citable(item: Item, found: Mapping[str, Chunk]) -> Citable:
    if isinstance(item, Chunk):
        return Citable("chunk", item.id, (item,))
    chunks = tuple(found[name] for name in _read_in(item) if name in found)
    if isinstance(item, Entity):
        return Citable("entity", item.name, chunks)
    return Citable("relation", f"{item.source} — {item.predicate} → {item.target}", chunks)
