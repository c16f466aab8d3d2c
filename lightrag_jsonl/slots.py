"""How many calls may be in flight, and whose turn is next when one comes back."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

QUESTION: Final = 0  # somebody waits for the answer
SUMMARY: Final = 1  # documents that have been read wait for it to become visible
READING: Final = 2  # and above: see `Slots.turn`
WINDOW: Final = 8  # chunks for each slot that are read side by side
PATIENCE: Final = 4  # questions that go first, one after another, where others wait as well


class Slots:
    """At most `count` at once; of those who wait the lowest turn is next, the first among equals.

    Where questions never end, every fifth slot is for the others: an insert goes on beside them.
    """

    def __init__(self, count: int) -> None:
        self._count = self._free = count
        self._asking: deque[asyncio.Future[None]] = deque()
        self._asked = 0  # questions that went first, one after another
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._begun = 0

    def turn(self) -> int:
        """A turn for all calls of one more chunk.

        A chunk takes several calls, one after another. Were all of them to queue behind the first
        calls of a thousand further chunks, no document would be whole before nearly all are; were
        they to go before every first call, slots would stay empty at the end. So chunks are read
        window by window.
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
        """Hold a slot, once there is one."""
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
            if place.done() and not place.cancelled():  # the slot came as its taker went
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """The slot is for who is next and still waits; free where nobody does."""
        while self._asking or self._waiting:
            asks = self._asking and (self._asked < PATIENCE or not self._waiting)
            place = self._asking.popleft() if asks else heapq.heappop(self._waiting)[2]
            if not place.done():
                self._asked = self._asked + 1 if asks else 0
                place.set_result(None)
                return
        self._free += 1
