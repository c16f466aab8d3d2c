"""SQLite's and the disk's errors as ours, each with the path and with what to do."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from lightrag_jsonl.errors import CorruptError, LockedError, StorageError

SOMEBODY = "another process"
DAMAGE = ("not a database", "malformed", "no such table", "decode to UTF-8", "JSON cannot hold")


@contextlib.contextmanager
def translated(path: Path, who: Callable[[], str] = lambda: SOMEBODY) -> Iterator[None]:
    """Turn SQLite's errors into ours, each with the path and with what to do; `who` names the writer
    that is in the way.
    """
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
                f"{path} cannot be written to: check the permissions of its folder", path=path
            ) from error
        if "full" in text or "disk I/O" in text:
            raise disk_trouble(path, text) from error
        if "unable to open" in text:
            raise StorageError(
                f"cannot open {path}: check that its folder exists and can be written to",
                path=path,
            ) from error
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
    """The disk is full or failing: what happened, and what to do."""
    return StorageError(
        f"{path}: {what}: free some disk space and run the same command again; "
        "nothing that was stored is lost",
        path=path,
    )
