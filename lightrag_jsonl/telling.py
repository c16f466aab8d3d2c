"""What is told piece by piece: by a task of its own, to a reader who may be slow, or leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

Item = TypeVar("Item")
Work: TypeAlias = Callable[[asyncio.Queue[Item | None]], Coroutine[Any, Any, None]]

_tasks: set[asyncio.Task[None]] = set()  # event loops hold theirs weakly


class Told(Generic[Item]):
    """What `work` puts into its queue, for one reader; `work` is one task from end to end.

    It begins when the first item is asked for. It may run ahead of the reader, or wait with the
    queue's `join` until more is wanted. What it raises comes after what it had put there. When its
    reader leaves, is cancelled or forgets it, it is cancelled.
    """

    def __init__(self, work: Work[Item]) -> None:
        self._work = work
        self._items: asyncio.Queue[Item | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._over = False

    def __aiter__(self) -> Told[Item]:
        return self

    async def __anext__(self) -> Item:
        if self._over:
            raise StopAsyncIteration
        if self._task is None:
            self._task = self._begun()
        else:
            self._items.task_done()
        try:
            item = await self._items.get()
            if item is None and not self._over:  # else it was left from another task
                await self._task
        except BaseException:
            await self.aclose()
            raise
        if item is None:
            self._over = True
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Cancel what is still to come, and wait until it has stopped."""
        self._over = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def __del__(self) -> None:  # in any thread, whatever that is about
        if self._task is not None and not self._task.done():
            loop = self._task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._task.cancel)

    def _begun(self) -> asyncio.Task[None]:
        items = self._items  # what the task holds does not hold the reader
        task = asyncio.create_task(self._work(items))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        task.add_done_callback(lambda _: items.put_nowait(None))
        return task


@runtime_checkable
class Closable(Protocol):
    """An async iterator that can be left before its end, as generators can."""

    async def aclose(self) -> None:
        """Stop what it does; no further item will come."""
        ...


async def closed(source: AsyncIterator[Item]) -> None:
    """Let an iterator that was left before its end stop what it does."""
    if isinstance(source, Closable):
        await source.aclose()
