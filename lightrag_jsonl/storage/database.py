"""The SQLite database: connections, one writing thread with group commit, and its settings."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Generic, TypeVar

from lightrag_jsonl.errors import (
    CorruptError,
    LightRAGError,
    LockedError,
    StorageError,
    VersionError,
)
from lightrag_jsonl.storage import schema

Result = TypeVar("Result")
Job = Callable[[sqlite3.Connection], Result]

FILE_NAME = "index.sqlite"
BUSY_SECONDS = 30.0
CHECKPOINT_PAGES = 4_000  # 16 MB of log: a page changed many times is copied back once
FLUSH_SECONDS = 0.5  # what a power cut may take of the transactions that need not be flushed
COMPANY_SECONDS = 0.003  # how long a job that is not urgent waits for the next one
GROUP_LIMIT = 64  # jobs committed together at most

log = logging.getLogger(__name__)


class Database:
    """One working directory's database; safe to use from any thread.

    Reads go through `reading()`, which lends a connection with a stable snapshot. Writes are
    functions handed to `submit()`: one thread runs what has gathered in one transaction, each
    function in a savepoint of its own, so that one failure does not undo its neighbours.
    """

    def __init__(self, working_dir: Path | str) -> None:
        self.working_dir = Path(working_dir)
        self.path = self.working_dir / FILE_NAME
        self._make_directory()
        self._free: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._jobs: queue.SimpleQueue[_Work[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._prepare()

    # ── reading ─────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction: all that is read belongs to one moment."""
        if self._closed:
            raise StorageError(f"{self.working_dir} was closed", path=self.working_dir)
        with translated(self.path):
            try:
                connection = self._free.get_nowait()
            except queue.Empty:
                connection = self._connect()
                connection.execute("PRAGMA query_only = 1")
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._free.put(connection)

    # ── writing ─────────────────────────────────────────────────────────────────

    def submit(
        self, job: Job[Result], *, flush: bool = True, urgent: bool = True
    ) -> Future[Result]:
        """Run `job` in the writing thread; the future is done once its transaction is committed.

        A committed transaction outlives the process in any case. With `flush` it has also reached
        the disk itself, and outlives a power cut; without, it does so within half a second or
        with the next transaction that is flushed. What is not `urgent` waits a few milliseconds
        for company, since jobs that are committed together share the pages they change.
        """
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()  # whoever stops waiting does not stop the writing
        with self._guard:
            if self._closed:
                raise StorageError(f"{self.working_dir} was closed", path=self.working_dir)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._write_forever, name="lightrag-jsonl-writer", daemon=True
                )
                self._thread.start()
            self._jobs.put(_Work(job, future, self.path, flush, urgent))
        return future

    def write(self, job: Job[Result]) -> Result:
        """Run `job` and wait until it is on disk."""
        return self.submit(job).result()

    def vacuum(self) -> None:
        """Rewrite the file without its free pages; waits for what is being written."""
        with translated(self.path):
            connection = self._connect()
            try:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def close(self) -> None:
        """Finish what was submitted and close every connection."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            self._jobs.put(None)
        if thread is not None:
            thread.join()
        while not self._free.empty():
            self._free.get_nowait().close()

    def _write_forever(self) -> None:
        connection: sqlite3.Connection | None = None
        waiting: float | None = None  # since when something is committed but not flushed
        last = False
        while not last:
            batch, last = self._gather(None if waiting is None else FLUSH_SECONDS)
            if not batch:
                self._flush_log()
                waiting = None
                continue
            now = time.monotonic()
            flush = any(work.flush for work in batch)
            flush = flush or (waiting is not None and now - waiting > FLUSH_SECONDS)
            try:
                with translated(self.path):
                    connection = connection or self._connect()
                    _commit_together(connection, batch, flush=flush)
                waiting = None if flush else (waiting or now)
            except LightRAGError as error:
                connection = self._recover(connection)
                for work in batch:
                    work.fail(error)
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            connection.close()

    def _gather(self, timeout: float | None) -> tuple[list[_Work[Any]], bool]:
        """The jobs that wait, none if none came in time; True once there will be no more."""
        batch: list[_Work[Any]] = []
        try:
            work = self._jobs.get(timeout=timeout)
            while work is not None:
                batch.append(work)
                if len(batch) >= GROUP_LIMIT:
                    return batch, False
                patient = not any(waiting.urgent for waiting in batch)
                work = (
                    self._jobs.get(timeout=COMPANY_SECONDS) if patient else self._jobs.get_nowait()
                )
        except queue.Empty:
            return batch, False
        return batch, True

    def _flush_log(self) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(f"{self.path}-wal", os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _recover(self, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        if connection is None:
            return None
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            return None
        return connection

    # ── opening ─────────────────────────────────────────────────────────────────

    def _make_directory(self) -> None:
        if self.working_dir.exists() and not self.working_dir.is_dir():
            raise StorageError(
                f"{self.working_dir} is a file; name a folder for the index", path=self.working_dir
            )
        try:
            self.working_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"cannot make the folder {self.working_dir}: {error.strerror or error}",
                path=self.working_dir,
            ) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA cache_size = -32000")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _prepare(self) -> None:
        with translated(self.path):
            connection = self._connect()
            try:
                if int(connection.execute("PRAGMA user_version").fetchone()[0]) != schema.FORMAT:
                    self._create_or_migrate(connection)
                connection.execute("SELECT count(*) FROM settings").fetchone()
            finally:
                connection.close()

    def _create_or_migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = int(connection.execute("PRAGMA user_version").fetchone()[0])
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            self._check_format(found, int(tables))
            if found == 0:
                schema.create(connection)
            else:
                schema.migrate(connection, found)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def _check_format(self, found: int, tables: int) -> None:
        if found > schema.FORMAT:
            raise VersionError(
                f"{self.path} has format {found}, this version of lightrag-jsonl reads up to "
                f"{schema.FORMAT}: upgrade lightrag-jsonl",
                path=self.path,
            )
        if found == 0 and tables:
            raise CorruptError(
                f"{self.path} is a database of another program; name another folder",
                path=self.path,
            )


class _Work(Generic[Result]):
    """A job on its way to the writing thread."""

    def __init__(
        self, job: Job[Result], future: Future[Result], path: Path, flush: bool, urgent: bool
    ) -> None:
        self.flush = flush
        self.urgent = urgent
        self._job = job
        self._future = future
        self._path = path
        self._finish: Callable[[], None] = lambda: None

    def run(self, connection: sqlite3.Connection) -> None:
        connection.execute("SAVEPOINT job")
        try:
            with translated(self._path):
                result = self._job(connection)
        except Exception as error:  # it belongs to the caller
            if not connection.in_transaction:  # SQLite undid it all, the neighbours' work too
                if isinstance(error, StorageError):
                    raise
                raise StorageError(f"{self._path}: {error}", path=self._path) from error
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            failure = error
            self._finish = lambda: self.fail(failure)
        else:
            connection.execute("RELEASE job")
            self._finish = lambda: self._resolve(result)

    def finish(self) -> None:
        self._finish()

    def fail(self, error: BaseException) -> None:
        self._future.set_exception(error)

    def _resolve(self, result: Result) -> None:
        self._future.set_result(result)


def _commit_together(
    connection: sqlite3.Connection, batch: list[_Work[Any]], *, flush: bool
) -> None:
    connection.execute(f"PRAGMA synchronous = {'FULL' if flush else 'NORMAL'}")
    connection.execute("BEGIN IMMEDIATE")
    for work in batch:
        work.run(connection)
    connection.execute("COMMIT")
    for work in batch:
        work.finish()


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, each with the path and with what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise LockedError(
                f"{path} is being written to by another process; try again when it is done",
                path=path,
            ) from error
        if "readonly" in text:
            raise StorageError(
                f"{path} cannot be written to: check the permissions of its folder", path=path
            ) from error
        if "full" in text or "disk I/O" in text:
            raise StorageError(
                f"{path}: {text}: free some disk space and run the same command again; "
                "nothing that was stored is lost",
                path=path,
            ) from error
        if "unable to open" in text:
            raise StorageError(
                f"cannot open {path}: check that its folder exists and can be written to",
                path=path,
            ) from error
        if "not a database" in text or "malformed" in text or "no such table" in text:
            raise CorruptError(
                f"{path} is damaged or no database ({text}): restore it from a copy, or delete "
                "it and insert again",
                path=path,
            ) from error
        raise StorageError(f"{path}: {text}", path=path) from error
