"""Reads an index that cannot be written to: on a read-only mount, or in another user's folder.

SQLite needs a file beside the database to read its write-ahead log, and creates it if it is
missing. If it cannot, it can be told that the file is immutable, and then it would not notice a log
with newer data, or another process that writes. So both are checked at each read.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from lightrag_jsonl.errors import StorageError

Version: TypeAlias = tuple[int, int, int]  # inode, bytes, nanoseconds of the last change


def is_read_only(path: Path) -> bool:
    """Whether there is a database that this process may not write to."""
    return path.is_file() and not (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK))


class Readers:
    """Connections to a read-only database, lent to one reader at a time.

    A connection is reused while the file is unchanged and has no log: only then is it still
    immutable, as SQLite was told.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free: queue.LifoQueue[tuple[Version, sqlite3.Connection]] = queue.LifoQueue()

    @contextlib.contextmanager
    def lent(self) -> Iterator[sqlite3.Connection]:
        """A connection; `StorageError` if what was read may be inconsistent."""
        version = None if _has_log(self._path) else _version(self._path)
        connection = self._kept(version) or _connect(self._path, whole=version is not None)
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if version is None:
                connection.close()
            else:
                self._free.put((version, connection))
                if _version(self._path) != version:
                    raise StorageError(
                        f"{self._path} was written to while it was read; run the same command again",
                        path=self._path,
                    )

    def _kept(self, version: Version | None) -> sqlite3.Connection | None:
        """A free connection that sees the current file; others are closed."""
        with contextlib.suppress(queue.Empty):
            while True:
                seen, connection = self._free.get_nowait()
                if seen == version:
                    return connection
                connection.close()
        return None

    def close(self) -> None:
        """Close all connections that are not lent."""
        self._kept(None)


def _connect(path: Path, *, whole: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{'immutable=1' if whole else 'mode=ro'}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        _check_log(connection, path)
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: Path) -> bool:
    """Whether a log or journal with data is beside the database."""
    return any(
        beside.exists() and beside.stat().st_size
        for beside in (Path(f"{path}-wal"), Path(f"{path}-journal"))
    )


def _version(path: Path) -> Version | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_log(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as error:
        if not _has_log(path):
            raise
        raise StorageError(
            f"{path} cannot be read where its folder cannot be written to: what was stored last is "
            "in a file beside it; copy the folder to another place, or open it once where it can "
            "be written to",
            path=path,
        ) from error
