"""The SQLite database of a working directory: connections, transactions and snapshots."""

import contextlib
import os
import re
import secrets
import socket
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lightrag_jsonl.core.errors import CorruptError, LockedError, StorageError, VersionError
from lightrag_jsonl.storage.sqlite.dialect import SQLiteDialect
from lightrag_jsonl.storage.sqlite.memory import MemoryFiles, SQLiteMemory
from lightrag_jsonl.storage.store import FORMAT, Store, schema_of
from lightrag_jsonl.storage.tables.base import by_name, only_column
from lightrag_jsonl.storage.tables.full_text import PARTS
from lightrag_jsonl.storage.views import StoreView, Transaction
from lightrag_jsonl.text.strings import counted

if TYPE_CHECKING:
    from filelock import FileLock

FILE_NAME = "index.sqlite"
LOCK_NAME = "writer.lock"
SERVER_LOCK = "server.lock"
COPY_NAME = "copy-"  # the beginning of the name of a folder with a temporary copy
COPY_LOCK = ".lock"  # the end of the name of the file beside a copy, locked while it is used
FILE_NAMES = (FILE_NAME, *(f"{FILE_NAME}-{end}" for end in ("wal", "shm", "journal")), LOCK_NAME)
PAGE_BYTES = 4096  # five vectors of 384 numbers; with 2,048, a fifth of their pages is empty
BUSY_SECONDS = 30.0
PRAGMAS = (
    "foreign_keys = ON",
    "cache_size = -32000",
    "temp_store = MEMORY",
    f"wal_autocheckpoint = {256_000_000 // PAGE_BYTES}",
)
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
STATISTICS = {("table", "sqlite_stat1"), ("table", "sqlite_stat4")}  # made by ANALYZE
OWN_TABLES = "SELECT count(*) FROM sqlite_schema WHERE name IN ('settings', 'documents', 'chunks')"
UNSEARCHABLE = f"""SELECT count(*) FROM chunks
    WHERE id * {PARTS} NOT IN (SELECT id FROM chunk_terms_docsize)"""

SchemaRow: TypeAlias = tuple[str, str, str, str]  # kind, name, table and SQL

BUSY = "is being written to by another process; try again when it is done"
IN_USE = (
    "cannot be shrunk while another process is reading an earlier state; when that "
    "has ended, run vacuum"
)
SEALED = "cannot be opened or written to ({}): check the permissions of its folder"
FULL = (
    "cannot be written to ({}): free some disk space and run the same command again; nothing that "
    "was stored is lost"
)
DAMAGED = (
    "is damaged, or not a database ({}): restore the folder from a copy, or insert the documents "
    "into a new one"
)
ERRORS: tuple[tuple[str, type[StorageError], str], ...] = (  # by a pattern of SQLite's message
    ("locked|busy", LockedError, BUSY),
    ("readonly|unable to open", StorageError, SEALED),
    ("full|disk I/O", StorageError, FULL),
    ("not a database|malformed|no such (table|column)|decode to UTF-8", CorruptError, DAMAGED),
)


class SQLiteStore(Store):
    """The index in a folder; safe to use from any thread.

    `folder` is created if necessary; with `create` False, `StorageError` says that there is no
    index. A folder that cannot be written to is opened for reading (`read_only`). `CorruptError` or
    `VersionError` is raised for a file of another program, or of another format; `StorageError` if a
    file in the folder is a link, through which a prepared folder could change another index.
    """

    READ_ONLY_ADVICE = (
        "cannot be written to: its index can only be read; copy the folder to change it"
    )

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self._folder = _resolved(folder, create=create)
        self._path = self._folder / FILE_NAME
        self.read_only = self._path.exists() and not (  # in this order: another may create it now
            os.access(self._folder, os.W_OK) and os.access(self._path, os.W_OK)
        )
        register = None if self.read_only else self._register_files
        self._memory_files = MemoryFiles(self._folder, register)
        super().__init__(str(self._folder), SQLiteMemory(self._memory_files))
        self._writer: sqlite3.Connection | None = None  # once there was a transaction
        self._free: deque[sqlite3.Connection] = deque()  # for reading; thread-safe at both ends
        self._open()

    @contextlib.contextmanager
    def view(self) -> Iterator[StoreView]:
        self._check_open()
        with self._errors():
            try:
                connection = self._free.pop()
            except IndexError:
                connection = self._connect(query_only=True)
            try:
                connection.execute("BEGIN")
                yield StoreView(SQLiteDialect(connection))
            finally:
                connection.rollback()
                self._free.append(connection)
                if self._closed or self.read_only:  # an open immutable file would never change
                    self._close_free()

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Transaction]:
        with self._write_lock, self._errors():
            self._check_writable()
            if self._writer is None:
                self._writer = self._connect()
            connection = self._writer
            if connection.in_transaction:
                raise StorageError(f"{self._path}: this transaction is inside another one")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                transaction = Transaction(SQLiteDialect(connection))
                yield transaction
                transaction.record_commit()
                connection.commit()
            finally:
                connection.rollback()

    @contextlib.contextmanager
    def writer_lock(self, timeout: float) -> Iterator[None]:
        from filelock import FileLock, Timeout

        self._check_writable()
        path = self._folder / LOCK_NAME
        lock = FileLock(path, timeout=timeout, thread_local=False)
        try:
            held_lock = lock.acquire()
        except Timeout as error:
            holder = path.read_text(encoding="utf-8") or "another process"
            raise LockedError(
                f"{self._folder} is being written to by {holder}; wait for it, or stop it (reading "
                "is possible)",
                path=self._folder,
            ) from error
        with held_lock:
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
            yield

    @contextlib.contextmanager
    def jobs_lock(self) -> Iterator[Callable[[], bool]]:
        from filelock import FileLock, Timeout

        path = self._folder / SERVER_LOCK
        if path.is_symlink():
            raise StorageError(f"{path} is a symbolic link: remove it", path=path)
        lock = FileLock(path, thread_local=False)
        try:
            held_lock = lock.acquire(timeout=0)
        except Timeout as error:
            message = f"another server has the jobs of {self._folder}: stop it first"
            raise LockedError(message, path=self._folder) from error
        with held_lock:
            yield lambda: lock.is_locked

    def size(self) -> int:
        database = sum(path.stat().st_size for path in self._folder.glob(f"{FILE_NAME}*"))
        return database + self._memory_files.size()

    @contextlib.contextmanager
    def temporary_copy(self) -> Iterator[Path]:
        """The folder of a copy: inside the folder of the index, where `vacuum` deletes what a killed
        process left, or among temporary files if the index can only be read.
        """
        from tempfile import TemporaryDirectory

        with contextlib.ExitStack() as stack:
            parent = self._folder
            if self.read_only:
                parent = Path(stack.enter_context(TemporaryDirectory()))
            folder = parent / f"{COPY_NAME}{secrets.token_hex(8)}"
            stack.callback(_delete_unused_copy, folder)
            stack.enter_context(_copy_lock(folder))
            folder.mkdir()
            with (
                self._errors(),
                contextlib.closing(self._connect(query_only=True)) as source,
                contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as target,
            ):
                source.backup(target)
            yield folder

    def vacuum(self) -> None:
        self._check_writable()
        with self._errors(), self._write_lock, contextlib.closing(self._connect()) as connection:
            connection.execute("PRAGMA temp_store = FILE")  # the copy may not fit into memory
            # FTS5 keeps deleted terms until its segments are merged
            connection.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('optimize')")
            connection.execute("VACUUM")
            checkpoint = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            is_shrunk = not checkpoint[0]
            copies = [path for path in self._folder.glob(f"{COPY_NAME}*") if path.is_dir()]
            are_copies_deleted = False not in [_delete_unused_copy(copy) for copy in copies]
            with contextlib.suppress(OSError):  # last: nobody sees an earlier state any more
                self._memory_files.delete()
        if not (is_shrunk and are_copies_deleted) or self._memory_files.size():
            raise LockedError(f"{self._path} {IN_USE}", path=self._path)

    def close(self) -> None:
        with self._write_lock:
            self._closed = True
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        self._close_free()

    def _register_files(self, setting: Mapping[str, str]) -> None:
        """Note which files are mapped; `StorageError` where that cannot be written."""
        with self.transaction(durable=False) as transaction:
            transaction.put_settings(setting)

    def _problems(self, view: StoreView) -> list[str]:
        execute = view.dialect.execute
        lines = only_column(execute("PRAGMA integrity_check(20)"))
        problems = [f"SQLite: {line}" for line in lines if line != "ok"]
        missing = Counter(
            (reference.table, reference.parent)
            for reference in by_name(execute("PRAGMA foreign_key_check"))
        )
        for (table, parent), rows in sorted(missing.items()):
            problems.append(f"{rows} rows of {table} refer to rows of {parent} that are missing")
        (unsearchable,) = only_column(execute(UNSEARCHABLE))
        if unsearchable:
            problems.append(f"not in the full text: {counted(unsearchable, 'chunks')}")
        for name in self._memory_files.damaged():
            problems.append(f"{name} is damaged: delete its folder, which is made anew")
        return problems

    def _connect(self, *, query_only: bool = False) -> sqlite3.Connection:
        address = self._path.as_uri()
        if self.read_only:  # without a log, SQLite cannot make the files that it would share
            is_whole = not Path(f"{self._path}-wal").exists()
            address += "?immutable=1" if is_whole else "?mode=ro"
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for setting in (*PRAGMAS, f"query_only = {int(query_only)}"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            for pattern, kind, words in ERRORS:
                if re.search(pattern, text):
                    raise kind(f"{self._path} {words.format(text)}", path=self._path) from error
            raise StorageError(f"{self._path}: {text}", path=self._path) from error
        except UnicodeDecodeError as error:  # SQLite's message quotes damaged text
            message = f"{self._path} {DAMAGED.format('no text in UTF-8')}"
            raise CorruptError(message, path=self._path) from error

    def _close_free(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._free.pop().close()

    def _open(self) -> None:
        """Check the database, or create it."""
        with self._errors(), contextlib.closing(self._connect()) as connection:
            if not self._is_ours(connection):
                with self.writer_lock(BUSY_SECONDS):
                    self._create(connection)
            elif not self.read_only:  # a copy made by VACUUM INTO has another mode
                connection.execute("PRAGMA journal_mode = WAL")

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Whether there is an index of the current format; False for an empty file.

        Nothing but the schema is read, so that no view or trigger of the file runs.
        """
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        version = _format(connection)  # second: see `_create`
        if not tables and not version:
            return False
        (own_tables,) = connection.execute(OWN_TABLES).fetchone()
        if own_tables < 3:
            raise CorruptError(
                f"{self._path} is a database of another program; name another folder",
                path=self._path,
            )
        if version != FORMAT:
            raise VersionError(self._format_message(version), path=self._path)
        actual = frozenset(connection.execute(SCHEMA))
        for kind, name in sorted(_names(_schema() ^ actual) - STATISTICS):
            raise CorruptError(
                f"{self._path}: the {kind} {name!r} is foreign, changed or missing; a prepared file "
                "may run code of its author, so it is not opened",
                path=self._path,
            )
        return True

    def _format_message(self, version: int) -> str:
        advice = "upgrade lightrag-jsonl, or insert" if version > FORMAT else "insert"
        return (
            f"{self._path} has format {version}, this version of lightrag-jsonl reads {FORMAT}: "
            f"{advice} the documents again into a new folder"
        )

    def _create(self, connection: sqlite3.Connection) -> None:
        """Make tables and version in one transaction; another process may look just before and after."""
        if self._is_ours(connection):  # created by another process meanwhile
            return
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        script = (
            f"BEGIN; {schema_of(SQLiteDialect, __file__)}; PRAGMA user_version = {FORMAT}; COMMIT;"
        )
        connection.executescript(script)


def _copy_lock(copy: Path) -> "FileLock":
    """What the process that uses a temporary copy holds; it ends with the process."""
    from filelock import FileLock

    return FileLock(copy.with_suffix(COPY_LOCK), timeout=0, thread_local=False)


def _delete_unused_copy(copy: Path) -> bool:
    """Delete a temporary copy that no process uses; False if one does."""
    from shutil import rmtree

    from filelock import Timeout

    lock = copy.with_suffix(COPY_LOCK)
    if lock.is_symlink():  # a prepared folder must not lead to another file
        lock.unlink()
    try:
        with _copy_lock(copy):
            rmtree(copy, ignore_errors=True)
    except Timeout:
        return False
    lock.unlink(missing_ok=True)
    return True


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@cache
def _schema() -> frozenset[SchemaRow]:
    """Every table and index of the format, with the SQL."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema_of(SQLiteDialect, __file__))
        return frozenset(connection.execute(SCHEMA))


def _names(rows: Iterable[SchemaRow]) -> set[tuple[str, str]]:
    """The kinds and names of rows of a schema."""
    return {(kind, name) for kind, name, *_ in rows}


def _resolved(folder: Path, *, create: bool) -> Path:
    """The folder's absolute path; the folder is made if necessary."""
    try:
        folder = folder.resolve()
        if create:
            folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links
        reason = "it is a file" if folder.is_file() else getattr(error, "strerror", None) or error
        raise StorageError(f"cannot make the folder {folder}: {reason}", path=folder) from error
    if not create and not (folder / FILE_NAME).exists():
        raise StorageError(
            f"there is no index in {folder}: insert documents first, or name another folder",
            path=folder,
        )
    for path in (folder / name for name in FILE_NAMES):
        if path.is_symlink():
            raise StorageError(
                f"{path} is a symbolic link: put the file itself there, or name its own folder",
                path=folder,
            )
    return folder
