"""Where searches run: in a thread of their own, or, where they are short, where they are asked for."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TypeVar

from lightrag_jsonl.concurrency import Pool
from lightrag_jsonl.errors import StorageError

Result = TypeVar("Result")

SHORT_SECONDS = 0.01  # twice what Python lets another thread run before it hands over


class SearchThread:
    """Keeps searches from holding up an event loop for long; used by one loop.

    They take turns at the snapshot anyway, and find in the processor's cache what the same thread
    used last: with any thread of a pool each takes a fifth longer.
    """

    def __init__(self) -> None:
        self._pool = Pool(1, "lightrag-jsonl-query")
        self._lasted = math.inf
        self._closed = False

    def close(self) -> None:
        """What is being searched comes to its end, nothing more is; `StorageError` from then on."""
        self._closed = True
        self._pool.shutdown(wait=False)

    async def run(self, search: Callable[[], Result], *, ready: bool = False) -> Result:
        """The result of a search.

        One that waits for nothing (`ready`) runs at once, if the last one was short: to change
        threads twice would take longer than anybody else has to wait.
        """
        if self._closed:
            raise StorageError("this LightRAG was closed")
        if ready and self._lasted < SHORT_SECONDS:
            return self._timed(search)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._timed, search)

    def _timed(self, search: Callable[[], Result]) -> Result:
        started = time.perf_counter()
        try:
            return search()
        finally:
            self._lasted = time.perf_counter() - started
