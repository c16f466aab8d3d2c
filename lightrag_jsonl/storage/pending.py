"""Documents that were inserted and are not visible yet; a killed insert is resumed from here."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from lightrag_jsonl.storage.bulk import delete_rows
from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Document, Record


@dataclass(frozen=True, slots=True)
class PendingDocument:
    """A document that was inserted and is not visible yet.

    `records` and `chunks` are those the caller provided. `cut` is the (size, overlap) in tokens of
    the chunks that the records refer to.
    """

    document: Document
    records: tuple[Record, ...] | None
    chunks: tuple[str, ...] | None
    created_at: float
    cut: tuple[int, int] | None = None


def put(connection: sqlite3.Connection, waiting: PendingDocument) -> None:
    """Store a waiting document, replacing an earlier version of it."""
    given = None
    if waiting.records is not None:
        given = sanitize(dump([waiting.records, waiting.chunks, waiting.cut]))
    connection.execute(
        "INSERT OR REPLACE INTO pending VALUES (?, ?, ?, ?)",
        (waiting.document.id, sanitize(dump(_plain(waiting.document))), given, waiting.created_at),
    )


def listed(connection: sqlite3.Connection) -> list[PendingDocument]:
    """All waiting documents, oldest first."""
    rows = connection.execute(
        "SELECT document, records, created_at FROM pending ORDER BY created_at, id"
    )
    return [_pending(*row) for row in rows]


def drop(connection: sqlite3.Connection, ids: Iterable[str]) -> int:
    """Delete waiting documents; returns how many there were."""
    return delete_rows(connection, "pending", "id", ids)


def _plain(document: Document) -> dict[str, object]:
    return {**asdict(document), "metadata": dict(document.metadata)}


def _pending(document: str, given: str | None, created_at: float) -> PendingDocument:
    fields = json.loads(document)
    pages = fields.pop("pages")
    records, chunks, cut = (*(json.loads(given) if given else (None, None)), None)[:3]
    return PendingDocument(
        Document(**fields, pages=None if pages is None else tuple(pages)),
        None if records is None else tuple(records),
        None if chunks is None else tuple(chunks),
        created_at,
        None if cut is None else tuple(cut),
    )
