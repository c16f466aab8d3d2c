"""One writer a working directory: a lock that dies with its process, and names its holder."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from lightrag_jsonl.errors import LockedError
from lightrag_jsonl.storage.trouble import translated

FILE_NAME = "writer.lock"
PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def writing(working_dir: Path, timeout: float) -> Iterator[None]:
    """Hold the directory's write lock; wait at most `timeout` seconds, else `LockedError`.

    The lock is a reserved transaction on a small database of its own: the operating system
    frees it when the process ends, however it ends, on every platform that SQLite knows.
    """
    path = working_dir / FILE_NAME
    with translated(path):
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            _acquire(connection, path, timeout)
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            connection.close()


def _acquire(connection: sqlite3.Connection, path: Path, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS holder (text TEXT)")
            connection.execute("DELETE FROM holder")
            connection.execute("INSERT INTO holder VALUES (?)", (_myself(),))
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"{path.parent} is being written to by {_holder(connection)}; wait for it, "
                    "or stop it (readers may go on)",
                    path=path.parent,
                ) from error
            time.sleep(PAUSE_SECONDS)


def _myself() -> str:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {since}"


def _holder(connection: sqlite3.Connection) -> str:
    with contextlib.suppress(sqlite3.Error):
        row = connection.execute("SELECT text FROM holder").fetchone()
        if row:
            return str(row[0])
    return "another process"
