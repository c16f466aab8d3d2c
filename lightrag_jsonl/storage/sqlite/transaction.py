"""All tables together: what a reader reads, and what a transaction writes."""

from __future__ import annotations

import msgspec

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.sqlite.cache import CacheReader, CacheWriter
from lightrag_jsonl.storage.sqlite.connection import TABLES, json_text
from lightrag_jsonl.storage.sqlite.documents import DocumentReader, DocumentWriter
from lightrag_jsonl.storage.sqlite.graph import GraphReader, GraphWriter
from lightrag_jsonl.storage.sqlite.traces import TraceReader, TraceWriter
from lightrag_jsonl.storage.sqlite.vectors import VectorReader, VectorWriter

COMMITS_KEPT = 1_000  # an index in memory that is further behind is loaded anew
TOUCHED_LIMIT = 10_000  # rows of one commit; if it touched more, all is loaded anew, too


class SQLiteReader(DocumentReader, GraphReader, VectorReader, CacheReader, TraceReader):
    """One consistent state of the index."""

    def touched_since(self, generation: int) -> dict[Kind, set[int]] | None:
        """The rows touched after a generation; None if any row may have been."""
        query = "SELECT touched FROM commits WHERE generation > ?"
        commits = self._rows(query, generation)
        if generation < 0 or len(commits) != self.generation - generation or (None,) in commits:
            return None
        touched: dict[Kind, set[int]] = {kind: set() for kind in TABLES}
        for (text,) in commits:
            for kind, rows in zip(TABLES, msgspec.json.decode(text), strict=True):
                touched[kind].update(rows)
        return touched


class SQLiteTransaction(DocumentWriter, GraphWriter, VectorWriter, CacheWriter, TraceWriter):
    """A reader that also writes."""

    def record_commit(self) -> None:
        """Note what was touched, if documents, graph or vectors were changed."""
        touched = list(map(sorted, self.touched.values()))
        if not any(touched) and not self.changed:
            return
        text = json_text(touched) if sum(map(len, touched)) <= TOUCHED_LIMIT else None
        row = self.connection.execute("INSERT INTO commits (touched) VALUES (?)", (text,)).lastrowid
        oldest = (row or 0) - COMMITS_KEPT
        self.connection.execute("DELETE FROM commits WHERE generation <= ?", (oldest,))
