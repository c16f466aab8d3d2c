"""Embedding models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np

from lightrag_jsonl.core.errors import EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.tokens import default_tokenizer
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.core.vectors import normalize_vectors
from lightrag_jsonl.providers.connection import Connection

DIMS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
OPENAI_MAX_TOKENS = 8191  # the longest text that the models in DIMS read


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint.

    - `dim`: known for OpenAI's own models; a smaller one asks text-embedding-3-* for shorter
      vectors. For other models give it, or reading `.dim` sends one request and waits.
    - `query_prefix`, `passage_prefix`: put before every text.
    - `max_tokens`: the longest text the model reads.

    Raises `EmbeddingError`, or `ConfigError` if there is no key.
    """

    remote = True

    def __init__(
        self,
        model: str,
        *,
        dim: int | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        extra_body: Mapping[str, Json] | None = None,
    ) -> None:
        known = DIMS.get(model)
        self.model = model
        self.max_tokens = max_tokens or (OPENAI_MAX_TOKENS if known else None)
        self.name = f"{model} + {passage_prefix!r}" if passage_prefix else model
        self._dim = dim or known
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        self._extra_body = dict(extra_body or {})
        if known and self._dim != known:
            self._extra_body.setdefault("dimensions", dim)
        self._connection = Connection(base_url, api_key, timeout, max_retries)

    @property
    def dim(self) -> int:
        """The length of a vector; if it is unknown, this sends one small request and waits."""
        if self._dim is None:
            with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
                vectors = thread.submit(asyncio.run, self.embed(["dim"], kind="query")).result()
            self._dim = vectors.shape[1]
        return self._dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length, in the order of `texts`."""
        if not texts:
            return np.zeros((0, self._dim or 0), dtype=np.float32)
        inputs = [self._prefixes[kind] + sanitize(text) or " " for text in texts]  # never empty
        embeddings: Any = self._connection.client().embeddings.with_raw_response
        try:
            with self._connection.failures():
                response = await embeddings.create(
                    model=self.model,
                    input=inputs,
                    encoding_format="float",
                    extra_body=self._extra_body,
                )
                items = json.loads(response.content).get("data")
        except LLMError as error:
            raise EmbeddingError(str(error)) from error.__cause__
        host = self._connection.host
        try:
            rows = {item.get("index", n): item["embedding"] for n, item in enumerate(items)}
            ordered = [rows[index] for index in range(len(items))]
        except (TypeError, AttributeError, LookupError) as error:
            raise EmbeddingError(f"{host}: the answer is no list of vectors") from error
        return normalize_vectors(ordered, count=len(texts), dim=self._dim, source=host)

    def clip(self, text: str) -> str:
        """The part of a passage that the model reads: at most `max_tokens`, whole characters."""
        if self.max_tokens is None:
            return text
        limit = self.max_tokens - len(self._prefixes["passage"].encode())
        if len(text) * 4 <= limit:  # a token is at least one byte, a character at most four
            return text
        tokenizer = default_tokenizer()
        margin = 1.0 - float(getattr(tokenizer, "error", 0.0))
        return tokenizer.truncate(text, max(1, int(limit * margin)))
