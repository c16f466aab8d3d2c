"""Threads for adapters, since those of the event loop are few and needed by questions."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from lightrag_jsonl.concurrency import Pool
from lightrag_jsonl.forks import Home

Result = TypeVar("Result")


class Threads:
    """A pool of at most `count` threads, started as needed; a forked process starts its own."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._home = Home()
        self._pool: Pool | None = None

    async def run(self, call: Callable[[], Result]) -> Result:
        """The result of `call`, run with the caller's context variables."""
        if self._pool is None or not self._home.is_here:
            self._pool, self._home = Pool(self._most, "lightrag-jsonl-call"), Home()
        called = partial(contextvars.copy_context().run, call)
        return await asyncio.get_running_loop().run_in_executor(self._pool, called)
