"""The index at one moment: the derived graph and vectors, with the database they belong to."""

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

COMMITS_KEPT = 1_000  # a reader that is further behind loads everything anew
NAMES_KEPT = 200_000  # chunks whose names are remembered: about 30 MB
FACTS_KEPT = 10_000  # entities, and as many relations: about 20 MB, more where much is told
CHUNKS_KEPT = 1_000  # with their texts: about 10 MB
LABELS_KEPT = 10_000  # documents, and what to call them
TERMS_KEPT = 10_000
FACT_CHUNKS = 20  # chunks named as sources of one entity or relation, the first ones
RELOAD_SHARE = 0.5  # catching up on more than this share of the index costs as much as loading it

State = Literal["empty", "ready", "behind"]
Fact = TypeVar("Fact", Entity, Relation)
ReadFacts = Callable[..., dict[int, Fact]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one query looks at; valid only inside `SnapshotKeeper.snapshot()`.

    `vectors` holds one index a kind, its ids are row ids of entities, relations and chunks.
    `mentions()` are read when they are first asked for, and kept up to date from then on.
    `entities()`, `relations()` (each naming its first chunks), `chunks()` and `chunk_names()` (their
    public ids) are values by row id, `labels()` what to call documents, by their ids, `term_counts()`
    how many chunks have a term; all are remembered from question to question. `chunk_count` is how
    many there are.
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
    """Keeps the derived indexes of one database and brings them up to date when they are asked for.

    The database alone decides: a commit of this or of another process is seen by the next
    snapshot, through the row ids that each commit wrote down. With `embedder`, the name of the one
    that questions are embedded with, an index that was moved to another is a `SettingsError`.
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
        self._names = Remembered[int, str](NAMES_KEPT)  # of chunks
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
        """For what is made of what was read: see `Database.explained`."""
        return self._database.explained()

    def state(self) -> State:
        """Without any chunk, ready to be searched at once, or behind: something is to be loaded or
        waited for first. One short look, that brings nothing up to date.
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
        """What changed, and the relations that name an entity that did."""
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
                self._graph = None  # half done: the next look loads all anew
                raise
            self._chunk_count = fulltext.chunk_count(connection)
            self._generation = current
        assert self._graph is not None
        return self._graph

    def _touched(self, connection: sqlite3.Connection, current: int) -> dict[Kind, set[int]] | None:
        """The rows that changed since the last look, or None where all must be loaded anew."""
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
        relations = touched["relation"]  # a row id may have been given to another pair
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
    """The number of the last visible change."""
    return int(connection.execute("SELECT coalesce(max(generation), 0) FROM commits").fetchone()[0])


def note_commit(
    connection: sqlite3.Connection,
    *,
    entity: Iterable[int] = (),
    relation: Iterable[int] = (),
    chunk: Iterable[int] = (),
) -> int:
    """Write down which rows (their ids) a change touched, so that derived indexes catch up.

    Answers with the generation that the change makes.

    A chunk is touched too where only its claims belong to others than before.
    """
    touched = {"entity": sorted(entity), "relation": sorted(relation), "chunk": sorted(chunk)}
    return _note(connection, touched)


def note_rebuilt(connection: sqlite3.Connection) -> None:
    """Write down that any row may have changed: derived indexes are loaded anew."""
    _note(connection, {"all": True})


def _note(connection: sqlite3.Connection, touched: Mapping[str, object]) -> int:
    written = connection.execute("INSERT INTO commits (touched) VALUES (?)", (dump(touched),))
    made = written.lastrowid or 0
    connection.execute("DELETE FROM commits WHERE generation <= ?", (made - COMMITS_KEPT,))
    return made


def check_generation(connection: sqlite3.Connection, planned: int, working_dir: Path) -> None:
    """`StorageError` where the rows that a change was planned on may be others by now.

    Nobody may write but who holds the directory, so this is somebody who does not ask.
    """
    if generation(connection) != planned:
        raise StorageError(
            f"{working_dir} was changed by another program meanwhile; run the same command again",
            path=working_dir,
        )


def _alive(connection: sqlite3.Connection, ids: set[int]) -> set[int]:
    """Those entities that are still there."""
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
