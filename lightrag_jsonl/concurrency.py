"""Runs coroutines together, raising their error unwrapped; starts threads; outlives a lack of memory."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from lightrag_jsonl.errors import StorageError

Result = TypeVar("Result")
Other = TypeVar("Other")
Given = ParamSpec("Given")

WANT_SECONDS = 0.01  # until memory is asked for again


async def together(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Await all at once, results in order; the first error cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in work]
    except BaseExceptionGroup as errors:
        error = first(errors)
        raise error from error.__cause__
    return [task.result() for task in tasks]


async def both(
    one: Coroutine[Any, Any, Result], other: Coroutine[Any, Any, Other]
) -> tuple[Result, Other]:
    """Await two different things at once, as `together` does."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = group.create_task(one), group.create_task(other)
    except BaseExceptionGroup as errors:
        error = first(errors)
        raise error from error.__cause__
    return tasks[0].result(), tasks[1].result()


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine to its end, ignoring cancellation."""
    await _ended(asyncio.ensure_future(work))


async def uncut(work: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine to its end; a cancellation meanwhile takes effect after that."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await _ended(task)
        raise


async def _ended(task: asyncio.Future[None]) -> None:
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])


def first(error: BaseException) -> BaseException:
    """The first error inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def started_thread(work: Callable[..., object], *arguments: object, name: str) -> threading.Thread:
    """A daemon thread that does some work; `StorageError` if the system cannot start one."""
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise _no_thread(error) from error
    return thread


class Pool(ThreadPoolExecutor):
    """Threads that are started as they are needed; `StorageError` where the system gives none."""

    def submit(
        self, fn: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Future[Result]:
        """Have a function called in one of them."""
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            if "start new thread" in str(error):
                raise _no_thread(error) from error
            raise


def _no_thread(error: RuntimeError) -> StorageError:
    return StorageError(
        f"no thread can be started ({error}): raise the limit on processes and threads "
        "(`ulimit -u`, or that of the container), or on memory"
    )


def despite_want(
    call: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Call what others wait for, again until there is memory for it."""
    while True:
        try:
            return call(*args, **kwargs)
        except MemoryError:
            time.sleep(WANT_SECONDS)
