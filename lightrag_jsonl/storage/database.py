"""The SQLite database: its folder, its connections, and its settings."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from lightrag_jsonl.errors import (
    MISREAD,
    CorruptError,
    LightRAGError,
    LockedError,
    StorageError,
    VersionError,
)
from lightrag_jsonl.forks import Home
from lightrag_jsonl.indexfiles import DATABASE, LOCK, note_open
from lightrag_jsonl.loops import PerLoop
from lightrag_jsonl.storage import readonly, schema
from lightrag_jsonl.storage.bulk import STATEMENTS
from lightrag_jsonl.storage.lock import keeps_locks
from lightrag_jsonl.storage.trouble import no_sharing, translated
from lightrag_jsonl.storage.writer import CHECKPOINT_PAGES, Job, Manner, Result, Waiting, Writer

FILE_NAME = DATABASE
BUSY_SECONDS = 30.0
READERS_SECONDS = 5.0  # that a vacuum waits for those who still read the file as it was
PAUSE_SECONDS = 0.02
SHOWN = 3  # problems of a damaged index

log = logging.getLogger(__name__)


class Database:
    """One working directory's database; safe to use from any thread.

    Reads go through `reading()`, which lends a connection with a stable snapshot. Writes are
    functions handed to `submit()` or `committed()`: one thread runs each in a transaction, which a
    failure undoes. Single statements that have gathered share one. Where it is `read_only` there is
    no writing: each is a `StorageError`.
    """

    def __init__(self, working_dir: Path | str) -> None:
        self.working_dir = _resolved(Path(working_dir))
        self._make_directory()
        self.path = (self.working_dir / FILE_NAME).resolve()
        self.read_only = readonly.is_read_only(self.path)
        self._is_told = False  # that nothing is noted in it
        self._turns = PerLoop(asyncio.Lock)
        self._free: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._readers = readonly.Readers(self.path)
        self._writer = Writer(self.path, partial(_connect, self.path))  # which does not hold this
        weakref.finalize(self, self._writer.finish_soon).atexit = False
        self._closed = False
        self._home = Home()
        self._guard = threading.Lock()
        self._let_go = note_open(self, self.path, self.path.parent / LOCK)
        self._prepare_patiently()
        self._file = self._found_file()

    # ── reading ─────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def reading(self, *, single: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction: all that is read belongs to one moment.

        For a `single` statement, which needs none, there is no transaction.
        """
        self._check_usable()
        with translated(self.path), self._lent() as connection, self.explained():
            if not single:
                connection.execute("BEGIN")
            yield connection

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """`CorruptError` in place of an error that nobody expected, where the index is not sound."""
        try:
            yield
        except LightRAGError:
            raise
        except MISREAD as error:
            self._check_sound(error)
            raise

    def _check_sound(self, cause: Exception) -> None:
        """`CorruptError` where the index is not; `cause` is the error that makes one wonder."""
        from lightrag_jsonl.storage import checks  # with much that an index opens without

        with translated(self.path), self._lent() as connection:
            found = checks.problems(connection)
        if found:
            raise CorruptError(
                f"{self.path} is damaged ({'; '.join(found[:SHOWN])}): see what `lightrag-jsonl "
                "doctor --repair` mends, or restore the folder from a copy",
                path=self.path,
            ) from cause

    @contextlib.contextmanager
    def _lent(self) -> Iterator[sqlite3.Connection]:
        if self.read_only:
            with self._readers.lent() as connection:
                yield connection
            if self._closed:
                self._close_free()
            return
        try:
            connection = self._free.get_nowait()
        except queue.Empty:
            connection = _connect(self.path)
            connection.execute("PRAGMA query_only = 1")
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._free.put(connection)
            if self._closed:  # meanwhile, by somebody else
                self._close_free()

    async def read(self, look: Job[Result]) -> Result:
        """What `look` finds, in a thread of its own: it may take seconds, which no loop should wait."""

        def found() -> Result:
            with self.reading() as connection:
                return look(connection)

        return await asyncio.to_thread(found)

    # ── writing ─────────────────────────────────────────────────────────────────

    def check_writable(self) -> None:
        """`StorageError` where the index can only be read."""
        if self.read_only:
            raise StorageError(
                f"{self.path.parent} cannot be written to, and the index there only be asked and "
                "looked at; copy the folder to change it",
                path=self.path.parent,
            )

    def takes_notes(self) -> bool:
        """Whether traces and answers can be kept; where not, a warning says so, once."""
        if self.read_only and not self._is_told:
            self._is_told = True
            log.warning(
                "%s cannot be written to: questions leave no trace, and what a model answers is not "
                "kept",
                self.path.parent,
            )
        return not self.read_only

    @property
    def turn(self) -> asyncio.Lock:
        """Of who writes with this object, among those of the running event loop."""
        return self._turns.here

    def submit(
        self, job: Job[Result], *, flush: bool = True, urgent: bool = True, single: bool = False
    ) -> Future[Result]:
        """Run `job` in the writing thread; the future is done once its transaction is committed.

        Whoever stops waiting does not stop the writing.

        A committed transaction outlives the process in any case. With `flush` it has also reached
        the disk itself, and outlives a power cut; without, it does so within half a second or
        with the next transaction that is flushed. Jobs that are a `single` statement are committed
        together, since they share the pages they change; what is not `urgent` waits a few
        milliseconds for company.
        """
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        self._hand_in(job, future, Manner(flush, urgent, single))
        return future

    def committed(
        self, job: Job[Result], *, flush: bool = True, urgent: bool = True, single: bool = False
    ) -> asyncio.Future[Result]:
        """`submit` for who awaits: jobs that are committed together wake the event loop once."""
        return self._awaited(job, Manner(flush, urgent, single))

    def examined(self, job: Job[Result]) -> asyncio.Future[Result]:
        """Run a job that only reads where the writing is done, for who awaits.

        What will be changed next is read there: its pages are kept at hand then, which other
        connections lose at each commit, and no third thread is busy.
        """
        return self._awaited(job, Manner(flush=False, reads=True))

    async def settled(self) -> None:
        """Wait until what was handed in so far is written, or has failed."""
        with contextlib.suppress(StorageError):
            await self.examined(lambda connection: None)

    def _awaited(self, job: Job[Result], how: Manner) -> asyncio.Future[Result]:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._hand_in(job, future, how)
        return future

    def _hand_in(self, job: Job[Result], future: Waiting[Result], how: Manner) -> None:
        self._check_usable()  # in a forked process the lock may be held by nobody who comes back
        self.check_writable()
        with self._guard:
            self._check_usable()
            self._writer.put(self._explaining(job), future, how)

    def _explaining(self, job: Job[Result]) -> Job[Result]:
        """The job, with `explained` about it; most are too short for a context manager."""

        def run(connection: sqlite3.Connection) -> Result:
            try:
                return job(connection)
            except LightRAGError:
                raise
            except MISREAD as error:
                self._check_sound(error)
                raise

        return run

    def _check_usable(self) -> None:
        self._home.check()
        if self._closed:
            raise StorageError(f"{self.working_dir} was closed", path=self.working_dir)

    def check_place(self) -> None:
        """`StorageError` where the file is not the one that was opened: nobody would find what is
        written to that one, and what is read there is no longer so.
        """
        if self._found_file() != self._file:
            raise StorageError(
                f"{self.path} was deleted or replaced since it was opened; open the folder anew",
                path=self.path,
            )

    def _found_file(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def write(self, job: Job[Result]) -> Result:
        """Run `job` and wait until it is on disk."""
        return self.submit(job).result()

    async def vacuum(self) -> None:
        """Rewrite the file without its free pages, after what was handed in before.

        It is done where the writing is done: what comes later waits for it however long it takes.
        """
        await self.examined(lambda _: self._rewrite())

    def _rewrite(self) -> None:
        connection = _connect(self.path)
        try:
            connection.execute("PRAGMA temp_store = FILE")  # a whole copy may not fit into memory
            connection.execute("VACUUM")
            connection.execute(f"PRAGMA busy_timeout = {READERS_SECONDS * 1000:.0f}")
            if _value(connection, "PRAGMA wal_checkpoint(TRUNCATE)"):
                log.warning(
                    "%s: somebody has been reading for long; the space is given back when that has "
                    "ended and the index is closed, or by another vacuum",
                    self.path,
                )
        finally:
            connection.close()

    def close(self) -> None:
        """Finish what was submitted and close every connection; in a forked process, nothing."""
        if not self._home.is_here:
            return
        with self._guard:
            if self._closed:
                return
            self._closed = True
        self._writer.finish()
        self._close_free()
        self._let_go()

    def _close_free(self) -> None:
        self._readers.close()
        with contextlib.suppress(queue.Empty):
            while True:
                self._free.get_nowait().close()

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

    def _prepare_patiently(self) -> None:
        """Prepare the file; where others do the same, SQLite does not always wait by itself."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._prepare()
            except LockedError as error:
                if time.monotonic() > deadline:
                    if not keeps_locks(self.path.parent):
                        raise no_sharing(self.path) from error
                    raise
                time.sleep(PAUSE_SECONDS)

    def _prepare(self) -> None:
        if self.read_only:
            self._check_readable()
            return
        with translated(self.path):
            connection = _connect(self.path)
            try:
                known = _value(connection, "PRAGMA user_version") == schema.FORMAT
                if not known or _value(connection, "PRAGMA journal_mode") != "wal":
                    # new, old, or a copy that VACUUM INTO made
                    connection.execute("BEGIN")  # one look: others may be making it right now
                    try:
                        self._check_format(connection)
                    finally:
                        connection.execute("ROLLBACK")
                    self._begin_log(connection)
                    self._create_or_migrate(connection)
                connection.execute("SELECT count(*) FROM settings").fetchone()
            finally:
                connection.close()

    def _check_readable(self) -> None:
        with self.reading() as connection:
            found = self._check_format(connection)
            connection.execute("SELECT count(*) FROM settings").fetchone()
        if found != schema.FORMAT:
            raise VersionError(
                f"{self.path} has format {found} and cannot be written to, this version of "
                f"lightrag-jsonl reads {schema.FORMAT}: open it once where it can be written to",
                path=self.path,
            )

    def _begin_log(self, connection: sqlite3.Connection) -> None:
        """Switch to a write-ahead log; SQLite says nothing where it cannot, but stays as it was."""
        if _value(connection, "PRAGMA journal_mode = WAL") != "wal":
            raise StorageError(
                f"{self.path} cannot have a write-ahead log: free some disk space, or put the "
                "folder on a local disk, and run the same command again",
                path=self.path,
            )

    def _create_or_migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = self._check_format(connection)
            if found == 0:
                schema.create(connection)
            else:
                log.info("%s: format %d becomes %d", self.path, found, schema.FORMAT)
                schema.migrate(connection, found)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a failing disk has undone it already
                connection.execute("ROLLBACK")
            raise

    def _check_format(self, connection: sqlite3.Connection) -> int:
        """The format of the database, 0 of an empty one; it may be too new, or somebody else's."""
        found = int(_value(connection, "PRAGMA user_version"))
        if found > schema.FORMAT:
            raise VersionError(
                f"{self.path} has format {found}, this version of lightrag-jsonl reads up to "
                f"{schema.FORMAT}: upgrade lightrag-jsonl",
                path=self.path,
            )
        if found < 0 or (found == 0 and _value(connection, "SELECT count(*) FROM sqlite_schema")):
            raise CorruptError(
                f"{self.path} is a database of another program; name another folder",
                path=self.path,
            )
        return found


def _resolved(working_dir: Path) -> Path:
    """Where a folder is: it stays there, whatever a link leads to later."""
    try:
        return working_dir.resolve()
    except (OSError, RuntimeError) as error:  # links in a circle, no current folder any more
        raise StorageError(
            f"there is no place for the folder {working_dir}: {error}", path=working_dir
        ) from error


def _connect(path: Path) -> sqlite3.Connection:
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


def _value(connection: sqlite3.Connection, query: str) -> Any:
    return connection.execute(query).fetchone()[0]
