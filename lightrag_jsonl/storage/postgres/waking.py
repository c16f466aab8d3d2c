"""Wakes a process that searches when another one has changed the index, so it catches up at once."""

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from typing import Any

import psycopg

from lightrag_jsonl.core.errors import LightRAGError

CHANNEL = "lightrag_jsonl"
NOTIFY = "SELECT pg_notify(?, current_schema())"


class Alarm:
    """A thread that calls `wake` after commits to an index, until it is closed.

    It spares the next search the catching up, and no more: searches look for new commits
    themselves. So it ends quietly when its connection does, or where the server has no LISTEN, such
    as a standby server.
    """

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], index: str, wake: Callable[[], object]
    ) -> None:
        self._connect, self._index, self._wake = connect, index, wake
        self._ended, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name=f"{CHANNEL} alarm", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._end.close()
        self._thread.join()
        self._ended.close()

    def _run(self) -> None:
        quietly = contextlib.suppress(psycopg.Error, LightRAGError, OSError, ValueError)
        with quietly, contextlib.closing(self._connect()) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            ended, news = self._ended.fileno(), connection.fileno()
            while ended not in select.select([news, ended], [], [])[0]:
                if self._index in {one.payload for one in connection.notifies(timeout=0)}:
                    self._wake()
