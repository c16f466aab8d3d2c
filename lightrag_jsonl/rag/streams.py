"""An answer in pieces, as written by the model."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Self

from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import UsageMeter


class AsyncAnswerStream:
    """The pieces of an answer, for `async for`; after the last piece, `.answer` is complete."""

    def __init__(self, pieces: AsyncGenerator[str | Answer], meter: UsageMeter) -> None:
        self._pieces = pieces
        self._meter = meter
        self._answer: Answer | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        item = await anext(self._pieces)
        if isinstance(item, Answer):
            self._answer = item
            await self._pieces.aclose()
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """End the answer early; there will be no `.answer`."""
        await self._pieces.aclose()

    @property
    def answer(self) -> Answer:
        """The complete answer, with its citations; `ValueError` before the last piece was read."""
        if self._answer is None:
            raise ValueError("the answer is complete once all of its pieces were read")
        return self._answer

    @property
    def usage(self) -> Usage:
        """The calls and tokens used so far; an interrupted call counts as a call without tokens."""
        return self._meter.spent


async def queued(
    run: Callable[[Callable[[str | Answer], None]], Awaitable[None]],
) -> AsyncGenerator[str | Answer]:
    """The items put into the queue by `run`; leaving the iterator early cancels `run`."""
    items: asyncio.Queue[str | Answer | None] = asyncio.Queue()
    task = asyncio.ensure_future(run(items.put_nowait))
    task.add_done_callback(lambda task: items.put_nowait(None))
    try:
        while (item := await items.get()) is not None:
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])
