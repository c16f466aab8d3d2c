"""Groups: all that is prepared is handed on once, and no more is in memory than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import AsyncLightRAG, Document
from lightrag_jsonl.indexing import grouping
from lightrag_jsonl.indexing.grouping import AHEAD, in_groups

THINGS = st.lists(
    st.tuples(st.integers(1, 2 * AHEAD), st.integers(0, 4), st.booleans()), max_size=30
)


@settings(max_examples=60, deadline=None)
@given(THINGS)
def test_all_is_handed_on_and_room_is_kept(things: list[tuple[int, int, bool]]) -> None:
    """Whatever each weighs, takes and comes to: what is too heavy for the room has it alone."""
    inside: dict[int, int] = {}
    handed_on: list[int] = []

    async def prepare(number: int, weight: int, steps: int, *, something: bool) -> int | None:
        inside[number] = weight
        assert sum(inside.values()) <= AHEAD or len(inside) == 1
        for _ in range(steps):
            await asyncio.sleep(0)
        if not something:
            del inside[number]
        return number if something else None

    async def hand_on(group: list[int]) -> None:
        await asyncio.sleep(0)
        handed_on.extend(group)
        for number in group:
            del inside[number]

    def work() -> Iterator[tuple[int, Coroutine[Any, Any, int | None]]]:
        for number, (weight, steps, something) in enumerate(things):
            yield weight, prepare(number, weight, steps, something=something)

    asyncio.run(in_groups(work(), hand_on))
    wanted = [number for number, (_, _, something) in enumerate(things) if something]
    assert sorted(handed_on) == wanted


def test_the_first_error_ends_it_all() -> None:
    """Also what waits for room, which nobody awaits any more."""
    begun: list[int] = []

    async def prepare(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0)
        raise ValueError("no")

    async def hand_on(group: list[int]) -> None:
        pytest.fail("there is nothing to hand on")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(in_groups(((AHEAD, prepare(number)) for number in range(3)), hand_on))
    assert begun == [0]


async def test_versions_of_one_document_do_not_wait_for_company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for the one before it to be visible; so that one waits for nobody."""
    monkeypatch.setattr(grouping, "LINGER_SECONDS", 3_600)
    async with asyncio.timeout(60), AsyncLightRAG(tmp_path) as rag:
        texts = [f"Ann met Bob in Paris {number} times." for number in range(4)]
        report = await rag.insert([Document(text, id="a") for text in texts])
        assert report.documents == ("a",) * 4
        assert [page.text for page in await rag.pages("a")] == texts[-1:]
