"""Copies an index from one store to another, such as from a folder to PostgreSQL and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.indexing.joining import stored_chunks
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.rows import Counts, StoredChunk
from lightrag_jsonl.storage.store import OWN_SETTINGS, Reader, Store, Transaction

BATCH = 1_000
LOCK_SECONDS = 30.0


def copy_index(
    source: str | Address, target: str | Address, *, progress: ProgressCallback | None = None
) -> Counts:
    """Copy an index, row by row, to a folder or database that holds none; what it held.

    All is copied but answers for similar questions, which hold for one state of one index only. It
    becomes visible at once: a copy that is killed leaves the target empty. `StorageError` if there
    is no index in `source`, or if `target` holds anything.
    """
    with (
        closing(open_store(as_address(source), create=False)) as old,
        closing(open_store(as_address(target))) as new,
    ):
        return copy_store(old, new, progress=progress)


def copy_store(old: Store, new: Store, *, progress: ProgressCallback | None = None) -> Counts:
    """Copy all that one store holds to another, which is empty."""
    with new.writer_lock(LOCK_SECONDS), new.transaction() as transaction, old.reader() as reader:
        if _holds_anything(transaction):
            raise StorageError(
                f"{new.location} holds an index already: copy to a new folder or database, or "
                "delete what is there first",
                path=new.location,
            )
        _copy_documents(reader, transaction, progress)
        _copy_graph(reader, transaction)
        _copy_the_rest(reader, transaction)
        return reader.counts()


def _holds_anything(reader: Reader) -> bool:
    counts, answers = reader.counts(), reader.completion_stats()[0]
    return bool(
        counts != Counts()
        or answers
        or reader.settings().keys() - OWN_SETTINGS
        or reader.traces(limit=1)
    )


def _copy_documents(
    reader: Reader, transaction: Transaction, progress: ProgressCallback | None
) -> None:
    documents, done, known = reader.documents(), 0, reader.counts().chunks
    for count, document in enumerate(documents, start=1):
        found = stored_chunks(reader, document.id)
        transaction.put_document(document, reader.pages(document.id))
        stored = []
        for row, chunk in found.chunks.items():
            created = chunk.created_at.timestamp() if chunk.created_at else 0.0
            extraction = found.extractions[row]
            stored.append(StoredChunk(row, document.row, chunk, created, extraction))
        transaction.put_chunks(stored)
        transaction.put_mentions(found.entities, found.relations)
        done += len(found.chunks)
        if progress is not None:
            progress(Progress(done, known, count))


def _copy_graph(reader: Reader, transaction: Transaction) -> None:
    ends = reader.next_ids()
    for ids in _batches(ends.entities):
        transaction.put_graph_rows("entity", list(reader.entity_rows(ids=ids).values()))
    for ids in _batches(ends.relations):
        transaction.put_graph_rows("relation", list(reader.relation_rows(ids=ids).values()))
    transaction.put_aliases(reader.aliases())
    kinds: dict[Kind, int] = {
        "entity": ends.entities,
        "relation": ends.relations,
        "chunk": ends.chunks,
    }
    for kind, end in kinds.items():
        for ids in _batches(end):
            digests, vectors = reader.vector_digests(kind, ids), reader.vectors(kind, ids)
            transaction.put_vectors(kind, {row: (digests[row], vectors[row]) for row in vectors})


def _copy_the_rest(reader: Reader, transaction: Transaction) -> None:
    """Settings, waiting documents, what was paid for, and the recorded queries."""
    transaction.put_settings({n: v for n, v in reader.settings().items() if n != "format"})
    for pending in reader.pending():
        transaction.put_pending(pending)
    for key, document in reader.completion_keys().items():
        if (completion := reader.completion(key)) is not None:
            transaction.put_completion(key, completion, document)
    digests = reader.cached_digests()
    for at in range(0, len(digests), BATCH):
        transaction.put_cached_vectors(reader.cached_vectors(digests[at : at + BATCH]))
    for trace in reversed(reader.traces()):
        transaction.put_trace(trace)
        events = [event for _, event in reader.trace_events(trace_id=trace.id)]
        transaction.add_trace_events(trace.id, events)


def _batches(end: int) -> Iterator[Sequence[int]]:
    """The row ids below an end, some at a time."""
    for start in range(1, end, BATCH):
        yield range(start, min(start + BATCH, end))
