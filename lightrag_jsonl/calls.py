"""Calls of what users bring: whatever it raises, it fails its own call and not who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from lightrag_jsonl.errors import LightRAGError

Result = TypeVar("Result")


async def answered(call: Awaitable[Result], error: LightRAGError) -> Result:
    """What a call gives; `error` where it says of itself that it was cancelled, as some clients do
    when their time is up. A task that ends so would be taken for one that nobody wants any more.
    """
    try:
        return await call
    except asyncio.CancelledError as cause:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise error from cause
