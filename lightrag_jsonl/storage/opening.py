"""Prepares an index for opening: its folder, its file, its format."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightrag_jsonl.errors import CorruptError, LockedError, StorageError, VersionError
from lightrag_jsonl.storage import schema
from lightrag_jsonl.storage.bulk import STATEMENTS
from lightrag_jsonl.storage.lock import keeps_locks
from lightrag_jsonl.storage.trouble import no_sharing, translated
from lightrag_jsonl.storage.writer import CHECKPOINT_PAGES

BUSY_SECONDS = 30.0
PAUSE_SECONDS = 0.02

log = logging.getLogger(__name__)


def made(working_dir: Path) -> Path:
    """The resolved path of a folder, created if necessary; it stays valid if a link is changed later."""
    try:
        working_dir = working_dir.resolve()
    except (OSError, RuntimeError) as error:  # a circle of links, or a deleted current folder
        raise StorageError(
            f"there is no place for the folder {working_dir}: {error}", path=working_dir
        ) from error
    if working_dir.exists() and not working_dir.is_dir():
        raise StorageError(
            f"{working_dir} is a file; name a folder for the index", path=working_dir
        )
    try:
        working_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make the folder {working_dir}: {error.strerror or error}",
            path=working_dir,
        ) from error
    return working_dir


def patiently(attempt: Callable[[], None], path: Path) -> None:
    """Prepare the file, repeating that while others do the same: SQLite does not always wait itself."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return attempt()
        except LockedError as error:
            if time.monotonic() > deadline:
                if not keeps_locks(path.parent):
                    raise no_sharing(path) from error
                raise
            time.sleep(PAUSE_SECONDS)


def prepare(path: Path) -> None:
    """Create the database, or migrate it to the current format."""
    with translated(path):
        connection = connect(path)
        try:
            known = value(connection, "PRAGMA user_version") == schema.FORMAT
            if not known or value(connection, "PRAGMA journal_mode") != "wal":
                # new, old, or a copy made by VACUUM INTO
                connection.execute(
                    "BEGIN"
                )  # a consistent view: others may be creating it right now
                try:
                    _format_of(connection, path)
                finally:
                    connection.execute("ROLLBACK")
                _begin_log(connection, path)
                _create_or_migrate(connection, path)
            connection.execute("SELECT count(*) FROM settings").fetchone()
        finally:
            connection.close()


def check_readable(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `VersionError` if a database that cannot be written to does not have the current format."""
    found = _format_of(connection, path)
    connection.execute("SELECT count(*) FROM settings").fetchone()
    if found != schema.FORMAT:
        raise VersionError(
            f"{path} has format {found} and cannot be written to, this version of "
            f"lightrag-jsonl reads {schema.FORMAT}: open it once where it can be written to",
            path=path,
        )


def connect(path: Path) -> sqlite3.Connection:
    """A connection for reading and writing."""
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS,
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("PRAGMA cache_size = -32000")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _begin_log(connection: sqlite3.Connection, path: Path) -> None:
    """Switch to a write-ahead log; if SQLite cannot, it reports no error but keeps the old mode."""
    if value(connection, "PRAGMA journal_mode = WAL") != "wal":
        raise StorageError(
            f"{path} cannot have a write-ahead log: free some disk space, or put the "
            "folder on a local disk, and run the same command again",
            path=path,
        )


def _create_or_migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _format_of(connection, path)
        if found == 0:
            schema.create(connection)
        else:
            log.info("%s: format %d becomes %d", path, found, schema.FORMAT)
            schema.migrate(connection, found)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # if the disk failed, SQLite has rolled back already
            connection.execute("ROLLBACK")
        raise


def _format_of(connection: sqlite3.Connection, path: Path) -> int:
    """The format of the database, 0 if it is empty; raises if it is too new or of another program."""
    found = int(value(connection, "PRAGMA user_version"))
    if found > schema.FORMAT:
        raise VersionError(
            f"{path} has format {found}, this version of lightrag-jsonl reads up to "
            f"{schema.FORMAT}: upgrade lightrag-jsonl",
            path=path,
        )
    if found < 0 or (found == 0 and value(connection, "SELECT count(*) FROM sqlite_schema")):
        raise CorruptError(
            f"{path} is a database of another program; name another folder",
            path=path,
        )
    return found


def value(connection: sqlite3.Connection, query: str) -> Any:
    """The single value that a query returns."""
    return connection.execute(query).fetchone()[0]
