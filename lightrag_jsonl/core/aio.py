"""Runs coroutines together, and blocking calls in threads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from anyio import CancelScope

Result = TypeVar("Result")


async def gather_all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Await all at once, results in order; the first error cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in work]
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from error.__cause__
    return [task.result() for task in tasks]


async def in_thread(call: Callable[..., Result], *args: object) -> Result:
    """The result of a blocking call, run in a thread.

    A thread cannot be stopped: a cancellation takes effect when the call has ended.
    """
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
