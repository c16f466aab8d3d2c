"""What all tables share, and the small ones: settings, cached answers and recorded queries."""

import re
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple
from itertools import starmap
from typing import Any

import msgspec
import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Completion, Kind, TraceSummary
from lightrag_jsonl.core.usage import Usage

Row = tuple[Any, ...]
Values = Collection[int] | Collection[str] | Collection[bytes]

TABLES: dict[Kind, str] = {"entity": "entities", "relation": "relations", "chunk": "chunks"}
AMONG = "IN (SELECT value FROM json_each(?))"  # the parameter is the `json_text` of a list
UNCHANGING = {"id", "key", "low", "high"}  # to set them writes to indexes, even if equal
ANSWERS_KEPT = 1_000  # for similar questions; of more, the oldest are deleted
SINGLE = "<f4"  # float32, little endian
JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
CHUNK_ID = re.compile('"(chunk-[0-9a-f]{16})"')
COMPLETION = "text, finish, input_tokens, output_tokens, cached_tokens, calls"
OF_NO_DOCUMENT = """document IS NULL OR document NOT IN (
    SELECT name FROM documents UNION ALL SELECT name FROM pending)"""


def json_text(value: object) -> str:
    """Compact JSON."""
    return msgspec.json.encode(value).decode()


def decoded(row: Row, *columns: int) -> list[Any]:
    """A row with some of its columns read as JSON."""
    values = list(row)
    for column in columns:
        values[column] = msgspec.json.decode(values[column])
    return values


def paged(limit: int | None, offset: int) -> str:
    """The page of a query, as it stands after LIMIT."""
    return f"{-1 if limit is None else max(limit, 0):d} OFFSET {max(offset, 0):d}"


class Tables:
    """Tables, read and written through a connection that is in a transaction.

    A connection for reading refuses to write. `touched` collects the rows of the index that were
    changed, by kind; `changed` says that anything else was that queries see. The public methods are
    those of the port. A store whose SQL differs in a few words has its own for the constants.
    """

    AMONG = AMONG
    BYTES = "length(CAST(text AS BLOB))"
    AS_JSON = ""  # after a column

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.touched: dict[Kind, set[int]] = {kind: set() for kind in TABLES}
        self.changed = False

    def _rows(self, query: str, *values: object) -> list[Row]:
        return self.connection.execute(query, values).fetchall()

    def _list(self, values: Values) -> object:
        """The parameter of `AMONG`."""
        return json_text(list(values))

    def _select(
        self, columns: str, table: str, column: str, among: Values | None, order: str = "id"
    ) -> list[Row]:
        """Rows in order: all, or those whose `column` has one of these values."""
        where = "" if among is None else f"WHERE {column} {self.AMONG}"
        values = () if among is None else (self._list(among),)
        return self._rows(f"SELECT {columns} FROM {table} {where} ORDER BY {order}", *values)

    def _put(
        self, table: str, columns: str, rows: Iterable[Sequence[object]], by: str | None = "id"
    ) -> None:
        """Insert rows, or replace those that have the same value in the column `by`; if that is None,
        what is there already stays as it is.

        Unlike INSERT OR REPLACE it deletes nothing, so that rows which refer to these stay.
        """
        changing = [name for name in columns.split(", ") if name not in {by, *UNCHANGING}]
        updated = ", ".join(f"{name} = excluded.{name}" for name in changing)
        conflict = f"({by}) DO UPDATE SET {updated}" if by else "DO NOTHING"
        marks = ", ".join("?" * (columns.count(",") + 1))
        query = f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT {conflict}"
        self.connection.executemany(query, rows)

    def _delete(self, table: str, column: str, among: Values | None = None) -> int:
        """Delete rows: all, or those whose `column` has one of these values; returns how many."""
        if among is None:
            return self.connection.execute(f"DELETE FROM {table}").rowcount
        query = f"DELETE FROM {table} WHERE {column} = ?"
        return max(0, self.connection.executemany(query, [(one,) for one in among]).rowcount)

    @property
    def generation(self) -> int:
        """The number of the last visible change of documents or graph."""
        return int(self._rows("SELECT coalesce(max(generation), 0) FROM commits")[0][0])

    def settings(self) -> dict[str, str]:
        return dict(self._rows("SELECT name, value FROM settings ORDER BY name"))

    def put_settings(self, settings: Mapping[str, str]) -> None:
        self._put("settings", "name, value", settings.items(), "name")

    def completion(self, key: bytes) -> Completion | None:
        rows = self._rows(f"SELECT {COMPLETION} FROM completions WHERE key = ?", key)
        return Completion(rows[0][0], rows[0][1], Usage(*rows[0][2:])) if rows else None

    def completion_keys(self) -> dict[bytes, str | None]:
        return dict(self._rows("SELECT key, document FROM completions ORDER BY id"))

    def completion_stats(self) -> tuple[int, int]:
        query = f"SELECT count(*), coalesce(sum({self.BYTES}), 0) FROM completions"
        count, size = self._rows(query)[0]
        return count, int(size)

    def put_completion(
        self, key: bytes, completion: Completion, document: str | None = None
    ) -> None:
        one = completion
        row = (one.text, one.finish, *astuple(one.usage), key, document)
        self._put("completions", f"{COMPLETION}, key, document", [row], "key")

    def delete_completions(self, keys: Collection[bytes] | None = None) -> int:
        if keys is None:
            self._delete("reusable_answers", "id")
        return self._delete("completions", "key", keys)

    def purge(self, names: Collection[str]) -> tuple[int, int]:
        self._delete("reusable_answers", "id")
        self._delete("cached_vectors", "id")
        query = f"DELETE FROM completions WHERE {OF_NO_DOCUMENT}"
        answers = self.connection.execute(query).rowcount
        chunks = {name for (name,) in self._rows("SELECT name FROM chunks")}
        quoted = set(map(json_text, names))
        events = self.connection.execute("SELECT trace, event FROM trace_events")
        found = {
            trace
            for trace, event in events
            if not chunks.issuperset(CHUNK_ID.findall(event))
            or not quoted.isdisjoint(JSON_TEXT.findall(event))
        }
        return answers, self._delete("traces", "id", found)

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
        self, signature: str, question: str, vector: Vectors, answer: str, generation: int
    ) -> None:
        if generation != self.generation:
            return
        ((row,),) = self._rows(
            "INSERT INTO reusable_answers (generation, signature, question, vector, answer) "
            "VALUES (?, ?, ?, ?, ?) RETURNING id",
            *(generation, signature, question, vector.astype(SINGLE).tobytes(), answer),
        )
        self.connection.execute(
            "DELETE FROM reusable_answers WHERE generation < ? OR id <= ?",
            (generation, row - ANSWERS_KEPT),
        )

    def traces(self, *, prefix: str = "", limit: int | None = None) -> list[TraceSummary]:
        query = (
            "SELECT name, status, mode, question, started_at FROM traces "
            f"WHERE substr(name, 1, length(?1)) = ?1 ORDER BY id DESC LIMIT {paged(limit, 0)}"
        )
        return list(starmap(TraceSummary, self._rows(query, prefix)))

    def trace_events(self, *, trace_id: str = "", stage: str = "") -> list[Row]:
        of_stage = f"e.event{self.AS_JSON} ->> 'stage'"
        column, value = (of_stage, stage) if stage else ("t.name", trace_id)
        return self._rows(
            "SELECT t.name, e.event FROM traces t JOIN trace_events e ON e.trace = t.id "
            f"WHERE {column} = ? ORDER BY t.id DESC, e.id",
            value,
        )

    def put_trace(self, trace: TraceSummary, events: Sequence[str]) -> None:
        columns = "name, status, mode, question, started_at"
        row = (trace.id, trace.status, trace.mode, trace.question, trace.started_at)
        self._put("traces", columns, [row], "name")
        self.connection.executemany(
            "INSERT INTO trace_events (trace, event) SELECT id, ? FROM traces WHERE name = ?",
            [(event, trace.id) for event in events],
        )

    def delete_traces(self, *, keep: int) -> int:
        newest_old = "SELECT id FROM traces ORDER BY id DESC LIMIT 1 OFFSET ?"
        query = f"DELETE FROM traces WHERE id <= ({newest_old})"
        return self.connection.execute(query, (max(keep, 0),)).rowcount
