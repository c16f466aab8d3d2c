"""Copies an index from one store to another, such as from a folder to PostgreSQL and back."""

from collections.abc import Iterator, Sequence
from contextlib import closing

from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.indexing.stored import stored_chunks
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.rows import Counts, StoredChunk
from lightrag_jsonl.storage.store import OWN_SETTINGS
from lightrag_jsonl.storage.views import StoreView, Transaction

BATCH = 1_000
LOCK_SECONDS = 30.0


def copy_index(
    source: str | Address, target: str | Address, *, progress: ProgressCallback | None = None
) -> Counts:
    """Copy an index, row by row, to an empty folder or database; returns the numbers of rows.

    Only the answers for similar questions are left out, since they are valid for one state of one
    index. The copy is one transaction: if it is killed, the target stays empty. `StorageError` if
    there is no index in `source`, or if `target` is not empty.
    """
    with (
        closing(open_store(as_address(source), create=False)) as old,
        closing(open_store(as_address(target))) as new,
        new.writer_lock(LOCK_SECONDS),
        new.transaction() as transaction,
        old.view() as view,
    ):
        if _holds_anything(transaction):
            raise StorageError(
                f"{new.location} holds an index already: copy to a new folder or database, or "
                "delete what is there first",
                path=new.location,
            )
        _copy_documents(view, transaction, progress)
        _copy_graph(view, transaction)
        _copy_the_rest(view, transaction)
        return view.counts()


def _holds_anything(view: StoreView) -> bool:
    counts, answers = view.counts(), view.completion_stats()[0]
    settings = view.settings().keys() - OWN_SETTINGS
    return bool(counts != Counts() or answers or settings or view.traces(limit=1))


def _copy_documents(
    view: StoreView, transaction: Transaction, progress: ProgressCallback | None
) -> None:
    documents, done, known = view.documents(), 0, view.counts().chunks
    for count, document in enumerate(documents, start=1):
        found = stored_chunks(view, document.id)
        transaction.put_document(document, view.pages([document.id]))
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


def _copy_graph(view: StoreView, transaction: Transaction) -> None:
    ends = view.next_ids()
    for ids in _batches(ends.entities):
        transaction.put_graph_rows("entity", list(view.entity_rows(ids=ids).values()))
        _copy_vectors("entity", ids, view, transaction)
    for ids in _batches(ends.relations):
        transaction.put_graph_rows("relation", list(view.relation_rows(ids=ids).values()))
        _copy_vectors("relation", ids, view, transaction)
    for ids in _batches(ends.chunks):
        _copy_vectors("chunk", ids, view, transaction)
    transaction.put_aliases(view.aliases())


def _copy_vectors(
    kind: Kind, ids: Sequence[int], view: StoreView, transaction: Transaction
) -> None:
    digests, vectors = view.vector_digests(kind, ids), view.vectors(kind, ids)
    transaction.put_vectors(kind, {row: (digests[row], vectors[row]) for row in vectors})


def _copy_the_rest(view: StoreView, transaction: Transaction) -> None:
    """Settings, pending documents, cached answers and vectors, and the recorded queries."""
    transaction.put_settings({n: v for n, v in view.settings().items() if n != "format"})
    for pending in view.pending():
        transaction.put_pending(pending)
    for key, document in view.completion_keys().items():
        if (completion := view.completion(key)) is not None:
            transaction.put_completion(key, completion, document)
    transaction.put_cached_vectors(view.cached_vectors())
    for trace in reversed(view.traces()):
        events = [event for _, event in view.trace_events(trace_id=trace.id)]
        transaction.put_trace(trace, events)


def _batches(end: int) -> Iterator[Sequence[int]]:
    """The row ids below an end, some at a time."""
    for start in range(1, end, BATCH):
        yield range(start, min(start + BATCH, end))
