"""SQLite's errors in words: what happened, where, and what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lightrag_jsonl.core.errors import CorruptError, LockedError, StorageError

# What SQLite's message contains, the error to raise, and what it says after the path.
WORDS: tuple[tuple[tuple[str, ...], type[StorageError], str], ...] = (
    (
        ("locked", "busy"),
        LockedError,
        "is being written to by another process; try again when it is done",
    ),
    (
        ("readonly",),
        StorageError,
        "cannot be written to: check its permissions, and those of its folder",
    ),
    (
        ("unable to open",),
        StorageError,
        "cannot be opened: check that its folder exists and can be written to, and that not too "
        "many files are open",
    ),
    (
        ("full", "disk I/O"),
        StorageError,
        "cannot be written to ({}): free some disk space and run the same command again; nothing "
        "that was stored is lost",
    ),
    (
        ("not a database", "malformed", "no such table", "no such column", "decode to UTF-8"),
        CorruptError,
        "is damaged, or not a database ({}): restore the folder from a copy, or insert the "
        "documents into a new one",
    ),
)


def storage_error(error: sqlite3.Error, path: Path) -> StorageError:
    """The error to raise for an error of SQLite."""
    text = str(error)
    for signs, kind, words in WORDS:
        if any(sign in text for sign in signs):
            return kind(f"{path} {words.format(text)}", path=path)
    return StorageError(f"{path}: {text}", path=path)
