"""One clock of silence for all calls to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

ALLOWED_SILENCE = "silence"  # among the extensions of a request: seconds
TURNS_PER_CALL = 2  # of the calls beside it, after which a server had its time for a call


@dataclass(eq=False, slots=True)
class SilentCall:
    """A call waiting for the server; the answers to the calls `beside` it put the `deadline` off."""

    loop: asyncio.AbstractEventLoop
    deadline: asyncio.Timeout
    seconds: float
    beside: int = 0  # the most calls that waited at once with this one
    turns: int = 0  # answers of the server to other calls so far

    def renew(self, *, is_end: bool) -> None:
        """Wait as long again as at the beginning, until the server had its time for this call."""
        if self.turns >= TURNS_PER_CALL * self.beside:
            return
        self.turns += int(is_end)
        if not self.deadline.expired():
            self.deadline.reschedule(self.loop.time() + self.seconds)


class ServerSilence:
    """Ends calls of a server after too long a silence.

    A server that answers calls in turn is silent to the waiting calls, but not to the current call:
    any sign of life counts for all calls. The deadline of a call is put off by at most two answers
    for each of the calls that wait with it: which of those sent together has its turn first is up to
    the server.
    """

    def __init__(self) -> None:
        self._calls: set[SilentCall] = set()

    @asynccontextmanager
    async def limit(self, seconds: float | None) -> AsyncIterator[None]:
        """Raise `TimeoutError` if nothing comes from the server for so long."""
        if seconds is None:
            yield
            return
        async with asyncio.timeout(seconds) as deadline:
            call = SilentCall(asyncio.get_running_loop(), deadline, seconds)
            self._calls.add(call)
            for waiting in self._calls:
                waiting.beside = max(waiting.beside, len(self._calls) - 1)
            try:
                yield
            finally:
                self._calls.discard(call)

    def heard(self, *, is_end: bool) -> None:
        """Count a sign of life, or the end of an answer."""
        loop = asyncio.get_running_loop()  # a model may be used in the loops of two indexes
        for call in tuple(self._calls):
            if call.loop is loop:
                call.renew(is_end=is_end)

    async def parts(self, response: Any, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The parts of a response's body, with the same time for each part."""
        seconds = response.request.extensions.get(ALLOWED_SILENCE)
        while True:
            async with self.limit(seconds):
                part = await anext(parts, None)
            self.heard(is_end=part is None)
            if part is None:
                return
            yield part
