"""Copies an index between two stores, for example from a folder to PostgreSQL and back."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.indexing.contents import document_contents
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.rows import Counts, StoredChunk, StoredDocument
from lightrag_jsonl.storage.store import OWN_SETTINGS
from lightrag_jsonl.storage.views import StoreView, Transaction

ROWS_AT_ONCE = 1_000
COPY_LOCK_SECONDS = 30.0


def copy_index(
    source: str | Address, target: str | Address, *, progress: ProgressCallback | None = None
) -> Counts:
    """Copy an index, row by row, to an empty folder or database; returns the numbers of rows.

    Only the answers for similar questions are left out, since an answer is valid for one state of
    one index. The copy is one transaction: if the process is killed, the target stays empty.
    `StorageError` if there is no index in `source`, or if `target` is not empty.
    """
    with (
        closing(open_store(as_address(source), create=False)) as source_store,
        closing(open_store(as_address(target))) as target_store,
        target_store.writer_lock(COPY_LOCK_SECONDS),
        target_store.transaction() as transaction,
        source_store.view() as view,
    ):
        if not _is_empty(transaction):
            raise StorageError(
                f"{target_store.location} holds an index already: copy to a new folder or "
                "database, or delete what is there first",
                path=target_store.location,
            )
        _copy_documents(view, transaction, progress)
        _copy_graph(view, transaction)
        settings = view.settings()
        settings.pop("format", None)  # of each store by itself
        transaction.put_settings(settings)
        transaction.put_purge_marks(view.purge_marks())
        for pending in view.pending():
            file = view.pending_file(pending.row) if pending.is_file and pending.row else None
            transaction.put_pending(replace(pending, row=None), file)
        _copy_caches(view, transaction)
        _copy_traces(view, transaction)
        return view.counts()


def _is_empty(view: StoreView) -> bool:
    """Whether nothing is stored, neither documents nor answers, settings or traces."""
    completions, _ = view.completion_stats()
    settings = view.settings().keys() - OWN_SETTINGS
    traces = view.traces(limit=1)
    return view.counts() == Counts() and not (completions or settings or traces)


def _copy_documents(
    view: StoreView, transaction: Transaction, progress: ProgressCallback | None
) -> None:
    all_chunks = view.counts().chunks
    copied_chunks = 0
    for number, document in enumerate(view.documents(), start=1):
        copied_chunks += _copy_document(document, view, transaction)
        if progress is not None:
            progress(Progress(copied_chunks, all_chunks, number))


def _copy_document(document: StoredDocument, view: StoreView, transaction: Transaction) -> int:
    """Copy a document with its pages, chunks and mentions; returns the number of chunks."""
    transaction.put_documents([(document, view.pages([document.id]))])
    contents = document_contents(view, document.id)
    chunks = []
    for row, chunk in contents.chunks.items():
        created_at = chunk.created_at.timestamp() if chunk.created_at else 0.0
        chunks.append(
            StoredChunk(
                row=row,
                document=document.row,
                chunk=chunk,
                created_at=created_at,
                extraction=contents.extractions[row],
            )
        )
    transaction.put_chunks(chunks)
    transaction.put_mentions(contents.entities, contents.relations)
    return len(chunks)


def _copy_graph(view: StoreView, transaction: Transaction) -> None:
    next_ids = view.next_ids()
    for ids in _batches(next_ids.entities):
        entities = view.entity_rows(ids=ids)
        transaction.put_graph_rows("entity", list(entities.values()))
        _copy_vectors(view, transaction, kind="entity", ids=ids)
    for ids in _batches(next_ids.relations):
        relations = view.relation_rows(ids=ids)
        transaction.put_graph_rows("relation", list(relations.values()))
        _copy_vectors(view, transaction, kind="relation", ids=ids)
    for ids in _batches(next_ids.chunks):
        _copy_vectors(view, transaction, kind="chunk", ids=ids)
    transaction.put_aliases(view.aliases())
    transaction.put_overrides(view.overrides())


def _copy_vectors(
    view: StoreView, transaction: Transaction, *, kind: Kind, ids: Sequence[int]
) -> None:
    digests = view.vector_digests(kind, ids)
    vectors = view.vectors(kind, ids)
    vectors_by_row = {row: (digests[row], vector) for row, vector in vectors.items()}
    transaction.put_vectors(kind, vectors_by_row)


def _copy_caches(view: StoreView, transaction: Transaction) -> None:
    """Copy the model's answers and the vectors that no row uses yet."""
    for key, document in view.completion_keys().items():
        completion = view.completion(key)
        if completion is not None:
            transaction.put_completion(key, completion, document)
    transaction.put_cached_vectors(view.cached_vectors())


def _copy_traces(view: StoreView, transaction: Transaction) -> None:
    """Copy the recorded queries, the oldest first."""
    for trace in reversed(view.traces()):
        rows = view.trace_events(trace_id=trace.id)
        events = [event for _, event in rows]
        transaction.put_trace(trace, events)


def _batches(next_id: int) -> Iterator[Sequence[int]]:
    """The row ids before the next free id, some at a time."""
    for start in range(1, next_id, ROWS_AT_ONCE):
        yield range(start, min(start + ROWS_AT_ONCE, next_id))
