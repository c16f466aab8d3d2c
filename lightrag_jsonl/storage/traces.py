"""The stored traces: one row for each query, and its events in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator


def begin(
    connection: sqlite3.Connection, id: str, *, mode: str, question: str, at: float, event: str
) -> None:
    """Store that a query began, with its first event; it is `incomplete` until it ends."""
    connection.execute(
        "INSERT INTO traces VALUES (?, 'incomplete', ?, ?, ?)", (id, mode, question, at)
    )
    add(connection, id, 0, event)


def add(connection: sqlite3.Connection, id: str, position: int, event: str) -> None:
    """Store a further event (one line of JSON); ignored if the query was deleted meanwhile."""
    connection.execute(
        "INSERT INTO trace_events SELECT id, ?, ? FROM traces WHERE id = ?", (position, event, id)
    )


def end(connection: sqlite3.Connection, id: str, position: int, event: str, status: str) -> None:
    """Store the last event and the status of the query."""
    add(connection, id, position, event)
    connection.execute("UPDATE traces SET status = ? WHERE id = ?", (status, id))


def events(connection: sqlite3.Connection, id: str) -> list[tuple[int, str]]:
    """A query's events with their positions, in order; empty if the id is unknown."""
    return connection.execute(
        "SELECT position, event FROM trace_events WHERE trace = ? ORDER BY position", (id,)
    ).fetchall()


def summary(connection: sqlite3.Connection, id: str) -> tuple[str, str, str]:
    """(status, mode, question) of a query."""
    query = "SELECT status, mode, question FROM traces WHERE id = ?"
    status, mode, question = connection.execute(query, (id,)).fetchone()
    return status, mode, question


def strays(connection: sqlite3.Connection) -> list[str]:
    """The ids of events whose query is not stored."""
    rows = connection.execute(
        "SELECT DISTINCT trace FROM trace_events "
        "WHERE trace NOT IN (SELECT id FROM traces) ORDER BY trace"
    )
    return [row[0] for row in rows]


def selections(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """(id, selection event) of every query that got so far, the newest first."""
    yield from connection.execute(
        "SELECT t.id, e.event FROM traces t JOIN trace_events e ON e.trace = t.id "
        'WHERE e.event LIKE \'{"stage":"selection"%\' ORDER BY t.rowid DESC'
    )


def listed(
    connection: sqlite3.Connection, *, limit: int = -1
) -> list[tuple[str, str, str, str, float]]:
    """(id, status, mode, question, started at) of every query, the newest first."""
    return connection.execute(
        "SELECT id, status, mode, question, started_at FROM traces ORDER BY rowid DESC LIMIT ?",
        (limit,),
    ).fetchall()


def found(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """The trace ids that begin with `prefix`; at most three."""
    rows = connection.execute(
        "SELECT id FROM traces WHERE substr(id, 1, length(?)) = ? ORDER BY id LIMIT 3",
        (prefix, prefix),
    )
    return [row[0] for row in rows]


def keep_newest(connection: sqlite3.Connection, number: int) -> int:
    """Delete all but the newest traces; returns how many."""
    old = f"SELECT id FROM traces ORDER BY rowid DESC LIMIT -1 OFFSET {max(number, 0)}"
    connection.execute(f"DELETE FROM trace_events WHERE trace IN ({old})")
    return connection.execute(f"DELETE FROM traces WHERE id IN ({old})").rowcount
