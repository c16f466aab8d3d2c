"""Several processes, and changes of every kind: what PostgreSQL holds is what SQLite would hold."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.cli import main
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.types import Record, TraceSummary
from lightrag_jsonl.storage.opening import has_index, open_store
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.testing import stored_content
from lightrag_jsonl.tools.copying import copy_index
from tests.indexing.libraries import libraries, pending
from tests.kit import index, problems, view
from tests.laws.killed import run
from tests.storage.test_processes import (  # noqa: F401
    test_processes_create_one_index,
    test_two_processes_share_an_index,
)

Url = Callable[[object], str]
LIVES = 4
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.laws.killed"])


@pytest.fixture
def place(url: Url, tmp_path: Path) -> str:
    """The address of an index for the tests that are imported from the folder above."""
    return url(tmp_path)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the work of `tests.laws.killed` was done without a kill."""
    folder = tmp_path_factory.mktemp("unbroken")
    process = processes.Process(target=run, args=(folder / "kb", folder / "log"))
    process.start()
    process.join()
    assert process.exitcode == 0
    return folder / "kb"


def test_a_killed_writer_leaves_whole_documents(url: Url, unbroken: Path, tmp_path: Path) -> None:
    """Killed at any time, also within a transaction, it is resumed to what SQLite holds."""
    chance, address = random.Random(5), url(tmp_path)
    for life in range(LIVES + 1):
        process = processes.Process(target=run, args=(address, tmp_path / "log"))
        process.start()
        process.join(None if life == LIVES else chance.uniform(0.1, 0.8))
        process.kill()
        process.join()
        if has_index(as_address(address)):
            assert problems(address) == []
    assert process.exitcode == 0 and view(address) == view(unbroken)


@settings(max_examples=4, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("idumr"), libraries), max_size=6))
def test_any_series_of_changes_leaves_what_sqlite_has(
    url: Url, steps: list[tuple[int, str, list[list[Record]]]]
) -> None:
    """Inserts, deletions, merges and rebuilding: the laws of fold and undo hold here, too."""

    async def change(place: str, seen: Store | None = None) -> None:
        async with index(place) as rag:
            for number, action, library in steps:
                known = {status.id for status in await rag.documents()}
                names = [one.name for one in await rag.entities.list()]
                if action == "d" and f"d{number}" in known:
                    await rag.delete(f"d{number}")
                elif action == "m" and len(names) > 1:
                    await rag.entities.merge([names[number % len(names)]], into=names[0])
                elif action == "u" and number % 2:
                    with contextlib.suppress(KeyError):
                        await rag.entities.unmerge(*names[:1])
                elif action == "r":
                    await rag.admin.rebuild()
                else:
                    await rag._indexing.insert([pending(number, library[0])])
                if seen is not None:
                    stored_content(seen)

    with tempfile.TemporaryDirectory() as folder:
        address = url(folder)
        with contextlib.closing(open_store(as_address(address))) as seen:
            asyncio.run(change(address, seen))
            assert problems(address, seen) == []
        asyncio.run(change(folder))
        assert view(address, times=True) == view(folder, times=True)


def everything(store: Store) -> list[object]:
    """All that a copy must keep."""
    with store.reader() as reader:
        ends, keys = reader.next_ids(), reader.completion_keys()
        kept = {n: value for n, value in reader.settings().items() if n != "format"}
        found: list[object] = [kept, reader.pending(), keys, list(map(reader.completion, keys))]
        traces, cached = reader.traces(), reader.cached_vectors()
        found += [traces, [reader.trace_events(trace_id=one.id) for one in traces]]
        vectors = cached | reader.vectors("chunk", range(1, ends.chunks))
        return [*found, {key: one.tolist() for key, one in vectors.items()}, stored_content(store)]


def test_a_copy_there_and_back_is_equal(url: Url, unbroken: Path, tmp_path: Path) -> None:
    """Row by row, with all that was paid for; what is not empty is never copied to."""
    store = open_store(as_address(unbroken))
    with contextlib.closing(store), store.transaction() as transaction:
        transaction.put_pending(pending(99, []))
        transaction.put_cached_vectors({b"x": np.ones(4, np.float32)})
        for number in (1, 2):
            trace = TraceSummary(f"t{number}", "complete", "mix", "Who? 谁？", 1.0)
            transaction.put_trace(trace, ['{"stage":"answer"}', "{}"])
    address, seen = url(tmp_path), []
    copied = copy_index(unbroken, address, progress=seen.append)
    assert copied.chunks == seen[-1].chunks_done == seen[-1].chunks_known > 0
    assert copy_index(address, tmp_path / "back") == copied
    stores = [open_store(as_address(one)) for one in (unbroken, address, tmp_path / "back")]
    with contextlib.ExitStack() as stack:
        first, *others = [everything(stack.enter_context(contextlib.closing(o))) for o in stores]
    assert others == [first, first] and problems(address) == []
    with pytest.raises(StorageError, match="holds an index already"):
        copy_index(unbroken, address)


def test_a_copy_that_ends_early_leaves_nothing(url: Url, unbroken: Path, tmp_path: Path) -> None:
    """The target stays empty, so the same copy can be started again."""

    def fail(progress: object) -> None:
        raise KeyboardInterrupt

    for target in (url(tmp_path), str(tmp_path)):
        with pytest.raises(KeyboardInterrupt):
            copy_index(unbroken, target, progress=fail)
        with contextlib.closing(open_store(as_address(target))) as store:
            assert store.is_empty()
        assert main(["copy", str(unbroken), target], standalone_mode=False) is not None
        assert view(target) == view(unbroken)
