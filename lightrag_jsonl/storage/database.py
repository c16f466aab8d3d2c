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
READERS_SECONDS = 5.0  # that a vacuum waits for those who still read the file as it was
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
        self.working_dir = opening.made(Path(working_dir))
        self.path = (self.working_dir / FILE_NAME).resolve()
        self.read_only = readonly.is_read_only(self.path)
        self._is_told = False  # that nothing is noted in it
        self._turns = PerLoop(asyncio.Lock)
        self._free: deque[sqlite3.Connection] = deque()  # whose ends any thread may use
        self._readers = readonly.Readers(self.path)
        connect = partial(opening.connect, self.path)
        self._writer = Writer(self.path, connect)  # which does not hold this
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
        connection = opening.connect(self.path)
        try:
            connection.execute("PRAGMA temp_store = FILE")  # a whole copy may not fit into memory
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
        with contextlib.suppress(IndexError):
            while True:
                self._free.pop().close()

    # ── opening ─────────────────────────────────────────────────────────────────

    def _check_readable(self) -> None:
        with self.reading() as connection:
            opening.check_readable(connection, self.path)
