"""Runs coroutines together, raising their error unwrapped; and starts threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from lightrag_jsonl.errors import StorageError

Result = TypeVar("Result")
Other = TypeVar("Other")


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
        raise StorageError(
            f"no thread can be started ({error}): raise the limit on processes and threads "
            "(`ulimit -u`, or that of the container), or on memory"
        ) from error
    return thread
