"""The graph and the vectors in memory follow the database, whoever changes it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import StorageError
from lightrag_jsonl.storage.tables import settings
from lightrag_jsonl.storage.tables.vectors import VectorReads
from lightrag_jsonl.storage.views import Transaction
from tests.kit import store_at
from tests.storage.contract import put_sample, stored_content

Change = Callable[[Transaction], None]


def add_document(transaction: Transaction) -> None:
    """Store one more document."""
    put_sample(transaction, transaction.next_ids().documents)


def delete_document(transaction: Transaction) -> None:
    """Delete the first document."""
    transaction.delete_documents([document.row for document in transaction.documents()[:1]])


@pytest.mark.parametrize("name", ["COMMITS_KEPT", "TOUCHED_LIMIT"])
def test_whoever_is_far_behind_loads_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Only the latest commits are remembered, and none that touched very many rows."""
    monkeypatch.setattr(settings, name, 2)
    writer, view = store_at(tmp_path), store_at(tmp_path)
    stored_content(view)
    for change in (add_document, add_document, add_document, delete_document):
        with writer.transaction() as transaction:
            change(transaction)
    assert stored_content(view) == stored_content(store_at(tmp_path))


def test_catching_up_reads_what_changed_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of one chunk's vector, one vector is read."""
    store = store_at(tmp_path)
    vector_matrix = VectorReads.vector_matrix
    read: list[int] = []

    def counting(*arguments: Any) -> Any:
        ids, matrix = vector_matrix(*arguments)
        read.append(len(ids))
        return ids, matrix

    monkeypatch.setattr(VectorReads, "vector_matrix", counting)
    with store.transaction() as transaction:
        for number in range(1, 9):
            put_sample(transaction, number)
    for expected in ([1, 2, 16], []):
        stored_content(store)
        assert sorted(read) == expected
        read.clear()
    with store.transaction() as transaction:
        transaction.put_vectors("chunk", {3: (b"new", np.ones(4, np.float32))})
    stored_content(store)
    assert read == [1]


def test_searches_run_at_the_same_time(tmp_path: Path) -> None:
    """Two searches meet inside their snapshots."""
    store, inside = store_at(tmp_path), threading.Barrier(2, timeout=240)

    def search() -> int:
        with store.snapshot() as snapshot:
            inside.wait()
            return snapshot.generation

    with ThreadPoolExecutor(2) as pool:
        searches = [pool.submit(search) for _ in range(2)]
        assert [future.result() for future in searches] == [0, 0]


@pytest.mark.slow
def test_memory_is_of_the_readers_generation(tmp_path: Path) -> None:
    """With searches and commits in many threads, each search sees one state, on the disk and in memory."""
    store = store_at(tmp_path)
    done = threading.Event()

    def write() -> None:
        for number in range(1, 31):
            with store.transaction(durable=False) as transaction:
                put_sample(transaction, number)
                if number % 3 == 0:
                    transaction.delete_documents([number - 1])
        done.set()

    def search() -> int:
        searches = 0
        while not done.is_set() or not searches:
            with store.snapshot() as snapshot:
                stored = list(snapshot.chunks())
                mentions = {(row.owner, row.chunk) for row in snapshot.entity_mentions()}
                assert snapshot.graph.chunks.tolist() == stored
                columns = [column.tolist() for column in snapshot.graph.all_mentions]
                assert set(zip(*columns, strict=True)) == mentions
                ids, _ = snapshot.vectors_by_kind["chunk"].search(np.ones((1, 4), np.float32), 999)
                assert sorted(ids.ravel().tolist()) == stored
            searches += 1
        return searches

    with ThreadPoolExecutor(5) as pool:
        searches = [pool.submit(search) for _ in range(4)]
        pool.submit(write).result()
        assert min(future.result() for future in searches) >= 1
    assert stored_content(store) == stored_content(store_at(tmp_path))


def test_closing_while_somebody_reads(tmp_path: Path) -> None:
    """A reader ends what it began, and its connection is closed then; nobody begins anew."""
    store = store_at(tmp_path)
    with store.transaction() as transaction:
        put_sample(transaction, 1)
    with store.view() as view:
        store.close()
        assert view.counts().chunks == 2
        with pytest.raises(StorageError, match="was closed"):
            store.is_empty()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.sqlite", "writer.lock"]
