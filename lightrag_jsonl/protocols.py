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
    def name(self) -> str:
        """What tells it from other models."""
        ...

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
    ) -> AsyncIterator[str]:
        """The answer in pieces as they are written; raise `LLMError` where that cannot be done.

        Where it is transient, and no piece was given yet, `stream` is called again. An attribute
        of the iterator is optional: `usage`, a `Usage`, what the answer cost, known at its end; so is
        `finish`, that of a `Completion`.
        """
        ...


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

    Three attributes are optional: `lexical` (True where the vectors only count words, so that the
    full-text search knows better than they which passages are near), `clip` (a function from
    a text to the part of it that is read, so that texts alike in that part share a vector) and
    `remote` (True where vectors are paid for or come from afar: each batch is stored as it comes, and
    a killed insert does not ask for it again).
    """

    @property
    def name(self) -> str:
        """What tells it from other embedders; an index stays with the one it was built with."""
        ...

    @property
    def dim(self) -> int:
        """The length of its vectors."""
        ...

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """One row a text, in order; raise `EmbeddingError` where that cannot be done."""
        ...


class Tokenizer(Protocol):
    """Counts tokens and cuts texts; `truncate` returns a prefix of at most `limit` tokens.

    Where it raises, or counts in no whole number, a `ConfigError` names it; where what it cuts is
    not the beginning of the text, that is found by its counts.

    Two attributes are optional: `error` (the share by which counts may be off, default 0) and
    `additive` (True: a text never has more tokens than its parts and a line break between them
    together, so that the parts of a prompt need not be counted anew as a whole).
    """

    @property
    def name(self) -> str:
        """What tells it from other tokenizers; an index stays with the one it was built with."""
        ...

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        ...

    def truncate(self, text: str, limit: int) -> str:
        """The longest beginning of a text, or nearly, that has at most `limit` tokens."""
        ...


class Reranker(Protocol):
    """Scores texts against a query; higher is better, one score a text."""

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A finite number a text, in the order of the texts."""
        ...


class Extractor(Protocol):
    """Reads the entities and relations of one chunk."""

    @property
    def name(self) -> str:
        """What tells it from other extractors."""
        ...

    async def extract(self, chunk: Chunk) -> Extraction:
        """What the chunk says; both ends of a relation are among the entities."""
        ...


class KeywordExtractor(Protocol):
    """Tells what a question is about."""

    async def keywords(self, question: str, history: Sequence[Message] = ()) -> Keywords:
        """Its themes and the named things in it; `history` are the turns before, oldest first."""
        ...


class Answerer(Protocol):
    """Writes an answer with `[n]` citations from a context, without a model."""

    async def answer(self, question: str, context: Context) -> str:
        """The text; `[n]` counts entities, then relations, then chunks of the context from 1."""
        ...
