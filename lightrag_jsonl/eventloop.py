"""An event loop in a thread of its own, for callers that do not await."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from lightrag_jsonl.errors import StorageError

Result = TypeVar("Result")
Item = TypeVar("Item")


@runtime_checkable
class Closable(Protocol):
    """An async iterator that can be left before its end, as generators can."""

    async def aclose(self) -> None:
        """Stop what it does; no further item will come."""
        ...


class LoopThread:
    """An event loop in a daemon thread, started when it is first needed; safe from any thread.

    After `close()` calls are refused with `StorageError`.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.closed = False

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine there and wait; Ctrl-C cancels it, and waits until it has stopped."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "a listener cannot call the LightRAG that it listens to and waits for"
            )
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._started())
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            concurrent.futures.wait([future])
            raise

    def iterate(self, source: AsyncIterator[Item]) -> Iterator[Item]:
        """Pull the items of an async iterator, each when it is asked for."""
        try:
            while True:
                yield self.run(_next(source))
        except StopAsyncIteration:
            return
        finally:
            if not self.closed:
                self.run(_closed(source))

    def close(self) -> None:
        """End the loop, with whatever still runs there, and its thread; no further call is taken."""
        with self._guard:
            self.closed = True
            loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self.closed:
                raise StorageError("this LightRAG was closed")
            if self._loop is None:
                ready: queue.SimpleQueue[asyncio.AbstractEventLoop] = queue.SimpleQueue()
                self._thread = threading.Thread(
                    target=_serve, args=(ready,), name="lightrag-jsonl", daemon=True
                )
                self._thread.start()
                self._loop = ready.get()
            return self._loop


def _serve(ready: queue.SimpleQueue[asyncio.AbstractEventLoop]) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.call_soon(ready.put, loop)
    loop.run_forever()
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())


async def _next(source: AsyncIterator[Item]) -> Item:
    return await anext(source)


async def _closed(source: AsyncIterator[Item]) -> None:
    """Let an iterator that was left before its end stop what it does."""
    if isinstance(source, Closable):
        await source.aclose()
