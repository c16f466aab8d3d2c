"""What a document handed in amounts to: its id, its pages, its chunks, and whether it is known."""

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
LONGEST_INTEGER = 10_000  # bits; of some more, Python refuses to write the digits


def identified(document: Document) -> tuple[Document, tuple[Page, ...]]:
    """A document with its id (from its content where none was given) and its pages.

    What it is called and its metadata become what can be stored. `ConfigError` where nobody could
    see the id.
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
    """Plain JSON as it is after storing: tuples are lists, and every text can be stored.

    NaN and infinity are null: SQLite takes JSON with either for a damaged database. Raises
    `ConfigError` where values are nested too deeply, too long, or are no JSON.
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
    """What must be equal for a document to be the same: texts, records and what is shown of it.

    Where a text without an id of its own was found is not part of it: one text is one document.
    """
    named = document.id != _derived_id(pages)
    title, source = (document.title, document.source) if named else (None, None)
    facts = [[name, _in_order(value)] for name, value in sorted(document.metadata.items())]
    shown = dump([title, source, document.date, facts])
    given = dump([waiting.records, waiting.chunks]) if waiting.records is not None else ""
    return digest(*(page.text for page in pages), shown, given)


def _in_order(value: Json) -> Json:
    """A value with the keys of all that it holds in one order: that they were written in is none of it."""
    if isinstance(value, dict):
        return {name: _in_order(item) for name, item in sorted(value.items())}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def _derived_id(pages: Sequence[Page]) -> str:
    return "doc-" + digest(*(page.text for page in pages))


class Intake:
    """Cuts documents as the index's tokenizer and options say."""

    def __init__(self, database: Database, tokenizer: Tokenizer, options: IndexOptions) -> None:
        self._database = database
        self._tokenizer = tokenizer
        self._options = options

    @property
    def sizes(self) -> tuple[int, int]:
        """How many tokens chunks have, and share."""
        return self._options.chunk_tokens, self._options.chunk_overlap

    def stored(self, id: str) -> StoredDocument | None:
        """The visible document of this id, if there is one."""
        with self._database.reading() as connection:
            found = documents.documents(connection, [id])
        return found[0] if found else None

    def cut(
        self, pages: tuple[Page, ...], waiting: PendingDocument, old: StoredDocument | None
    ) -> tuple[Chunk, ...]:
        """The chunks of a document; where it replaces another, with as many of its as still occur."""
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
        """Documents that wait, with the chunks to be read, and others with their unfinished ones."""
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
