"""Several processes, and changes of every kind: what PostgreSQL holds is what SQLite would hold."""

import asyncio
import contextlib
import multiprocessing
import random
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, ConfigError, LightRAG, QueryParam, StorageError
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.types import TraceSummary
from lightrag_jsonl.storage.opening import has_index
from lightrag_jsonl.tools.copying import copy_index
from tests.cli.conftest import run as run_command
from tests.indexing.libraries import Step, change, pending, steps
from tests.kit import SEARCHING_MODES, index, problems, store_at, view
from tests.laws.killed import run
from tests.storage.contract import stored_content
from tests.storage.test_processes import (  # noqa: F401
    test_processes_create_one_index,
    test_two_processes_share_an_index,
)

Url = Callable[[object], str]
LIVES = 4
SECONDS = 240  # the longest wait for a call of the writing process
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
@given(st.lists(steps, max_size=6))
def test_any_series_of_changes_leaves_what_sqlite_has(
    owned_url: Callable[[object, object], str], series: list[Step]
) -> None:
    """Inserts, deletions, merges and rebuilding: the laws of fold and undo hold here, too."""

    async def run_steps(place: str, seen: Any = None) -> None:
        async with index(place) as rag:
            for step in series:
                await change(rag, *step)
                if seen is not None:
                    stored_content(seen)

    with tempfile.TemporaryDirectory() as folder:
        address = owned_url("any series", folder)
        with contextlib.closing(store_at(address)) as seen:
            asyncio.run(run_steps(address, seen))
            assert problems(address, seen) == []
        asyncio.run(run_steps(folder))
        assert view(address, times=True) == view(folder, times=True)


def rows(folder: Path) -> dict[str, list[Any]]:
    """The rows of the tables in a folder, but for the full text and the history of commits."""
    with contextlib.closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        names = [name for (name,) in listed if not name.startswith("chunk_terms")]
        names.remove("commits")
        names.remove("sqlite_sequence")
        columns = dict.fromkeys(names, "*") | {"pending": "name, document, provided, created_at"}
        return {
            name: sorted(connection.execute(f"SELECT {wanted} FROM {name}"), key=repr)
            for name, wanted in columns.items()
        }


def test_a_copy_there_and_back_is_equal(url: Url, unbroken: Path, tmp_path: Path) -> None:
    """Row by row, with all that was paid for; what is not empty is never copied to."""
    store = store_at(unbroken)
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
    assert rows(tmp_path / "back") == rows(unbroken) and problems(address) == []
    with pytest.raises(StorageError, match="holds an index already"):
        copy_index(unbroken, address)


async def test_the_graph_can_stay_in_the_database(url: Url, unbroken: Path) -> None:
    """Neighbours come by SQL, equal to those in memory; so do the contexts of all modes."""
    copy_index(unbroken, url("neighbours"))
    address = f"{url('neighbours')}&graph=database"
    async with index(unbroken) as in_memory, index(address) as in_database:
        memory, database = in_memory.engine.store, in_database.engine.store
        assert stored_content(database) == stored_content(memory)
        with memory.snapshot() as one, database.snapshot() as other:
            ids = np.array([3, 1, 2, 1, 10**6])
            for name in ("degrees", "relations_of", "mention_counts", "chunks_of", "entities_of"):
                found = [np.array(getattr(each.graph, name)(ids)) for each in (one, other)]
                assert np.array_equal(*found), name
            assert np.array_equal(one.graph.ends(ids[:4]), other.graph.ends(ids[:4]))
        keywords: Any = {"ll_keywords": ["Person00"], "hl_keywords": ["walk"]}
        for mode in SEARCHING_MODES:
            found = [
                await rag.retrieve("Whom did Person00 meet?", QueryParam(mode=mode, **keywords))
                for rag in (in_memory, in_database)
            ]
            here, there = ((*one.entities, *one.relations, *one.chunks) for one in found)
            assert [replace(one, score=0.0) for one in here] == [
                replace(o, score=0.0) for o in there
            ]
            assert [one.score for one in here] == pytest.approx([one.score for one in there])
        assert not hasattr(database._memory, "graph")  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="memory, database"):
        AsyncLightRAG(f"{url('neighbours')}&graph=paper")


def test_a_copy_that_ends_early_leaves_nothing(url: Url, unbroken: Path, tmp_path: Path) -> None:
    """The target stays empty, so the same copy can be started again."""

    def fail(progress: object) -> None:
        raise KeyboardInterrupt

    for target in (url(tmp_path), str(tmp_path)):
        with pytest.raises(KeyboardInterrupt):
            copy_index(unbroken, target, progress=fail)
        with contextlib.closing(store_at(target)) as store:
            assert store.is_empty()
        assert run_command("copy", unbroken, target).exit_code == 0
        assert view(target) == view(unbroken)


def test_search_processes_find_the_same(url: Url) -> None:
    """The address reaches them with its password, and they see what was committed before the question."""
    question = "Who bought the paper mill?"
    with LightRAG(url("searched")) as rag:
        rag.insert("Anna Berg sold the paper mill to Otto Lind in 1931.")
        expected = rag.retrieve(question).prompt
    with LightRAG(url("searched"), search_processes=1) as rag:
        assert rag.retrieve(question).prompt == expected
        rag.insert("Karl Moe bought the paper mill in 1977.")
        assert "Karl Moe" in rag.retrieve(question).prompt
