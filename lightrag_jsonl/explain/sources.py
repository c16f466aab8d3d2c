"""The stored texts behind a trace: what its ids refer to now, and what was deleted since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol

from lightrag_jsonl.explain.trace import Trace
from lightrag_jsonl.types import Chunk, Page


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document's description, without its text."""

    id: str
    title: str | None = None
    source: str | None = None
    date: str | None = None
    media_type: str = "text/plain"

    @property
    def name(self) -> str:
        """What readers know it by; if the title came from a file's name, the file's full name."""
        file = PurePath(self.source).name if self.source else ""
        if file and self.title == PurePath(file).stem:
            return file
        return self.title or self.source or self.id


class Library(Protocol):
    """Looks up ids; None means that something is not stored (any more)."""

    def chunk(self, chunk_id: str) -> Chunk | None:
        """A chunk by its id."""
        ...

    def page(self, document_id: str, number: int) -> Page | None:
        """A page of a document; the first has number 1."""
        ...

    def document(self, document_id: str) -> SourceDocument | None:
        """A document's description."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The chunks, pages and documents behind a trace, by id; deleted ones are missing.

    Pages are found by their document's id, then by their number.
    """

    chunks: Mapping[str, Chunk] = field(default_factory=dict)
    pages: Mapping[str, Mapping[int, Page]] = field(default_factory=dict)
    documents: Mapping[str, SourceDocument] = field(default_factory=dict)

    def deleted(self, trace: Trace) -> tuple[str, ...]:
        """The chunks of the trace that were deleted."""
        return tuple(name for name in trace.chunk_ids if name not in self.chunks)

    def where(self, chunk_id: str) -> str:
        """A chunk's place in words: `Chunk 1 → Page 1 → d1.txt`, or `source deleted`."""
        chunk = self.chunks.get(chunk_id)
        if chunk is None:
            return "source deleted"
        document = self.documents.get(chunk.document_id)
        name = document.name if document else chunk.document_id
        return f"Chunk {chunk.index + 1} → Page {chunk.page} → {name}"


def look_up(chunk_ids: Iterable[str], library: Library) -> Sources:
    """Look up chunks with their pages and documents."""
    found = [library.chunk(name) for name in chunk_ids]
    chunks = {chunk.id: chunk for chunk in found if chunk is not None}
    pages: dict[str, dict[int, Page]] = {}
    documents: dict[str, SourceDocument] = {}
    for document_id, number in dict.fromkeys((c.document_id, c.page) for c in chunks.values()):
        if (page := library.page(document_id, number)) is not None:
            pages.setdefault(document_id, {})[number] = page
        if document_id not in documents and (known := library.document(document_id)) is not None:
            documents[document_id] = known
    return Sources(chunks, pages, documents)
