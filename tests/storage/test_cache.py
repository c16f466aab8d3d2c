"""What was paid for is found again, and costs little to store."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.storage.sqlite.database import SQLiteStore
from lightrag_jsonl.storage.store import CompletionCache, Transaction, read, write
from lightrag_jsonl.testing import put_sample

actions = st.tuples(st.sampled_from(["put", "put", "put", "delete", "clear"]), st.integers(0, 9))


@settings(max_examples=50, deadline=None)
@given(st.lists(actions, max_size=25))
def test_the_cache_is_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """However answers are stored and forgotten, each key has the answer that was stored last."""
    store = SQLiteStore(tmp_path_factory.getbasetemp() / "cache")
    with store.transaction(durable=False) as transaction:
        transaction.delete_completions()
    kept: dict[int, Completion] = {}
    for number, (action, key) in enumerate(steps):
        with store.transaction(durable=False) as transaction:
            if action == "put":
                kept[key] = Completion(str(number))
                transaction.put_completion(
                    bytes([key]), kept[key], model="m", prompt="p", created_at=1.0
                )
            elif action == "delete":
                deleted = transaction.delete_completions([bytes([key])])
                assert deleted == (kept.pop(key, None) is not None)
            else:
                assert transaction.delete_completions() == len(kept)
                kept.clear()
    with store.reader() as reader:
        assert [reader.completion(bytes([key])) for key in range(10)] == [
            kept.get(key) for key in range(10)
        ]
        assert reader.completion_stats()[0] == len(kept)
    store.close()


def test_an_answer_changes_few_pages(tmp_path: Path) -> None:
    """What an answer adds to the log does not grow with the number of answers."""
    store = SQLiteStore(tmp_path)
    chance = random.Random(1)
    log = tmp_path / "index.sqlite-wal"
    sizes = []
    with store.reader() as reader:
        assert reader.completion_stats() == (0, 0)  # the log is kept for as long as this is seen
        for _ in range(4):
            for _ in range(500):
                with store.transaction(durable=False) as transaction:
                    transaction.put_completion(
                        chance.randbytes(32),
                        Completion("x" * 900),
                        model="m",
                        prompt="p",
                        created_at=1.0,
                    )
            sizes.append(log.stat().st_size)
    added = [later - earlier for earlier, later in pairwise(sizes)]
    assert max(added) < 1.1 * min(added) and max(added) / 500 < 4 * 4096


def test_answers_are_cached_for_the_model_client(tmp_path: Path) -> None:
    """The asynchronous cache keeps an answer until it is deleted."""

    async def run() -> list[Completion | None]:
        cached = CompletionCache(SQLiteStore(tmp_path))
        found = [await cached.get(b"key")]
        await cached.put(b"key", Completion("yes"), model="m", prompt="p", created_at=1.0)
        found.append(await cached.get(b"key"))
        await cached.delete([b"key"])
        return [*found, await cached.get(b"key")]

    assert asyncio.run(run()) == [None, Completion("yes"), None]


def test_jobs_run_in_threads(tmp_path: Path) -> None:
    """`read` and `write` give the result of the job; a write that raises leaves nothing."""
    store = SQLiteStore(tmp_path)

    def failing(transaction: Transaction) -> None:
        put_sample(transaction, 2)
        raise KeyError

    async def run() -> int:
        await write(store, lambda transaction: put_sample(transaction, 1))
        with pytest.raises(KeyError):
            await write(store, failing)
        return await read(store, lambda reader: reader.counts().chunks)

    assert asyncio.run(run()) == 2


def test_a_cancelled_write_is_finished(tmp_path: Path) -> None:
    """Whoever cancels a write waits for the end of its transaction, which is whole."""
    store = SQLiteStore(tmp_path)

    async def run() -> None:
        task = asyncio.ensure_future(write(store, lambda one: put_sample(one, 1)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        store.close()

    asyncio.run(run())
    with pytest.raises(StorageError):
        store.is_empty()
    with SQLiteStore(tmp_path).reader() as reader:
        assert reader.counts().chunks in (0, 2)
