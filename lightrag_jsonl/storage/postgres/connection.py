"""Connections to PostgreSQL, and its errors as ours."""

import contextlib
import difflib
import os
import re
import socket
from collections.abc import Iterator
from itertools import chain
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import errors, sql

from lightrag_jsonl.core.address import OWN_PARAMETERS, DatabaseURL
from lightrag_jsonl.core.errors import (
    ConfigError,
    CorruptError,
    LockedError,
    StorageError,
    TimedOutError,
    UnavailableError,
)
from lightrag_jsonl.storage.postgres.vectors import register_vector_lists
from lightrag_jsonl.storage.tables.base import only_column

CONNECT_SECONDS = 10
APPLICATION = "lightrag-jsonl process {} on {}"
SETTINGS = {  # of each session
    "jit": "off",
    "max_parallel_workers_per_gather": "0",  # readers are many, their queries short
    "plan_cache_mode": "force_custom_plan",  # by how many rows are asked for
    "hnsw.iterative_scan": "strict_order",  # goes on until filters leave enough
    "hnsw.max_scan_tuples": "1000000",
    "hnsw.ef_search": "1000",  # the most that pgvector takes
    "tcp_keepalives_idle": "30",  # a machine that is gone releases its lock
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}

SET = "set_config(%s, %s, false)"

UNREACHABLE = "cannot be reached ({}): check the address, and that the server runs"
TIMED_OUT = (
    "took longer than the address allows ({}): ask again when the server is less busy, or raise "
    "&statement_timeout (seconds) in the address"
)
TABLE_LOCKED = (
    "is locked by another program ({}): wait for it, or see pg_locks; &lock_timeout (seconds) in the "
    "address says how long to wait"
)
TOO_MANY = (
    "has no connection left ({}): lower &pool_size in the addresses of its processes, put PgBouncer in "
    "session mode before it, or raise max_connections"
)
POOLED = (
    "is behind a pooler that changes sessions between transactions ({}): set pool_mode = session in "
    "PgBouncer, or connect directly"
)
NO_EXTENSION = (
    "has no pgvector 0.8 or newer{}: install it, and run as a superuser in this database: "
    "CREATE EXTENSION vector"
)
# What the server or libpq says to a new connection comes as a text without a code: patterns of its reasons,
# what to do, and whether waiting helps.
CONNECTION_ERRORS = (
    (r"too many (connections|clients)|connection slots", TOO_MANY, True),
    (
        r"is starting up|in recovery mode|not yet accepting",
        "is starting ({}): try again in a minute",
        True,
    ),
    (
        r"is shutting down|administrator command",
        "is being stopped ({}): try again when the server runs again",
        True,
    ),
    (
        r'database "[^"]*" does not exist|no such database',
        "names a database that is not there ({}): make it with createdb, or correct the address",
        False,
    ),
    (
        r'authentication failed|no password supplied|pg_hba\.conf|role "[^"]*" (does not exist|is not permitted)'
        r"|no such user|permission denied for database",
        "lets nobody in with this login ({}): check user and password (PGPASSWORD, ~/.pgpass), and the "
        "server's roles and pg_hba.conf",
        False,
    ),
    (
        r"invalid [a-z_ ]*value|bad value for",
        "has a parameter with a wrong value ({}): correct the address",
        False,
    ),
)
EXTENSION_SCHEMA = """SELECT nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE extname = 'vector'"""
REFUSED = "does not allow this ({}): ask its owner for the right, or name another index"
FULL = "cannot be written to ({}): free some disk space and run the same command again"
DAMAGED = "is damaged ({}): restore the database from a copy"
ERRORS: tuple[tuple[type[psycopg.Error], type[StorageError], str], ...] = (
    (errors.LockNotAvailable, LockedError, TABLE_LOCKED),
    (errors.QueryCanceled, TimedOutError, TIMED_OUT),
    (errors.TooManyConnections, UnavailableError, TOO_MANY),
    (errors.DuplicatePreparedStatement, StorageError, POOLED),
    (errors.InvalidSqlStatementName, StorageError, POOLED),
    (errors.InsufficientPrivilege, StorageError, REFUSED),
    (errors.ReadOnlySqlTransaction, StorageError, REFUSED),
    (errors.DiskFull, StorageError, FULL),
    (errors.DataCorrupted, CorruptError, DAMAGED),
    (errors.IndexCorrupted, CorruptError, DAMAGED),
    (errors.UndefinedTable, CorruptError, DAMAGED),
)


def connect(address: DatabaseURL) -> psycopg.Connection[Any]:
    """A new connection, in autocommit mode; `ConfigError` if the address is none, with the name of an unknown
    parameter.
    """
    keywords = [option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()]
    for name in address.parameters:
        if name not in [*keywords, "ssl"]:
            alike = difflib.get_close_matches(name, [*OWN_PARAMETERS, *keywords], 1)
            advice = f"; did you mean {alike[0]}?" if alike else ""
            raise ConfigError(f"{address}: there is no parameter {name!r}{advice}")
    try:
        psycopg.conninfo.conninfo_to_dict(address.uri)
    except psycopg.ProgrammingError:  # its text would show the password
        message = f"{address} is not the address of a PostgreSQL database"
        raise ConfigError(f"{message}; it looks like postgresql://user@host/database") from None
    return psycopg.connect(address.uri, **connection_arguments(address))


def connection_arguments(address: DatabaseURL) -> dict[str, Any]:
    """What each connection is opened with, beside the address."""
    arguments: dict[str, Any] = {"autocommit": True}
    if "connect_timeout" not in address.parameters:
        arguments["connect_timeout"] = CONNECT_SECONDS
    return arguments


def configure(
    connection: psycopg.Connection[Any], address: DatabaseURL, *, may_work_long: bool = False
) -> None:
    """Set up a session for the index at an address, whose database has pgvector, in any schema.

    One that `may_work_long` has no limit of time for its statements.
    """
    path = search_path(connection, address)
    name = APPLICATION.format(os.getpid(), socket.gethostname())
    limits = address.limits
    statement_timeout = 0.0 if may_work_long else limits.statement_timeout
    values = {
        **SETTINGS,
        "search_path": path,
        "application_name": name,
        "lock_timeout": _milliseconds(limits.lock_timeout),
        "statement_timeout": _milliseconds(statement_timeout),
    }
    names_and_values = list(chain.from_iterable(values.items()))
    connection.execute(f"SELECT {', '.join([SET] * len(values))}", names_and_values)
    register_vector(connection)
    register_vector_lists(connection)
    connection.cursor_factory = psycopg.RawCursor


def search_path(connection: psycopg.Connection[Any], address: DatabaseURL) -> str:
    """The schemas of the index and of pgvector; `StorageError` without pgvector."""
    schemas = only_column(connection.execute(EXTENSION_SCHEMA))
    if not schemas:
        raise StorageError(f"{address} {NO_EXTENSION.format('')}")
    path = sql.SQL(", ").join([sql.Identifier(address.index), sql.Identifier(schemas[0])])
    return path.as_string(connection)


def _milliseconds(seconds: float) -> str:
    """A limit of time for PostgreSQL, where 0 is none."""
    return str(max(round(1_000 * seconds), 1) if seconds else 0)


@contextlib.contextmanager
def our_errors(address: DatabaseURL) -> Iterator[None]:
    """Raise errors of PostgreSQL as ours."""
    try:
        yield
    except psycopg.Error as error:
        message = error.diag.message_primary or str(error)  # without the statement
        text = address.without_passwords(" ".join(message.split()))
        for psycopg_error, storage_error, words in ERRORS:
            if isinstance(error, psycopg_error):
                raise storage_error(f"{address} {words.format(text)}") from error
        if isinstance(error, psycopg.OperationalError):
            storage_error, words = _connection_problem(error)
            raise storage_error(f"{address} {words.format(text)}") from error
        raise StorageError(f"{address} {text}") from error


def is_passing(error: psycopg.OperationalError) -> bool:
    """Whether a connection may succeed later: the server restarts, or has no room."""
    return _connection_problem(error)[0] is UnavailableError


def _connection_problem(error: psycopg.OperationalError) -> tuple[type[StorageError], str]:
    """Why a connection was not made, or was lost: our error and its words, for the text of the database."""
    for reasons, words, passes in CONNECTION_ERRORS:
        if re.search(reasons, str(error)):
            return UnavailableError if passes else StorageError, words
    if error.sqlstate is None:  # nothing came from the server
        return UnavailableError, UNREACHABLE
    return StorageError, "{}"
