"""Prepares documents for reading: storable, compared with the stored version, cut into chunks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import PERSON, PROVIDED, Chunk
from lightrag_jsonl.indexing.chunking import chunk_pages, provided_chunks
from lightrag_jsonl.indexing.incoming import IncomingDocument, storable
from lightrag_jsonl.indexing.outcome import InsertOutcome
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument
from lightrag_jsonl.storage.views import StoreView


def storable_documents(
    pending_documents: Iterable[PendingDocument], outcome: InsertOutcome
) -> Iterator[PendingDocument]:
    """The documents that can be indexed, as the store can hold them; others are failures."""
    for pending in pending_documents:
        outcome.received += 1
        try:
            document = storable(pending)
        except ConfigError as error:
            outcome.refuse(pending.document, error)
            continue
        if _has_text(document):
            yield document
        else:
            outcome.fail_without_text(document.document)


def _has_text(pending: PendingDocument) -> bool:
    document = pending.document
    return any(text.strip() for text in document.pages or document.text.split("\f"))


def stored_version(view: StoreView, document_id: str) -> StoredDocument | None:
    """The stored document with an id, if there is one."""
    return next(iter(view.documents([document_id])), None)


@dataclass(frozen=True, slots=True)
class DocumentCutter:
    """Cuts documents into chunks, by default of `size` tokens with an `overlap`."""

    tokenizer: Tokenizer
    size: int
    overlap: int

    def cut(
        self, document: IncomingDocument, pending: PendingDocument, view: StoreView
    ) -> tuple[StoredDocument | None, IncomingDocument]:
        """The stored version of a document, if there is one, and the document with its chunks; without
        chunks if the stored version has the same content.

        A new version has as many chunks of the stored version as possible.
        """
        stored = stored_version(view, document.id)
        if stored is not None and stored.content == document.document.content:
            return stored, document
        title = document.document.title or ""
        chunks = self._chunks(document, pending, view)
        titled_chunks = [replace(chunk, title=title) for chunk in chunks]
        return stored, replace(document, chunks=tuple(titled_chunks))

    def _chunks(
        self, document: IncomingDocument, pending: PendingDocument, view: StoreView
    ) -> tuple[Chunk, ...]:
        if pending.chunks is not None:
            return provided_chunks(document.pages, pending.chunks, self.tokenizer)
        size, overlap = pending.chunk_size or (self.size, self.overlap)
        return chunk_pages(
            document.pages,
            old_pages=view.pages([document.id]),
            old_chunks=tuple(view.chunks(documents=[document.id]).values()),
            tokenizer=self.tokenizer,
            size=size,
            overlap=overlap,
        )


def unfinished_document(
    stored: StoredDocument, view: StoreView, *, current: str | None = None
) -> IncomingDocument:
    """A stored document with its unfinished chunks, to be read again."""
    chunks = unfinished_chunks(stored.id, view, current=current)
    return IncomingDocument(stored, chunks=tuple(chunks.values()), rows=tuple(chunks))


def unfinished_chunks(
    document_id: str, view: StoreView, *, current: str | None = None
) -> dict[int, Chunk]:
    """The chunks of a stored document that a retry asks about, by row id; given the name of the
    `current` extractor, also the chunks that another extractor read.
    """
    final = (current, PERSON, PROVIDED)
    rows = [
        report.row
        for report in view.chunk_reports([document_id])
        if report.unfinished or (current is not None and report.extractor not in final)
    ]
    return view.chunks(rows)
