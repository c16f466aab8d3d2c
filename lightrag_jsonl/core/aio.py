"""Coroutines together, blocking calls in threads, and calls with a time limit."""

import asyncio
import contextlib
import contextvars
import threading
from asyncio import _unregister_task as unregister_task
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from anyio import CancelScope

Result = TypeVar("Result")

GRACE = 2.0  # seconds that a cancelled call of a user's code has to end


async def gather_all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Await all coroutines at once, results in order; the first error cancels the rest."""
    coroutines = list(work)
    if len(coroutines) == 1:  # without a task of its own: most documents have one chunk
        return [await coroutines[0]]
    async with task_group() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
    return [task.result() for task in tasks]


@contextlib.asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks; the first error cancels the rest, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from error.__cause__


async def finish_all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """As `gather_all`, but the first error is raised only after the end of all coroutines."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    results: list[Result] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


async def in_thread(call: Callable[..., Result], *args: object) -> Result:
    """The result of a blocking call in a thread; a cancellation waits for the end of the call."""
    task = asyncio.get_running_loop().run_in_executor(None, call, *args)
    with CancelScope(shield=True):
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            task.exception()  # it counts as retrieved
            raise
    return task.result()


async def in_daemon_thread(call: Callable[[], Result]) -> Result:
    """The result of a call that may hang; a cancelled caller and the process's end do not wait."""
    future: Future[Result] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(context.run(call))
        except StopIteration as error:  # no future can hold it
            future.set_exception(RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


async def abandonable(work: Awaitable[Result], *, timeout: float | None = None) -> Result:
    """The result of a call of a user's code; `TimeoutError` after `timeout` seconds.

    A late call is cancelled, as is the call of a cancelled caller. A call still running after `GRACE`
    more seconds is abandoned: not even the end of the event loop waits.
    """
    task = asyncio.ensure_future(work)
    caller = asyncio.current_task()
    try:
        await asyncio.wait([task], timeout=timeout)
        if not task.done():
            await _end(task)
    except asyncio.CancelledError:
        await _end(task)
        if caller is None or not task.done() or task.cancelled():
            raise
        caller.uncancel()
        caller.cancel()  # later, where the caller waits next: the result may have been paid for
    if task.cancelled() or not task.done():
        seconds = "" if timeout is None else f" in {timeout:g} seconds"
        raise TimeoutError(f"no answer{seconds}, or it was cancelled")
    return task.result()


async def _end(task: asyncio.Future[Any]) -> None:
    """Cancel an unfinished task, and abandon the task after the grace."""
    if task.cancel():
        try:
            await asyncio.wait([task], timeout=GRACE)
        finally:
            if isinstance(task, asyncio.Task) and not task.done():
                # From Python's documentation, "Extending asyncio"; `asyncio.run` would wait for it.
                unregister_task(task)
