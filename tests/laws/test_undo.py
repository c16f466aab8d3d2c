"""Law `undo`: deleting what was inserted leaves what was there before, and asks nobody."""

import asyncio
import contextlib
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Document, QueryParam
from tests.indexing.libraries import Step, change, edit, edits, libraries, pending, slow, steps
from tests.kit import Record, index, problems, store_at, view


@slow
@given(libraries, libraries, st.booleans())
def test_deleting_what_was_inserted_leaves_what_was_there(
    kept: list[list[Record]], passing: list[list[Record]], one_by_one: bool
) -> None:
    """Entities, relations, first mentions, vectors and full text are as before."""

    async def run(folder: str) -> None:
        async with index(folder) as rag:
            await rag.engine.indexing.insert(pending(100 + n, r) for n, r in enumerate(kept))
            before = view(folder, times=True)
            # they come from an earlier time, so that first mentions move there and back
            await rag.engine.indexing.insert(
                pending(n, records) for n, records in enumerate(passing)
            )
            ids = [f"d{n}" for n in range(len(passing))]
            for group in [[id] for id in ids] if one_by_one else [ids]:
                await rag.delete(*group)
            assert view(folder, times=True) == before
            assert problems(folder) == []

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@slow
@given(libraries, edits, libraries, st.randoms(use_true_random=False))
def test_deleting_edits_leaves_what_was_there(
    kept: list[list[Record]],
    made: list[tuple[str, str, str | None]],
    passing: list[list[Record]],
    chance: random.Random,
) -> None:
    """Edits by hand are undone in any order, together with documents and one by one."""

    async def run(folder: str) -> None:
        async with index(folder) as rag:
            await rag.engine.indexing.insert(pending(100 + n, r) for n, r in enumerate(kept))
            before = view(folder, times=True)
            ids = await edit(rag, made)
            await rag.engine.indexing.insert(
                pending(n, records) for n, records in enumerate(passing)
            )
            ids += [f"d{n}" for n in range(len(passing))]
            chance.shuffle(ids)
            cut = chance.randint(0, len(ids))
            for group in ids[:cut], *[[id] for id in ids[cut:]]:
                await rag.delete(*group)
                assert problems(folder) == []
            assert view(folder, times=True) == before

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@slow
@given(st.lists(steps, max_size=8))
def test_derived_indexes_follow_any_series_of_changes(series: list[Step]) -> None:
    """A graph and vectors caught up commit by commit, or two at once, equal those loaded anew."""

    async def run(folder: str, steady: Any, lazy: Any) -> None:
        async with index(folder) as rag:
            for count, step in enumerate(series):
                await change(rag, *step)
                assert problems(folder, steady) == []
                if count % 2:
                    assert problems(folder, lazy) == []

    with tempfile.TemporaryDirectory() as folder:
        stores = store_at(folder), store_at(folder)
        with contextlib.closing(stores[0]), contextlib.closing(stores[1]):
            asyncio.run(run(folder, *stores))


async def test_a_question_finds_what_it_would_had_nothing_been_deleted(tmp_path: Path) -> None:
    """A word of most chunks that are left finds nothing by itself, however many there were before."""
    gone = [Document(f"Text number {n} says something else.", id=f"g{n}") for n in range(8)]

    async def found(folder: Path, *passing: Document) -> list[tuple[str, str, float]]:
        async with index(folder) as rag:
            await rag.insert(passing)
            for text in ("Ann is here.", "Bob is here.", "Cid is there.", "Dan sang."):
                await rag.insert(text)  # one by one: equals stand in the order in which they came
            await rag.delete(*(document.id or "" for document in passing))
            context = await rag.retrieve("Who is Dan?", QueryParam(mode="naive"))
            return [(chunk.text, chunk.why, chunk.score) for chunk in context.chunks]

    assert await found(tmp_path / "deleted", *gone) == await found(tmp_path / "never")
