"""The stored texts behind a trace: what its ids refer to now; deleted ones are missing."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from lightrag_jsonl.core.types import Chunk, Page
from lightrag_jsonl.storage.rows import StoredDocument
from lightrag_jsonl.storage.store import Reader


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document's description, without its text."""

    id: str
    title: str | None = None
    source: str | None = None
    date: str | None = None
    media_type: str = "text/plain"

    @classmethod
    def of(cls, stored: StoredDocument) -> SourceDocument:
        """The description of a stored document."""
        media_type = mimetypes.guess_type(stored.source or "")[0] or "text/plain"
        return cls(stored.id, stored.title, stored.source, stored.date, media_type)

    @property
    def name(self) -> str:
        """What readers know it by; if the title came from a file's name, the file's full name."""
        file = PurePath(self.source or "")
        name = file.name if self.title == file.stem else self.title
        return name or self.source or self.id


@dataclass(frozen=True, slots=True)
class Sources:
    """The chunks, pages and documents behind a trace, by id.

    Pages are found by their document's id, then by their number.
    """

    chunks: Mapping[str, Chunk] = field(default_factory=dict)
    pages: Mapping[str, Mapping[int, Page]] = field(default_factory=dict)
    documents: Mapping[str, SourceDocument] = field(default_factory=dict)

    def page_of(self, chunk: Chunk) -> Page | None:
        """The page that a chunk is on."""
        return self.pages.get(chunk.document_id, {}).get(chunk.page)

    def where(self, chunk_id: str, words: str = "Chunk {} → Page {} → {}") -> str:
        """A chunk's position in words: `Chunk 1 → Page 1 → d1.txt`, or `source deleted`."""
        chunk = self.chunks.get(chunk_id)
        if chunk is None:
            return "source deleted"
        document = self.documents.get(chunk.document_id)
        name = document.name if document else chunk.document_id
        return words.format(chunk.index + 1, chunk.page, name)


def look_up_sources(reader: Reader, chunk_ids: Iterable[str]) -> Sources:
    """Look up chunks with their pages and documents."""
    chunks = reader.chunks_by_id(dict.fromkeys(chunk_ids))
    pages: dict[str, dict[int, Page]] = {}
    for document_id, number in dict.fromkeys((c.document_id, c.page) for c in chunks.values()):
        found = pages.setdefault(document_id, {})
        if (page := reader.page(document_id, number)) is not None:
            found[number] = page
    documents = {stored.id: SourceDocument.of(stored) for stored in reader.documents(pages)}
    return Sources(chunks, pages, documents)
