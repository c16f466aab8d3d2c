"""Calls of parts that users bring: whatever one raises fails that call alone, with an error of ours."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import Literal, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.errors import ConfigError, EmbeddingError, LightRAGError, LLMError
from lightrag_jsonl.protocols import (
    Answerer,
    Embedder,
    KeywordExtractor,
    Reranker,
    Tokenizer,
    Vectors,
)
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Context, Keywords, Message
from lightrag_jsonl.units import unit_rows

Scores = npt.NDArray[np.float64]
Result = TypeVar("Result")
EmbeddingKind = Literal["query", "passage"]


async def answered(call: Awaitable[Result], error: LightRAGError) -> Result:
    """The result of a call. If the call itself raises CancelledError, as some clients do on a
    timeout, `error` is raised instead: the task would otherwise count as cancelled from outside.
    """
    try:
        return await call
    except asyncio.CancelledError as cause:
        if is_cancelled():
            raise
        raise error from cause


def is_cancelled() -> bool:
    """Whether the running task is being cancelled, and not only something it awaits."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def is_lost(error: Exception) -> bool:
    """Whether somebody's own client tells that an answer did not come in time, or broke off.

    What HTTP clients raise has a name in common at most: `ReadTimeout`, `APITimeoutError`, and so on.
    """
    names = [kind.__name__ for kind in type(error).__mro__]
    unsent = names[0].startswith(("Connect", "Pool"))  # httpx and requests call them so
    return isinstance(error, TimeoutError | ConnectionResetError) or (
        not unsent and any("Timeout" in name for name in names)
    )


async def embedded(embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
    """An embedder's vectors for texts: float32 of shape (len(texts), dim), rows of unit length.

    Whatever else it does becomes an `EmbeddingError`.
    """
    name = f"embedder {embedder.name!r}"
    with _told_of(name, EmbeddingError):
        rows = await embedder.embed(texts, kind=kind)
    return unit_rows(rows, count=len(texts), dim=embedder.dim, source=name)


async def keywords_of(
    extractor: KeywordExtractor, question: str, history: Sequence[Message]
) -> Keywords:
    """A keyword extractor's keywords for a question; whatever else it does becomes an `LLMError`."""
    with _told_of(f"keyword extractor {_name(extractor)}", LLMError):
        found = await extractor.keywords(question, history)
        return Keywords(_texts(found.high_level), _texts(found.low_level))


async def answer_of(answerer: Answerer, question: str, context: Context) -> str:
    """An answerer's text; whatever else it does becomes an `LLMError`."""
    with _told_of(f"answerer {_name(answerer)}", LLMError):
        return sanitize(_text(await answerer.answer(question, context)))


async def scores_of(reranker: Reranker, question: str, texts: Sequence[str]) -> Scores:
    """A reranker's scores: float64 of shape (len(texts),); whatever else it does becomes an `LLMError`."""
    with _told_of(f"reranker {_name(reranker)}", LLMError):
        scores = np.array(await reranker.score(question, texts), np.float64)
        if scores.shape != (len(texts),):
            raise TypeError(f"it gave numbers of shape {scores.shape} for {len(texts)} texts")
    return scores


class ToldTokenizer:
    """A user's tokenizer; whatever it does besides counting and cutting becomes a `ConfigError`.

    It is called for every line of a context, and this check adds a tenth of a microsecond.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = tokenizer.name
        self.error = getattr(tokenizer, "error", 0.0)
        self.additive = getattr(tokenizer, "additive", False)
        self._count = tokenizer.count
        self._truncate = tokenizer.truncate

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        try:
            count = self._count(text)
            return count if type(count) is int and count >= 0 else _whole_number(count)
        except LightRAGError:
            raise
        except Exception as error:  # the user's own code may raise anything
            raise self._told(error) from error

    def truncate(self, text: str, limit: int) -> str:
        """A prefix of the text that has at most `limit` tokens.

        Many tokenizers return something that is no prefix: normalized words, or half a character at
        the end. Then the prefix is found by counting.
        """
        try:
            cut = _text(self._truncate(text, limit))
        except LightRAGError:
            raise
        except Exception as error:
            raise self._told(error) from error
        return cut if text.startswith(cut) else self._beginning(text, limit)

    def _beginning(self, text: str, limit: int) -> str:
        ends = range(1, len(text) + 1)
        return text[: bisect_right(ends, limit, key=lambda end: self.count(text[:end]))]

    def _told(self, error: Exception) -> ConfigError:
        return ConfigError(_failure(f"tokenizer {self.name!r}", error))


@contextmanager
def _told_of(part: str, kind: type[LLMError] | type[EmbeddingError]) -> Iterator[None]:
    """Turn what a user's part raises into an error of ours that names the part."""
    try:
        yield
    except LightRAGError:
        raise
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise kind(f"{part} cancelled its own call") from error
    except Exception as error:  # the user's own code may raise anything
        raise kind(_failure(part, error)) from error


def _failure(part: str, error: Exception) -> str:
    words = f": {error}" if str(error) else ""
    return f"{part} failed: {type(error).__name__}{words}"


def _name(part: object) -> str:
    return repr(getattr(part, "name", type(part).__qualname__))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it gave {type(value).__name__}, not a text")
    return value


def _whole_number(value: SupportsIndex) -> int:
    """A count given as another type of integer, such as numpy's."""
    if (number := index(value)) < 0:
        raise ValueError(f"it counted {number} tokens")
    return number


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("it gave one text, not several")
    return tuple(map(_text, values))
