"""Runs coroutines side by side, and passes on their results in groups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar

from lightrag_jsonl.concurrency import first

AHEAD = 640  # the greatest total weight of work that is begun and not yet passed on
GROUP = AHEAD // 2  # a group of this weight is passed on without waiting for more
LINGER_SECONDS = 0.5  # a group waits so long for more results: one transaction for many is cheaper

Item = TypeVar("Item")


async def in_groups(
    work: Iterable[tuple[int, Coroutine[Any, Any, Item | None]]],
    hand_on: Callable[[list[Item]], Awaitable[None]],
    *,
    held_up: Callable[[], int] = lambda: 0,
) -> None:
    """Await all of `work`, (weight, coroutine) pairs, and pass their results to `hand_on` in groups.

    A result of `None` is not passed on. The total weight of work begun and not yet passed on stays
    below `AHEAD`; to know what comes next, one further item is taken from `work`. `held_up` returns
    how many of the coroutines under way are waiting for a group to be passed on: no group waits for
    those. The first error cancels everything and is raised.
    """
    ready: asyncio.Queue[tuple[int, Item | None]] = asyncio.Queue()  # weight 0 marks the end
    room = _Room()
    under_way = 0

    async def prepare(weight: int, coroutine: Coroutine[Any, Any, Item | None]) -> None:
        nonlocal under_way
        under_way += 1
        try:
            done = await coroutine
        finally:
            under_way -= 1
        if done is None:
            room.leave(weight)
        else:
            ready.put_nowait((weight, done))

    async def hand_on_forever() -> None:
        last = False
        while not last:
            group, weight, last = await _drain(ready, lambda: under_way <= held_up())
            if group:
                await hand_on(group)
            room.leave(weight)

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hand_on_forever())
            async with asyncio.TaskGroup() as preparing:
                for weight, coroutine in work:
                    try:
                        await room.enter(weight)
                    except BaseException:
                        coroutine.close()
                        raise
                    task = preparing.create_task(prepare(weight, coroutine))
                    task.add_done_callback(
                        partial(_close, coroutine)
                    )  # if it is cancelled before it begins
            ready.put_nowait((0, None))
    except BaseExceptionGroup as errors:
        error = first(errors)
        raise error from error.__cause__


async def _drain(
    queue: asyncio.Queue[tuple[int, Item | None]], nothing_comes: Callable[[], bool]
) -> tuple[list[Item], int, bool]:
    """The results that are ready now or soon (at least one), their weight, and whether they are the last."""
    found = [await queue.get()]
    total = found[0][0]
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while found[-1][0] and total < GROUP and not nothing_comes():
                found.append(await queue.get())
                total += found[-1][0]
    except TimeoutError:
        pass
    while not queue.empty():
        found.append(queue.get_nowait())
    group = [one for _, one in found if one is not None]
    return group, sum(weight for weight, _ in found), not found[-1][0]


def _close(coroutine: Coroutine[Any, Any, object], done: asyncio.Task[None]) -> None:
    coroutine.close()


class _Room:
    """Admits work up to a weight of `AHEAD`; heavier work is admitted alone."""

    def __init__(self) -> None:
        self._taken = 0
        self._changed = asyncio.Event()

    async def enter(self, weight: int) -> None:
        """Wait for room; not to be called twice at a time."""
        while self._taken and self._taken + weight > AHEAD:
            self._changed.clear()
            await self._changed.wait()
        self._taken += weight

    def leave(self, weight: int) -> None:
        """Give room back."""
        self._taken -= weight
        self._changed.set()
