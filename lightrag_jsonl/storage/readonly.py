"""An index that may be read and not written: in a mounted image, or in somebody else's folder.

SQLite reads the log of a database through a file beside it that all share, and makes that where it
is not there. Where it may not, it can still be told that the file never changes. It would believe
that of one whose log holds more, or that somebody else writes to: so this is looked at each time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from lightrag_jsonl.errors import StorageError


def is_read_only(path: Path) -> bool:
    """Whether a database is there that this process may not write to."""
    return path.is_file() and not (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK))


@contextlib.contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to such a database; `StorageError` where what it reads cannot be relied on."""
    whole, before = not _has_log(path), _version(path)
    connection = sqlite3.connect(
        f"{path.as_uri()}?{'immutable=1' if whole else 'mode=ro'}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        _check_log(connection, path)
        connection.execute("PRAGMA temp_store = MEMORY")
        yield connection
    finally:
        connection.close()
        if whole and _version(path) != before:
            raise StorageError(
                f"{path} was written to while it was read; run the same command again", path=path
            )


def _has_log(path: Path) -> bool:
    """Whether SQLite has kept something beside the database that belongs to it."""
    return any(
        beside.exists() and beside.stat().st_size
        for beside in (Path(f"{path}-wal"), Path(f"{path}-journal"))
    )


def _version(path: Path) -> tuple[int, int, int] | None:
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
