"""What was paid for: cached answers, answers for similar questions; recorded queries; settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat, starmap

import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Completion, TraceSummary
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.storage.sqlite.connection import Tables

ANSWERS_KEPT = 1_000  # for similar questions; of more, the oldest are deleted
SINGLE = "<f4"  # float32, little endian
TRACE_EVENTS = "FROM traces t JOIN trace_events e ON e.trace = t.id WHERE"


class CacheTables(Tables):
    """Cached answers, recorded queries and settings; the methods are those of the port."""

    # ── answers ─────────────────────────────────────────────────────────────────

    def completion(self, key: bytes) -> Completion | None:
        columns = "text, finish, input_tokens, output_tokens, cached_tokens, calls"
        rows = self._rows(f"SELECT {columns} FROM completions WHERE key = ?", key)
        return Completion(rows[0][0], rows[0][1], Usage(*rows[0][2:])) if rows else None

    def completion_stats(self) -> tuple[int, int]:
        size = "coalesce(sum(length(CAST(text AS BLOB))), 0)"
        count, size = self._rows(f"SELECT count(*), {size} FROM completions")[0]
        return count, size

    def put_completion(
        self, key: bytes, completion: Completion, *, model: str, prompt: str, created_at: float
    ) -> None:
        usage = completion.usage
        tokens = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.calls)
        self.connection.execute(
            "INSERT OR REPLACE INTO completions (key, model, prompt, text, finish, input_tokens, "
            "output_tokens, cached_tokens, calls, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (key, model, prompt, completion.text, completion.finish, *tokens, created_at),
        )

    def delete_completions(self, keys: Collection[bytes] | None = None) -> int:
        if keys is None:
            self.connection.execute("DELETE FROM reusable_answers")
            return self.connection.execute("DELETE FROM completions").rowcount
        query = "DELETE FROM completions WHERE key = ?"
        return self.connection.executemany(query, [(key,) for key in keys]).rowcount

    def reusable_answers(self, signature: str) -> list[tuple[str, Vectors, str]]:
        query = (
            "SELECT question, vector, answer FROM reusable_answers "
            "WHERE signature = ? AND generation = ? ORDER BY id"
        )
        return [
            (question, np.frombuffer(vector, SINGLE).astype(np.float32), answer)
            for question, vector, answer in self._rows(query, signature, self.generation)
        ]

    def put_reusable_answer(
        self,
        signature: str,
        question: str,
        vector: Vectors,
        answer: str,
        *,
        generation: int | None = None,
    ) -> None:
        current = self.generation
        if generation not in (None, current):
            return
        self.connection.execute("DELETE FROM reusable_answers WHERE generation < ?", (current,))
        row = self.connection.execute(
            "INSERT INTO reusable_answers (generation, signature, question, vector, answer) "
            "VALUES (?, ?, ?, ?, ?)",
            (current, signature, question, vector.astype(SINGLE).tobytes(), answer),
        ).lastrowid
        oldest = (row or 0) - ANSWERS_KEPT
        self.connection.execute("DELETE FROM reusable_answers WHERE id <= ?", (oldest,))

    # ── recorded queries ────────────────────────────────────────────────────────

    def traces(self, *, prefix: str = "", limit: int | None = None) -> list[TraceSummary]:
        query = (
            "SELECT name, status, mode, question, started_at FROM traces "
            "WHERE substr(name, 1, length(?1)) = ?1 ORDER BY id DESC LIMIT ?2"
        )
        most = -1 if limit is None else limit
        return list(starmap(TraceSummary, self._rows(query, prefix, most)))

    def trace_events(self, trace_id: str) -> list[str]:
        rows = self._rows(f"SELECT e.event {TRACE_EVENTS} t.name = ? ORDER BY e.id", trace_id)
        return [event for (event,) in rows]

    def events_of_stage(self, stage: str) -> Iterator[tuple[str, str]]:
        where = "e.event ->> '$.stage' = ? ORDER BY t.id DESC, e.id"
        yield from self.connection.execute(
            f"SELECT t.name, e.event {TRACE_EVENTS} {where}", (stage,)
        )

    def put_trace(self, trace: TraceSummary) -> None:
        self.connection.execute(
            "INSERT INTO traces (name, status, mode, question, started_at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET status = excluded.status",
            (trace.id, trace.status, trace.mode, trace.question, trace.started_at),
        )

    def add_trace_events(self, trace_id: str, events: Sequence[str]) -> None:
        self.connection.executemany(
            "INSERT INTO trace_events (trace, event) SELECT id, ? FROM traces WHERE name = ?",
            zip(events, repeat(trace_id)),
        )

    def delete_traces(self, *, keep: int) -> int:
        newest_old = "SELECT id FROM traces ORDER BY id DESC LIMIT 1 OFFSET ?"
        query = f"DELETE FROM traces WHERE id <= ({newest_old})"
        return self.connection.execute(query, (max(keep, 0),)).rowcount

    # ── settings ────────────────────────────────────────────────────────────────

    def settings(self) -> dict[str, str]:
        return dict(self._rows("SELECT name, value FROM settings ORDER BY name"))

    def put_settings(self, settings: Mapping[str, str]) -> None:
        self.connection.executemany(
            "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "
            "value = excluded.value WHERE value <> excluded.value",
            settings.items(),
        )
