"""Connections to PostgreSQL, and its errors as ours."""

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import errors, sql

from lightrag_jsonl.core.address import DatabaseURL
from lightrag_jsonl.core.errors import ConfigError, CorruptError, LockedError, StorageError
from lightrag_jsonl.storage.postgres.vectors import register_vector_lists

CONNECT_SECONDS = 10
APPLICATION = "lightrag-jsonl process {} on {}"
SETTINGS = {  # of each session
    "jit": "off",
    "max_parallel_workers_per_gather": "0",  # readers are many, their queries short
    "plan_cache_mode": "force_custom_plan",  # by how many rows are asked for
    "hnsw.iterative_scan": "strict_order",  # goes on until filters leave enough
    "hnsw.max_scan_tuples": "1000000",
    "hnsw.ef_search": "200",
    "tcp_keepalives_idle": "30",  # a machine that is gone releases its lock
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}

UNREACHABLE = "cannot be reached ({}): check the address, and that the server runs"
REFUSED = "does not allow this ({}): ask its owner for the right, or name another index"
FULL = "cannot be written to ({}): free some disk space and run the same command again"
DAMAGED = "is damaged ({}): restore the database from a copy"
ERRORS: tuple[tuple[type[psycopg.Error], type[StorageError], str], ...] = (
    (errors.LockNotAvailable, LockedError, "is locked by another process ({}); try again"),
    (errors.InsufficientPrivilege, StorageError, REFUSED),
    (errors.ReadOnlySqlTransaction, StorageError, REFUSED),
    (errors.DiskFull, StorageError, FULL),
    (errors.DataCorrupted, CorruptError, DAMAGED),
    (errors.IndexCorrupted, CorruptError, DAMAGED),
    (errors.UndefinedTable, CorruptError, DAMAGED),
    (psycopg.Error, StorageError, "{}"),
)


def connect(address: DatabaseURL) -> psycopg.Connection[Any]:
    """A new connection, in autocommit mode; `ConfigError` if the address is none."""
    try:
        psycopg.conninfo.conninfo_to_dict(address.uri)
    except psycopg.ProgrammingError:  # its text would show the password
        message = f"{address} is not the address of a PostgreSQL database"
        raise ConfigError(f"{message}; it looks like postgresql://user@host/database") from None
    return psycopg.connect(address.uri, autocommit=True, connect_timeout=CONNECT_SECONDS)


def configure(connection: psycopg.Connection[Any], address: DatabaseURL) -> None:
    """Set up a session for the index at an address, whose database has pgvector."""
    path = sql.SQL("{}, public").format(sql.Identifier(address.index)).as_string(connection)
    name = APPLICATION.format(os.getpid(), socket.gethostname())
    values = {**SETTINGS, "search_path": path, "application_name": name}
    for setting, value in values.items():
        connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
    register_vector(connection)
    register_vector_lists(connection)
    connection.cursor_factory = psycopg.RawCursor


@contextlib.contextmanager
def our_errors(address: DatabaseURL) -> Iterator[None]:
    """Raise errors of PostgreSQL as ours."""
    try:
        yield
    except psycopg.Error as error:
        text = address.without_passwords(" ".join(str(error).split()))
        if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
            # nothing came from the server
            raise StorageError(f"{address} {UNREACHABLE.format(text)}") from error
        for psycopg_error, storage_error, words in ERRORS:
            if isinstance(error, psycopg_error):
                raise storage_error(f"{address} {words.format(text)}") from error
