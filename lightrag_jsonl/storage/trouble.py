"""Turns errors of SQLite and the disk into ours, with the path and what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from lightrag_jsonl.errors import CorruptError, LockedError, StorageError

SOMEBODY = "another process"
DAMAGE = ("not a database", "malformed", "no such table", "decode to UTF-8", "JSON cannot hold")
_TOO_MANY = "close some, or raise the limit (`ulimit -n`)"
FILES = 4  # that SQLite opens at a time: a database, its log, the log's index and a journal
LONGEST_PATH = 500  # bytes; SQLite opens no longer paths
UNSHARED = frozenset(  # SQLite's errors on file systems without locks or shared memory
    f"SQLITE_{name}"
    for name in (
        "IOERR_CHECKRESERVEDLOCK",
        "IOERR_LOCK",
        "IOERR_RDLOCK",
        "IOERR_SHMLOCK",
        "IOERR_SHMMAP",
        "IOERR_UNLOCK",
        "PROTOCOL",
    )
)


@contextlib.contextmanager
def translated(path: Path, who: Callable[[], str] = lambda: SOMEBODY) -> Iterator[None]:
    """Turn SQLite's errors into ours, with the path and what to do; `who` names a writer that blocks us."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise LockedError(
                f"{path} is being written to by {who()}; try again when it is done",
                path=path,
            ) from error
        if "readonly" in text:
            raise StorageError(
                f"{path} cannot be written to: check its permissions, and those of its folder",
                path=path,
            ) from error
        if getattr(error, "sqlite_errorname", "") in UNSHARED:
            raise no_sharing(path) from error
        if "full" in text or "disk I/O" in text:
            raise disk_trouble(path, text) from error
        if "unable to open" in text:
            raise StorageError(f"cannot open {path}: {_why_closed(path)}", path=path) from error
        if any(sign in text for sign in DAMAGE):
            raise CorruptError(
                f"{path} is damaged or no database ({text}): see what `lightrag-jsonl doctor "
                f"--repair` mends, or delete it, {path.name}-wal and {path.name}-shm, then restore "
                "it from a copy or insert again; beside the -wal of before a sound copy looks "
                "damaged, too",
                path=path,
            ) from error
        raise StorageError(f"{path}: {text}", path=path) from error


def disk_trouble(path: Path, what: str) -> StorageError:
    """An error for a full or failing disk: what happened, and what to do."""
    return StorageError(
        f"{path}: {what}: free some disk space and run the same command again; "
        "nothing that was stored is lost",
        path=path,
    )


def file_trouble(path: Path, error: OSError) -> StorageError:
    """An error for an operation that the system refuses: what, and what to do."""
    what = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StorageError(f"{path}: {what}: {_TOO_MANY}", path=path)
    return disk_trouble(path, what)


def no_sharing(path: Path) -> StorageError:
    """An error for a file system that cannot hold a database shared by processes."""
    return StorageError(
        f"{path}: its file system does not keep locks, or shares no memory between processes (some "
        "network and container file systems do not): put the folder on a local disk",
        path=path,
    )


def _why_closed(path: Path) -> str:
    """Why SQLite cannot open a file (it does not say), and what to do."""
    try:
        with contextlib.ExitStack() as opened:
            for _ in range(FILES):
                opened.enter_context(os.scandir(path.parent))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return f"{error.strerror}: {_TOO_MANY}"
    if len(os.fsencode(path)) > LONGEST_PATH:
        return f"its path is longer than SQLite takes (about {LONGEST_PATH} bytes)"
    return "check that its folder exists, can be written to and has room for another file"
