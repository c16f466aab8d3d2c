"""Checks and restores the tables and indexes of the database; removes foreign triggers."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from lightrag_jsonl.storage import schema

# Tables of original data. All others are derived from them, or can be asked for again.
SOURCES = frozenset(
    (
        "settings",
        "documents",
        "pages",
        "chunks",
        "entity_mentions",
        "relation_mentions",
        "aliases",
    )
)
FULL_TEXT = "chunk_terms"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one of our tables."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A table or index of ours: the statement that creates it, and its columns."""

    kind: str
    statement: str
    columns: tuple[Column, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it is an ordinary table, not an index or a virtual table."""
        return self.kind == "table" and not self.statement.startswith("CREATE VIRTUAL")


@cache
def ours() -> Mapping[str, Part]:
    """All tables and indexes of a new database by name, in an order in which they can be created."""
    with new() as fresh:
        rows = fresh.execute(
            "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL "
            "AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        ).fetchall()
        return {name: Part(kind, sql, tuple(_columns(fresh, name))) for name, kind, sql in rows}


def missing(connection: sqlite3.Connection) -> list[str]:
    """The names of tables and indexes that are missing or have other columns than ours."""
    return [name for name, part in ours().items() if _is_missing(connection, name, part)]


def triggers(connection: sqlite3.Connection) -> list[str]:
    """The names of all triggers; a database of ours has none."""
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY name")
    return [row[0] for row in rows]


def drop_triggers(connection: sqlite3.Connection) -> list[str]:
    """Drop all triggers; returns their names."""
    found = triggers(connection)
    for name in found:
        connection.execute(f"DROP TRIGGER {_quoted(name)}")
    return found


def make_anew(connection: sqlite3.Connection) -> list[str]:
    """Create what is missing, empty; returns the names.

    Missing `SOURCES` are not created, since their content cannot be derived.
    """
    made = []
    for name, part in ours().items():
        if name in SOURCES or not _is_missing(connection, name, part):
            continue
        if part.is_plain:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(part.statement)
        made.append(name)
        if name == "commits":
            _count_on(connection)
    return made


def empty_fulltext(connection: sqlite3.Connection) -> None:
    """Create the full-text index anew, empty, whatever state it was in.

    SQLite can only drop one that it can read, so its own tables are first filled with those of an
    empty one.
    """
    parts = [name for name in ours() if name.startswith(f"{FULL_TEXT}_")]
    with new() as fresh:
        for name in parts:
            if not _is_there(connection, name):
                connection.execute(ours()[name].statement)
            connection.execute(f"DELETE FROM {name}")
            for row in fresh.execute(f"SELECT * FROM {name}"):
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)
    connection.execute(f"DROP TABLE {FULL_TEXT}")
    connection.execute(ours()[FULL_TEXT].statement)


def _count_on(connection: sqlite3.Connection) -> None:
    """Number commits from a value nobody has seen, so that all derived indexes are loaded anew."""
    connection.execute(
        "INSERT INTO sqlite_sequence VALUES ('commits', CAST(strftime('%s') AS INTEGER))"
    )


def _is_missing(connection: sqlite3.Connection, name: str, part: Part) -> bool:
    if not _is_there(connection, name):
        return True
    if not part.is_plain:  # the columns of a damaged full-text index cannot be read
        return False
    found = {column.name for column in _columns(connection, name)}
    return found != {column.name for column in part.columns}


def _is_there(connection: sqlite3.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    return found is not None


def _columns(connection: sqlite3.Connection, table: str) -> Iterator[Column]:
    for _, name, kind, filled, _, key in connection.execute(f"PRAGMA table_info({table})"):
        yield Column(name, kind, not filled and not key)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextlib.contextmanager
def new() -> Iterator[sqlite3.Connection]:
    """A new database in memory, with all tables and no rows."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        schema.create(fresh)
        yield fresh
