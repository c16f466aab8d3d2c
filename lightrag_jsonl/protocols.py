"""The ports: what the core needs from the outside world, one or two methods each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.types import (
    Chunk,
    Completion,
    Context,
    Extraction,
    Json,
    Keywords,
    Message,
    ResponseType,
)

Vectors = npt.NDArray[np.float32]


class LLM(Protocol):
    """A chat model. `name` is part of cache keys and of provenance."""

    @property
    def name(self) -> str: ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """Answer the conversation; raise `LLMError` where that cannot be done."""
        ...


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A chat model that can also write piece by piece."""

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]: ...


@runtime_checkable
class ConstrainedLLM(LLM, Protocol):
    """A chat model whose server can be held to a schema while it writes."""

    async def complete_records(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Json],
        names: Sequence[str] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Like `complete` for JSONL: every line obeys `schema`; entity names come from `names` if given."""
        ...


class Embedder(Protocol):
    """Texts to vectors: float32, shape (len(texts), dim), rows of unit length.

    An attribute `lexical` is optional: True where the vectors only count words, so that the
    full-text search knows better than they which passages are near.
    """

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["query", "passage"]
    ) -> Vectors: ...


class Tokenizer(Protocol):
    """Counts tokens and cuts texts; `truncate` returns a prefix of at most `limit` tokens.

    Two attributes are optional: `error` (the share by which counts may be off, default 0) and
    `additive` (True: a text never has more tokens than its parts and a line break between them
    together, so that the parts of a prompt need not be counted anew as a whole).
    """

    @property
    def name(self) -> str: ...
    def count(self, text: str) -> int: ...
    def truncate(self, text: str, limit: int) -> str: ...


class Reranker(Protocol):
    """Scores texts against a query; higher is better, one score a text."""

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]: ...


class Extractor(Protocol):
    """Reads the entities and relations of one chunk."""

    @property
    def name(self) -> str: ...
    async def extract(self, chunk: Chunk) -> Extraction: ...


class KeywordExtractor(Protocol):
    """Tells what a question is about."""

    async def keywords(self, question: str, history: Sequence[Message] = ()) -> Keywords: ...


class Answerer(Protocol):
    """Writes an answer with `[n]` citations from a context, without a model."""

    async def answer(self, question: str, context: Context) -> str: ...
