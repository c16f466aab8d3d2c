"""Checks that every stored value fits its column: readable text, numbers in range, valid JSON."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from lightrag_jsonl.errors import CorruptError
from lightrag_jsonl.storage import tables
from lightrag_jsonl.storage.tables import FULL_TEXT, SOURCES, Column
from lightrag_jsonl.text import is_utf8

KINDS = {"TEXT": "text", "INTEGER": "integer", "REAL": "real", "BLOB": "blob"}
ROW_IDS = ("id", "block", "document", "chunk", "entity", "relation", "low", "high")
LAST_ROW = 2**31 - 1  # graph and vectors in memory use 32 bits for row ids
LARGEST = 1e12  # the greatest weight or strength; in millionths it still fits into 64 bits
TIMES = ("created_at", "started_at")
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799  # the years 1 to 9999

# What the JSON of a column must be, as an SQL condition on `{}`.
OBJECT = "json_type({}) = 'object'"
LIST_OF_TEXTS = (
    "json_type({0}) = 'array' AND NOT EXISTS (SELECT 1 FROM json_each({0}) WHERE type <> 'text')"
)
LIST_OF_PAIRS = (
    "json_type({0}) = 'array' AND NOT EXISTS (SELECT 1 FROM json_each({0}) AS pair "
    "WHERE pair.type <> 'array' OR json_array_length(pair.value) <> 2)"
)
JSON = {
    ("documents", "metadata"): OBJECT,
    ("chunks", "report"): OBJECT,
    ("entity_mentions", "attributes"): LIST_OF_PAIRS,
    ("relation_mentions", "keywords"): LIST_OF_TEXTS,
    ("entities", "tally"): "json_type({0}) = 'array' AND json_array_length({0}) = 3",
    ("relations", "tally"): "json_type({0}) = 'array' AND json_array_length({0}) = 6",
    ("relations", "keywords"): LIST_OF_TEXTS,
    ("pending", "document"): OBJECT,
    ("pending", "records"): "json_type({}) = 'array'",
    ("answers", "answer"): OBJECT,
    ("trace_events", "event"): OBJECT,
    ("commits", "touched"): OBJECT,
}
CHUNK_STATES = "'ok', 'empty', 'partial', 'failed'"
NO_LENGTH = "key = 'dim' AND CAST(CAST(value AS INTEGER) AS TEXT) <> value"


@dataclass(frozen=True, slots=True)
class Wrong:
    """A number of rows whose value does not fit its column."""

    table: str
    column: str
    rows: int

    def __str__(self) -> str:
        return f"the {self.column} of {self.rows} rows of {self.table} cannot be read"


def wrong_values(
    connection: sqlite3.Connection, *, of: Container[str] | None = None
) -> list[Wrong]:
    """All wrong values, in all existing tables or those named in `of`."""
    lacking = tables.missing(connection)
    found = []
    for table, column, condition in _conditions(connection):
        if table not in lacking and (of is None or table in of):
            query = f"SELECT count(*) FROM {table} WHERE {condition}"
            (rows,) = connection.execute(query).fetchone()
            if rows:
                found.append(Wrong(table, column, rows))
    return found


def check_sources(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `CorruptError` if data is gone or unreadable that cannot be derived from anything else."""
    lost = [
        f"the table {name} is missing" for name in tables.missing(connection) if name in SOURCES
    ]
    lost += map(str, wrong_values(connection, of=SOURCES))
    if lost:
        raise CorruptError(
            f"{path} is damaged, and nothing tells what was there ({'; '.join(lost)}): restore the "
            "folder from a copy, or insert the documents into a new one",
            path=path,
        )


def drop_wrong(connection: sqlite3.Connection) -> int:
    """Delete rows with unreadable values from all tables that are not sources; returns how many."""
    connection.execute("UPDATE chunks SET embedding = NULL WHERE typeof(embedding) <> 'integer'")
    return sum(
        connection.execute(f"DELETE FROM {table} WHERE {condition}").rowcount
        for table, _, condition in _conditions(connection)
        if table not in SOURCES
    )


def _conditions(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """For each column: (table, column, the SQL condition that its value is wrong)."""
    connection.create_function("is_utf8", 1, is_utf8, deterministic=True)
    for table, part in tables.ours().items():
        if part.is_plain and not table.startswith(FULL_TEXT):
            for column in part.columns:
                if (table, column.name) != (
                    "chunks",
                    "embedding",
                ):  # `drop_wrong` resets it instead
                    yield table, column.name, _wrong(table, column)


def _wrong(table: str, column: Column) -> str:
    """The SQL condition that a value is wrong; its cases are in order, later ones rely on earlier ones."""
    name = column.name
    cases = [f"WHEN {name} IS NULL THEN {int(not column.nullable)}"]
    cases.append(f"WHEN typeof({name}) <> '{KINDS[column.type]}' THEN 1")
    if column.type == "TEXT":
        cases.append(f"WHEN NOT is_utf8(CAST({name} AS BLOB)) THEN 1")
    if shape := JSON.get((table, name)):
        cases.append(f"WHEN NOT json_valid({name}) THEN 1 WHEN NOT ({shape.format(name)}) THEN 1")
    if name in TIMES:
        cases.append(f"WHEN NOT {name} BETWEEN {FIRST_SECOND} AND {LAST_SECOND} THEN 1")
    elif column.type == "REAL":
        cases.append(f"WHEN abs({name}) > {LARGEST} THEN 1")
    if column.type == "INTEGER" and name in ROW_IDS:
        # `relation` is 0 if an alias has merged both ends; vectors of old formats may be in row 0
        first = int(name == "id" and table != "vector_keys")
        cases.append(f"WHEN NOT {name} BETWEEN {first} AND {LAST_ROW} THEN 1")
    if (table, name) == ("chunks", "state"):
        cases.append(f"WHEN {name} NOT IN ({CHUNK_STATES}) THEN 1")
    if (table, name) == ("settings", "value"):
        cases.append(f"WHEN {NO_LENGTH} THEN 1")
    return f"CASE {' '.join(cases)} ELSE 0 END"
