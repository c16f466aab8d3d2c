"""What is told by a task of its own: how far it runs, what the reader hears, and how it ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from functools import partial

import pytest

from lightrag_jsonl.telling import Told

Numbers = asyncio.Queue[int | None]


async def count(to: int, numbers: Numbers) -> None:
    """Tell numbers without waiting for anyone."""
    for number in range(to):
        numbers.put_nowait(number)


async def count_for_ever(log: list[str], numbers: Numbers) -> None:
    """Tell a number when it is wanted; what it does at its end takes a while."""
    try:
        for number in range(10**6):
            numbers.put_nowait(number)
            await numbers.join()
    finally:
        await asyncio.sleep(0)
        log.append("stopped")


async def settled() -> None:
    """Let what is ready run."""
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)


async def test_all_is_heard_in_order() -> None:
    assert [number async for number in Told(partial(count, 5))] == [0, 1, 2, 3, 4]


async def test_an_error_comes_after_what_was_told_before_it() -> None:
    async def fail(numbers: Numbers) -> None:
        await count(3, numbers)
        raise ZeroDivisionError

    heard, told = [], Told(fail)
    with pytest.raises(ZeroDivisionError):
        async for number in told:
            heard.append(number)
    assert heard + [number async for number in told] == [0, 1, 2]


async def test_nothing_begins_before_it_is_asked_for() -> None:
    log: list[str] = []
    told = Told(partial(count_for_ever, log))
    await settled()
    await told.aclose()
    assert log + [str(number) async for number in told] == []


async def test_who_waits_for_the_reader_is_never_ahead() -> None:
    told = Told(partial(count_for_ever, []))
    for expected in range(5):
        assert await anext(told) == expected
        assert told._items.empty()
    await told.aclose()


async def test_leaving_waits_until_it_has_stopped() -> None:
    log: list[str] = []
    told = Told(partial(count_for_ever, log))
    await anext(told)
    await told.aclose()
    assert log + [str(number) async for number in told] == ["stopped"]


async def test_a_cancelled_reader_stops_it() -> None:
    async def waits(log: list[str], numbers: Numbers) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            log.append("stopped")

    log: list[str] = []
    reader = asyncio.create_task(anext(Told(partial(waits, log))))  # type: ignore[arg-type]
    for _ in range(3):
        await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert log == ["stopped"]


async def test_a_reader_whose_stream_is_closed_elsewhere_comes_to_its_end() -> None:
    """It is not cancelled itself."""

    async def wait(numbers: Numbers) -> None:
        numbers.put_nowait(0)
        await asyncio.Event().wait()

    told = Told(wait)
    heard: list[int] = []

    async def read() -> None:
        async for number in told:
            heard.append(number)

    reader = asyncio.create_task(read())
    while not heard:
        await asyncio.sleep(0)
    await told.aclose()
    await reader
    assert heard == [0]


class Page:
    """What holds itself, and what it shows."""

    def __init__(self, told: Told[int]) -> None:
        self.shown, self.itself = told, self


@pytest.mark.parametrize("hold", [list, Page], ids=["counted", "in a circle"])
async def test_what_is_forgotten_is_stopped(hold: Callable[[Told[int]], object]) -> None:
    """Without a word, though the reader and the task are found as garbage at the same time."""
    complaints: list[object] = []
    loop, log = asyncio.get_running_loop(), list[str]()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    told = Told(partial(count_for_ever, log))
    await anext(told)
    kept = hold(told) if hold is Page else [told]
    del told, kept
    gc.collect()
    await settled()
    assert log == ["stopped"] and complaints == []
