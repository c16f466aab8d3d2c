"""What all tables share: queries through one connection, the rows touched, and SQLite's errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from lightrag_jsonl.core.errors import CorruptError, LockedError, StorageError
from lightrag_jsonl.core.types import Kind

Row = tuple[Any, ...]
Values = Collection[int] | Collection[str]

TABLES: dict[Kind, str] = {"entity": "entities", "relation": "relations", "chunk": "chunks"}
AMONG = "IN (SELECT value FROM json_each(?))"  # the parameter is the `json_text` of a list


def json_text(value: object) -> str:
    """Compact JSON."""
    return msgspec.json.encode(value).decode()


def decoded(row: Row, *columns: int) -> list[Any]:
    """A row with some of its columns read as JSON."""
    values = list(row)
    for column in columns:
        values[column] = msgspec.json.decode(values[column])
    return values


class Tables:
    """Some tables, read and written through a connection that is in a transaction.

    A connection for reading refuses to write. `touched` collects the rows of the index that were
    changed, by kind; `changed` says that anything else was that queries see.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.touched: dict[Kind, set[int]] = {kind: set() for kind in TABLES}
        self.changed = False

    @property
    def generation(self) -> int:
        """The number of the last visible change of documents or graph."""
        return int(self._value("SELECT coalesce(max(generation), 0) FROM commits"))

    def _rows(self, query: str, *values: object) -> list[Row]:
        return self.connection.execute(query, values).fetchall()

    def _select(self, columns: str, table: str, column: str, among: Values | None) -> list[Row]:
        """Rows by row id: all, or those whose `column` has one of these values."""
        where = "" if among is None else f"WHERE {column} {AMONG}"
        values = () if among is None else (json_text(sorted(among)),)
        return self._rows(f"SELECT {columns} FROM {table} {where} ORDER BY id", *values)

    def _value(self, query: str, *values: object) -> Any:
        """The single value that a query returns."""
        return self.connection.execute(query, values).fetchone()[0]

    def _delete(self, table: str, column: str, values: Values) -> int:
        """Delete the rows whose column has one of these values; returns how many."""
        if not values:
            return 0
        query = f"DELETE FROM {table} WHERE {column} {AMONG}"
        return self.connection.execute(query, (json_text(sorted(values)),)).rowcount


# ── errors: what SQLite's message contains, and what is raised for it ───────────

ERRORS: tuple[tuple[tuple[str, ...], type[StorageError], str], ...] = (
    (
        ("locked", "busy"),
        LockedError,
        "is being written to by another process; try again when it is done",
    ),
    (
        ("readonly", "unable to open"),
        StorageError,
        "cannot be opened or written to ({}): check the permissions of its folder",
    ),
    (
        ("full", "disk I/O"),
        StorageError,
        "cannot be written to ({}): free some disk space and run the same command again; nothing "
        "that was stored is lost",
    ),
    (
        ("not a database", "malformed", "no such table", "no such column", "decode to UTF-8"),
        CorruptError,
        "is damaged, or not a database ({}): restore the folder from a copy, or insert the "
        "documents into a new one",
    ),
)


def storage_error(error: sqlite3.Error, path: Path) -> StorageError:
    """The error to raise for an error of SQLite."""
    text = str(error)
    for signs, kind, words in ERRORS:
        if any(sign in text for sign in signs):
            return kind(f"{path} {words.format(text)}", path=path)
    return StorageError(f"{path}: {text}", path=path)
