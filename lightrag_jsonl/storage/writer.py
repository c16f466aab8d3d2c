"""The single writing thread: commits waiting jobs together, and flushes them in time."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from lightrag_jsonl.concurrency import despite_want, started_thread
from lightrag_jsonl.errors import LightRAGError, LockedError, StorageError
from lightrag_jsonl.storage.lock import holder
from lightrag_jsonl.storage.trouble import file_trouble, translated

Result = TypeVar("Result")
Job = Callable[[sqlite3.Connection], Result]
Waiting = Future[Result] | asyncio.Future[Result]

CHECKPOINT_PAGES = 4_000  # 16 MB of log, so that a page changed many times is copied back once
FLUSH_SECONDS = 0.5  # the longest time until a transaction without `flush` is flushed, too
COMPANY_SECONDS = 0.001  # a job that is not urgent waits so long for the next one
GROUP_LIMIT = 64  # at most so many jobs share a commit
PIECE_BYTES = 1 << 20  # bytes of the log that are read at a time

log = logging.getLogger(__name__)


class Manner(NamedTuple):
    """How a job is written.

    `flush`: its commit is flushed to the disk. `urgent`: it does not wait for other jobs. `single`:
    it is one statement, which changes nothing if it fails; such jobs may share a transaction.
    `reads`: it does not write, and does not block the writes of other processes.
    """

    flush: bool = True
    urgent: bool = True
    single: bool = False
    reads: bool = False


class Writer:
    """Runs jobs one after another in a thread of its own, which starts with the first job.

    Waiting single statements share a transaction; any other job has its own. Savepoints would allow
    all jobs to share, but inside one SQLite scans a list of all pages changed so far after each
    statement.
    """

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._jobs: queue.SimpleQueue[_Work[Any] | None] = queue.SimpleQueue()
        self._next: _Work[Any] | None = None  # taken from the queue, for the next transaction
        self._thread: threading.Thread | None = None
        self._connection: sqlite3.Connection | None = None
        self._flushes: bool | None = None  # whether the connection flushes commits
        self._waiting: float | None = None  # the time of the first commit not yet flushed
        self._doubtful = False  # a write failed: the log on the disk may have a hole
        self._is_told = False  # whether a failed flush was logged

    def put(self, job: Job[Result], future: Waiting[Result], how: Manner) -> None:
        """Submit a job with the future for its result; not from two threads at a time."""
        if self._thread is None:
            self._thread = started_thread(self._run, name="lightrag-jsonl-writer")
        self._jobs.put(_Work(job, future, self._path, how))

    def finish(self) -> None:
        """Wait until all submitted jobs are written; no more may be submitted."""
        self.finish_soon()
        if self._thread is not None:
            self._thread.join()

    def finish_soon(self) -> None:
        """Like `finish` without waiting; may be called during garbage collection."""
        self._jobs.put(None)

    # ── the thread ──────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while self._take_turn():
            pass
        self._close()

    def _take_turn(self) -> bool:
        """Write waiting jobs, keeping no reference to them; returns whether more may come."""
        batch: list[_Work[Any]] = []
        last = False
        try:
            last = self._gather(batch, self._left())
            with translated(self._path, who=partial(holder, self._path.parent)):
                self._write(batch)
        except (LightRAGError, sqlite3.Error, OSError, MemoryError) as error:
            despite_want(self._after_trouble, error)
            for work in batch:
                work.fail(error)
            despite_want(_tell, batch)
        return not last

    def _gather(self, batch: list[_Work[Any]], timeout: float | None) -> bool:
        """Add the jobs for one transaction to `batch`, none after a timeout; True if they are the last."""
        patient = True
        try:
            work = self._next or self._jobs.get(timeout=timeout)
            self._next = None
            while work is not None:
                if not work.how.single and batch:
                    self._next = work
                    return False
                batch.append(work)
                if not work.how.single or len(batch) >= GROUP_LIMIT:
                    return False
                patient = patient and not work.how.urgent
                work = (
                    self._jobs.get(timeout=COMPANY_SECONDS) if patient else self._jobs.get_nowait()
                )
        except queue.Empty:
            return False
        return True

    def _left(self) -> float | None:
        """The seconds until committed data must be flushed; None if all is flushed."""
        if self._waiting is None:
            return None
        return max(0.0, self._waiting + FLUSH_SECONDS - time.monotonic())

    def _write(self, batch: Sequence[_Work[Any]]) -> None:
        """Commit the jobs; without any, flush what was committed before."""
        if self._connection is None:
            self._connection, self._flushes = self._connect(), None
        if self._doubtful:
            self._write_log_again(self._connection)
            self._doubtful = False
        if batch:
            flush = any(work.how.flush for work in batch) or self._left() == 0
            self._prepare(self._connection, flush=flush)
            written = _commit_together(self._connection, batch)
            if written and flush:
                self._note_flushed()
            elif written:  # an empty transaction flushes nothing, not even earlier commits
                self._waiting = self._waiting or time.monotonic()
        elif self._waiting is not None:
            with self._log_file() as log_file:
                os.fsync(log_file.fileno())
            self._note_flushed()

    def _note_flushed(self) -> None:
        self._waiting, self._is_told = None, False

    def _prepare(self, connection: sqlite3.Connection, *, flush: bool) -> None:
        """Set whether commits are flushed; if that is unchanged, no statement is run."""
        if flush != self._flushes:
            self._flushes = None
            connection.execute(f"PRAGMA synchronous = {'FULL' if flush else 'NORMAL'}")
            # SQLite does not report a failed flush of the log when it copies the log back. So it
            # may do that only after commits that were flushed.
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if flush else 0}")
            self._flushes = flush

    def _after_trouble(self, error: BaseException) -> None:
        if self._waiting is not None:
            if not self._is_told:
                log.warning("what was written last is not flushed yet: %s", error)
            self._is_told = True
            self._waiting = time.monotonic()  # wait before the next attempt
        self._doubtful = self._doubtful or not isinstance(error, LockedError)
        if self._connection is not None:
            try:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                self._connection.close()
                self._connection = None

    def _close(self) -> None:
        if self._connection is None:
            return
        with contextlib.suppress(LightRAGError, sqlite3.Error):
            if self._doubtful:
                self._write_log_again(self._connection)
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._connection.close()

    # ── the log ─────────────────────────────────────────────────────────────────

    def _write_log_again(self, connection: sqlite3.Connection) -> None:
        """Write and flush the whole log once more, after a write or a flush failed.

        Linux reports a failed flush once and then regards the pages as written: the next flush
        succeeds, and after a power cut there is a hole in front of everything committed later
        (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
        """
        connection.execute("BEGIN IMMEDIATE")  # so that nobody changes the log meanwhile
        try:
            with self._log_file() as log_file:
                while piece := log_file.read(PIECE_BYTES):
                    log_file.seek(-len(piece), os.SEEK_CUR)
                    log_file.write(piece)
                os.fsync(log_file.fileno())
        finally:
            connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def _log_file(self) -> Iterator[io.FileIO]:
        """The open file of SQLite's write-ahead log; raises errors of ours."""
        try:
            with io.FileIO(f"{self._path}-wal", "r+") as log_file:
                yield log_file
        except OSError as error:
            raise file_trouble(self._path, error) from error


class _Work(Generic[Result]):
    """A job submitted to the writing thread."""

    def __init__(self, job: Job[Result], future: Waiting[Result], path: Path, how: Manner) -> None:
        self.how = how
        self.future = future
        self._job = job
        self._path = path
        self._done: tuple[Result | None, BaseException | None] = None, None

    def run(self, connection: sqlite3.Connection) -> bool:
        """Run the job; returns whether the transaction can still be committed."""
        try:
            with translated(self._path):
                self._done = self._job(connection), None
        except Exception as error:  # it is raised to the caller
            if not connection.in_transaction:  # SQLite rolled back everything, other jobs too
                if isinstance(error, StorageError):
                    raise
                raise StorageError(f"{self._path}: {error}", path=self._path) from error
            self._done = None, error
            return self.how.single
        return True

    def fail(self, error: BaseException) -> None:
        self._done = None, error

    def finish(self) -> None:
        """Set the future's result; for a future of asyncio, in its own loop."""
        result, error = self._done
        if self.future.done():  # it was cancelled
            pass
        elif error is None:
            self.future.set_result(result)  # type: ignore[arg-type]
        else:
            self.future.set_exception(error)
        self._done = None, None  # an error knows this job, too: held, both would outlive their use


def _commit_together(connection: sqlite3.Connection, batch: Sequence[_Work[Any]]) -> bool:
    """Commit the jobs of a batch (a job that only reads is alone); returns whether they changed anything."""
    before = connection.total_changes
    connection.execute("BEGIN" if batch[0].how.reads else "BEGIN IMMEDIATE")
    good = all(work.run(connection) for work in batch)
    connection.execute("COMMIT" if good else "ROLLBACK")
    despite_want(_tell, batch)
    return good and connection.total_changes > before


def _tell(batch: Sequence[_Work[Any]]) -> None:
    """Set all futures; an event loop is woken once for all of its jobs."""
    loops: dict[asyncio.AbstractEventLoop, list[_Work[Any]]] = {}
    for work in batch:
        if isinstance(work.future, asyncio.Future):
            loops.setdefault(work.future.get_loop(), []).append(work)
        else:
            work.finish()
    for loop, works in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed, and nobody waits there
            loop.call_soon_threadsafe(_finish, works)


def _finish(works: Sequence[_Work[Any]]) -> None:
    for work in works:
        despite_want(work.finish)
