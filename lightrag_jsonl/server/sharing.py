"""One stream of events with many listeners, so that equal questions at once are answered once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class SharedStream(Generic[Item]):
    """What `run` puts out; every listener gets it from the first item, whenever it joins.

    When the last listener leaves before the end, `run` is cancelled. `ended` is called when no
    further listener may join.
    """

    def __init__(
        self, run: Callable[[Callable[[Item], None]], Awaitable[None]], ended: Callable[[], object]
    ) -> None:
        self._items: list[Item] = []
        self._listeners = 0
        self._more = asyncio.Event()
        self._ended = ended
        self._task = asyncio.ensure_future(run(self._put))
        self._task.add_done_callback(self._done)

    def listen(self) -> AsyncGenerator[Item]:
        """The items; raises the error that ended them. Close it to leave early."""
        self._listeners += 1
        return self._listen()

    async def _listen(self) -> AsyncGenerator[Item]:
        position = 0
        try:
            while True:
                while position < len(self._items):
                    yield self._items[position]
                    position += 1
                if self._task.done():
                    self._task.result()
                    return
                await self._more.wait()
        finally:
            self._listeners -= 1
            if not self._listeners and not self._task.done():
                self._ended()
                self._task.cancel()

    def _put(self, item: Item) -> None:
        self._items.append(item)
        self._wake()

    def _done(self, task: asyncio.Future[None]) -> None:
        self._ended()
        self._wake()
        if not task.cancelled():
            task.exception()  # it counts as retrieved, even if nobody listens any more

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()
