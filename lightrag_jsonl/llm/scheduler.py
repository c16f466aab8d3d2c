"""Limits the model calls in flight, and decides which call is next."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Final

QUESTION: Final = 0  # somebody waits for the answer
SUMMARY: Final = 1  # a document that has been read waits for it to become visible
FIRST_CHUNK: Final = 2  # the first of the priorities of chunks: see `next_priority`
OTHERS_TURN: Final = 5  # every so many calls, the next is no question's: no insert waits forever


class CallScheduler:
    """At most `limit` calls at a time; of those that wait, the lowest priority goes next, then the
    first come. Every fifth is none of a question, if there is one that waits.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use = 0
        self._passed = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
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
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((priority, next(self._order), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # it was cancelled when its turn had come
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the next call that still waits begin."""
        waiting = [one for one in self._waiting if not one[2].done()]
        if not waiting:
            self.in_use -= 1
            return
        self._passed += 1
        others = [one for one in waiting if one[0] != QUESTION]
        chosen = min(others if others and self._passed % OTHERS_TURN == 0 else waiting)
        chosen[2].set_result(None)
        self._waiting = [one for one in waiting if one is not chosen]
