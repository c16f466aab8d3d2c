"""Recorded queries, with their events."""

from collections.abc import Sequence

from lightrag_jsonl.core.types import TraceSummary
from lightrag_jsonl.storage.tables.base import Tables, WritableTables, read_as


class TraceReads(Tables):
    """Reads recorded queries."""

    def traces(self, *, prefix: str = "", limit: int | None = None) -> list[TraceSummary]:
        """Recorded queries whose id begins with `prefix`, newest first."""
        cursor = self.dialect.execute(
            "SELECT name AS id, status, mode, question, started_at FROM traces "
            f"WHERE substr(name, 1, length(?1)) = ?1 ORDER BY traces.id DESC {self._page(limit)}",
            prefix,
        )
        return read_as(TraceSummary, cursor)

    def trace_events(self, *, trace_id: str = "", stage: str = "") -> list[tuple[str, str]]:
        """(trace id, event as JSON) of the events of a query or of a stage, the newest query first,
        events in order.
        """
        column = self.dialect.json_field("e.event", "stage") if stage else "t.name"
        cursor = self.dialect.execute(
            "SELECT t.name, e.event FROM traces t JOIN trace_events e ON e.trace = t.id "
            f"WHERE {column} = ? ORDER BY t.id DESC, e.id",
            stage or trace_id,
        )
        return [(name, event) for name, event in cursor]


class TraceWrites(TraceReads, WritableTables):
    """Writes recorded queries."""

    def put_trace(self, trace: TraceSummary, events: Sequence[str]) -> None:
        """Store a query, or a new status, and append events (JSON)."""
        row = {
            "name": trace.id,
            "status": trace.status,
            "mode": trace.mode,
            "question": trace.question,
            "started_at": trace.started_at,
        }
        self._put("traces", [row], key="name")
        self.dialect.execute_many(
            "INSERT INTO trace_events (trace, event) SELECT id, ? FROM traces WHERE name = ?",
            [(event, trace.id) for event in events],
        )

    def delete_traces(self, *, keep: int) -> int:
        """Delete all but the newest `keep` queries; returns the number."""
        newest_old = "SELECT id FROM traces ORDER BY id DESC LIMIT 1 OFFSET ?"
        statement = f"DELETE FROM traces WHERE id <= ({newest_old})"
        return self.dialect.execute(statement, max(keep, 0)).rowcount
