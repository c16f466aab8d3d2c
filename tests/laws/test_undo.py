"""Law `undo`: deleting what was inserted leaves what was there before, and asks nobody."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, IndexOptions, LightRAG
from lightrag_jsonl.indexing.renaming import undoing
from lightrag_jsonl.storage.aliases import Aliases
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.text import name_key
from lightrag_jsonl.types import Document, Record
from tests.indexing.kit import entity, index, problems, read_names, relation, stored, view
from tests.indexing.libraries import libraries, slow, waiting


@slow
@given(libraries, libraries, st.booleans())
def test_deleting_what_was_inserted_leaves_what_was_there(
    kept: list[list[Record]], passing: list[list[Record]], one_by_one: bool
) -> None:
    """Entities, relations, first mentions, vectors and full text are as before."""

    async def run(folder: str) -> None:
        async with index(folder) as rag:
            await rag._engine.indexing.insert(waiting(n, r) for n, r in enumerate(kept))
            before = view(folder, times=True)
            ids = [f"d{100 + n}" for n in range(len(passing))]
            # they come from an earlier time, so that first mentions move there and back
            early = [waiting(100 + n, records) for n, records in enumerate(passing)]
            await rag._engine.indexing.insert(early)
            for group in [[id] for id in ids] if one_by_one else [ids]:
                await rag.delete(*group)
            assert view(folder, times=True) == before
            assert problems(folder) == []

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@slow
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("idu"), libraries), max_size=8))
def test_derived_indexes_follow_any_series_of_changes(
    steps: list[tuple[int, str, list[list[Record]]]],
) -> None:
    """A graph and vectors caught up commit by commit, or two commits at once, equal those loaded anew."""

    async def run(folder: str, database: Database) -> None:
        keeper, lazy = SnapshotKeeper(database), SnapshotKeeper(database)
        async with index(folder) as rag:
            for count, (number, action, library) in enumerate(steps):
                known = {status.id for status in await rag.documents()}
                if action == "d" and f"d{number}" in known:
                    await rag.delete(f"d{number}")
                else:
                    await rag._engine.indexing.insert([waiting(number, library[0])])
                assert problems(folder, keeper) == []
                if count % 2:
                    assert problems(folder, lazy) == []

    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Database(folder)) as database:
        asyncio.run(run(folder, database))


batches = st.lists(st.integers(1, 12), min_size=1, max_size=3)


@slow
@given(batches, batches, st.booleans(), st.booleans())
@example([9], [12], False, False)
@example([8, 3], [8, 8], True, True)
def test_summaries_are_as_they_were_before(
    kept: list[int], passing: list[int], one_by_one: bool, merged: bool
) -> None:
    """One that was renewed for what is deleted makes room for the one before, and nobody is asked."""
    llm = ScriptedLLM(lambda request: sha256(request.question.encode()).hexdigest())
    numbers = itertools.count()

    async def insert(rag: AsyncLightRAG, count: int) -> list[str]:
        """Insert documents that speak of one hub, and of its relation to another, at once."""
        documents = [
            waiting(
                number,
                [
                    entity("Hub", f"Fact {number}."),
                    entity("Bob", f"Bob has {number}."),
                    entity("Zoe"),
                    relation("Hub", "Bob", f"Met in year {number}."),
                ],
            )
            for number in itertools.islice(numbers, count)
        ]
        await rag._engine.indexing.insert(documents)
        return [one.document.id or "" for one in documents]

    async def run(folder: str) -> None:
        async with index(folder, llm) as rag:
            for count in kept:
                await insert(rag, count)
            before = view(folder)
            gone = [id for count in passing for id in await insert(rag, count)]
            if merged:  # Hub is folded again, and stays as it was
                await rag.merge_entities(["Zoe"], into="Zed")
                await rag.unmerge("Zoe")
            asked = len(llm.requests)
            for group in [[id] for id in gone] if one_by_one else [gone]:
                await rag.delete(*group)
            assert len(llm.requests) == asked
            assert view(folder) == before
            assert problems(folder) == []

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


async def test_deletion_asks_no_model_and_drops_summaries_with_their_inputs(tmp_path: Path) -> None:
    """A summary that speaks of what is gone goes too; fragments stand in; no call is made."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm, options=IndexOptions(max_gleanings=0)) as rag:
        texts = [f"Hub is here in place number {n}." for n in range(9)]
        for number, text in enumerate(texts):
            await rag.insert_records(Document(text, id=f"d{number}"), [entity("Hub", text)])
        assert stored(tmp_path, "SELECT summary IS NOT NULL FROM entities") == [(1,)]
        calls = len(llm.requests)
        await rag.delete("d3")
        assert len(llm.requests) == calls
        ((description, summary),) = stored(tmp_path, "SELECT description, summary FROM entities")
        assert summary is None and "number 3" not in description and "number 4" in description
    assert problems(tmp_path) == []


def test_a_question_finds_what_it_would_had_nothing_been_deleted(tmp_path: Path) -> None:
    """A word of most chunks that are left finds nothing by itself, however many there were before."""
    gone = [Document(f"Text number {n} says something else.", id=f"g{n}") for n in range(8)]

    def found(folder: Path, *passing: Document) -> list[tuple[str, str, float]]:
        with LightRAG(folder) as rag:
            rag.insert(passing)
            for text in ("Ann is here.", "Bob is here.", "Cid is there.", "Dan sang."):
                rag.insert(text)  # one by one: equals stand in the order in which they came
            rag.delete(*(document.id or "" for document in passing))
            chunks = rag.retrieve("Who is Dan?", mode="naive").chunks
            return [(chunk.text, chunk.why, chunk.score) for chunk in chunks]

    assert found(tmp_path / "deleted", *gone) == found(tmp_path / "never")


NAMES = st.sampled_from(["a", "A", "b", "B", "c", "C", "d", "D", "e"])
RENAMINGS = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.none() | NAMES))


def renamed(known: Aliases, names: Collection[str], into: str | None) -> Aliases:
    """What `merge`, or without a name to merge them into `unmerge`, makes of the aliases."""
    keys = {name_key(name) for name in names}
    return known.without(keys) if into is None else known.merged(keys, name_key(into), into)


@given(RENAMINGS, st.lists(NAMES, min_size=1, max_size=3), NAMES)
def test_what_undoes_a_merge_brings_all_names_back(
    earlier: list[tuple[list[str], str | None]], names: list[str], into: str
) -> None:
    """Whatever was merged before, into whatever: each name stands for what it stood for, called so."""
    before = Aliases()
    for some, end in earlier:
        before = renamed(before, some, end)

    after = renamed(before, names, into)
    for step in undoing(before, names, into):
        after = renamed(after, *step)

    assert after == before
