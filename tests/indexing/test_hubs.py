"""What an insert remembers of hubs: never anything but what the database says."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, Document, IndexOptions
from lightrag_jsonl.errors import NotFoundError
from lightrag_jsonl.storage import claims
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.types import Record
from tests.indexing.kit import entity, index, problems, read_names, relation, view

Step = tuple[str, list[int]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("insert", "insert", "insert", "delete", "rename")),
        st.lists(st.integers(0, 11), min_size=1, max_size=8, unique=True),
    ),
    max_size=6,
)
OPTIONS = IndexOptions(summarize_fragments=6)


def told(number: int) -> list[Record]:
    """What one document says of two hubs and of their relation; some say the same."""
    return [
        entity("Ann", f"Fact {number % 9}."),
        entity("Bob", f"Bob has {number}."),
        relation("Ann", "Bob", f"Met in year {number}."),
    ]


async def take(rag: AsyncLightRAG, step: Step) -> None:
    what, numbers = step
    if what == "delete":
        there = {document.id for document in await rag.documents()}
        await rag.delete(*(f"d{number}" for number in numbers if f"d{number}" in there))
    elif what == "rename":
        with contextlib.suppress(NotFoundError):
            await rag.merge_entities(["Bob"], into="Rob")
    else:
        for number in numbers:
            await rag.insert_records(Document(f"Text {number}.", id=f"d{number}"), told(number))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([("insert", [0, 1, 2, 3, 4]), ("delete", [2]), ("insert", [5])])
@example([("insert", [0, 1, 2, 3, 4]), ("delete", [0, 1, 2, 3]), ("insert", [0])])
@given(STEPS)
def test_one_session_or_many(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    """An index changed in one session equals one that is opened anew for each step."""

    async def run(folder: Path, *, at_once: bool) -> None:
        for part in [steps] if at_once else [[step] for step in steps]:
            async with index(folder, ScriptedLLM(read_names), options=OPTIONS) as rag:
                for step in part:
                    await take(rag, step)

    folders = [tmp_path_factory.mktemp(name) for name in ("once", "each")]
    for folder, at_once in zip(folders, (True, False), strict=True):
        asyncio.run(run(folder, at_once=at_once))
    assert view(folders[0]) == view(folders[1])
    assert problems(folders[0]) == []


async def test_hubs_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From commit to commit of a session, unless somebody else changed the index."""
    read: list[int] = []
    asked = claims.fragments

    def fragments(*given: object, **more: object) -> object:
        found = asked(*given, **more)  # type: ignore[arg-type]
        read.append(sum(map(len, found.values())))
        return found

    monkeypatch.setattr(claims, "fragments", fragments)
    async with index(tmp_path, options=OPTIONS) as rag:
        for number in range(10):
            await take(rag, ("insert", [number]))
        read.clear()
        await take(rag, ("insert", [10]))
        assert sum(read) == 0
        async with index(tmp_path, options=OPTIONS) as other:
            await take(other, ("insert", [11]))
        read.clear()
        await take(rag, ("insert", [12]))
        assert sum(read) == 3 * 12
