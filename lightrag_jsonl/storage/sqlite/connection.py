"""What the readers and writers of all tables share: a connection, JSON, and the rows touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from lightrag_jsonl.core.types import Kind

Row = tuple[Any, ...]
Values = Collection[int] | Collection[str]

TABLES: dict[Kind, str] = {"entity": "entities", "relation": "relations", "chunk": "chunks"}
AMONG = "IN (SELECT value FROM json_each(?))"  # the parameter is the `json_text` of a list


def json_text(value: object) -> str:
    """Compact JSON."""
    return msgspec.json.encode(value).decode()


class ConnectionReader:
    """Reads some tables through a connection that is in a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

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


class ConnectionWriter(ConnectionReader):
    """Writes some tables, and notes which rows of the index were touched."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.touched: dict[Kind, set[int]] = {"entity": set(), "relation": set(), "chunk": set()}
        self.changed = False  # whether anything else was that queries see

    def _touch(self, kind: Kind, rows: Iterable[int]) -> None:
        self.touched[kind].update(rows)

    def _delete(self, table: str, column: str, values: Values) -> int:
        """Delete the rows whose column has one of these values; returns how many."""
        query = f"DELETE FROM {table} WHERE {column} {AMONG}"
        return self.connection.execute(query, (json_text(sorted(values)),)).rowcount
