"""Limits the model calls in flight, and decides who gets the next free slot."""

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
READING: Final = 2  # the first of the turns of chunks: see `Slots.turn`
WINDOW: Final = 8  # chunks that are read side by side, for each slot
PATIENCE: Final = 4  # after so many questions in a row, something else that waits goes first


class Slots:
    """At most `count` slots in use; of those who wait, the lowest turn goes next, then the first
    come.

    Questions cannot block an insert: while both wait, every fifth slot goes to something else.
    """

    def __init__(self, count: int) -> None:
        self._count = self._free = count
        self._asking: deque[asyncio.Future[None]] = deque()
        self._asked = 0  # questions in a row that were served
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._begun = 0

    def turn(self) -> int:
        """The turn for all calls about one more chunk.

        A chunk takes several calls in sequence. If later calls queued behind the first calls of a
        thousand other chunks, no document would be finished before nearly all are. If they always
        went first, slots would stay empty at the end. So chunks are read in windows: those of an
        earlier window go first.
        """
        if self._free == self._count:
            self._begun = 0
        self._begun += 1
        return READING + (self._begun - 1) // (WINDOW * self._count)

    @property
    def in_use(self) -> int:
        """How many are held."""
        return self._count - self._free

    @contextlib.asynccontextmanager
    async def taken(self, turn: int) -> AsyncIterator[None]:
        """Hold a slot, waiting for one if necessary."""
        await self._wait(turn)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, turn: int) -> None:
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if turn == QUESTION:
            self._asking.append(place)
        else:
            heapq.heappush(self._waiting, (turn, next(self._order), place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it got a slot while it was being cancelled
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the slot to the next who still waits, or mark it free."""
        while self._asking or self._waiting:
            asks = self._asking and (self._asked < PATIENCE or not self._waiting)
            place = self._asking.popleft() if asks else heapq.heappop(self._waiting)[2]
            if not place.done():
                self._asked = self._asked + 1 if asks else 0
                place.set_result(None)
                return
        self._free += 1
