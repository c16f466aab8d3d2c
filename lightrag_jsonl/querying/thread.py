"""Runs searches in a thread of their own, or, if they are short, in the caller's."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TypeVar

from lightrag_jsonl.concurrency import Pool
from lightrag_jsonl.errors import StorageError

Result = TypeVar("Result")

SHORT_SECONDS = 0.01  # twice Python's switch interval, after which another thread may run


class SearchThread:
    """Keeps long searches from blocking an event loop; used by one loop.

    It is a single thread: searches take turns at the snapshot anyway, and in the same thread they
    find in the processor's cache what the last one used. With a pool of threads each takes a fifth
    longer.
    """

    def __init__(self) -> None:
        self._pool = Pool(1, "lightrag-jsonl-query")
        self._lasted = math.inf
        self._closed = False

    def close(self) -> None:
        """Let the running search finish; further ones raise `StorageError`."""
        self._closed = True
        self._pool.shutdown(wait=False)

    async def run(self, search: Callable[[], Result], *, ready: bool = False) -> Result:
        """The result of a search.

        If the search waits for nothing (`ready`) and the last one was short, it runs in the
        caller's thread: changing threads twice would take longer than others on the loop would
        wait.
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
