"""Limits the model calls in flight, and decides which call is next."""

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator
from typing import Final, TypeAlias

QUESTION: Final = 0  # somebody waits for the answer
SUMMARY: Final = 1  # a document that has been read waits for it to become visible
FIRST_CHUNK: Final = 2  # the first of the priorities of chunks: see `next_priority`
INSERTS_TURN: Final = 5  # every so many calls, the next is no question's: no insert waits forever

Queue: TypeAlias = list[tuple[int, int, asyncio.Future[None]]]  # a heap


class CallScheduler:
    """At most `limit` calls at a time. Among waiting calls the lowest priority goes next, then the
    earliest; every fifth call is not a question's, if another waits.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use = 0
        self._started_calls = 0
        self._questions: Queue = []
        self._inserts: Queue = []
        self._order = itertools.count()
        self._chunks = itertools.count(FIRST_CHUNK)

    def next_priority(self) -> int:
        """The priority of all calls about one more chunk: earlier chunks are finished first."""
        return next(self._chunks)

    @contextlib.asynccontextmanager
    async def slot(self, priority: int) -> AsyncIterator[None]:
        """Hold one of the calls, after waiting for a free one if necessary."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._questions if priority == QUESTION else self._inserts
        heapq.heappush(queue, (priority, next(self._order), turn))
        self._start_waiting_calls()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():
                self.in_use -= 1
                self._start_waiting_calls()

    def _start_waiting_calls(self) -> None:
        while self.in_use < self.limit and (queue := self._questions or self._inserts):
            if self._inserts and self._started_calls % INSERTS_TURN == 0:
                queue = self._inserts
            *_, turn = heapq.heappop(queue)
            if not turn.cancelled():
                self._started_calls += 1
                self.in_use += 1
                turn.set_result(None)
