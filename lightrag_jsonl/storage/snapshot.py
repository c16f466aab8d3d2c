"""A consistent view of the index: the graph and vectors in memory, and the database they came from."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.graph import KnowledgeGraph
from lightrag_jsonl.storage import documents, fulltext, reading, settings
from lightrag_jsonl.storage.embeddings import load_vectors
from lightrag_jsonl.storage.mentions import Mentions
from lightrag_jsonl.storage.remembered import Remembered
from lightrag_jsonl.storage.rows import OWNERS, dump
from lightrag_jsonl.types import Chunk, Entity, Kind, Relation
from lightrag_jsonl.vectors import VectorIndex

if TYPE_CHECKING:
    from lightrag_jsonl.storage.database import Database

COMMITS_KEPT = 1_000  # a reader further behind than this loads everything anew
NAMES_KEPT = 200_000  # public ids of chunks: about 30 MB
FACTS_KEPT = 10_000  # entities, and as many relations: about 20 MB, more with long descriptions
CHUNKS_KEPT = 1_000  # chunks with their texts: about 10 MB
LABELS_KEPT = 10_000  # names of documents
TERMS_KEPT = 10_000
FACT_CHUNKS = 20  # the first so many chunks are named as sources of an entity or relation
RELOAD_SHARE = 0.5  # above this share of changed rows, loading everything anew is as fast

State = Literal["empty", "ready", "behind"]
Fact = TypeVar("Fact", Entity, Relation)
ReadFacts = Callable[..., dict[int, Fact]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one query looks at; valid only inside `SnapshotKeeper.snapshot()`.

    `vectors` holds one index for each kind, by row id. `chunk_count` is the number of chunks. The
    callables read from the database and cache what they read from one question to the next:
    `mentions()`; `entities()` and `relations()`, each with its first chunks, `chunks()` and
    `chunk_names()` (public ids), all by row id; `labels()`, the names of documents by their ids;
    and `term_counts()`, in how many chunks each term occurs.
    """

    connection: sqlite3.Connection
    graph: KnowledgeGraph
    vectors: dict[Kind, VectorIndex]
    generation: int
    mentions: Callable[[], Mentions]
    entities: Callable[[Iterable[int]], dict[int, Entity]]
    relations: Callable[[Iterable[int]], dict[int, Relation]]
    chunks: Callable[[Iterable[int]], dict[int, Chunk]]
    chunk_names: Callable[[Iterable[int]], dict[int, str]]
    labels: Callable[[Iterable[str]], dict[str, str]]
    term_counts: Callable[[Iterable[str]], dict[str, int]]
    chunk_count: int


class SnapshotKeeper:
    """Keeps the indexes in memory that are derived from a database, and updates them when needed.

    Every commit, of this or another process, records the row ids it touched; from these the next
    snapshot catches up. If `embedder` names the embedder of questions, an index that was moved to
    another embedder raises `SettingsError`.
    """

    def __init__(self, database: Database, *, embedder: str | None = None) -> None:
        self._database = database
        self._embedder = embedder
        self._lock = threading.RLock()
        self._generation = -1
        self._chunk_count = 0
        self._dim = 0
        self._graph: KnowledgeGraph | None = None
        self._vectors: dict[Kind, VectorIndex] = {}
        self._mentions: Mentions | None = None
        self._entities = Remembered[int, Entity](FACTS_KEPT)
        self._relations = Remembered[int, Relation](FACTS_KEPT)
        self._chunks = Remembered[int, Chunk](CHUNKS_KEPT)
        self._names = Remembered[int, str](NAMES_KEPT)  # public ids of chunks
        self._labels = Remembered[str, str](LABELS_KEPT)
        self._terms = Remembered[str, int](TERMS_KEPT)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Graph, vectors and a database connection that all show the same generation."""
        with self._lock, self._database.reading() as connection:
            graph = self._catch_up(connection)
            yield Snapshot(
                connection,
                graph,
                self._vectors,
                self._generation,
                partial(self._all_mentions, connection),
                self._facts(connection, self._entities, reading.entities),
                self._facts(connection, self._relations, reading.relations),
                partial(self._chunks.of, read=partial(documents.chunks_by_row, connection)),
                partial(self._names.of, read=partial(reading.chunk_names, connection)),
                partial(self._labels.of, read=partial(reading.document_labels, connection)),
                partial(self._terms.of, read=partial(fulltext.term_counts, connection)),
                self._chunk_count,
            )

    def explained(self) -> contextlib.AbstractContextManager[None]:
        """Like `Database.explained`, for code that works on what was read."""
        return self._database.explained()

    def state(self) -> State:
        """ "empty" without any chunk, "ready" if a search can start at once, otherwise "behind".

        A quick look: nothing is loaded or updated.
        """
        with self._database.reading(single=True) as connection:
            if self._graph is None or generation(connection) != self._generation:
                return "empty" if fulltext.is_empty(connection) else "behind"
        if not self._chunk_count:
            return "empty"
        free = self._lock.acquire(blocking=False)
        if free:
            self._lock.release()
        return "ready" if free else "behind"

    def _all_mentions(self, connection: sqlite3.Connection) -> Mentions:
        if self._mentions is None:
            self._mentions = Mentions.read(connection)
        return self._mentions

    def _facts(
        self, connection: sqlite3.Connection, kept: Remembered[int, Fact], read: ReadFacts[Fact]
    ) -> Callable[[Iterable[int]], dict[int, Fact]]:
        names = partial(self._names.of, read=partial(reading.chunk_names, connection))
        read_few = partial(read, connection, chunk_limit=FACT_CHUNKS, name_chunks=names)
        return partial(kept.of, read=read_few)

    def _forget(self, graph: KnowledgeGraph, touched: dict[Kind, set[int]]) -> None:
        """Forget cached rows that changed, and cached relations that contain the name of a changed entity."""
        self._labels.clear()
        self._terms.clear()
        self._chunks.forget(touched["chunk"])
        self._names.forget(touched["chunk"])
        self._entities.forget(touched["entity"])
        self._relations.forget(touched["relation"])
        self._relations.forget(graph.relations_of(touched["entity"])[1].tolist())

    def _catch_up(self, connection: sqlite3.Connection) -> KnowledgeGraph:
        current = generation(connection)
        if self._graph is None or current != self._generation:
            if self._embedder is not None:
                wanted = {"embedder": self._embedder}
                settings.check(settings.read(connection), wanted, self._database.working_dir)
            touched = self._touched(connection, current)
            try:
                if self._graph is None or touched is None:
                    self._load(connection)
                else:
                    self._apply(connection, self._graph, touched)
            except BaseException:
                self._graph = None  # half updated: load everything anew next time
                raise
            self._chunk_count = fulltext.chunk_count(connection)
            self._generation = current
        assert self._graph is not None
        return self._graph

    def _touched(self, connection: sqlite3.Connection, current: int) -> dict[Kind, set[int]] | None:
        """The rows that changed since the last snapshot; None if everything must be loaded anew."""
        rows = connection.execute(
            "SELECT touched FROM commits WHERE generation > ? ORDER BY generation",
            (self._generation,),
        ).fetchall()
        if self._graph is None or len(rows) != current - self._generation:
            return None
        touched: dict[Kind, set[int]] = {kind: set() for kind in OWNERS}
        for (text,) in rows:
            change = json.loads(text)
            if change.get("all"):
                return None
            for kind in OWNERS:
                touched[kind].update(change.get(kind, ()))
        known = self._graph.entity_count + self._graph.relation_count
        changed = sum(map(len, touched.values()))
        return None if changed > max(RELOAD_SHARE * known, 1_000) else touched

    def _load(self, connection: sqlite3.Connection) -> None:
        self._dim = settings.dimension(connection)
        graph = KnowledgeGraph()
        graph.put_entities(row[0] for row in connection.execute("SELECT id FROM entities"))
        graph.put_relations(connection.execute("SELECT id, low, high, weight FROM relations"))
        self._vectors = {kind: VectorIndex(self._dim or 1) for kind in OWNERS}
        if self._dim:
            for kind, index in self._vectors.items():
                ids, matrix = load_vectors(connection, kind, self._dim)
                index.update(ids, matrix)
        self._graph, self._mentions = graph, None
        for kept in (self._entities, self._relations, self._chunks, self._names):
            kept.clear()
        self._labels.clear()
        self._terms.clear()

    def _apply(
        self,
        connection: sqlite3.Connection,
        graph: KnowledgeGraph,
        touched: dict[Kind, set[int]],
    ) -> None:
        dim = settings.dimension(connection)
        if dim != self._dim:
            self._load(connection)
            return
        self._forget(graph, touched)
        relations = touched["relation"]  # their row ids may belong to other pairs now
        graph.put_relations(_relation_rows(connection, relations), instead_of=relations)
        alive = _alive(connection, touched["entity"])
        graph.drop_entities(touched["entity"] - alive)
        graph.put_entities(sorted(alive))
        if self._mentions is not None and touched["chunk"]:
            self._mentions = self._mentions.renewed(connection, touched["chunk"])
        for kind, ids in touched.items():
            if ids and dim:
                found, matrix = load_vectors(connection, kind, dim, ids)
                self._vectors[kind].remove(np.array(sorted(ids - set(found.tolist())), np.int64))
                self._vectors[kind].update(found, matrix)


def generation(connection: sqlite3.Connection) -> int:
    """The number of the last commit."""
    return int(connection.execute("SELECT coalesce(max(generation), 0) FROM commits").fetchone()[0])


def note_commit(
    connection: sqlite3.Connection,
    *,
    entity: Iterable[int] = (),
    relation: Iterable[int] = (),
    chunk: Iterable[int] = (),
) -> int:
    """Record the rows (ids) that a change touched, for indexes in memory to catch up.

    Returns the new generation. A chunk also counts as touched if its claims have new owners.
    """
    touched = {"entity": sorted(entity), "relation": sorted(relation), "chunk": sorted(chunk)}
    return _note(connection, touched)


def note_rebuilt(connection: sqlite3.Connection) -> None:
    """Record that any row may have changed, so that everything is loaded anew."""
    _note(connection, {"all": True})


def _note(connection: sqlite3.Connection, touched: Mapping[str, object]) -> int:
    written = connection.execute("INSERT INTO commits (touched) VALUES (?)", (dump(touched),))
    made = written.lastrowid or 0
    connection.execute("DELETE FROM commits WHERE generation <= ?", (made - COMMITS_KEPT,))
    return made


def check_generation(connection: sqlite3.Connection, planned: int, working_dir: Path) -> None:
    """Raise `StorageError` if the database has changed since a change was planned.

    The writer holds the directory's lock, so only a program that ignores the lock can cause this.
    """
    if generation(connection) != planned:
        raise StorageError(
            f"{working_dir} was changed by another program meanwhile; run the same command again",
            path=working_dir,
        )


def _alive(connection: sqlite3.Connection, ids: set[int]) -> set[int]:
    """Those of the entities that still exist."""
    rows = connection.execute(
        "SELECT id FROM entities WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(ids)),),
    )
    return {row[0] for row in rows}


def _relation_rows(
    connection: sqlite3.Connection, ids: set[int]
) -> list[tuple[int, int, int, float]]:
    return connection.execute(
        "SELECT id, low, high, weight FROM relations WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(ids)),),
    ).fetchall()
