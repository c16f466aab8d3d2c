"""The scheduler: never more calls than allowed, the right one next, and no slot lost."""

import asyncio
from collections.abc import Coroutine

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.llm.scheduler import QUESTION, SUMMARY, CallScheduler


async def call(scheduler: CallScheduler, priority: int, log: list[int], name: int) -> None:
    async with scheduler.slot(priority):
        log.append(name)
        await asyncio.sleep(0)


def run(*work: Coroutine[None, None, None]) -> None:
    async def all_of_it() -> None:
        await asyncio.gather(*work)

    asyncio.run(all_of_it())


def test_the_lowest_priority_goes_first_and_equals_in_their_order() -> None:
    """Questions, then summaries, then chunks, the earlier ones first; what has begun goes on."""
    scheduler, log = CallScheduler(1), list[int]()
    chunk, later = scheduler.next_priority(), scheduler.next_priority()
    priorities = [chunk, later, chunk, SUMMARY, QUESTION, QUESTION]
    run(*(call(scheduler, priority, log, name) for name, priority in enumerate(priorities)))
    assert log == [0, 4, 5, 3, 2, 1]


def test_questions_without_end_do_not_stop_an_insert() -> None:
    """Every fifth call is one of the others, in their order."""
    scheduler, log = CallScheduler(1), list[int]()
    chunks = [scheduler.next_priority() for _ in range(2)]
    run(*(call(scheduler, each, log, each) for each in [*[QUESTION] * 11, *chunks]))
    assert log == [*[QUESTION] * 5, chunks[0], *[QUESTION] * 4, chunks[1], *[QUESTION] * 2]


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=12))
def test_no_slot_is_lost_or_given_twice(limit: int, calls: list[tuple[int, int]]) -> None:
    """Whoever is cancelled, waiting, calling or just next: all slots are there again."""
    scheduler = CallScheduler(limit)
    held = most = 0

    async def take(priority: int) -> None:
        nonlocal held, most
        async with scheduler.slot(priority):
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
        tasks = [asyncio.create_task(take(priority)) for priority, _ in calls]
        ends = [cancel_after(steps, task) for task, (_, steps) in zip(tasks, calls, strict=True)]
        await asyncio.gather(*tasks[::2], *ends[1::2], return_exceptions=True)
        await asyncio.gather(*tasks, *ends[::2], return_exceptions=True)
        assert most <= limit and scheduler.in_use == 0
        most_before = most
        async with asyncio.timeout(60):
            await asyncio.gather(*(take(QUESTION) for _ in range(limit)))
        assert most_before <= most == limit

    run(work())
