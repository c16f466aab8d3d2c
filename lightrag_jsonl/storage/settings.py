"""The settings an index was built with, which must not change silently."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from lightrag_jsonl.errors import CorruptError, SettingsError

ADVICE = {
    "embedder": "open it with that embedder, or move it to the new one with reembed",
    "dim": "open it with that embedder, or move it to the new one with reembed",
    "tokenizer": "open it with that tokenizer, or insert the documents into a new folder",
    "language": "open it with that language, or insert the documents into a new folder",
}

MOVING = "moving_to"  # names the embedder of a `reembed` that has begun and is not done


def read(connection: sqlite3.Connection) -> dict[str, str]:
    """All recorded settings; `CorruptError` if they are not plausible."""
    found: dict[str, str] = dict(connection.execute("SELECT key, value FROM settings").fetchall())
    readable = all(isinstance(value, str) for value in found.values())
    if not (readable and found.get("dim", "0").isdecimal()):
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        raise CorruptError(
            f"{path} is damaged: its settings cannot be read; restore the folder from a copy, or "
            "insert the documents into a new one",
            path=path,
        )
    return found


def record(connection: sqlite3.Connection, settings: Mapping[str, str]) -> None:
    """Record settings, overwriting earlier values."""
    connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", settings.items())


def dimension(connection: sqlite3.Connection) -> int:
    """The length of the stored vectors; 0 if there are none."""
    row = connection.execute("SELECT value FROM settings WHERE key = 'dim'").fetchone()
    return int(row[0]) if row else 0


def forget(connection: sqlite3.Connection, key: str) -> None:
    """Delete a setting."""
    connection.execute("DELETE FROM settings WHERE key = ?", (key,))


def check(recorded: Mapping[str, str], wanted: Mapping[str, str], path: Path) -> None:
    """Raise `SettingsError` if the index was built with other settings than those wanted."""
    for key, value in wanted.items():
        found = recorded.get(key, value)
        if found != value:
            raise SettingsError(
                f"{path} was built with {key} {found!r}, not {value!r}: {ADVICE[key]}", path=path
            )
