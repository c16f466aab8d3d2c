"""Counts and lists for people: what the index contains and how extraction went."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from lightrag_jsonl.indexfiles import NAMES
from lightrag_jsonl.storage import documents, pending, reports
from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.types import DocumentStatus, ExtractionReport, Failure, Rejection, Usage


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """The numbers of visible chunks, entities and relations."""
    query = "SELECT count(*) FROM "
    tables = ("chunks", "entities", "relations")
    return {table: int(connection.execute(query + table).fetchone()[0]) for table in tables}


def counts_of(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, int]:
    """How many of `ids` are documents, their chunks, and the entities and relations these mention."""
    wanted = "SELECT id FROM documents WHERE name IN (SELECT value FROM json_each(?))"
    chunks = f"SELECT id FROM chunks WHERE document IN ({wanted})"
    queries = {
        "documents": f"SELECT count(*) FROM ({wanted})",
        "chunks": f"SELECT count(*) FROM ({chunks})",
        "entities": f"SELECT count(DISTINCT entity) FROM entity_mentions WHERE chunk IN ({chunks})",
        "relations": "SELECT count(DISTINCT relation) FROM relation_mentions "
        f"WHERE relation <> 0 AND chunk IN ({chunks})",
    }
    listed = dump(sorted(ids))
    return {
        name: int(connection.execute(query, (listed,)).fetchone()[0])
        for name, query in queries.items()
    }


def namesakes(connection: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Documents with the title and source of one of `ids`, but not among them: earlier versions of files."""
    rows = connection.execute(
        "WITH named AS (SELECT value FROM json_each(?)) "
        "SELECT DISTINCT old.id, old.name FROM documents new JOIN documents old "
        "ON old.source = new.source AND old.title = new.title "
        "WHERE new.name IN named AND old.name NOT IN named ORDER BY old.id",
        (dump(sorted(ids)),),
    )
    return [row[1] for row in rows]


def measured(connection: sqlite3.Connection) -> tuple[int, int, Usage]:
    """The number of chunks that a model was paid to read, their tokens, and the usage."""
    chunks = tokens = 0
    total = Usage()
    for size, text in connection.execute("SELECT tokens, report FROM chunks"):
        used = Usage(*json.loads(text).get("usage", ()))
        if used.calls and used.output_tokens:
            chunks, tokens, total = chunks + 1, tokens + size, total + used
    return chunks, tokens, total


def document_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """The number of documents in each state, waiting ones included."""
    found = dict(
        connection.execute("SELECT state, count(*) FROM documents GROUP BY state").fetchall()
    )
    waiting = int(connection.execute("SELECT count(*) FROM pending").fetchone()[0])
    return {**dict(sorted(found.items())), **({"pending": waiting} if waiting else {})}


def extraction(connection: sqlite3.Connection) -> ExtractionReport:
    """How extraction went, added up over all chunks."""
    return reports.summed(connection.execute("SELECT state, report FROM chunks"))


def document_statuses(connection: sqlite3.Connection) -> tuple[DocumentStatus, ...]:
    """All documents, first the visible, then the waiting ones."""
    found = []
    for stored in documents.documents(connection):
        rows = connection.execute(
            "SELECT state, report, name FROM chunks WHERE document = ? ORDER BY position",
            (stored.row,),
        ).fetchall()
        report = reports.summed((row[0], row[1]) for row in rows)
        found.append(
            DocumentStatus(
                id=stored.id,
                title=stored.title,
                source=stored.source,
                date=stored.date,
                state=stored.state,
                chunks=len(rows),
                characters=stored.characters,
                created_at=datetime.fromtimestamp(stored.created_at, UTC),
                extraction=report,
                failures=tuple(_failures(stored.id, rows)),
                metadata=dict(stored.metadata),  # type: ignore[arg-type]
            )
        )
    visible = {status.id for status in found}
    for waiting in pending.listed(connection):
        document = waiting.document
        if document.id not in visible:
            found.append(
                DocumentStatus(
                    id=document.id or "",
                    title=document.title,
                    source=document.source,
                    date=document.date,
                    state="pending",
                    chunks=0,
                    characters=len(document.text),
                    created_at=datetime.fromtimestamp(waiting.created_at, UTC),
                    metadata=document.metadata,
                )
            )
    return tuple(found)


def _failures(document: str, rows: list[tuple[str, str, str]]) -> Iterator[Failure]:
    for state, report, name in rows:
        error = json.loads(report).get("error", "")
        if state == "failed" or error:
            yield Failure(document, name, error or reports.ALL_REFUSED)


def rejections(
    connection: sqlite3.Connection, ids: list[str] | None = None
) -> list[tuple[str, str, Rejection]]:
    """(document id, chunk id, rejection) of everything refused, in all documents or those with these ids."""
    rows = connection.execute(
        "SELECT d.name, c.name, r.line, r.text, r.reason, r.detail FROM rejections r "
        "JOIN chunks c ON c.id = r.chunk JOIN documents d ON d.id = c.document "
        "WHERE ? IS NULL OR d.name IN (SELECT value FROM json_each(?)) "
        "ORDER BY d.id, c.position, r.rowid",
        (None if ids is None else 1, dump(ids or [])),
    )
    return [(row[0], row[1], Rejection(*row[2:])) for row in rows]


def bytes_on_disk(working_dir: Path) -> int:
    """The total size of the index's files; other files in the folder do not count."""
    size = 0
    for name in NAMES:
        with contextlib.suppress(FileNotFoundError):  # SQLite creates and removes some at any time
            size += (working_dir / name).stat().st_size
    return size
