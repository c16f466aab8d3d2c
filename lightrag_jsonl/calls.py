"""Calls of what users bring: whatever it raises, it fails its own call and not who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.errors import EmbeddingError, LightRAGError, LLMError
from lightrag_jsonl.protocols import Answerer, Embedder, KeywordExtractor, Reranker, Vectors
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Context, Keywords, Message
from lightrag_jsonl.units import unit_rows

Scores = npt.NDArray[np.float64]
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
    name = f"embedder {embedder.name!r}"
    with _told_of(name, EmbeddingError):
        rows = await embedder.embed(texts, kind=kind)
    return unit_rows(rows, count=len(texts), dim=embedder.dim, source=name)


async def keywords_of(
    extractor: KeywordExtractor, question: str, history: Sequence[Message]
) -> Keywords:
    """What a keyword extractor gives for a question; whatever it does instead, an `LLMError` tells."""
    with _told_of(f"keyword extractor {_name(extractor)}", LLMError):
        found = await extractor.keywords(question, history)
        return Keywords(_texts(found.high_level), _texts(found.low_level))


async def answer_of(answerer: Answerer, question: str, context: Context) -> str:
    """What an answerer writes; whatever it does instead, an `LLMError` tells."""
    with _told_of(f"answerer {_name(answerer)}", LLMError):
        return sanitize(_text(await answerer.answer(question, context)))


async def scores_of(reranker: Reranker, question: str, texts: Sequence[str]) -> Scores:
    """What a reranker gives for texts: float64 of shape (len(texts),); whatever it does instead, an
    `LLMError` tells.
    """
    with _told_of(f"reranker {_name(reranker)}", LLMError):
        scores = np.array(await reranker.score(question, texts), np.float64)
        if scores.shape != (len(texts),):
            raise TypeError(f"it gave numbers of shape {scores.shape} for {len(texts)} texts")
    return scores


@contextmanager
def _told_of(part: str, kind: type[LLMError] | type[EmbeddingError]) -> Iterator[None]:
    """Whatever goes wrong within is the fault of a user's part: an error of the package names it."""
    try:
        yield
    except LightRAGError:
        raise
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise kind(f"{part} cancelled its own call") from error
    except Exception as error:  # the user's own code may raise anything
        words = f": {error}" if str(error) else ""
        raise kind(f"{part} failed: {type(error).__name__}{words}") from error


def _name(part: object) -> str:
    return repr(getattr(part, "name", type(part).__qualname__))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it gave {type(value).__name__}, not a text")
    return value


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("it gave one text, not several")
    return tuple(map(_text, values))
