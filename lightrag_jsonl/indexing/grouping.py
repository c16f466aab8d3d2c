"""Things prepared side by side, and what has become ready handed on in groups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar

from lightrag_jsonl.concurrency import first

AHEAD = 640  # weight of what is in memory between its beginning and the end of its group
GROUP = AHEAD // 2  # as much needs no more company
LINGER_SECONDS = 0.5  # a group waits so long for company, so that it shares the pages it changes

Item = TypeVar("Item")


async def in_groups(
    work: Iterable[tuple[int, Coroutine[Any, Any, Item | None]]],
    hand_on: Callable[[list[Item]], Awaitable[None]],
    *,
    held_up: Callable[[], int] = lambda: 0,
) -> None:
    """Await all of `work`, each with its weight, and hand on what comes of it, group after group.

    `None` means that nothing came of it. No more than `AHEAD` weigh those that are begun and not
    handed on: but for one, further ones are not even taken from `work`. `held_up` tells how many of
    those under way wait for what is to be handed on: for them nothing waits. The first error
    cancels the others and is raised.
    """
    ready: asyncio.Queue[tuple[int, Item | None]] = asyncio.Queue()  # weighing 0, it is the end
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
                    task.add_done_callback(partial(_close, coroutine))  # it may not even begin
            ready.put_nowait((0, None))
    except BaseExceptionGroup as errors:
        error = first(errors)
        raise error from error.__cause__


async def _drain(
    queue: asyncio.Queue[tuple[int, Item | None]], nothing_comes: Callable[[], bool]
) -> tuple[list[Item], int, bool]:
    """What has become ready, and becomes so soon, at least one, and its weight. True once there
    will be no more.
    """
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
    """Room for `AHEAD`; what weighs more than all of it takes it whole."""

    def __init__(self) -> None:
        self._taken = 0
        self._changed = asyncio.Event()

    async def enter(self, weight: int) -> None:
        """Wait for room; one at a time may."""
        while self._taken and self._taken + weight > AHEAD:
            self._changed.clear()
            await self._changed.wait()
        self._taken += weight

    def leave(self, weight: int) -> None:
        """There is room again."""
        self._taken -= weight
        self._changed.set()
