"""A stream of events with many listeners, to answer equal questions at once only once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

StreamedItem = TypeVar("StreamedItem")


class SharedStream(Generic[StreamedItem]):
    """The items of `run`, all of which every listener gets, also after a late start.

    When the last listener leaves before the end, `run` is cancelled. `on_end` is called when no
    further listener may join.
    """

    def __init__(
        self,
        run: Callable[[Callable[[StreamedItem], None]], Awaitable[None]],
        on_end: Callable[[], object],
    ) -> None:
        self._items: list[StreamedItem] = []
        self._listeners = 0
        self._more = asyncio.Event()
        self._on_end = on_end
        self._task = asyncio.ensure_future(run(self._put))
        self._task.add_done_callback(self._finish)

    def listen(self) -> AsyncGenerator[StreamedItem]:
        """The items; raises the error of `run`. A listener that leaves early closes the generator."""
        self._listeners += 1
        return self._listen()

    async def _listen(self) -> AsyncGenerator[StreamedItem]:
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
                self._on_end()
                self._task.cancel()

    def _put(self, item: StreamedItem) -> None:
        self._items.append(item)
        self._wake()

    def _finish(self, task: asyncio.Future[None]) -> None:
        self._on_end()
        self._wake()
        if not task.cancelled():
            task.exception()  # marks the error as retrieved, even if nobody listens any more

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()
