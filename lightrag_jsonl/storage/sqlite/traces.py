"""Recorded queries and their events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat, starmap

from lightrag_jsonl.storage.rows import TraceRow
from lightrag_jsonl.storage.sqlite.connection import ConnectionReader, ConnectionWriter


class TraceReader(ConnectionReader):
    """Reads recorded queries."""

    def traces(self, *, prefix: str = "", limit: int | None = None) -> list[TraceRow]:
        """Recorded queries whose id begins with `prefix`, newest first."""
        query = (
            "SELECT name, status, mode, question, started_at FROM traces "
            "WHERE substr(name, 1, length(?1)) = ?1 ORDER BY id DESC LIMIT ?2"
        )
        most = -1 if limit is None else limit
        return list(starmap(TraceRow, self._rows(query, prefix, most)))

    def trace_events(self, trace_id: str) -> list[str]:
        """The events of one query, each as JSON, in order."""
        query = (
            "SELECT e.event FROM traces t JOIN trace_events e ON e.trace = t.id "
            "WHERE t.name = ? ORDER BY e.id"
        )
        return [row[0] for row in self._rows(query, trace_id)]

    def events_of_stage(self, stage: str) -> Iterator[tuple[str, str]]:
        """(trace id, event) of every event of one stage, newest query first."""
        query = (
            "SELECT t.name, e.event FROM traces t JOIN trace_events e ON e.trace = t.id "
            "WHERE e.event ->> '$.stage' = ? ORDER BY t.id DESC, e.id"
        )
        yield from self.connection.execute(query, (stage,))


class TraceWriter(TraceReader, ConnectionWriter):
    """Writes recorded queries."""

    def put_trace(self, trace: TraceRow) -> None:
        """Store a query, or its new status."""
        self.connection.execute(
            "INSERT INTO traces (name, status, mode, question, started_at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET status = excluded.status",
            (trace.id, trace.status, trace.mode, trace.question, trace.started_at),
        )

    def add_trace_events(self, trace_id: str, events: Sequence[str]) -> None:
        """Append events to a query; ignored if the query was deleted meanwhile."""
        self.connection.executemany(
            "INSERT INTO trace_events (trace, event) SELECT id, ? FROM traces WHERE name = ?",
            zip(events, repeat(trace_id)),
        )

    def delete_traces(self, *, keep: int) -> int:
        """Delete all but the newest `keep` queries; returns how many."""
        newest_old = "SELECT id FROM traces ORDER BY id DESC LIMIT 1 OFFSET ?"
        query = f"DELETE FROM traces WHERE id <= ({newest_old})"
        return self.connection.execute(query, (max(keep, 0),)).rowcount
