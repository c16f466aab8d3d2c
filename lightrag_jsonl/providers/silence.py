"""One clock of silence for all calls to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

ALLOWED_SILENCE = "silence"  # among the extensions of a request: seconds
TURNS_PER_CALL = 2  # of the calls before it, after which a server had its time for a call


@dataclass(eq=False, slots=True)
class SilentCall:
    """A call that waits for the server; other calls put its `deadline` off, `turns` of them at most."""

    loop: asyncio.AbstractEventLoop
    deadline: asyncio.Timeout
    seconds: float
    turns: int

    def renew(self) -> None:
        """Wait as long again as at the beginning."""
        if not self.deadline.expired():
            self.deadline.reschedule(self.loop.time() + self.seconds)


class ServerSilence:
    """Ends calls of a server that has been silent for too long.

    A server that does one thing after the other is silent to a waiting call, but not to the call that
    it works on: whatever arrives from it counts for all calls. A call that was overtaken by twice as
    many as were before it waits on its own.
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
            call = SilentCall(
                asyncio.get_running_loop(),
                deadline,
                seconds,
                turns=TURNS_PER_CALL * len(self._calls),
            )
            self._calls.add(call)
            try:
                yield
            finally:
                self._calls.discard(call)

    def heard(self, *, is_end: bool) -> None:
        """Count a sign of life, which may be the end of an answer."""
        loop = asyncio.get_running_loop()  # a model may be used in the loops of two indexes
        for call in tuple(self._calls):
            if call.turns > 0 and call.loop is loop:
                call.renew()
                call.turns -= int(is_end)

    async def parts(self, response: Any, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The parts of a response's body, each of which may take as long as the first."""
        seconds = response.request.extensions.get(ALLOWED_SILENCE)
        while True:
            async with self.limit(seconds):
                part = await anext(parts, None)
            self.heard(is_end=part is None)
            if part is None:
                return
            yield part
