"""Calls of users' own parts: errors and results are checked, errors name the part."""

import logging
import math
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import index
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core import protocols
from lightrag_jsonl.core.aio import abandonable
from lightrag_jsonl.core.answers import Context, Keywords
from lightrag_jsonl.core.errors import (
    ConfigError,
    EmbeddingError,
    LightRAGError,
    LLMError,
    described,
)
from lightrag_jsonl.core.protocols import Tokenizer, Vectors
from lightrag_jsonl.core.retrying import PATIENCE, READER_PATIENCE, retries_of, with_retries
from lightrag_jsonl.core.telemetry import client_span
from lightrag_jsonl.core.types import Completion, Finish, Message
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.validation import repr_start
from lightrag_jsonl.text.strings import sanitize

log = logging.getLogger(__name__)

Scores = npt.NDArray[np.float64]
ONE_CALL = Usage(calls=1)
# The words of servers for a whole answer, for a limit and for a filter: of OpenAI, Azure, Gemini,
# Anthropic, Cohere, DeepSeek, Mistral, vLLM and TGI. Any other word means an error.
FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(
        ["", "stop", "end", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed",
         "tool_calls", "tool_use", "function_call", "finish_reason_stop"],
        "stop",
    ),
    **dict.fromkeys(
        ["length", "max_tokens", "max_output_tokens", "model_length", "max_length", "token_limit",
         "model_context_window_exceeded", "finish_reason_max_tokens"],
        "length",
    ),
    **dict.fromkeys(
        ["filter", "content_filter", "content_filtered", "safety", "image_safety", "recitation", "language",
         "blocklist", "prohibited_content", "spii", "refusal", "sensitive"],
        "filter",
    ),
}  # fmt: skip
UNAVAILABLE = frozenset({401, 402, 404, 408, 429, 502, 503, 504, 529})  # statuses of HTTP
HARMLESS = "word"  # a text that every embedder takes
MOST_TOKENS = 1 << 53  # beyond, sums are not exact everywhere
TOLERANCE = 1e-3  # by which a unit vector's length may be off


async def embed_texts(
    embedder: protocols.Embedder,
    texts: Sequence[str],
    kind: Literal["query", "passage"],
    *,
    attempt: Callable[[], Awaitable[Vectors]] | None = None,
) -> Vectors:
    """An embedder's unit vectors, shape (len(texts), dim); or else an `EmbeddingError`.

    `attempt` is one request for them, where a request needs more than a call of the embedder.
    """
    ask = attempt or partial(embedder.embed, texts, kind=kind)
    with client_span("embeddings", embedder) as span, _named("embedder", EmbeddingError, embedder):
        rows = await with_retries(
            lambda: abandonable(ask()),
            retries=retries_of(embedder),
            patience=READER_PATIENCE if kind == "query" else PATIENCE,
        )
        span.add({"gen_ai.embeddings.dimension.count": embedder.dim})
    source = f"embedder {embedder.name!r}"
    return normalize_vectors(rows, count=len(texts), dim=embedder.dim, source=source)


async def can_embed(embedder: protocols.Embedder, kind: Literal["query", "passage"]) -> bool:
    """Whether an embedder takes a harmless text, so that a refusal is about the refused text."""
    try:
        await embed_texts(embedder, [HARMLESS], kind)
    except EmbeddingError:
        return False
    return True


async def find_keywords(
    extractor: protocols.KeywordExtractor, question: str, history: Sequence[Message]
) -> Keywords:
    """A keyword extractor's keywords; any failure becomes an `LLMError`."""
    with _named("keyword extractor", LLMError, extractor):
        keywords = await abandonable(extractor.keywords(question, history))
        return msgspec.convert(msgspec.to_builtins(keywords), Keywords)


async def write_answer(answerer: protocols.Answerer, question: str, context: Context) -> str:
    """An answerer's text; any failure becomes an `LLMError`."""
    with _named("answerer", LLMError, answerer):
        return sanitize(_text(await abandonable(answerer.answer(question, context))))


async def rerank_scores(
    reranker: protocols.Reranker, question: str, texts: Sequence[str]
) -> Scores:
    """A reranker's scores, shape (len(texts),); any failure becomes an `LLMError`."""
    with _named("reranker", LLMError, reranker):
        scores = np.array(await abandonable(reranker.score(question, texts)), np.float64)
        if scores.shape != (len(texts),):
            raise TypeError(f"it gave numbers of shape {scores.shape} for {len(texts)} texts")
        if not np.isfinite(scores).all():
            raise ValueError("a score is NaN or infinite")
    return scores


def checked_completion(completion: object, model: str, *, longest: int) -> Completion:
    """A completion of plain values, counted as a call; `LLMError` without a text.

    A text of more than `longest` characters is cut off. `finish` may be the word of any server.
    """
    if not isinstance(completion, Completion) or not isinstance(completion.text, str):
        raise LLMError(f"{model} answered without a text: {repr_start(completion)}", cost=ONE_CALL)
    usage = completion.usage or ONE_CALL
    plain_usage = Usage(  # plain numbers, to be stored
        input_tokens=_plain_count(usage.input_tokens),
        output_tokens=_plain_count(usage.output_tokens),
        cached_tokens=_plain_count(usage.cached_tokens),
        calls=_plain_count(usage.calls) or 1,
    )
    text = sanitize(completion.text[:longest])
    finish = finish_of(completion.finish)
    if len(completion.text) > longest:
        log.warning("%s: an answer is cut off at %d characters", model, longest)
        finish = "length"
    return Completion(text, finish, plain_usage)


def _plain_count(number: object) -> int:
    """A number of tokens or calls; 0 for what is none, such as NaN, infinity or a number below zero."""
    try:
        count = int(number)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return 0
    return count if 0 <= count <= MOST_TOKENS else 0


def finish_of(reason: object) -> Finish:
    """How an answer ended, by the word of any server; an answer without a word counts as whole."""
    finish = FINISHES.get(str(reason or "").casefold(), "error")
    if finish == "error" and reason != "error":
        log.warning("an answer with the unknown finish reason %r counts as incomplete", reason)
    return finish


def chunk_spans(chunker: protocols.Chunker, text: str) -> list[tuple[int, int]]:
    """The chunks of a page by a user's chunker, as (start, end); any failure is a `ConfigError`."""
    name = getattr(chunker, "__qualname__", type(chunker).__qualname__)
    spans: list[tuple[int, int]] = []
    start = -1
    end = 0
    try:
        for number, chunk in enumerate(chunker(text)):
            span = _piece_span(chunk, text, start, end) if isinstance(chunk, str) else chunk
            problem = _span_problem(span, text, start, end)
            if problem:
                raise ValueError(f"chunk {number} {problem}")
            start, end = span
            spans.append((start, end))
        if text[end:].strip():
            raise ValueError(
                f"no chunk holds the end of the page, {repr_start(text[end:].strip())}"
            )
    except Exception as error:  # the user's own code may raise anything
        raise ConfigError(f"chunker {name} failed: {described(error)}") from error
    return spans


def _piece_span(piece: str, text: str, start: int, end: int) -> tuple[int, int]:
    """The place of a piece: after the end of the chunk before, or else overlapping that chunk."""
    gap = len(text) - end - len(text[end:].lstrip())
    for first in (end, end + gap):
        if text.startswith(piece, first):
            return first, first + len(piece)
    first = text.find(piece, start + 1)
    while first >= 0 and first + len(piece) <= end:
        first = text.find(piece, first + 1)
    if first < 0 or not piece:
        raise ValueError(f"the page does not hold {repr_start(piece)}, in this order")
    return first, first + len(piece)


def _span_problem(span: object, text: str, start: int, end: int) -> str:
    """What is wrong with a chunk after the one from `start` to `end`; nothing if it is right."""
    if not isinstance(span, tuple | list) or [type(place) for place in span] != [int, int]:
        return f"is {repr_start(span)}, not a text or (start, end)"
    first, last = span
    if not 0 <= first < last <= len(text):
        return f"is {(first, last)}, not within the {len(text)} characters of the page"
    if not text[first:last].strip():
        return f"holds only white space, {(first, last)}"
    if first <= start or last <= end:
        return f"is {(first, last)}, not after the one before, {(start, end)}"
    if left_out := text[end:first].strip():
        return f"begins at {first}, so that no chunk holds {repr_start(left_out)}"
    return ""


class CheckedTokenizer:
    """A user's tokenizer; any failure becomes a `ConfigError`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = tokenizer.name
        self.error = getattr(tokenizer, "error", 0.0)
        self.additive = getattr(tokenizer, "additive", False)
        self._tokenizer = tokenizer
        if not 0 <= self.error < math.inf:  # NaN, too
            raise ConfigError(f"tokenizer {self.name}: its error must be a number from 0 on")

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        with _named("tokenizer", ConfigError, self):
            count = index(self._tokenizer.count(text))
            if count < 0:
                raise ValueError(f"it counted {count} tokens")
            return count

    def truncate(self, text: str, limit: int) -> str:
        """A prefix of at most `limit` tokens, found by counting if the tokenizer gives no prefix."""
        with _named("tokenizer", ConfigError, self):
            cut = _text(self._tokenizer.truncate(text, limit))
        if text.startswith(cut):
            return cut
        ends = range(1, len(text) + 1)
        return text[: bisect_right(ends, limit, key=lambda end: self.count(text[:end]))]


def normalize_vectors(
    rows: npt.ArrayLike | Sequence[object], *, count: int, dim: int | None, source: str
) -> Vectors:
    """float32 of shape (count, dim), each row divided by the norm.

    `EmbeddingError`, with the `source`, for a wrong shape (None is any `dim`), complex or infinite
    numbers, NaN, or a row of zeros.
    """
    try:
        table = np.asarray(rows)
        if np.iscomplexobj(table):
            raise TypeError("they are complex")
        if table.dtype != np.float32:
            table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbeddingError(
            f"{source}: the vectors are not a table of numbers: {error}"
        ) from error
    if count == 0 and table.size == 0:
        return np.zeros((0, dim or 0), dtype=np.float32)
    is_table = table.ndim == 2 and len(table) == count and table.shape[1] > 0
    if not is_table or dim not in (None, table.shape[1]):
        shape = f"({count}, {dim or 'dim'}), got {table.shape}"
        raise EmbeddingError(f"{source}: {count} texts must give vectors of shape {shape}")
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise EmbeddingError(f"{source}: a vector holds NaN or infinity, or is that long")
    if not lengths.all():
        raise EmbeddingError(f"{source}: a vector holds only zeros")
    if table.dtype == np.float32 and (np.abs(lengths - 1.0) <= TOLERANCE).all():
        return table  # unit vectors keep their bytes
    unit: Vectors = table / lengths
    return unit.astype(np.float32, copy=False)


@contextmanager
def _named(role: str, kind: type[LightRAGError], part: object) -> Iterator[None]:
    """Turn any exception of a user's part into an error of this package with the part's name."""
    try:
        yield
    except LightRAGError:
        raise
    except Exception as error:  # the user's own code may raise anything
        raise _failure_of_part(role, kind, part, error) from error


def _failure_of_part(
    role: str, kind: type[LightRAGError], part: object, error: Exception
) -> LightRAGError:
    name = repr_start(getattr(part, "name", type(part).__qualname__))
    failure = kind(f"{role} {name} failed: {described(error)}")
    if isinstance(failure, EmbeddingError):
        failure.unavailable = _is_unavailable(error)
    return failure


def _is_unavailable(error: Exception) -> bool:
    """Whether the error of a user's embedder means that the server could not be asked."""
    status = getattr(error, "status_code", None)
    return isinstance(error, OSError) or status in UNAVAILABLE


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it gave {type(value).__name__}, not a text")
    return value
