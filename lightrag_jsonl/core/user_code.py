"""Calls of parts that users bring: what they raise or return is checked, with the part's name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import Literal

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, LightRAGError, LLMError
from lightrag_jsonl.core.protocols import (
    Answerer,
    Embedder,
    KeywordExtractor,
    Reranker,
    Tokenizer,
    Vectors,
)
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Completion, Context, Keywords, Message
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.validation import shown
from lightrag_jsonl.core.vectors import normalize_vectors

Scores = npt.NDArray[np.float64]
ONE_CALL = Usage(calls=1)


async def embed_texts(
    embedder: Embedder, texts: Sequence[str], kind: Literal["query", "passage"]
) -> Vectors:
    """An embedder's vectors: float32 of shape (len(texts), dim), rows of unit length.

    Whatever else it does becomes an `EmbeddingError`.
    """
    part = f"embedder {embedder.name!r}"
    with _named(part, EmbeddingError):
        rows = await embedder.embed(texts, kind=kind)
    return normalize_vectors(rows, count=len(texts), dim=embedder.dim, source=part)


async def find_keywords(
    extractor: KeywordExtractor, question: str, history: Sequence[Message]
) -> Keywords:
    """A keyword extractor's keywords; whatever else it does becomes an `LLMError`."""
    with _named(f"keyword extractor {_name(extractor)}", LLMError):
        found = await extractor.keywords(question, history)
        return Keywords(_texts(found.high_level), _texts(found.low_level))


async def write_answer(answerer: Answerer, question: str, context: Context) -> str:
    """An answerer's text; whatever else it does becomes an `LLMError`."""
    with _named(f"answerer {_name(answerer)}", LLMError):
        return sanitize(_text(await answerer.answer(question, context)))


async def rerank_scores(reranker: Reranker, question: str, texts: Sequence[str]) -> Scores:
    """A reranker's scores, shape (len(texts),); whatever else it does becomes an `LLMError`."""
    with _named(f"reranker {_name(reranker)}", LLMError):
        scores = np.array(await reranker.score(question, texts), np.float64)
        if scores.shape != (len(texts),):
            raise TypeError(f"it gave numbers of shape {scores.shape} for {len(texts)} texts")
    return scores


def checked_completion(completion: object, model: str) -> Completion:
    """A completion of plain values, which counts as a call; `LLMError` if it has no text."""
    if not isinstance(completion, Completion) or not isinstance(completion.text, str):
        raise LLMError(f"{model} answered without a text: {shown(completion)}", cost=ONE_CALL)
    usage = completion.usage or ONE_CALL
    counts = usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.calls or 1
    try:
        usage = Usage(*[int(count or 0) for count in counts])
    except (TypeError, ValueError, OverflowError) as error:
        raise LLMError(f"{model} gave token counts that are no numbers", cost=ONE_CALL) from error
    finish: Literal["stop", "length"] = "length" if completion.finish == "length" else "stop"
    return Completion(sanitize(completion.text), finish, usage)


class CheckedTokenizer:
    """A user's tokenizer; whatever it does besides counting and cutting becomes a `ConfigError`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = tokenizer.name
        self.error = getattr(tokenizer, "error", 0.0)
        self.additive = getattr(tokenizer, "additive", False)
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        try:
            number = index(self._tokenizer.count(text))
            if number < 0:
                raise ValueError(f"it counted {number} tokens")
            return number
        except LightRAGError:
            raise
        except Exception as error:  # the user's own code may raise anything
            message = f"tokenizer {self.name!r} failed: {described(error)}"
            raise ConfigError(message) from error

    def truncate(self, text: str, limit: int) -> str:
        """A prefix of the text that has at most `limit` tokens; if the tokenizer gives something
        else (normalized words, half a character), the prefix is found by counting.
        """
        with _named(f"tokenizer {self.name!r}", ConfigError):
            cut = _text(self._tokenizer.truncate(text, limit))
        if text.startswith(cut):
            return cut
        ends = range(1, len(text) + 1)
        return text[: bisect_right(ends, limit, key=lambda end: self.count(text[:end]))]


@contextmanager
def _named(part: str, kind: type[LightRAGError]) -> Iterator[None]:
    """Turn what a user's part raises into an error of ours that names the part."""
    try:
        yield
    except LightRAGError:
        raise
    except Exception as error:  # the user's own code may raise anything
        raise kind(f"{part} failed: {described(error)}") from error


def described(error: Exception) -> str:
    """The type and the words of an error that a user's code raised, whose `str` may fail, too."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - the user's own code may raise anything
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _name(part: object) -> str:
    return shown(getattr(part, "name", type(part).__qualname__))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it gave {type(value).__name__}, not a text")
    return value


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("it gave one text, not several")
    return tuple(map(_text, values))
