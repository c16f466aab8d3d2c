"""Coroutines together: errors as they were raised."""

from __future__ import annotations

import asyncio

import pytest

from lightrag_jsonl.core.aio import gather_all


async def test_the_first_error_is_raised_plainly_and_cancels_the_rest() -> None:
    """With its cause, outside of any group, also where groups are nested."""
    cancelled = []

    async def fail() -> None:
        raise ValueError("错") from KeyError("cause")

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def nested() -> None:
        await gather_all([wait(), fail()])

    with pytest.raises(ValueError, match="错") as error:
        await gather_all([wait(), nested()])
    assert isinstance(error.value.__cause__, KeyError)
    assert cancelled == [True, True]
