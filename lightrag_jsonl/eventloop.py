"""An event loop for callers without one: in a thread of its own, or in the caller's."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import queue
import signal
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Coroutine, Generator
from types import FrameType
from typing import Any, TypeVar

from lightrag_jsonl.concurrency import WANT_SECONDS, Pool, started_thread
from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.forks import Home
from lightrag_jsonl.telling import closed

Result = TypeVar("Result")
Item = TypeVar("Item")

log = logging.getLogger(__name__)


class LoopThread:
    """An event loop for callers without one; safe from any thread.

    A daemon thread, started when it is first needed, runs the loop while calls are open. In
    between, the loop may run in the thread of a caller of `run_here`. After `close()`, in a forked
    process, and while the interpreter shuts down, calls raise `StorageError`.
    """

    def __init__(self) -> None:
        self._home = Home()
        self._turn = threading.Lock()  # held by the thread that runs the loop
        self._runner = 0  # the id of that thread
        self._guard = threading.Lock()  # protects everything below
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False: end the thread
        self._calls = 0  # handed to the thread and not yet answered
        self._serving = False  # whether the thread runs the loop
        self._here: asyncio.Task[Any] | None = None  # what `run_here` runs
        self.closed = False

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop's thread and wait for its result.

        If an exception interrupts the waiting (Ctrl-C, or another signal's handler), the coroutine
        is cancelled, and the exception is raised once it has stopped.
        """
        self._check_place(work)
        if threading.get_ident() == self._runner:
            work.close()
            raise RuntimeError(
                "a listener cannot call the LightRAG that it listens to and waits for"
            )
        try:
            future = self._handed_over(work)
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise self._cancelled() from None
        except BaseException:
            future.cancel()  # does nothing if this is the coroutine's own error
            concurrent.futures.wait([future])
            raise

    def run_here(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Like `run`, but in the calling thread if the loop is idle: changing threads twice takes
        longer than running a short coroutine.
        """
        self._check_place(work)
        if _runs_a_loop() or not self._turn.acquire(blocking=False):
            return self.run(work)
        borrowed = None
        try:
            borrowed = self._borrowed(work)
            if borrowed is not None:
                return _interruptible(*borrowed)
        except asyncio.CancelledError:
            raise self._cancelled() from None
        except BaseException:
            if borrowed is not None:
                borrowed[1].cancel()  # it ends when the loop runs next
            raise
        finally:
            self._here, self._runner = None, 0
            if borrowed is not None and asyncio.all_tasks(
                borrowed[0]
            ):  # tasks that it started still run
                self._wanted.put(True)
            self._turn.release()
        return self.run(work)

    def iterate(self, source: AsyncIterator[Item]) -> Generator[Item]:
        """The items of an async iterator, each pulled when it is asked for.

        If the caller stops early, the iterator is closed soon, without waiting for that.
        """
        try:
            while True:
                yield self.run(_next(source))
        except StopAsyncIteration:
            return
        except BaseException:
            self._leave(source)
            raise

    @property
    def open(self) -> bool:
        """Whether calls are taken."""
        return not self.closed and self._home.is_here and not sys.is_finalizing()

    def close(self) -> None:
        """End the loop, everything that still runs in it, and its thread; refuse further calls.

        In a forked process, and while the interpreter shuts down, there is nothing left to end.
        """
        if not self._home.is_here or sys.is_finalizing():
            self.closed = True
            return
        with self._guard:
            self.closed = True
            loop, self._loop = self._loop, None
            if loop is not None and self._here is not None:
                loop.call_soon_threadsafe(self._here.cancel)
            if loop is not None and self._serving:
                loop.call_soon_threadsafe(loop.stop)
        if loop is not None and self._thread is not None:
            self._wanted.put(False)
            self._thread.join()

    # ── who runs it ─────────────────────────────────────────────────────────────

    def _check_place(self, work: Coroutine[Any, Any, object]) -> None:
        """Refuse calls before any lock is waited for: in a forked process nobody would ever release
        it, and an interpreter that shuts down stops the thread wherever it is.
        """
        if not self._home.is_here:
            work.close()
            self._home.check()
        if sys.is_finalizing():
            work.close()
            raise StorageError("the program has come to its end, where nothing more can be asked")

    def _handed_over(self, work: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        with self._guard:
            loop = self._started()
            future = asyncio.run_coroutine_threadsafe(work, loop)
            self._calls += 1
            if not self._serving:
                self._wanted.put(True)
        future.add_done_callback(lambda _: self._answered(loop))
        return future

    def _borrowed(
        self, work: Coroutine[Any, Any, Result]
    ) -> tuple[asyncio.AbstractEventLoop, asyncio.Task[Result]] | None:
        """The loop, and the work as its task; None if the thread is about to run the loop."""
        with self._guard:
            if self._calls or self.closed:
                return None
            try:
                loop = self._started()
            except BaseException:
                work.close()
                raise
            task = self._here = loop.create_task(work)
            self._runner = threading.get_ident()
            return loop, task

    def _started(self) -> asyncio.AbstractEventLoop:
        if self.closed:
            raise _was_closed()
        if self._loop is None:
            loop, me = asyncio.new_event_loop(), weakref.ref(self)
            loop.set_default_executor(Pool(thread_name_prefix="asyncio"))
            try:
                self._thread = started_thread(
                    _serve, loop, self._wanted, self._turn, me, name="lightrag-jsonl"
                )
            except StorageError:
                loop.close()
                raise
            self._loop = loop
            weakref.finalize(self, self._wanted.put, False).atexit = False
        return self._loop

    def _run_calls(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the loop's thread: run the loop until it has nothing left to do."""
        with self._turn:
            with self._guard:
                self._serving = not self.closed
            if self._serving:
                self._runner = threading.get_ident()
                loop.call_soon(self._rest, loop)
                _run_on(loop)
                self._runner = 0

    def _leave(self, source: AsyncIterator[object]) -> None:
        """Close an iterator without waiting: garbage collection may call this in any thread, even
        the loop's own, or one that holds the guard.
        """
        loop = self._loop
        if loop is not None and self.open:
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(lambda: loop.create_task(closed(source)))
                self._wanted.put(True)

    def _answered(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            self._calls -= 1
            if self._serving and not self.closed:
                loop.call_soon_threadsafe(self._rest, loop)

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guard:
            idle = not self._calls and not asyncio.all_tasks(loop)
            if (
                self._serving and idle and not self.closed
            ):  # after `close` it has been stopped already
                self._serving = False
                loop.stop()

    def _cancelled(self) -> Exception:
        """The error for a cancelled call: cancelled by `close()`, or by the work itself."""
        return _was_closed() if self.closed else concurrent.futures.CancelledError()


# ── helpers ─────────────────────────────────────────────────────────────────────


def _interruptible(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Result]) -> Result:
    """Run a loop until a task is done. A first Ctrl-C cancels the task and is raised when it has
    stopped; a second one is raised at once.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        return loop.run_until_complete(task)
    raised: list[BaseException] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except BaseException as error:
            if raised:
                raise
            raised.append(error)
            loop.call_soon_threadsafe(task.cancel)

    signal.signal(signal.SIGINT, interrupt)
    try:
        return loop.run_until_complete(task)
    finally:
        found = signal.signal(signal.SIGINT, before)
        if found is not interrupt:  # another handler was set meanwhile
            signal.signal(signal.SIGINT, found)
        if raised:
            raise raised[0] from None


def _serve(
    loop: asyncio.AbstractEventLoop,
    wanted: queue.SimpleQueue[bool],
    turn: threading.Lock,
    owner: weakref.ref[LoopThread],
) -> None:
    """The thread's function: run the loop whenever that is wanted, until its owner is closed or deleted."""
    while wanted.get() and (here := owner()) is not None:
        here._run_calls(loop)
        del here
    with turn:
        loop.run_until_complete(_wound_up(loop))
        loop.close()


def _run_on(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped. KeyboardInterrupt and SystemExit are raised to the caller who
    waits for the task; here they must not end the loop, on which other callers wait. Nor must a
    lack of memory, after which the loop can go on.
    """
    while True:
        try:
            return loop.run_forever()
        except (KeyboardInterrupt, SystemExit) as error:
            log.debug("a call ended with %r", error)
        except MemoryError:
            time.sleep(WANT_SECONDS)
            asyncio._set_running_loop(None)  # where the loop could not even say that it left off


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _was_closed() -> StorageError:
    return StorageError("this LightRAG was closed")


async def _wound_up(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all remaining tasks, and wait until they have ended."""
    pending = asyncio.all_tasks() - {asyncio.current_task()}
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


async def _next(source: AsyncIterator[Item]) -> Item:
    return await anext(source)
