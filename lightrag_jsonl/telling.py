"""Items that a background task produces one by one, for a reader who may be slow or leave early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

Item = TypeVar("Item")
Work: TypeAlias = Callable[[asyncio.Queue[Item | None]], Coroutine[Any, Any, None]]

_tasks: set[asyncio.Task[None]] = set()  # keeps them alive: event loops hold only weak references


class Told(Generic[Item]):
    """An async iterator over the items that `work`, one background task, puts into its queue.

    The task starts when the first item is asked for. It may run ahead of the reader, or wait by
    `queue.join()` until the next item is wanted. Its error is raised after all items it had put.
    The task is cancelled when the reader closes the iterator, is cancelled, or drops it.
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
            if item is None and not self._over:  # unless another task has closed this
                await self._task
        except BaseException:
            await self.aclose()
            raise
        if item is None:
            self._over = True
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Cancel the task, and wait until it has stopped."""
        self._over = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def __del__(self) -> None:  # may be called in any thread
        if self._task is not None and not self._task.done():
            loop = self._task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._task.cancel)

    def _begun(self) -> asyncio.Task[None]:
        items = self._items  # the task must not keep `self` alive: see `__del__`
        task = asyncio.create_task(self._work(items))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        task.add_done_callback(lambda _: items.put_nowait(None))
        return task


@runtime_checkable
class Closable(Protocol):
    """An async iterator that can be closed before its end, as generators can."""

    async def aclose(self) -> None:
        """Stop; no further item will come."""
        ...


async def closed(source: AsyncIterator[Item]) -> None:
    """Close an async iterator before its end, if it can be closed."""
    if isinstance(source, Closable):
        await source.aclose()
