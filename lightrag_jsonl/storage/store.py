"""The storage port: what indexing, retrieval and tracing need of a database.

A `Store` hands out three views. A `Reader` sees one consistent state. A `Snapshot` is a reader with
vector search and the graph in memory, all of the same state. A `Transaction` is a reader that sees
its own writes; either all of them become visible or none. All calls block: call them in a thread
(`read`, `write`). `lightrag_jsonl.testing.StoreContract` is the test that an implementation passes.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from operator import methodcaller
from typing import Protocol, TypeVar

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Chunk, Completion, Kind, Page
from lightrag_jsonl.storage import rows as r
from lightrag_jsonl.storage.filters import Condition
from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.rows import Names, RowIds
from lightrag_jsonl.storage.vector_index import Floats, Ids

Result = TypeVar("Result")
View = TypeVar("View")
OWN_SETTINGS = {"format", "mark_secret"}  # that each index makes by itself


class Reader(Protocol):
    """One consistent state of the index."""

    @property
    def generation(self) -> int:
        """The number of the last visible change of documents or graph."""

    def documents(
        self, ids: Names = None, *, limit: int | None = None, offset: int = 0
    ) -> list[r.StoredDocument]:
        """The visible documents, all or those with these ids, in the order they were stored; the
        first `offset` are left out, and at most `limit` returned.
        """

    def pages(self, document_ids: Collection[str], number: int | None = None) -> tuple[Page, ...]:
        """The pages of these documents, in order, all or only those with this number."""

    def chunks(
        self, rows: RowIds = None, *, ids: Names = None, documents: Names = None
    ) -> dict[int, Chunk]:
        """Chunks by row id, in the order of documents and text: those with these row ids or public
        ids, those of these documents, or all.
        """

    def chunk_reports(self, document_ids: Names = None) -> list[r.ChunkReport]:
        """How the extraction of each chunk went, of all documents or those with these ids."""

    def edited_chunks(self) -> list[int]:
        """Row ids of the chunks that hold an edit by hand (of the extractor "person"), by time."""

    def rejections(self, document_ids: Names = None) -> list[tuple[str, str, t.Rejection]]:
        """Refused lines as (document id, chunk id, rejection)."""

    def matching_chunks(self, conditions: Sequence[Condition]) -> list[int]:
        """Row ids, ascending, of the chunks whose documents meet all these conditions."""

    def pending(self) -> list[r.PendingDocument]:
        """Documents that were inserted and are not visible yet, oldest first."""

    def counts(self) -> r.Counts:
        """How much the index holds."""

    def next_ids(self) -> r.NextIds:
        """The next free row ids, for the one writer."""

    def entity_mentions(
        self, *, chunks: RowIds = None, entities: RowIds = None, deleted: bool = False
    ) -> list[r.EntityMentionRow]:
        """The mentions in these chunks, or of these entities, or all; by row id. If `deleted`, only
        those that have no entity, since a person deleted it.
        """

    def relation_mentions(
        self, *, chunks: RowIds = None, relations: RowIds = None
    ) -> list[r.RelationMentionRow]:
        """The mentions in these chunks, or of these relations, or all; by row id."""

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
        """Row ids of the relations that these chunks mention, each once, in the order of the text."""

    def descriptions(
        self,
        kind: Kind,
        after: Mapping[int, int],
        *,
        without: Collection[int] = (),
        limit: int | None = None,
    ) -> dict[int, list[tuple[int, str]]]:
        """The first `limit` descriptions (position, text), by position, in the mentions of each row
        that have a row id above `after[row]`; no empty ones, and none from chunks in `without`.
        """

    def entity_rows(self, *, ids: RowIds = None, keys: Names = None) -> dict[int, r.EntityRow]:
        """Entities by row id: those with these row ids or name keys, or all."""

    def relation_rows(
        self,
        *,
        ids: RowIds = None,
        pairs: Collection[tuple[int, int]] | None = None,
        ends: RowIds = None,
    ) -> dict[int, r.RelationRow]:
        """Relations by row id: those with these row ids or (low, high) pairs, those that have an end
        among these entities, or all.
        """

    def listed(
        self,
        kind: Kind,
        *,
        search: str = "",
        type: str = "",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[int]:
        """Row ids of a page of the entities by name, or of the relations, the heaviest first: those
        of which a name key holds `search`, and which are entities of this `type`, if one is given.
        """

    def entities(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, t.Entity]:
        """Entities for readers, each with the public ids of its first chunks; degree not set."""

    def entity_names(self, rows: Collection[int]) -> dict[int, str]:
        """The names of entities by row id."""

    def relations(self, rows: Collection[int], *, chunk_limit: int = 20) -> dict[int, t.Relation]:
        """Relations for readers, each with the public ids of its first chunks."""

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        """Row ids of the entities with these name keys; merged names lead to their entity."""

    def alias_claims(self, *, entities: RowIds = None, keys: Names = None) -> list[tuple[int, str]]:
        """Which entity states which alias, as (row id, name key): those of these keys, or those
        that one of these entities states or that are a name of one, or all.
        """

    def aliases(self) -> r.Aliases:
        """The merges of names."""

    def vector_digests(self, kind: Kind, rows: Collection[int]) -> dict[int, bytes]:
        """For each row that has a vector, the digest of the text it was made from."""

    def vectors(self, kind: Kind, rows: Collection[int]) -> dict[int, Vectors]:
        """Stored vectors by row id: float32 of shape (dim,), rounded to float16; or `NO_VECTOR`."""

    def refused_rows(self, kind: Kind) -> list[int]:
        """The rows whose vector is `NO_VECTOR`, ascending: the embedder refused their text.

        No search by vectors finds them.
        """

    def cached_vectors(self, digests: Collection[bytes] | None = None) -> dict[bytes, Vectors]:
        """Vectors that were paid for and not used yet, by the digest of their text: those of these
        digests, or all, the oldest first.
        """

    def completion(self, key: bytes) -> Completion | None:
        """The cached answer of the request with this key."""

    def completion_keys(self) -> dict[bytes, str | None]:
        """The keys of all cached answers, in the order they came, each with the id of the only
        document that its request quoted.
        """

    def completion_stats(self) -> tuple[int, int]:
        """The number of cached answers, and their size in bytes."""

    def reusable_answers(self, signature: str) -> list[tuple[str, Vectors, str]]:
        """(question, vector, answer as JSON) of the stored answers of this generation."""

    def traces(self, *, prefix: str = "", limit: int | None = None) -> list[t.TraceSummary]:
        """Recorded queries whose id begins with `prefix`, newest first."""

    def trace_events(self, *, trace_id: str = "", stage: str = "") -> list[tuple[str, str]]:
        """(trace id, event as JSON) of the events of one query or of one stage, the newest query
        first, events in their order.
        """

    def settings(self) -> dict[str, str]:
        """What the index was built with, by name."""


class Snapshot(Reader, Protocol):
    """A reader with the graph in memory, and search by vectors and by words."""

    @property
    def graph(self) -> GraphIndex:
        """The graph's shape: relations between entities, and mentions in chunks."""

    def search_vectors(
        self, kind: Kind, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The nearest rows of each query, only those in `allowed` (ascending): row ids and inner
        products, both of shape (queries, n <= limit), best first, ties by row id.
        """

    def vector_scores(self, kind: Kind, queries: Vectors, rows: Ids) -> Floats:
        """Inner products, shape (queries, rows); NaN where a row has no vector."""

    def vector_matrix(self, kind: Kind, rows: Ids) -> Vectors:
        """Vectors as a matrix, shape (rows, dim); zeros where a row has no vector."""

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """The best chunks as (row id, score), ties by row id; "猫*" stands for 猫咪, too.

        Longer chunks are searched in parts, of which the one with the best BM25 counts most.
        """

    def term_counts(self, terms: Collection[str]) -> tuple[int, dict[str, int]]:
        """The number of parts of all chunks, and in how many of them each term occurs."""


class Transaction(Reader, Protocol):
    """A reader that also writes. The store records which rows were touched.

    Rows may be written in any order; whatever they refer to must exist when the transaction ends.
    """

    def put_pending(self, pending: r.PendingDocument) -> None:
        """Store a waiting document, replacing an earlier version of it."""

    def delete_pending(self, ids: Collection[str]) -> None:
        """Delete waiting documents; unknown ids are ignored."""

    def put_document(self, document: r.StoredDocument, pages: Iterable[Page]) -> None:
        """Store a new document with its pages."""

    def delete_documents(self, rows: Collection[int]) -> None:
        """Delete documents with their pages, chunks, mentions, vectors and full-text rows."""

    def put_chunks(self, chunks: Sequence[r.StoredChunk]) -> None:
        """Store new chunks, or how known ones were read again, with their rejections and terms.

        Known ones lose the mentions they had. The states of documents follow from their chunks.
        """

    def rebuild_terms(self) -> None:
        """Make the full text anew from the chunks."""

    def put_mentions(
        self, entities: Sequence[r.EntityMentionRow], relations: Sequence[r.RelationMentionRow]
    ) -> None:
        """Store mentions, replacing those with the same row ids."""

    def put_graph_rows(self, kind: Kind, rows: Sequence[r.EntityRow | r.RelationRow]) -> None:
        """Store entities or relations, replacing those with the same row ids."""

    def delete_graph_rows(self, kind: Kind, rows: Collection[int]) -> None:
        """Delete entities or relations, with their vectors, but not their mentions."""

    def put_aliases(self, aliases: r.Aliases) -> None:
        """Store these merges of names and no others."""

    def put_vectors(self, kind: Kind, vectors: Mapping[int, tuple[bytes, Vectors]]) -> None:
        """Store vectors by row id, each with the digest of its text, in place of earlier ones."""

    def put_cached_vectors(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep vectors that were paid for until they are used."""

    def delete_cached_vectors(self, digests: Collection[bytes] | None = None) -> int:
        """Delete kept vectors, all or those of these digests; returns how many."""

    def put_completion(
        self, key: bytes, completion: Completion, document: str | None = None
    ) -> None:
        """Cache a model's answer; `document` is the id of the only document that the request quoted,
        None if it may have quoted several.
        """

    def delete_completions(self, keys: Collection[bytes] | None = None) -> int:
        """Delete answers, all (also reusable ones) or those with these keys; returns how many."""

    def purge(self, names: Collection[str]) -> tuple[int, int]:
        """Delete what may quote documents that were deleted: all cached answers except those about
        one document that is still there, reusable answers, kept vectors, and the queries that
        refer to a deleted chunk or to an entity with one of these names.

        Returns the numbers of cached answers and of queries that were deleted.
        """

    def put_reusable_answer(
        self, signature: str, question: str, vector: Vectors, answer: str, generation: int
    ) -> None:
        """Store an answer for similar questions, if the index is still of this `generation`; those
        of earlier generations are deleted.
        """

    def put_trace(self, trace: t.TraceSummary, events: Sequence[str]) -> None:
        """Store a query, or its new status, and append events (JSON) to it."""

    def delete_traces(self, *, keep: int) -> int:
        """Delete all but the newest `keep` queries; returns how many."""

    def put_settings(self, settings: Mapping[str, str]) -> None:
        """Record what the index was built with."""


class Store(Protocol):
    """One index in a database."""

    @property
    def location(self) -> str:
        """The folder or address, for messages."""

    @property
    def read_only(self) -> bool:
        """Whether nothing can be stored, not even traces and cached answers."""

    def reader(self) -> AbstractContextManager[Reader]:
        """A consistent view for reading."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """A consistent view for searching; several threads may search at the same time."""

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Writes that become visible together, or not at all if the block raises.

        Without `durable` a power cut may lose them, which never damages the index.
        """

    def writer_lock(self, timeout: float) -> AbstractContextManager[None]:
        """The right to change documents and graph, for one process at a time; `LockedError` after
        `timeout` seconds.
        """

    def is_empty(self) -> bool:
        """Whether there is no chunk; quick."""

    def size(self) -> int:
        """The bytes that the index takes on the disk."""

    def check(self, *, full: bool = False) -> list[str]:
        """What is wrong with the stored data, in words; empty if all is well.

        The full text is compared with that of some chunks, or with `full` of all.
        """

    def vacuum(self) -> None:
        """Give unused space back, so that nothing deleted is left in any file; `LockedError` if
        another process still reads an earlier state.
        """

    def close(self) -> None:
        """Release everything; further calls raise `StorageError`."""


async def read(store: Store, job: Callable[[Reader], Result]) -> Result:
    """The result of a job that reads, run in a thread."""
    return await asyncio.to_thread(_run, store.reader, job)


async def search(store: Store, job: Callable[[Snapshot], Result]) -> Result:
    """The result of a job on the index in memory, run in a thread."""
    return await asyncio.to_thread(_run, store.snapshot, job)


async def write(
    store: Store, job: Callable[[Transaction], Result], *, durable: bool = True
) -> Result:
    """The result of a job that writes, run in a thread in one transaction.

    A cancelled caller still waits for the end of the transaction.
    """
    return await in_thread(_run, partial(store.transaction, durable=durable), job)


def _run(
    opened: Callable[[], AbstractContextManager[View]], job: Callable[[View], Result]
) -> Result:
    with opened() as view:
        return job(view)


class CompletionCache:
    """The cached answers of a store, for the model client."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._waiting: dict[bytes, tuple[Completion, str | None]] = {}
        self._next: asyncio.Task[None] | None = None  # stores what is waiting

    async def get(self, key: bytes) -> Completion | None:
        """The cached answer of the request with this key."""
        with self._store.reader() as reader:  # quicker than handing a look-up by key to a thread
            return reader.completion(key)

    async def put(self, key: bytes, completion: Completion, document: str | None = None) -> None:
        """Cache an answer; those that come while others are being stored share a transaction."""
        if self._store.read_only:
            return
        self._waiting[key] = completion, document
        if self._next is None:
            self._next = asyncio.create_task(self._put_waiting())
        await asyncio.shield(self._next)

    async def _put_waiting(self) -> None:
        async with self._lock:
            answers, self._waiting, self._next = self._waiting, {}, None

            def put(transaction: Transaction) -> None:
                for key, answer in sorted(answers.items()):
                    transaction.put_completion(key, *answer)

            await write(self._store, put, durable=False)

    async def delete(self, keys: Collection[bytes]) -> None:
        """Forget answers."""
        await write(self._store, methodcaller("delete_completions", keys))
