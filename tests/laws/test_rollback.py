"""Law `rollback`: going back to a snapshot leaves what was there then, row by row, and asks nobody."""

import asyncio
import random
import tempfile
from operator import methodcaller
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lightrag_jsonl import AsyncLightRAG
from lightrag_jsonl.storage.store import write
from lightrag_jsonl.storage.tables.kept_rows import KEPT_TABLES
from tests.indexing.libraries import Step, change, edit, edits, slow, steps
from tests.kit import index, problems, view

Edits = list[tuple[str, str, str | None]]
histories = st.lists(st.tuples(st.lists(steps, max_size=3), edits), min_size=2, max_size=4)


def all_rows(store: Any) -> dict[str, Any]:
    """Every row of documents, graph, edits, merges and vectors."""
    with store.view() as snapshot:
        return {table: snapshot.rows_by_key(table) for table in KEPT_TABLES}


async def act(rag: AsyncLightRAG, series: list[Step], made: Edits) -> None:
    """Insert, delete, merge and edit."""
    for step in series:
        await change(rag, *step)
    await edit(rag, made)


@slow
@given(histories, st.randoms(use_true_random=False))
def test_a_rollback_leaves_every_row_of_the_snapshot(
    history: list[tuple[list[Step], Edits]], chance: random.Random
) -> None:
    """Snapshots between any changes, some deleted, are gone back to in any order, also forward."""

    async def run(folder: str) -> None:
        rows: dict[str, Any] = {}
        views: dict[str, Any] = {}
        async with index(folder) as rag:
            for number, (series, made) in enumerate(history):
                await act(rag, series, made)
                name = f"s{number}"
                await rag.admin.snapshot(name)
                rows[name] = all_rows(rag.engine.store)
                views[name] = view(folder, times=True)
            names = [name for name in rows if chance.random() < 0.7]
            for name in rows.keys() - set(names):
                await rag.admin.delete_snapshot(name)
            await act(rag, *history[0])
            chance.shuffle(names)
            for name in names:
                await rag.admin.rollback(name)
                assert all_rows(rag.engine.store) == rows[name]
                assert view(folder, times=True) == views[name]
                assert problems(folder) == []
                if chance.random() < 0.5:
                    await act(rag, *history[-1])

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@slow
@given(st.lists(steps, min_size=1, max_size=5), edits)
def test_a_snapshot_changes_no_row_of_what_follows(series: list[Step], made: Edits) -> None:
    """With a snapshot and without, the same changes give the same rows."""

    async def run(folder: str) -> None:
        async with index(f"{folder}/with") as rag, index(f"{folder}/without") as plain:
            await rag.admin.snapshot("before")
            await act(rag, series, made)
            await act(plain, series, made)
            assert all_rows(rag.engine.store) == all_rows(plain.engine.store)
            await rag.admin.delete_snapshot("before")
            assert await rag.admin.snapshots() == ()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


async def test_a_graph_in_memory_follows_a_rollback(tmp_path: Path) -> None:
    """Who has searched before a rollback finds what was there then."""
    async with index(tmp_path) as rag:
        await rag.insert("Ann knows Bob.")
        await rag.admin.snapshot("before")
        before = await rag.entities.list()
        await rag.insert("Cid knows Dan in Bern.")
        await rag.query("Who is Dan?")
        await rag.admin.rollback("before")
        await rag.query("Who is Dan?")
        assert problems(tmp_path, rag.engine.store) == []
        assert await rag.entities.list() == before


async def test_a_rollback_restores_the_order_of_votes(tmp_path: Path) -> None:
    """A row that is written with equal votes in another order has changed, too."""
    async with index(tmp_path) as rag:
        await rag.insert("Ann knows Bob.")
        store = rag.engine.store
        with store.view() as snapshot:
            row = next(iter(snapshot.entity_rows().values()))
        votes = structs.replace(row, names={"Ann": 2, "ANN": 1})
        votes_in_another_order = structs.replace(row, names={"ANN": 1, "Ann": 2})
        await write(store, methodcaller("put_graph_rows", "entity", [votes]))
        await rag.admin.snapshot("before")
        before = all_rows(store)
        await write(store, methodcaller("put_graph_rows", "entity", [votes_in_another_order]))
        assert all_rows(store) != before
        await rag.admin.rollback("before")
        assert all_rows(store) == before
