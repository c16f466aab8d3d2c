"""The views of a database: all tables together, and snapshots with graph and vectors in memory."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, RLock
from typing import Any

import numpy as np
from msgspec.json import decode as parse

from lightrag_jsonl.core.errors import CorruptError, StorageError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.graph_index import GraphIndex, GraphRows
from lightrag_jsonl.storage.rows import MILLION
from lightrag_jsonl.storage.sqlite.documents import DocumentTables
from lightrag_jsonl.storage.sqlite.graph import RELATIONS, GraphTables
from lightrag_jsonl.storage.sqlite.tables import TABLES, json_text
from lightrag_jsonl.storage.store import Transaction
from lightrag_jsonl.storage.vector_index import Floats, Ids, VectorIndex

MENTIONS = "(SELECT * FROM entity_mentions WHERE entity IS NOT NULL) m"
COMMITS_KEPT = 1_000  # an index in memory that is further behind is loaded anew
SAMPLE = 100  # chunks whose full text is checked
TOUCHED_LIMIT = 10_000  # rows of one commit; if it touched more, all is loaded anew, too


class SQLiteView(DocumentTables, GraphTables, Transaction):
    """A reader or, by a connection that may write, a transaction."""

    def record_commit(self) -> None:
        """Note what was touched, if documents, graph or vectors were changed."""
        touched = list(map(sorted, self.touched.values()))
        if not any(touched) and not self.changed:
            return
        text = json_text(touched) if sum(map(len, touched)) <= TOUCHED_LIMIT else None
        generation = self.generation + 1
        self._put("commits", "generation, touched", [(generation, text)], None)
        oldest = generation - COMMITS_KEPT
        self.connection.execute("DELETE FROM commits WHERE generation <= ?", (oldest,))

    def touched_since(self, generation: int) -> dict[Kind, set[int]] | None:
        """The rows touched after a generation; None if any row may have been."""
        commits = self._rows("SELECT touched FROM commits WHERE generation > ?", generation)
        if generation < 0 or len(commits) != self.generation - generation or (None,) in commits:
            return None
        touched: dict[Kind, set[int]] = {kind: set() for kind in TABLES}
        for (text,) in commits:
            for kind, rows in zip(TABLES, parse(text), strict=True):
                touched[kind].update(rows)
        return touched


class SQLiteSnapshot(SQLiteView):
    """A reader with the graph in memory, and search by vectors; the methods are those of the port."""

    def __init__(self, connection: sqlite3.Connection, memory: "Memory") -> None:
        super().__init__(connection)
        self._memory = memory

    @property
    def graph(self) -> GraphIndex:
        return self._memory.graph

    def search_vectors(
        self, kind: Kind, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        return self._memory.vectors[kind].search(queries, limit, allowed)

    def vector_scores(self, kind: Kind, queries: Vectors, rows: Ids) -> Floats:
        return self._memory.vectors[kind].scores(queries, rows)

    def vector_matrix(self, kind: Kind, rows: Ids) -> Vectors:
        return self._memory.vectors[kind].matrix(rows)

    def graph_rows(self, touched: dict[Kind, set[int]] | None = None) -> GraphRows:
        """All rows of the graph, or those of them that were touched."""
        ids = {kind: None if touched is None else touched[kind] for kind in TABLES}
        table = RELATIONS.format(self.AS_JSON)
        relations = self._columns("id, low, high, weight", table, "id", ids["relation"])
        return GraphRows(
            self._columns("id", "entities", "id", ids["entity"])[:, 0],
            self._columns("id", "chunks", "id", ids["chunk"])[:, 0],
            relations[:, :3],
            relations[:, 3] / MILLION,
            self._columns("entity, chunk", MENTIONS, "chunk", ids["chunk"]),
        )

    def _columns(self, columns: str, table: str, column: str, among: Collection[int] | None) -> Ids:
        """Columns of integers, of all rows or those whose `column` is among some values."""
        rows = self._select(columns, table, column, among)
        return np.fromiter(rows, np.dtype((np.int64, (columns.count(",") + 1,))))


class Memory:
    """The graph and the vectors of one generation, shared by all searches.

    Each commit, of this or another process, records the rows that it touched; from these it catches
    up, while nobody searches.
    """

    def __init__(self) -> None:
        self.graph: GraphIndex  # both are loaded by the first search
        self.vectors: dict[Kind, VectorIndex] = {}
        self._generation = -1
        self._searches = 0
        self._free = Condition()

    def begin_search(self, snapshot: SQLiteSnapshot) -> bool:
        """Catch up with the generation of a snapshot; False if that is in the past already."""
        wanted = snapshot.generation
        with self._free:
            while self._generation < wanted and self._searches:
                self._free.wait()
            if self._generation < wanted:
                self._catch_up(snapshot, wanted)
            if self._generation > wanted:
                return False
            self._searches += 1
            return True

    def end_search(self) -> None:
        """Note that a search is done."""
        with self._free:
            self._searches -= 1
            self._free.notify_all()

    def _catch_up(self, snapshot: SQLiteSnapshot, generation: int) -> None:
        touched = snapshot.touched_since(self._generation)
        self._generation = -1  # if this fails, everything is loaded anew next time
        if touched is None:
            self.graph = GraphIndex(snapshot.graph_rows())
        else:
            ids = {kind: np.array(sorted(rows), np.int64) for kind, rows in touched.items()}
            self.graph = self.graph.updated(
                ids["entity"], ids["relation"], ids["chunk"], snapshot.graph_rows(touched)
            )
        for kind in TABLES:
            self._load_vectors(snapshot, kind, None if touched is None else touched[kind])
        self._generation = generation

    def _load_vectors(
        self, snapshot: SQLiteSnapshot, kind: Kind, touched: Collection[int] | None
    ) -> None:
        dim = snapshot.dimension(kind)
        if touched is None or self.vectors[kind].dim != dim:
            self.vectors[kind], touched = VectorIndex(dim), None
        ids, matrix = snapshot.vector_rows(kind, dim, touched)
        if touched is not None:
            self.vectors[kind].remove(np.setdiff1d(np.array(sorted(touched), np.int64), ids))
        self.vectors[kind].update(ids, matrix)


class ViewStore(ABC):
    """What the stores of both databases share: snapshots, and how they are closed and read-only."""

    SNAPSHOT: type[SQLiteSnapshot] = SQLiteSnapshot
    ONLY_READ: str  # what to do about it
    read_only: bool

    def __init__(self, location: str, memory: "Memory") -> None:
        self.location = location  # for messages
        self._memory = memory
        self._write_lock = RLock()  # so that a transaction inside another is an error
        self._writer: Any = None  # the connection that writes, once there was a transaction
        self._closed = False

    @abstractmethod
    def reader(self) -> AbstractContextManager[SQLiteView]:
        """A consistent view for reading."""

    @contextmanager
    def snapshot(self) -> Iterator[SQLiteSnapshot]:
        """A consistent view for searching, by several threads; not to be opened inside another."""
        while True:
            with self.reader() as reader:
                snapshot = self.SNAPSHOT(reader.connection, self._memory)
                if self._memory.begin_search(snapshot):
                    try:
                        yield snapshot
                    finally:
                        self._memory.end_search()
                    return

    def is_empty(self) -> bool:
        """Whether there is no chunk; quick."""
        with self.reader() as reader:
            return not reader.connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchall()

    def check(self, *, full: bool = False) -> list[str]:
        """What is wrong with the stored data, in words; empty if all is well."""
        try:
            with self.reader() as reader:
                return self._problems(reader) or reader.wrong_terms(None if full else SAMPLE)
        except CorruptError as error:
            return [str(error)]

    def close(self) -> None:
        """Release everything; further calls raise `StorageError`."""
        with self._write_lock:
            self._closed = True
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    @abstractmethod
    def _problems(self, reader: SQLiteView) -> list[str]:
        """What statements find wrong that look at all rows."""

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.location} was closed", path=self.location)

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise StorageError(f"{self.location} {self.ONLY_READ}", path=self.location)
