"""The lock that lets one process write to a working directory; it ends with its process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from lightrag_jsonl.errors import CorruptError, LockedError
from lightrag_jsonl.indexfiles import LOCK
from lightrag_jsonl.storage.trouble import SOMEBODY, translated
from lightrag_jsonl.text import sanitize

try:
    import fcntl
except ImportError:  # on Windows, where files can always be locked
    fcntl = None  # type: ignore[assignment]

PAUSE_SECONDS = 0.05


@contextlib.asynccontextmanager
async def writing(working_dir: Path, timeout: float) -> AsyncIterator[None]:
    """Hold the directory's write lock; raises `LockedError` after waiting `timeout` seconds.

    The lock is a write transaction on a small database of its own. The operating system releases it
    when the process ends, however it ends, on every platform SQLite supports. The event loop itself
    tries for it without blocking: a thread would go on waiting, and take the lock, after the caller
    was cancelled.
    """
    path = working_dir / LOCK
    with translated(path):
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        deadline = time.monotonic() + timeout
        while not _is_acquired(connection, path):
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"{path.parent} is being written to by {_holder(connection)}; wait for it, "
                    "or stop it (readers may go on)",
                    path=path.parent,
                )
            await asyncio.sleep(PAUSE_SECONDS)
        yield
    finally:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        connection.close()


def holder(working_dir: Path) -> str:
    """The other process that holds the directory's write lock, in its own words."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(working_dir / LOCK, timeout=0)) as connection,
    ):
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            told = _holder(connection)
            return SOMEBODY if told.startswith(_here()) else told
    return SOMEBODY


def keeps_locks(folder: Path) -> bool:
    """Whether files in a folder can be locked; SQLite takes an NFS without locks for a busy database."""
    if fcntl is None:
        return True
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno != errno.ENOLCK
    return True


def _is_acquired(connection: sqlite3.Connection, path: Path) -> bool:
    """Try for the lock once, and write down who holds it."""
    try:
        with translated(path):
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS holder (text TEXT)")
            connection.execute("DELETE FROM holder")
            connection.execute("INSERT INTO holder VALUES (?)", (_myself(),))
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
    except LockedError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    except CorruptError as error:  # a power cut can cause that: this file is never flushed
        raise CorruptError(
            f"{path} is damaged, and holds nothing but who is writing: delete it, and run the same "
            "command again",
            path=path,
        ) from error
    return True


def _myself() -> str:
    since = datetime.now(UTC).isoformat(
        timespec="seconds"
    )  # UTC, since the local time zone may be unavailable
    return f"{_here()} since {since}"


def _here() -> str:
    return f"process {os.getpid()} on {sanitize(socket.gethostname())}"


def _holder(connection: sqlite3.Connection) -> str:
    with contextlib.suppress(sqlite3.Error):
        row = connection.execute("SELECT text FROM holder").fetchone()
        if row:
            return str(row[0])
    return SOMEBODY
