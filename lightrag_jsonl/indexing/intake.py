"""Prepares a document for indexing: its id, its pages, its chunks, and whether it is known already."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.indexing.chunking import chunk_pages, document_pages
from lightrag_jsonl.indexing.given import given_chunks
from lightrag_jsonl.indexing.rechunking import rechunk
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.storage import documents, pending
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.documents import StoredDocument
from lightrag_jsonl.storage.pending import PendingDocument
from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.text import digest, name_key, sanitize
from lightrag_jsonl.types import Chunk, Document, Json, Page

UNDONE = ("partial", "failed")  # states of documents that have unfinished chunks
LONGEST_INTEGER = 10_000  # bits; Python refuses to write much longer integers as digits


def identified(document: Document) -> tuple[Document, tuple[Page, ...]]:
    """A document with its id (derived from its content if it has none) and its pages.

    Title, source, date and metadata are converted to what can be stored. `ConfigError` if the id
    has no visible character.
    """
    if document.id and not name_key(document.id):
        raise ConfigError(f"the id {document.id!r} has no character that can be seen")
    pages = document_pages("", document)
    id = sanitize(document.id or "") or _derived_id(pages)
    title, source, date, metadata = map(
        as_stored, (document.title, document.source, document.date, document.metadata)
    )
    known = replace(document, id=id, title=title, source=source, date=date, metadata=metadata)
    return known, tuple(replace(page, document_id=id) for page in pages)


def as_stored(value: Any) -> Any:
    """Plain JSON as it will be read back: tuples become lists, unstorable characters are replaced.

    NaN and infinity become null, since SQLite would take the JSON for damaged. Raises `ConfigError`
    for values that are nested too deeply, are too long, or are not JSON.
    """
    try:
        return _as_stored(value)
    except RecursionError as error:
        raise ConfigError("facts of a document, or a record, are nested too deeply") from error


def _as_stored(value: Any) -> Any:
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, Mapping):
        return {sanitize(str(key)): _as_stored(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_stored(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        raise ConfigError(
            f"a whole number of {value.bit_length():,} bits is too long to be stored; give it as text"
        )
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ConfigError(
        f"facts of a document, and records, are plain JSON; {type(value).__name__} is none: {value!r}"
    )


def content_of(document: Document, pages: Sequence[Page], waiting: PendingDocument) -> str:
    """A digest of everything that makes two documents the same: texts, records and what describes them.

    Title and source do not count if the id is derived from the text: then one text is one document,
    wherever it was found.
    """
    named = document.id != _derived_id(pages)
    title, source = (document.title, document.source) if named else (None, None)
    facts = [[name, _in_order(value)] for name, value in sorted(document.metadata.items())]
    shown = dump([title, source, document.date, facts])
    given = dump([waiting.records, waiting.chunks]) if waiting.records is not None else ""
    return digest(*(page.text for page in pages), shown, given)


def _in_order(value: Json) -> Json:
    """A JSON value with sorted keys, since the order in which they were written does not matter."""
    if isinstance(value, dict):
        return {name: _in_order(item) for name, item in sorted(value.items())}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def _derived_id(pages: Sequence[Page]) -> str:
    return "doc-" + digest(*(page.text for page in pages))


class Intake:
    """Cuts documents according to the index's tokenizer and options."""

    def __init__(self, database: Database, tokenizer: Tokenizer, options: IndexOptions) -> None:
        self._database = database
        self._tokenizer = tokenizer
        self._options = options

    @property
    def sizes(self) -> tuple[int, int]:
        """The size of chunks and their overlap, in tokens."""
        return self._options.chunk_tokens, self._options.chunk_overlap

    def stored(self, id: str) -> StoredDocument | None:
        """The visible document of this id, if there is one."""
        with self._database.reading() as connection:
            found = documents.documents(connection, [id])
        return found[0] if found else None

    def cut(
        self, pages: tuple[Page, ...], waiting: PendingDocument, old: StoredDocument | None
    ) -> tuple[Chunk, ...]:
        """The chunks of a document; if it replaces `old`, as many of the old chunks as possible are kept."""
        if waiting.chunks is not None:
            return given_chunks(pages, waiting.chunks, self._tokenizer)
        size, overlap = waiting.cut or self.sizes
        if old is None:
            return chunk_pages(pages, tokenizer=self._tokenizer, size=size, overlap=overlap)
        with self._database.reading() as connection:
            old_pages = documents.pages(connection, old.id)
            old_chunks = tuple(documents.chunks_of(connection, [old.row]).values())
        with self._database.explained():
            return rechunk(
                pages, old_pages, old_chunks, tokenizer=self._tokenizer, size=size, overlap=overlap
            )

    def waiting(self) -> Iterator[tuple[PendingDocument | StoredDocument, tuple[Chunk, ...]]]:
        """Waiting documents with the chunks to read, then stored documents with their unfinished chunks."""
        with self._database.reading() as connection:
            handed_in = pending.listed(connection)
            stored = [one for one in documents.documents(connection) if one.state in UNDONE]
        for waiting in handed_in:
            document, pages = identified(waiting.document)
            asked = waiting.records is None
            yield waiting, self.cut(pages, waiting, self.stored(document.id or "")) if asked else ()
        ids = {waiting.document.id for waiting in handed_in}
        for partly in stored:
            if partly.id not in ids:
                with self._database.reading() as connection:
                    left = documents.chunks_of(connection, [partly.row], only=documents.UNFINISHED)
                yield partly, tuple(left.values())
