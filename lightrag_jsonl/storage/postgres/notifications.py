"""Notifications of commits: a process that searches reads a change before its next question."""

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


class CommitListener:
    """A thread that calls a function after commits to an index, until it is closed.

    The listener spares the next search the catching up, and no more: each search looks for new
    commits, too. So the thread ends quietly when the connection does, or where the server has no
    LISTEN, such as a standby server.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        index: str,
        on_commit: Callable[[], object],
    ) -> None:
        self._connect = connect
        self._index = index
        self._on_commit = on_commit
        self._stop_receiver, self._stop_sender = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name=f"{CHANNEL} commits", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop_sender.close()
        self._thread.join()
        self._stop_receiver.close()

    def _run(self) -> None:
        quietly = contextlib.suppress(psycopg.Error, LightRAGError, OSError, ValueError)
        with quietly, contextlib.closing(self._connect()) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            stop = self._stop_receiver.fileno()
            commits = connection.fileno()
            while stop not in select.select([commits, stop], [], [])[0]:
                notified = {notification.payload for notification in connection.notifies(timeout=0)}
                if self._index in notified:
                    self._on_commit()
