"""Connections of the server: how many there may be, and how long a client may be silent.

uvicorn waits without end for the headers of a request and for a client that stops reading, and
accepts connections until the process has no file left; asyncio then logs without end.
"""

import asyncio
import logging
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS: Final = 20.0  # until the headers of a request are complete
WRITE_SECONDS: Final = 30.0  # in which a client takes 48 KB of what waits for it
KEEP_ALIVE_SECONDS: Final = 5  # between two requests of a connection
FEWEST_CONNECTIONS: Final = 16
MOST_CONNECTIONS: Final = 4_096
UNKNOWN_LIMIT: Final = 1_024  # of open files, where the system does not tell
WARNING_SECONDS: Final = 60.0  # between two warnings
REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)

log = logging.getLogger(__name__)


def most_connections() -> int:
    """Half of the open files allowed to the process; databases and models need the other half."""
    return min(max(_open_files() // 2, FEWEST_CONNECTIONS), MOST_CONNECTIONS)


def uvicorn_settings(
    connections: int | None = None,
    header_seconds: float = HEADER_SECONDS,
    write_seconds: float = WRITE_SECONDS,
) -> dict[str, Any]:
    """The settings of uvicorn for a server with limits.

    The backlog is short, since asyncio accepts the whole backlog before a connection can be refused.
    """
    limit = most_connections() if connections is None else connections

    class ServedProtocol(LimitedProtocol):
        limit_connections = limit
        limit_header_seconds = header_seconds
        limit_write_seconds = write_seconds

    return {
        "http": ServedProtocol,
        "backlog": max(limit // 8, 1),
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
    }


class LimitedProtocol(H11Protocol):
    """HTTP with limits. A connection above the limit takes the place of the oldest connection
    waiting for a request; while no connection waits, the answer is a 503.
    """

    limit_connections = MOST_CONNECTIONS
    limit_header_seconds = HEADER_SECONDS
    limit_write_seconds = WRITE_SECONDS
    next_warning = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, and wait for a request."""
        super().connection_made(transport)
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self.waiting_since = self.loop.time()
        if len(self.connections) > self.limit_connections:
            self._make_room()
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._stop(self._header_timer)
        self._stop(self._write_timer)

    def handle_events(self) -> None:
        """Handle the received events; complete headers end the time limit."""
        super().handle_events()
        self._watch_headers()

    def pause_writing(self) -> None:
        """Give a client some time to read, then drop the connection."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.limit_write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._stop(self._write_timer)

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _watch_headers(self) -> None:
        if not self.is_waiting:
            self._stop(self._header_timer)
            self._header_timer = None
        elif self._header_timer is None:
            self.waiting_since = self.loop.time()
            timer = self.loop.call_later(self.limit_header_seconds, self.transport.abort)
            self._header_timer = timer

    def _make_room(self) -> None:
        waiting = [
            connection
            for connection in self.connections
            if isinstance(connection, LimitedProtocol)
            and connection is not self
            and connection.is_waiting
        ]
        if waiting:
            oldest = min(waiting, key=lambda protocol: protocol.waiting_since)
            oldest.drop()
        else:
            self.transport.write(REFUSAL)
            self.transport.close()
        self._warn()

    def drop(self) -> None:
        """End and uncount the connection now."""
        self.connections.discard(self)
        self.transport.abort()

    def _warn(self) -> None:
        now = self.loop.time()
        if now >= LimitedProtocol.next_warning:
            LimitedProtocol.next_warning = now + WARNING_SECONDS
            log.warning(
                "more than %d connections: those that have waited longest are closed",
                self.limit_connections,
            )

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def _open_files() -> int:
    """The most open files of the process."""
    try:
        import resource
    except ImportError:  # Windows
        return UNKNOWN_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNKNOWN_LIMIT if soft == resource.RLIM_INFINITY else soft
