"""Prepares what a caller hands in: a document's id and pages, and ready-made chunks and records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.text import digest, name_key, sanitize
from lightrag_jsonl.core.types import (
    Chunk,
    ChunkState,
    Document,
    Extraction,
    Page,
    Record,
    Rejection,
)
from lightrag_jsonl.indexing.chunking import Span, chunks_at, document_pages
from lightrag_jsonl.indexing.mentions import MentionCollector, read_graph
from lightrag_jsonl.llm.field_aliases import normalize_graph_record
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument


@dataclass(frozen=True, slots=True)
class IncomingDocument:
    """A document to index, as it can be stored, and as it will be stored except for its row id."""

    pending: PendingDocument
    document: StoredDocument
    pages: tuple[Page, ...]

    @property
    def id(self) -> str:
        """The document's id."""
        return self.document.id


def incoming(given: PendingDocument) -> IncomingDocument:
    """A document with its id, which is derived from its text if it has none.

    `ConfigError` if the id has no visible character, or if a value cannot be stored.
    """
    document = given.document
    if document.id and not name_key(document.id):
        raise ConfigError(f"the id {document.id!r} has no character that can be seen")
    texts = [page.text for page in document_pages("", document)]
    derived_id = "doc-" + digest(*texts)
    id = sanitize(document.id or "") or derived_id
    pages = tuple(Page(id, number, text) for number, text in enumerate(texts, 1))
    title = document.title and sanitize(document.title)
    source = document.source and sanitize(document.source)
    date = document.date and sanitize(document.date)
    metadata = plain_json(dict(document.metadata))
    records = None if given.records is None else tuple(map(plain_json, given.records))
    # one text is one document, wherever it was found, unless the caller named it
    named = [title, source] if id != derived_id else []
    same = [*named, date, metadata, records, given.chunks]
    content = digest(*texts, json.dumps(same, ensure_ascii=False, sort_keys=True))
    size, at = sum(map(len, texts)), given.created_at
    stored = StoredDocument(0, id, title, source, date, metadata, content, "done", size, at)
    own_pages = tuple(texts) if document.pages else None
    kept = Document(sanitize(document.text), id, title, source, date, metadata, own_pages)
    return IncomingDocument(replace(given, document=kept, records=records), stored, pages)


def plain_json(value: Any) -> Any:
    """A value as it will be read back from JSON: tuples become lists, NaN and infinity null.

    `ConfigError` for values that are nested too deeply, are too long, or are not JSON.
    """
    try:
        text = sanitize(json.dumps(value, ensure_ascii=False))
        return json.loads(text, parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"metadata of a document, and records, must be plain JSON that can be stored: {error}"
        ) from error


# ── ready-made chunks and records ───────────────────────────────────────────────


def provided_chunks(
    pages: Sequence[Page], pieces: Sequence[str], tokenizer: Tokenizer
) -> tuple[Chunk, ...]:
    """The pieces as chunks; each is searched in the pages from where the previous one began.

    `ConfigError` names a piece that does not occur.
    """
    spans: list[tuple[Page, Span]] = []
    index, start = 0, -1  # the page and the position of the previous piece
    for number, piece in enumerate(map(sanitize, pieces)):
        start = pages[index].text.find(piece, start + 1)
        while start < 0 and index + 1 < len(pages):
            index += 1
            start = pages[index].text.find(piece)
        if start < 0 or not piece:
            raise ConfigError(f"chunks[{number}] does not occur in the document, in this order")
        spans.append((pages[index], Span(start, start + len(piece), tokenizer.count(piece))))
    return chunks_at(spans)


def provided_extractions(
    chunks: Sequence[Chunk], records: Sequence[Record], schema: Schema | None
) -> tuple[Extraction, ...]:
    """The extraction of each chunk from ready-made records; their lines count from 1.

    `ConfigError` if a record is no mapping, or names a chunk that does not exist.
    """
    collectors = [MentionCollector(chunk.text) for chunk in chunks]
    counts = [0] * len(chunks)
    for line, record in enumerate(records, 1):
        index = _chunk_index(line, record, len(chunks))
        plain = {key: value for key, value in record.items() if key != "chunk"}
        for one in normalize_graph_record(plain):
            problem = None if schema is None else schema.error(one)
            if problem is None:
                collectors[index].add([(line, one)], read_graph)
                counts[index] += 1
            else:
                collectors[index].rejections.append(Rejection(line, str(one), "schema", problem))
    return tuple(map(_extraction, collectors, counts))


def _chunk_index(line: int, record: Record, chunks: int) -> int:
    if not isinstance(record, dict):
        raise ConfigError(f"records[{line - 1}] is no mapping but {type(record).__name__}")
    index = record.get("chunk")
    index = 0 if index is None else index
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < chunks:
        raise ConfigError(
            f"records[{line - 1}] names chunk {index!r}; the document has chunks 0 to {chunks - 1}"
        )
    return index


def _extraction(collector: MentionCollector, records: int) -> Extraction:
    """A chunk with refused records is never "failed", since no model could be asked again."""
    found, refused = collector.extraction(), tuple(collector.rejections)
    state: ChunkState = "partial" if refused else "ok" if found.entities else "empty"
    return replace(found, state=state, records=records, rejections=refused)


def checked_extraction(found: object) -> Extraction:
    """What a user's extractor found, with texts that can be stored; `ValueError` says what is wrong."""
    extraction = msgspec.convert(plain_json(msgspec.to_builtins(found)), Extraction)
    keys = {name_key(entity.name) for entity in extraction.entities}
    for relation in extraction.relations:
        for end in (relation.source, relation.target):
            if name_key(end) not in keys:
                raise ValueError(f"{end!r}, an end of a relation, is none of the entities")
        if relation.strength <= 0:
            raise ValueError(f"the strength of {relation} is not above 0")
    if "" in keys:
        raise ValueError("an entity has no name")
    return extraction
