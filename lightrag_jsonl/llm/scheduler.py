"""Limits the model calls in flight, and decides which call is next."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

QUESTION: Final = 0  # somebody waits for the answer
SUMMARY: Final = 1  # a document that has been read waits for it to become visible
FIRST_CHUNK: Final = 2  # the first of the priorities of chunks: see `next_priority`
QUESTIONS_IN_A_ROW: Final = 4  # then something else that waits goes first


class CallScheduler:
    """At most `limit` calls at a time; of those that wait, the lowest priority goes next, then the
    first come. Questions cannot block an insert: while both wait, every fifth call is another one.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use = 0
        self._questions: deque[asyncio.Future[None]] = deque()
        self._others: list[tuple[int, int, asyncio.Future[None]]] = []
        self._row = 0  # questions that were served in a row
        self._order = itertools.count()
        self._chunks = itertools.count(FIRST_CHUNK)

    def next_priority(self) -> int:
        """The priority of all calls about one more chunk: earlier chunks are finished first."""
        return next(self._chunks)

    @contextlib.asynccontextmanager
    async def slot(self, priority: int) -> AsyncIterator[None]:
        """Hold one of the calls, waiting for it if necessary."""
        if self.in_use < self.limit:
            self.in_use += 1
        else:
            await self._wait(priority)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, priority: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if priority == QUESTION:
            self._questions.append(turn)
        else:
            heapq.heappush(self._others, (priority, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was cancelled when its turn had come
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Let the next call that still waits begin."""
        while self._questions or self._others:
            if self._questions and (self._row < QUESTIONS_IN_A_ROW or not self._others):
                turn, row = self._questions.popleft(), self._row + 1
            else:
                turn, row = heapq.heappop(self._others)[2], 0
            if not turn.done():
                self._row = row
                turn.set_result(None)
                return
        self.in_use -= 1
