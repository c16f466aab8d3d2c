"""Calls of what users bring: whatever it raises, it fails its own call and not who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Literal, TypeVar

from lightrag_jsonl.errors import EmbeddingError, LightRAGError
from lightrag_jsonl.protocols import Embedder, Vectors
from lightrag_jsonl.units import unit_rows

Result = TypeVar("Result")
EmbeddingKind = Literal["query", "passage"]


async def answered(call: Awaitable[Result], error: LightRAGError) -> Result:
    """What a call gives; `error` where it says of itself that it was cancelled, as some clients do
    when their time is up. A task that ends so would be taken for one that nobody wants any more.
    """
    try:
        return await call
    except asyncio.CancelledError as cause:
        if is_cancelled():
            raise
        raise error from cause


def is_cancelled() -> bool:
    """Whether it is the running task that is cancelled, and not only what it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def embedded(embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
    """What an embedder gives for texts: float32 of shape (len(texts), dim), rows of unit length.

    Whatever it does instead, an `EmbeddingError` tells.
    """
    name = embedder.name
    cancelled = EmbeddingError(f"embedder {name!r} cancelled its own call")
    try:
        rows = await answered(embedder.embed(texts, kind=kind), cancelled)
    except LightRAGError:
        raise
    except Exception as error:  # the user's own embedder may raise anything
        raise EmbeddingError(
            f"embedder {name!r} failed: {type(error).__name__}: {error}"
        ) from error
    return unit_rows(rows, count=len(texts), dim=embedder.dim, source=f"embedder {name!r}")
