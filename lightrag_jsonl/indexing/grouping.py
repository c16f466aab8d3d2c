"""Things prepared side by side, and what has become ready handed on in groups."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from lightrag_jsonl.concurrency import first

AHEAD = 256  # things in memory between their beginning and the end of their group
GROUP = AHEAD // 2  # as many need no more company
LINGER_SECONDS = 0.5  # a group waits so long for company, so that it shares the pages it changes

Item = TypeVar("Item")


async def in_groups(
    work: Iterable[Coroutine[Any, Any, Item | None]],
    hand_on: Callable[[list[Item]], Awaitable[None]],
) -> None:
    """Await all of `work`, and hand on what comes of it, one group after another.

    `None` means that nothing came of it. At most `AHEAD` are begun and not handed on: further
    ones are not even taken from `work`. The first error cancels the others and is raised.
    """
    ready: asyncio.Queue[Item | None] = asyncio.Queue()  # None is its end
    slots = asyncio.Semaphore(AHEAD)
    under_way = 0

    async def prepare(coroutine: Coroutine[Any, Any, Item | None]) -> None:
        nonlocal under_way
        under_way += 1
        try:
            done = await coroutine
        finally:
            under_way -= 1
        if done is None:
            slots.release()
        else:
            ready.put_nowait(done)

    async def hand_on_forever() -> None:
        last = False
        while not last:
            group, last = await _drain(ready, lambda: under_way == 0)
            if group:
                await hand_on(group)
            for _ in group:
                slots.release()

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hand_on_forever())
            async with asyncio.TaskGroup() as preparing:
                for coroutine in work:
                    await slots.acquire()
                    preparing.create_task(prepare(coroutine))
            ready.put_nowait(None)
    except BaseExceptionGroup as errors:
        raise first(errors) from None


async def _drain(
    queue: asyncio.Queue[Item | None], nothing_comes: Callable[[], bool]
) -> tuple[list[Item], bool]:
    """What has become ready, and becomes so soon; at least one. True once there will be no more."""
    found = [await queue.get()]
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while found[-1] is not None and len(found) < GROUP and not nothing_comes():
                found.append(await queue.get())
    except TimeoutError:
        pass
    while not queue.empty():
        found.append(queue.get_nowait())
    return [one for one in found if one is not None], None in found
