"""Visible documents, their pages and their chunks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from lightrag_jsonl.storage import reports
from lightrag_jsonl.storage.bulk import delete_rows, put_rows
from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.types import (
    Chunk,
    ChunkState,
    DocumentState,
    Extraction,
    Page,
    Usage,
)


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The row of a visible document; `row` is its row id, `content` the digest of its content."""

    row: int
    id: str
    title: str | None
    source: str | None
    date: str | None
    metadata: Mapping[str, object]
    content: str
    state: DocumentState
    characters: int
    created_at: float


# ── visible documents ───────────────────────────────────────────────────────────

DOCUMENT_COLUMNS = "id, name, title, source, date, metadata, content, state, characters, created_at"


def put_document(
    connection: sqlite3.Connection, stored: StoredDocument, pages: Iterable[Page]
) -> None:
    """Insert a document's row and its pages."""
    connection.execute(
        f"INSERT INTO documents ({DOCUMENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            stored.row,
            stored.id,
            stored.title,
            stored.source,
            stored.date,
            dump(dict(stored.metadata)),
            stored.content,
            stored.state,
            stored.characters,
            stored.created_at,
        ),
    )
    rows = [(stored.row, page.number, page.text) for page in pages]
    put_rows(connection, "INSERT INTO pages", rows)


def documents(
    connection: sqlite3.Connection, ids: Iterable[str] | None = None
) -> list[StoredDocument]:
    """The visible documents, all or those with these ids, in the order they were stored."""
    query = f"SELECT {DOCUMENT_COLUMNS} FROM documents"
    if ids is None:
        rows = connection.execute(query + " ORDER BY id")
    else:
        wanted = dump(sorted(set(ids)))
        rows = connection.execute(
            query + " WHERE name IN (SELECT value FROM json_each(?)) ORDER BY id", (wanted,)
        )
    return [_document(*row) for row in rows]


def is_known(connection: sqlite3.Connection, id: str) -> bool:
    """Whether a document of this id is visible or waiting."""
    row = connection.execute(
        "SELECT 1 FROM documents WHERE name = ? UNION ALL SELECT 1 FROM pending WHERE id = ?",
        (id, id),
    ).fetchone()
    return row is not None


def _document(
    row: int, id: str, title: str, source: str, date: str, metadata: str, *rest: Any
) -> StoredDocument:
    return StoredDocument(row, id, title, source, date, json.loads(metadata), *rest)


def set_state(connection: sqlite3.Connection, document: int, state: DocumentState) -> None:
    """Record whether all chunks of a document could be read."""
    connection.execute("UPDATE documents SET state = ? WHERE id = ?", (state, document))


def state_of(connection: sqlite3.Connection, document: int) -> DocumentState:
    """The document's state according to its chunks."""
    state: DocumentState
    (state,) = connection.execute(
        f"SELECT {STATE} FROM chunks c WHERE c.document = ?", (document,)
    ).fetchone()
    return state


def renew_states(connection: sqlite3.Connection) -> int:
    """Set the state of every document anew; returns how many changed."""
    due = f"(SELECT {STATE} FROM chunks c WHERE c.document = documents.id)"
    return connection.execute(f"UPDATE documents SET state = {due} WHERE state <> {due}").rowcount


def state_after(extractions: Sequence[Extraction]) -> DocumentState:
    """`done` if all chunks were read to their end, `failed` if none could be read, else `partial`."""
    if not any(extraction.unfinished for extraction in extractions):
        return "done"
    failed = all(extraction.state == "failed" for extraction in extractions)
    return "failed" if failed else "partial"


def drop_documents(connection: sqlite3.Connection, rows: Collection[int]) -> None:
    """Delete documents with their pages; their chunks are dropped by `drop_chunks`."""
    delete_rows(connection, "pages", "document", rows)
    delete_rows(connection, "documents", "id", rows)


def pages(connection: sqlite3.Connection, document: str) -> tuple[Page, ...]:
    """A document's pages, in order."""
    rows = connection.execute(
        "SELECT d.name, p.number, p.text FROM documents d JOIN pages p ON p.document = d.id "
        "WHERE d.name = ? ORDER BY p.number",
        (document,),
    )
    return tuple(Page(*row) for row in rows)


def page(connection: sqlite3.Connection, document: str, number: int) -> Page | None:
    """One page of a document, or None."""
    row = connection.execute(
        "SELECT d.name, p.number, p.text FROM documents d JOIN pages p ON p.document = d.id "
        "WHERE d.name = ? AND p.number = ?",
        (document, number),
    ).fetchone()
    return None if row is None else Page(*row)


# ── chunks ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk to be stored, with how its extraction went."""

    row: int
    document: int
    chunk: Chunk
    created_at: float
    embedding: int | None
    extraction: Extraction


# SQL for `Extraction.unfinished` and `state_after`, of stored chunks `c`
UNFINISHED = "(c.state = 'failed' OR json_extract(c.report, '$.error') IS NOT NULL)"
STATE = (
    f"CASE WHEN NOT total({UNFINISHED}) THEN 'done' "
    "WHEN total(c.state = 'failed') = count(*) THEN 'failed' ELSE 'partial' END"
)
CHUNK_COLUMNS = (
    "c.name, d.name, c.position, c.page, c.start, c.stop, c.text, c.tokens, c.created_at"
)


def put_chunks(connection: sqlite3.Connection, chunks: Sequence[StoredChunk]) -> None:
    """Insert chunks, and the rejections of their extraction."""
    put_rows(
        connection,
        "INSERT INTO chunks",
        [
            (
                stored.row,
                stored.chunk.id,
                stored.document,
                stored.chunk.index,
                stored.chunk.page,
                stored.chunk.start,
                stored.chunk.end,
                stored.chunk.text,
                stored.chunk.tokens,
                stored.created_at,
                stored.embedding,
                stored.extraction.state,
                reports.as_json(stored.extraction),
            )
            for stored in chunks
        ],
    )
    put_rejections(connection, chunks)


def put_rejections(connection: sqlite3.Connection, chunks: Iterable[StoredChunk]) -> None:
    """Store every refused line with its chunk."""
    put_rows(
        connection,
        "INSERT INTO rejections",
        [
            (stored.row, refused.line, refused.text, refused.reason, refused.detail)
            for stored in chunks
            for refused in stored.extraction.rejections
        ],
    )


def renew_chunks(connection: sqlite3.Connection, chunks: Sequence[StoredChunk]) -> None:
    """Update how the extraction of stored chunks went (after a retry)."""
    delete_rows(connection, "rejections", "chunk", [stored.row for stored in chunks])
    connection.executemany(
        "UPDATE chunks SET state = ?, report = ? WHERE id = ?",
        [(s.extraction.state, reports.as_json(s.extraction), s.row) for s in chunks],
    )
    put_rejections(connection, chunks)


def chunks_of(
    connection: sqlite3.Connection, documents: Iterable[int], *, only: str = "true"
) -> dict[int, Chunk]:
    """The chunks of these documents (row ids), by row id, in order; `only` is a further SQL condition."""
    rows = connection.execute(
        f"SELECT c.id, {CHUNK_COLUMNS} FROM json_each(?) AS wanted "
        "JOIN chunks c ON c.document = wanted.value JOIN documents d ON d.id = c.document "
        f"WHERE {only} ORDER BY c.document, c.position",
        (dump(sorted(documents)),),
    )
    return {row[0]: chunk_from(row[1:]) for row in rows}


class Reading(NamedTuple):
    """The state of a chunk, how many claims it has, and what was paid for them."""

    state: ChunkState = "failed"
    claims: int = 0
    usage: Usage = Usage()


def read_before(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Reading]:
    """The `Reading` of stored chunks, by row id."""
    found = connection.execute(
        "SELECT id, state, (SELECT count(*) FROM entity_mentions m WHERE m.chunk = c.id) + "
        "(SELECT count(*) FROM relation_mentions m WHERE m.chunk = c.id), report "
        "FROM chunks c WHERE id IN (SELECT value FROM json_each(?))",
        (dump(sorted(rows)),),
    )
    return {
        row: Reading(state, claims, Usage(*json.loads(report).get("usage", ())))
        for row, state, claims, report in found
    }


def chunks_by_row(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Chunk]:
    """Chunks by their row ids."""
    found = connection.execute(
        f"SELECT c.id, {CHUNK_COLUMNS} FROM json_each(?) AS wanted "
        "JOIN chunks c ON c.id = wanted.value JOIN documents d ON d.id = c.document",
        (dump(list(rows)),),
    )
    return {row[0]: chunk_from(row[1:]) for row in found}


def chunks_by_id(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Chunk]:
    """Chunks by their public ids."""
    found = connection.execute(
        f"SELECT {CHUNK_COLUMNS} FROM json_each(?) AS wanted "
        "JOIN chunks c ON c.name = wanted.value JOIN documents d ON d.id = c.document",
        (dump(list(ids)),),
    )
    return {row[0]: chunk_from(row) for row in found}


def chunk_times(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, float]:
    """When these chunks were stored, by row id."""
    found = connection.execute(
        "SELECT id, created_at FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
        (dump(sorted(rows)),),
    )
    return dict(found.fetchall())


def drop_chunks(connection: sqlite3.Connection, rows: Collection[int]) -> None:
    """Delete chunks and their rejections; `drop_claims` and `drop_terms` delete the rest."""
    delete_rows(connection, "rejections", "chunk", rows)
    delete_rows(connection, "chunks", "id", rows)


def chunk_from(row: tuple[Any, ...]) -> Chunk:
    """A `Chunk` from the columns of CHUNK_COLUMNS; `TypeError` if its text is not a text."""
    id, document, index, page, start, end, text, tokens, created_at = row
    if not isinstance(text, str):  # before other code gets it
        raise TypeError(f"the text of chunk {id} is {type(text).__name__}")
    at = datetime.fromtimestamp(created_at, UTC)
    return Chunk(id, document, index, page, start, end, text, tokens, at)
