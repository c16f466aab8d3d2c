"""Documents on the way into the index: as the store can hold them, and cut into chunks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from msgspec import Struct, structs

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.headings import LONGEST_HEADING
from lightrag_jsonl.core.protocols import Chunker, Tokenizer
from lightrag_jsonl.core.types import PERSON, PROVIDED, Chunk, Document, Extraction, Page
from lightrag_jsonl.indexing.chunking import (
    chunk_pages,
    chunks_by,
    document_pages,
    provided_chunks,
    with_whole_sentences,
)
from lightrag_jsonl.indexing.stated_names import with_linked_names
from lightrag_jsonl.storage.rows import Override, PendingDocument, StoredDocument
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.cjk import without_blanks_inside
from lightrag_jsonl.text.dates import day_in_name
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import digest, sanitize

DAY_IN_FILE_NAME = pattern_of(r"(?<!\d)(?:19|20)\d\d([-_])\d\d\1\d\d(?!\d)")


class IncomingDocument(Struct, frozen=True):
    """A document on the way into the index; the steps of an insert add the optional parts.

    `document` is the row to be stored; a new document has no row id yet. `chunks` are those to be
    read, `extractions` the results, one for each chunk. If chunks of a stored document are read
    again, `rows` holds their row ids and `pages` is empty. `override` is what a person set, in an
    edit of one chunk. `pending_row` is where the document waits in the store.
    """

    document: StoredDocument
    pages: tuple[Page, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    extractions: tuple[Extraction, ...] = ()
    rows: tuple[int, ...] = ()
    override: Override | None = None
    pending_row: int | None = None

    @property
    def id(self) -> str:
        """The id of the document."""
        return self.document.id


def storable(pending: PendingDocument) -> PendingDocument:
    """The document as the store can hold it, with an id: by default a digest of the text.

    Blanks that OCR writes between Chinese characters are left out, unless the chunks are given: all offsets
    are those of the stored pages.
    `ConfigError` if the id has no visible character, or if a value cannot be stored.
    """
    document = pending.document
    if document.id and not name_key(document.id):
        raise ConfigError(f"the id {document.id!r} has no character that can be seen")
    if document.id and sanitize(document.id) != document.id:
        raise ConfigError(f"the id {document.id!r} has characters that cannot be stored")
    texts = [page.text for page in document_pages("", document)]
    if pending.chunks is None:
        texts = list(map(without_blanks_inside, texts))
    metadata = dict(document.metadata)
    if metadata:
        metadata = storable_json(metadata)
    records = pending.records
    if records is not None:
        records = storable_json(records)
    text = sanitize(document.text) if document.pages else "\f".join(texts)
    storable_document = Document(
        text=text.removeprefix("\ufeff"),  # a mark of files, no text
        id=document.id or _derived_id(texts),
        title=_sanitized(document.title),
        source=_sanitized(document.source),
        date=_sanitized(document.date) or _named_day(document, texts),
        metadata=metadata,
        pages=tuple(texts) if document.pages else None,
    )
    return replace(
        pending,
        document=storable_document,
        records=None if records is None else tuple(records),
    )


def incoming_document(pending: PendingDocument) -> IncomingDocument:
    """The row and the pages of a storable document."""
    document = pending.document
    texts = [page.text for page in document_pages("", document)]
    id = document.id or _derived_id(texts)
    row = StoredDocument(
        row=0,
        id=id,
        title=document.title,
        source=document.source,
        date=document.date,
        metadata=document.metadata,
        seen_pictures=pending.seen_pictures,
        content=content_digest(pending, texts),
        state="done",
        characters=sum(map(len, texts)),
        created_at=pending.created_at,
    )
    pages = tuple([Page(id, number, text) for number, text in enumerate(texts, 1)])
    return IncomingDocument(row, pages)


def storable_json(value: object) -> Any:
    """The value that JSON gives back: lists for tuples, null for NaN and infinity.

    `ConfigError` for values that are nested too deeply, are too long, or are not JSON.
    """
    try:
        text = sanitize(json.dumps(value, ensure_ascii=False))
        return json.loads(text, parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"metadata of a document, and records, must be plain JSON that can be stored: {error}"
        ) from error


def _named_day(document: Document, texts: Sequence[str]) -> str | None:
    """The day by which a document is named: a whole day in the name of its file ("minutes-2026-11-03.md"), if there
    is one alone, or its title or its first heading, if that is a day, as of a daily note.
    """
    file_name = PurePath(document.source or "").stem
    days = {day[0] for day in DAY_IN_FILE_NAME.finditer(file_name)}
    first_line = texts[0].lstrip().partition("\n")[0] if texts else ""
    marks, _, words = first_line.partition(" ")
    heading = "" if marks.strip("#") else words[:LONGEST_HEADING]
    names = [file_name, *days, document.title or "", heading]
    if len(days) > 1:
        names = [name for name in names if name not in {file_name, *days}]
    return next(filter(None, map(day_in_name, names)), None)


def _derived_id(texts: Sequence[str]) -> str:
    return "doc-" + digest(*texts)


def _sanitized(text: str | None) -> str | None:
    return text and sanitize(text)


def content_digest(pending: PendingDocument, texts: Sequence[str]) -> str:
    """A digest of the texts and of all that is stored with them.

    Without an id chosen by the caller, title and source do not count: the same text is the same
    document, wherever it was found.
    """
    document = pending.document
    names = [document.title, document.source] if document.id != _derived_id(texts) else []
    content: list[object] = [
        *names,
        document.date,
        document.metadata,
        pending.records,
        pending.chunks,
    ]
    if pending.seen_pictures:
        content.append(pending.seen_pictures)
    content_text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return digest(*texts, content_text)


# ── cut into chunks ────────────────────────────────────────────


class DocumentCutter(Struct, frozen=True):
    """Cuts documents into chunks: by a user's `chunker`, or of `size` tokens with an `overlap`."""

    tokenizer: Tokenizer
    size: int
    overlap: int
    chunker: Chunker | None = None

    def new_chunks(self, pages: Sequence[Page]) -> tuple[Chunk, ...]:
        """The chunks of a document that is not stored yet."""
        if self.chunker is not None:
            return chunks_by(self.chunker, pages, tokenizer=self.tokenizer)
        return chunk_pages(pages, tokenizer=self.tokenizer, size=self.size, overlap=self.overlap)

    def cut(
        self, document: IncomingDocument, pending: PendingDocument, view: StoreView
    ) -> tuple[StoredDocument | None, IncomingDocument]:
        """The stored version of a document, if there is one, and the document with its chunks; without
        chunks if the stored version has the same content.

        A new version has as many chunks of the stored version as possible.
        """
        stored = next(iter(view.documents([document.id])), None)
        if stored is not None and stored.content == document.document.content:
            return stored, document
        title = document.document.title or ""
        date = document.document.date or ""
        chunks = [
            with_linked_names(replace(chunk, title=title, date=date), document.document.metadata)
            for chunk in self._chunks(document, pending, view if stored is not None else None)
        ]
        return stored, structs.replace(document, chunks=tuple(chunks))

    def _chunks(
        self, document: IncomingDocument, pending: PendingDocument, view: StoreView | None
    ) -> tuple[Chunk, ...]:
        """The chunks; the `view` is that of a stored version."""
        if pending.chunks is not None:
            return provided_chunks(document.pages, pending.chunks, self.tokenizer)
        if self.chunker is not None and pending.chunk_size is None:
            return self.new_chunks(document.pages)
        size, overlap = pending.chunk_size or (self.size, self.overlap)
        return chunk_pages(
            document.pages,
            old_pages=view.pages([document.id]) if view else (),
            old_chunks=tuple(view.chunks(documents=[document.id]).values()) if view else (),
            tokenizer=self.tokenizer,
            size=size,
            overlap=overlap,
        )


def unfinished_document(
    stored: StoredDocument, view: StoreView, *, current: str | None = None
) -> IncomingDocument:
    """A stored document with the chunks that a retry asks about; given the name of the `current` extractor,
    also with those that another extractor read.
    """
    final = (current, PERSON, PROVIDED)
    rows = [
        report.row
        for report in view.chunk_reports([stored.id])
        if report.unfinished or (current is not None and report.extractor not in final)
    ]
    return _with_chunks(stored, rows, view)


def documents_of_chunks(rows: Sequence[int], view: StoreView) -> list[IncomingDocument]:
    """The stored documents of some chunks by row id, with these chunks alone, to be read again in this
    order, as far as each document allows.
    """
    document_ids = {row: chunk.document_id for row, chunk in view.chunks(rows).items()}
    rows_by_document: dict[str, list[int]] = {}
    for row in rows:
        if row in document_ids:
            rows_by_document.setdefault(document_ids[row], []).append(row)
    stored_by_id = {stored.id: stored for stored in view.documents(rows_by_document)}
    return [_with_chunks(stored_by_id[id], own, view) for id, own in rows_by_document.items()]


def _with_chunks(stored: StoredDocument, rows: Sequence[int], view: StoreView) -> IncomingDocument:
    """A stored document with some chunks in this order, as extractors read them."""
    chunks = view.chunks(rows)
    pages = view.pages([stored.id]) if rows else ()
    whole = with_whole_sentences(chunks.values(), pages)
    complete = {
        row: with_linked_names(chunk, stored.metadata)
        for row, chunk in zip(chunks, whole, strict=True)
    }
    ordered = tuple([complete[row] for row in rows])
    return IncomingDocument(stored, chunks=ordered, rows=tuple(rows))


def with_extractions(
    document: IncomingDocument, extractions: Mapping[int, Extraction]
) -> IncomingDocument:
    """The document with those of its chunks that have an extraction."""
    chunks = dict(zip(document.rows, document.chunks, strict=True))
    rows = tuple([row for row in document.rows if row in extractions])
    return structs.replace(
        document,
        rows=rows,
        chunks=tuple([chunks[row] for row in rows]),
        extractions=tuple([extractions[row] for row in rows]),
    )
