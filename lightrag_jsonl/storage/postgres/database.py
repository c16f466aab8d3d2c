"""The index in a schema of a PostgreSQL database: connections, transactions and snapshots."""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolTimeout

from lightrag_jsonl.core.address import DatabaseURL
from lightrag_jsonl.core.errors import (
    ConnectionLostError,
    CorruptError,
    LockedError,
    StorageError,
    UnavailableError,
    VersionError,
)
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.postgres.connection import (
    EXTENSION_SCHEMA,
    NO_EXTENSION,
    POOLED,
    configure,
    connect,
    connection_arguments,
    is_passing,
    our_errors,
    search_path,
)
from lightrag_jsonl.storage.postgres.database_graph import DatabaseGraph
from lightrag_jsonl.storage.postgres.dialect import PostgresDialect
from lightrag_jsonl.storage.postgres.memory import PostgresMemory
from lightrag_jsonl.storage.postgres.vectors import PostgresVectors, index_vectors
from lightrag_jsonl.storage.store import FORMAT, Store, schema_of
from lightrag_jsonl.storage.tables.base import TABLE_NAMES, by_name, only_column
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.tables.full_text import PARTS
from lightrag_jsonl.storage.vector_index import VectorSearch
from lightrag_jsonl.storage.views import Snapshot, StateMemory, StoreView, Transaction
from lightrag_jsonl.text.strings import counted, digest

WAIT_SECONDS = 30.0  # for a connection of the pool, and for a server that restarts
RETRY_SECONDS = 0.5  # between two attempts to reach it
LONGEST_WAIT = 2**31 - 1  # milliseconds
WRITER = 0x4C524A  # keys of advisory locks
CREATOR = 0x4C524B  # one process creates an index at a time
USER = 0x4C524C  # of a temporary copy
SERVER = 0x4C524D  # one server does the jobs of an index at a time
LOST = "closed the connection during a reading: ask again when the server is back"
COPY_IN_USE = (
    "was written anew, but another process still compares a copy of an earlier state; when that has "
    "ended, run vacuum"
)
POOL_IS_USED = (
    "all {} connections of this process were in use for {:g} seconds: raise &pool_size in the address, or "
    "ask less at once"
)
OUTCOME_UNKNOWN = (
    "closed the connection while a change was being committed, and is not back: see whether the change is "
    "there before you repeat it"
)
LOCK_LOST = "the connection that held the lock was lost, and another process has written since: run this again"
TABLES = """SELECT count(*) AS tables,
    count(*) FILTER (WHERE relname IN ('settings', 'documents', 'chunks')) AS own_tables
    FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(quote_ident(%(index)s))"""
READ_ONLY = """SELECT current_setting('transaction_read_only')::boolean
    OR NOT has_table_privilege('documents', 'INSERT')"""
INDEX_TABLES = "relkind = 'r' AND relnamespace = quote_ident(current_schema())::regnamespace"
SIZE = f"""SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
    FROM pg_class WHERE {INDEX_TABLES}"""
TABLE_LIST = f"SELECT relname FROM pg_class WHERE {INDEX_TABLES}"
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname::text, %s)"
TABLES_OF = """SELECT relname FROM pg_class WHERE relkind = 'r'
    AND relnamespace = to_regnamespace(quote_ident(%s))"""
REFER_AT_ONCE = ("trace_events", "saved_rows")  # the references of all others wait for the commit
COPY_SCHEMA = "copy-"
LOCK = "SELECT pg_advisory_lock($1, hashtext($2))"
UNLOCK = "SELECT pg_advisory_unlock($1, hashtext($2))"
TRY_LOCK = "SELECT pg_try_advisory_lock($1, hashtext($2))"
SESSION = "SELECT pg_backend_pid()"
HAS_SCHEMA = "SELECT to_regnamespace(quote_ident(%s)) IS NOT NULL"
TRANSACTION_ID = "SELECT pg_current_xact_id_if_assigned()::text"
OUTCOME = "SELECT pg_xact_status($1::text::xid8)"
USE_COPY = "SELECT pg_advisory_lock(%s, hashtext(%s))"
IS_UNUSED = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
LOCK_HOLDER = """SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND (l.classid, l.objsubid) = ($1, 2)
    AND l.objid::int4 = hashtext($2)"""
UNEQUAL = f"""SELECT count(DISTINCT part / {PARTS}) FROM (SELECT part, sum(occurrences) terms,
    min(length) shortest, max(length) longest FROM postings GROUP BY part) p
    LEFT JOIN chunks c ON c.id = part / {PARTS}
    WHERE c.id IS NULL OR p.terms <> p.shortest OR p.terms <> p.longest"""


class PostgresStore(Store):
    """The index in a schema of a database; safe to use from any thread.

    Schema and tables are created if necessary; with `create` False, `StorageError` says that there
    is no index. Without the right to insert rows, or on a standby server, the index is opened for
    reading (`read_only`). `CorruptError` or `VersionError` is raised for a schema of another
    program, or of another format. Words are searched in the database, and the vectors of a kind that
    has many. Of a snapshot the graph and all other vectors are in memory, or with `graph=database`
    in the address nothing.
    """

    READ_ONLY_ADVICE = "can only be read: it needs the right to insert"
    SHARES_JOBS = True

    def __init__(self, address: DatabaseURL, *, create: bool = True) -> None:
        super().__init__(str(address), PostgresMemory())
        self._address = address
        self._writer: psycopg.Connection[Any] | None = None  # once there was a transaction
        self._lock: psycopg.Connection[Any] | None = None  # holds the right to write
        self._lock_session: int | None = None
        self._unused_lock: psycopg.Connection[Any] | None = None  # without the right
        self._lock_generation = -1  # as this process, which has the right to write, left it
        self._pool_error: psycopg.Error | None = None  # of the last connection for reading
        with our_errors(address), contextlib.closing(connect(address)) as connection:
            self.read_only = self._open(connection, create=create)
        self._pool = ConnectionPool(
            address.uri,
            min_size=0,
            max_size=address.limits.pool_size,
            num_workers=1,
            timeout=WAIT_SECONDS,
            kwargs=connection_arguments(address),
            configure=self._configure_for_reading,
            open=True,
        )

    def _configure_for_reading(self, connection: psycopg.Connection[Any]) -> None:
        """Set up a connection of the pool, which keeps trying if this fails."""
        self._pool_error = None
        try:
            configure(connection, self._address)
        except psycopg.Error as error:
            self._pool_error = error
            raise

    @staticmethod
    def has_index(address: DatabaseURL) -> bool:
        """Whether there is an index at an address."""
        with our_errors(address), contextlib.closing(connect(address)) as connection:
            return _is_ours(connection, address)

    @contextlib.contextmanager
    def view(self) -> Iterator[StoreView]:
        """A consistent view for reading: of the state at the first query."""
        self._check_open()
        with our_errors(self._address):
            connection = self._begun()
            try:
                yield StoreView(PostgresDialect(connection))
            except psycopg.OperationalError as error:
                if connection.closed:
                    raise ConnectionLostError(f"{self._address} {LOST}") from error
                raise
            finally:
                with contextlib.suppress(psycopg.Error):
                    connection.rollback()
                self._pool.putconn(connection)

    def _begun(self) -> psycopg.Connection[Any]:
        """A connection from the pool, at the beginning of a transaction; lost ones are replaced."""
        for attempts_left in range(self._address.limits.pool_size, -1, -1):
            try:
                connection = self._pool.getconn()
            except PoolTimeout as error:
                if self._pool_error is not None:
                    raise self._pool_error from error
                connect(self._address).close()  # raises why there is none
                message = POOL_IS_USED.format(self._address.limits.pool_size, WAIT_SECONDS)
                raise UnavailableError(f"{self._address}: {message}") from error
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                break
            except psycopg.OperationalError:
                self._pool.putconn(connection)
                if not (connection.closed and attempts_left):
                    raise
        return connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        if self._address.graph == "database":
            with self.view() as view:
                graph = DatabaseGraph(view.dialect)
                yield Snapshot(view.dialect, graph, _vectors(view.dialect), StateMemory())
            return
        with super().snapshot() as snapshot:
            yield snapshot

    def _snapshot_of(self, view: StoreView) -> Snapshot:
        memory = self._memory
        vectors = {**_vectors(view.dialect), **memory.vectors}
        return Snapshot(view.dialect, memory.graph, vectors, memory.state_memory)

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Transaction]:
        with self._write_lock, our_errors(self._address):
            self._check_writable()
            if self._writer is not None and _is_in_transaction(self._writer):
                raise StorageError(f"{self._address}: this transaction is inside another one")
            commit = contextlib.ExitStack()
            id: str | None = None
            try:
                with commit:
                    connection = self._begin_writing(commit)
                    transaction = Transaction(PostgresDialect(connection))
                    self._check_lock(transaction)
                    if not durable:
                        transaction.dialect.execute("SET LOCAL synchronous_commit = off")
                    yield transaction
                    for kind, rows in transaction.touched.items():
                        if rows:
                            index_vectors(transaction.dialect, kind)
                    transaction.record_commit()
                    generation = transaction.generation if self._lock is not None else -1
                    (id,) = only_column(transaction.dialect.execute(TRANSACTION_ID))
            except psycopg.OperationalError as error:
                if id is None or not self._was_committed(id, error):
                    raise
            self._lock_generation = generation

    def _begin_writing(self, commit: contextlib.ExitStack) -> psycopg.Connection[Any]:
        """The connection for writing, in a transaction that ends with `commit`; a lost connection is
        replaced, as soon as the server is there again.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                if self._writer is None or self._writer.closed:
                    self._writer = self._connect()
                commit.enter_context(self._writer.transaction())
                return self._writer
            except psycopg.OperationalError as error:
                if self._writer is not None:
                    self._writer.close()
                if not is_passing(error) or time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_SECONDS)

    def _was_committed(self, id: str, lost: psycopg.OperationalError) -> bool:
        """Whether the transaction with an id was committed, whose connection was `lost` at its end;
        `StorageError` if the server does not come back to say so: what may be done is not repeated.
        """
        with contextlib.ExitStack() as ended:
            try:
                connection = self._begin_writing(ended)
            except psycopg.OperationalError:
                raise StorageError(f"{self._address} {OUTCOME_UNKNOWN}") from lost
            outcomes = only_column(connection.execute(OUTCOME, [id]))
            return outcomes == ["committed"]

    @contextlib.contextmanager
    def writer_lock(self, timeout: float) -> Iterator[None]:
        self._check_writable()
        keys = (WRITER, self._address.index)
        milliseconds = int(min(max(1_000 * timeout, 1), LONGEST_WAIT))
        with our_errors(self._address), contextlib.ExitStack() as closing_lock:
            connection = self._take_lock_connection()
            closing_lock.callback(connection.close)
            connection.execute(f"SET lock_timeout = {milliseconds}")
            try:
                connection.execute(LOCK, keys)
            except errors.LockNotAvailable as error:
                names = only_column(connection.execute(LOCK_HOLDER, keys))
                holder = names[0] if names and names[0] else "another process"
                raise LockedError(
                    f"{self._address} is being written to by {holder}; wait for it, or stop it "
                    "(readers may go on)"
                ) from error
            closing_lock.pop_all()
            self._lock = connection
            try:
                self._lock_session = _session_id(connection)
                self._lock_generation = self._generation(connection)
                yield
            finally:
                lock = self._lock
                self._lock = None
                self._release(lock)

    def _take_lock_connection(self) -> psycopg.Connection[Any]:
        """The connection that the last lock has left, or a new one, which takes 7 ms."""
        connection = self._unused_lock
        self._unused_lock = None
        if connection is None or _session_id(connection) is None:
            connection = self._connect()
        return connection

    def _release(self, lock: psycopg.Connection[Any]) -> None:
        """Release the right to write; the connection is kept for the next time, unless it is lost or another is kept."""
        with contextlib.suppress(psycopg.Error):
            lock.execute(UNLOCK, (WRITER, self._address.index))
            if self._unused_lock is None:
                self._unused_lock = lock
        if self._closed or self._unused_lock is not lock:
            lock.close()

    @contextlib.contextmanager
    def jobs_lock(self) -> Iterator[Callable[[], bool]]:
        keys = (SERVER, self._address.index)
        with our_errors(self._address), contextlib.closing(self._connect()) as connection:
            (is_free,) = only_column(connection.execute(TRY_LOCK, keys))
            if not is_free:
                raise LockedError(f"another server does the jobs of {self._address}")

            session = _session_id(connection)
            yield lambda: _session_id(connection) == session

    def _generation(self, connection: psycopg.Connection[Any]) -> int:
        return StoreView(PostgresDialect(connection)).generation

    def size(self) -> int:
        """The bytes of tables and indexes on the server's disk."""
        with self.view() as view:
            (size,) = only_column(view.dialect.execute(SIZE))
            return int(size)

    @contextlib.contextmanager
    def temporary_copy(self) -> Iterator[DatabaseURL]:
        """The address of a copy in a schema of its own, beside that of the index."""
        self._check_open()
        address = self._address.beside(f"{self._copy_prefix}{secrets.token_hex(8)}")
        with our_errors(address), contextlib.closing(connect(address)) as connection:
            connection.execute(USE_COPY, (USER, address.index))  # until the connection ends
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                _copy_tables(connection, self._address, address)
            try:
                yield address
            finally:
                _drop(connection, address.index)

    @property
    def _copy_prefix(self) -> str:
        """How the names of the schemas with temporary copies of this index begin."""
        return f"{COPY_SCHEMA}{digest(self._address.index)}-"

    def _drop_unused_copies(self) -> bool:
        """Drop the temporary copies that no process uses; False if some are used."""
        are_dropped = True
        with our_errors(self._address), contextlib.closing(connect(self._address)) as connection:
            for schema in only_column(connection.execute(SCHEMAS, [self._copy_prefix])):
                (is_unused,) = only_column(connection.execute(IS_UNUSED, (USER, schema)))
                if is_unused:
                    _drop(connection, schema)
                are_dropped = are_dropped and is_unused
        return are_dropped

    def _problems(self, view: StoreView) -> list[str]:
        """PostgreSQL itself sees to references and checksums."""
        (wrong,) = only_column(view.dialect.execute(UNEQUAL))
        return [f"a wrong full text: {counted(wrong, 'chunks')}"] if wrong else []

    def vacuum(self) -> None:
        """Give unused space back; each table in turn can be neither read nor written meanwhile.

        Temporary copies that a killed process left are dropped.
        """
        self._check_writable()
        are_copies_dropped = self._drop_unused_copies()
        with our_errors(self._address), contextlib.closing(self._connect()) as connection:
            for table in only_column(connection.execute(TABLE_LIST)):
                connection.execute(f"VACUUM (FULL, ANALYZE) {table}")
        if not are_copies_dropped:
            raise LockedError(f"{self._address} {COPY_IN_USE}")

    def close(self) -> None:
        with self._write_lock:
            self._closed = True
            for connection in (self._writer, self._unused_lock):
                if connection is not None:
                    connection.close()
            self._writer = None
            self._unused_lock = None
        self._pool.close()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._address)
        configure(connection, self._address, may_work_long=True)
        return connection

    def _check_lock(self, view: StoreView) -> None:
        """Refuse to write under a lock whose connection was lost, unless nobody has written since.

        `LockedError` if another process has, `StorageError` if a pooler has left the lock to others: nothing
        was written then.
        """
        if self._lock is None:
            return
        session = _session_id(self._lock)
        if session == self._lock_session:
            return
        if session is not None:
            raise StorageError(f"{self._address} {POOLED.format('the lock was left to others')}")
        with contextlib.ExitStack() as closing_lock:
            lock = closing_lock.enter_context(contextlib.closing(self._connect()))
            (is_free,) = only_column(lock.execute(TRY_LOCK, (WRITER, self._address.index)))
            if not is_free or view.generation != self._lock_generation:
                raise LockedError(f"{self._address}: {LOCK_LOST}")
            closing_lock.pop_all()
        self._lock.close()
        self._lock = lock
        self._lock_session = _session_id(lock)

    def _open(self, connection: psycopg.Connection[Any], *, create: bool) -> bool:
        """Check or create the schema; whether the index can only be read."""
        address = self._address
        if not _is_ours(connection, address):
            if not create:
                raise StorageError(
                    f"there is no index in {address}: insert documents first, or name another one"
                )
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (CREATOR,))
                if not _is_ours(connection, address):  # created by another process meanwhile
                    _create(connection, address)
        configure(connection, address)
        (read_only,) = only_column(connection.execute(READ_ONLY))
        return bool(read_only)


def _vectors(dialect: Dialect) -> dict[Kind, VectorSearch]:
    return {kind: PostgresVectors(dialect, kind) for kind in TABLE_NAMES}


def _is_ours(connection: psycopg.Connection[Any], address: DatabaseURL) -> bool:
    """Whether there is an index of the current format; False without tables."""
    (counts,) = by_name(connection.execute(TABLES, {"index": address.index}))
    if not counts.tables:
        return False
    if counts.own_tables < 3:
        raise CorruptError(f"{address} is a schema of another program; name another index")
    settings = sql.Identifier(address.index, "settings")
    statement = sql.SQL("SELECT value FROM {} WHERE name = 'format'").format(settings)
    formats = only_column(connection.execute(statement))
    if formats != [str(FORMAT)]:
        raise VersionError(
            f"{address} has the format {formats[0] if formats else 'none'}, this version of "
            f"lightrag-jsonl reads {FORMAT}: insert the documents again into a new index"
        )
    return True


def _session_id(connection: psycopg.Connection[Any]) -> int | None:
    """The session of a connection, which holds what it has locked; None if it is lost.

    Through a pooler that changes sessions between transactions it is another one when the first is in use.
    """
    try:
        (session,) = only_column(connection.execute(SESSION))
    except psycopg.OperationalError:
        return None
    return int(session)


def _is_in_transaction(connection: psycopg.Connection[Any]) -> bool:
    """Whether a connection that is not lost has begun a transaction."""
    idle = psycopg.pq.TransactionStatus.IDLE
    return not connection.closed and connection.info.transaction_status != idle


def _drop(connection: psycopg.Connection[Any], schema: str) -> None:
    """Drop the schema of a temporary copy."""
    statement = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))
    connection.execute(statement)


def _create(connection: psycopg.Connection[Any], address: DatabaseURL) -> None:
    """Make the schema, the tables and their version."""
    if not only_column(connection.execute(EXTENSION_SCHEMA)):
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except (errors.InsufficientPrivilege, errors.FeatureNotSupported) as error:
            reason = " ".join(str(error).split())
            raise StorageError(f"{address} {NO_EXTENSION.format(f' ({reason})')}") from error
    (has_schema,) = only_column(connection.execute(HAS_SCHEMA, [address.index]))
    if not has_schema:  # one that the owner of the database has made is enough
        schema = sql.Identifier(address.index)
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
    path = search_path(connection, address)
    connection.execute("SELECT set_config('search_path', %s, true)", [path])
    connection.execute(schema_of(PostgresDialect, __file__))


def _copy_tables(
    connection: psycopg.Connection[Any], source: DatabaseURL, target: DatabaseURL
) -> None:
    """Make the schema of an index, with all rows of another index in the same database."""
    _create(connection, target)
    tables = only_column(connection.execute(TABLES_OF, [source.index]))
    for table in sorted(tables, key=REFER_AT_ONCE.__contains__):  # after what they refer to
        target_table = sql.Identifier(target.index, table)
        connection.execute(sql.SQL("DELETE FROM {}").format(target_table))
        source_table = sql.Identifier(source.index, table)
        copying = sql.SQL("INSERT INTO {} SELECT * FROM {}").format(target_table, source_table)
        connection.execute(copying)
