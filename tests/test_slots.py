"""Slots: never more at once than allowed, who waits longest first, and no slot lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.slots import PATIENCE, QUESTION, READING, SUMMARY, WINDOW, Slots


async def hold(slots: Slots, turn: int, log: list[int], name: int) -> None:
    async with slots.taken(turn):
        log.append(name)
        await asyncio.sleep(0)


def run(*work: Coroutine[None, None, None]) -> None:
    async def all_of_it() -> None:
        await asyncio.gather(*work)

    asyncio.run(all_of_it())


def test_the_lowest_turn_goes_first_and_equals_in_their_order() -> None:
    """A question overtakes what waits, not what holds a slot."""
    slots, log = Slots(1), list[int]()
    turns = [READING, READING + 1, READING, SUMMARY, QUESTION, QUESTION]
    run(*(hold(slots, turn, log, number) for number, turn in enumerate(turns)))
    assert log == [0, 4, 5, 3, 2, 1]


def test_an_insert_goes_on_beside_questions_without_end() -> None:
    """After some questions in a row one of the others is next; alone, questions wait for nobody."""
    slots, log = Slots(2), list[int]()
    questions = [hold(slots, QUESTION, log, number) for number in range(100)]
    run(*questions, *(hold(slots, READING, log, number) for number in (100, 101)))
    first, second = log.index(100), log.index(101)
    assert first <= PATIENCE + 2 and second <= first + PATIENCE + 1
    assert [name for name in log if name < 100] == list(range(100))


def test_chunks_are_read_window_by_window() -> None:
    """Each slot's share of chunks has one turn, the next ones a later; idle slots begin anew."""
    slots = Slots(2)

    async def work() -> None:
        async with slots.taken(QUESTION):
            turns = [slots.turn() for _ in range(4 * WINDOW)]
            assert turns == [READING] * 2 * WINDOW + [READING + 1] * 2 * WINDOW
        assert slots.turn() == READING

    run(work())


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=12))
def test_no_slot_is_lost_or_given_twice(count: int, takers: list[tuple[int, int]]) -> None:
    """Whoever is cancelled, waiting, holding or just called: all slots are there again."""
    slots = Slots(count)
    held = most = 0

    async def take(turn: int) -> None:
        nonlocal held, most
        async with slots.taken(turn):
            held += 1
            most = max(most, held)
            try:
                await asyncio.sleep(0)
            finally:
                held -= 1

    async def cancel_after(steps: int, task: asyncio.Task[None]) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()

    async def work() -> None:
        tasks = [asyncio.create_task(take(turn)) for turn, _ in takers]
        ends = [cancel_after(steps, task) for task, (_, steps) in zip(tasks, takers, strict=True)]
        await asyncio.gather(*tasks[::2], *ends[1::2], return_exceptions=True)
        await asyncio.gather(*tasks, *ends[::2], return_exceptions=True)
        assert most <= count and slots.in_use == 0
        async with asyncio.timeout(1):
            for _ in range(count):
                await slots._wait(QUESTION)

    run(work())
