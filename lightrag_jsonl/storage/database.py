"""The SQLite database: its folder, its connections, and its settings."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from lightrag_jsonl.errors import (
    MISREAD,
    CorruptError,
    LightRAGError,
    StorageError,
)
from lightrag_jsonl.forks import Home
from lightrag_jsonl.indexfiles import DATABASE, LOCK, note_open
from lightrag_jsonl.loops import PerLoop
from lightrag_jsonl.storage import opening, readonly
from lightrag_jsonl.storage.trouble import translated
from lightrag_jsonl.storage.writer import Job, Manner, Result, Waiting, Writer

FILE_NAME = DATABASE
READERS_SECONDS = 5.0  # that a vacuum waits for readers of the old content
SHOWN = 3  # problems of a damaged index that are shown

log = logging.getLogger(__name__)


class Database:
    """The database of one working directory; safe to use from any thread.

    Reads use `reading()`, which lends a connection with a stable view. Writes are functions passed
    to `submit()` or `committed()`: a single thread runs each in a transaction, which is rolled back
    if the function raises. Functions that are a single statement may share a transaction. If the
    database is `read_only`, every write raises `StorageError`.
    """

    def __init__(self, working_dir: Path | str) -> None:
        self.working_dir = opening.made(Path(working_dir))
        self.path = (self.working_dir / FILE_NAME).resolve()
        self.read_only = readonly.is_read_only(self.path)
        self._is_told = False  # whether it was logged that nothing can be stored
        self._turns = PerLoop(asyncio.Lock)
        self._free: deque[sqlite3.Connection] = deque()  # thread-safe at both ends
        self._readers = readonly.Readers(self.path)
        connect = partial(opening.connect, self.path)
        self._writer = Writer(self.path, connect)  # it holds no reference to this object
        weakref.finalize(self, self._writer.finish_soon).atexit = False
        self._closed = False
        self._home = Home()
        self._guard = threading.Lock()
        self._let_go = note_open(self, self.path, self.path.parent / LOCK)
        prepare = self._check_readable if self.read_only else partial(opening.prepare, self.path)
        opening.patiently(prepare, self.path)
        self._file = self._found_file()

    # ── reading ─────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def reading(self, *, single: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction: everything read is from the same moment.

        With `single` there is no transaction; one statement needs none.
        """
        self._check_usable()
        with translated(self.path), self._lent() as connection, self.explained():
            if not single:
                connection.execute("BEGIN")
            yield connection

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Raise `CorruptError` instead of an unexpected error, if the index turns out to be damaged."""
        try:
            yield
        except LightRAGError:
            raise
        except MISREAD as error:
            self._check_sound(error)
            raise

    def _check_sound(self, cause: Exception) -> None:
        """Raise `CorruptError` if the index is damaged; `cause` is the error that led to this check."""
        from lightrag_jsonl.storage import checks  # late: opening an index needs none of it

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
            connection = self._free.pop()
        except IndexError:
            connection = opening.connect(self.path)
            connection.execute("PRAGMA query_only = 1")
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._free.append(connection)
            if self._closed:  # by another thread, meanwhile
                self._close_free()

    async def read(self, look: Job[Result]) -> Result:
        """The result of `look`, run in a thread, since it may take seconds."""

        def found() -> Result:
            with self.reading() as connection:
                return look(connection)

        return await asyncio.to_thread(found)

    # ── writing ─────────────────────────────────────────────────────────────────

    def check_writable(self) -> None:
        """Raise `StorageError` if the index can only be read."""
        if self.read_only:
            raise StorageError(
                f"{self.path.parent} cannot be written to, and the index there only be asked and "
                "looked at; copy the folder to change it",
                path=self.path.parent,
            )

    def takes_notes(self) -> bool:
        """Whether traces and answers can be stored; if not, a warning says so once."""
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
        """The lock that decides which task of the running event loop writes."""
        return self._turns.here

    def submit(
        self, job: Job[Result], *, flush: bool = True, urgent: bool = True, single: bool = False
    ) -> Future[Result]:
        """Run `job` in the writing thread; the future is done when its transaction is committed.

        Cancelling the future does not stop the job.

        A committed transaction survives the end of the process in any case. With `flush` it is also
        written to the disk itself, and survives a power cut; otherwise that happens within half a
        second, or with the next flushed transaction. Jobs that are a `single` statement are
        committed together, since they change the same pages; those that are not `urgent` wait some
        milliseconds for others.
        """
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()
        self._hand_in(job, future, Manner(flush, urgent, single))
        return future

    def committed(
        self, job: Job[Result], *, flush: bool = True, urgent: bool = True, single: bool = False
    ) -> asyncio.Future[Result]:
        """Like `submit`, to be awaited; jobs committed together wake the event loop only once."""
        return self._awaited(job, Manner(flush, urgent, single))

    def examined(self, job: Job[Result]) -> asyncio.Future[Result]:
        """Run a job that only reads in the writing thread; to be awaited.

        For planning a change: the writing thread's connection caches the pages, which other
        connections lose at each commit.
        """
        return self._awaited(job, Manner(flush=False, reads=True))

    async def settled(self) -> None:
        """Wait until everything submitted so far is written, or has failed."""
        with contextlib.suppress(StorageError):
            await self.examined(lambda connection: None)

    def _awaited(self, job: Job[Result], how: Manner) -> asyncio.Future[Result]:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._hand_in(job, future, how)
        return future

    def _hand_in(self, job: Job[Result], future: Waiting[Result], how: Manner) -> None:
        self._check_usable()  # before the lock: in a forked process it may never be released
        self.check_writable()
        with self._guard:
            self._check_usable()
            self._writer.put(self._explaining(job), future, how)

    def _explaining(self, job: Job[Result]) -> Job[Result]:
        """The job with the effect of `explained`; a context manager would take longer than most jobs."""

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
        """Raise `StorageError` if the file was deleted or replaced since it was opened.

        Nobody would find what is written to it then, and what is read is out of date.
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
        """Rewrite the file without its free pages, after everything submitted so far.

        It runs in the writing thread: later writes wait until it is done.
        """
        await self.examined(lambda _: self._rewrite())

    def _rewrite(self) -> None:
        connection = opening.connect(self.path)
        try:
            connection.execute(
                "PRAGMA temp_store = FILE"
            )  # a copy of the whole file may not fit into memory
            connection.execute("VACUUM")
            connection.execute(f"PRAGMA busy_timeout = {READERS_SECONDS * 1000:.0f}")
            if opening.value(connection, "PRAGMA wal_checkpoint(TRUNCATE)"):
                log.warning(
                    "%s: somebody has been reading for long; the space is given back when that has "
                    "ended and the index is closed, or by another vacuum",
                    self.path,
                )
        finally:
            connection.close()

    def close(self) -> None:
        """Finish what was submitted and close all connections; in a forked process, do nothing."""
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
        with contextlib.suppress(IndexError):
            while True:
                self._free.pop().close()

    # ── opening ─────────────────────────────────────────────────────────────────

    def _check_readable(self) -> None:
        with self.reading() as connection:
            opening.check_readable(connection, self.path)
