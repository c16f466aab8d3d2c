"""Embedding models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lightrag_jsonl.core.aio import gather_all
from lightrag_jsonl.core.errors import ConfigError, EmbeddingError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.tokens import default_tokenizer
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.core.vectors import normalize_vectors
from lightrag_jsonl.providers.connection import Connection, RequestError, json_object

if TYPE_CHECKING:
    import openai

DIMS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
OPENAI_MAX_TOKENS = 8191  # the longest text that the models in DIMS read
CONCURRENT_BATCHES = 4


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint.

    - `dim`: known for OpenAI's own models; a smaller one asks text-embedding-3-* for shorter
      vectors. For other models give it, or reading `.dim` sends one request and waits.
    - `query_prefix`, `passage_prefix`: put before every text.
    - `batch_size`: texts in a request; several requests are sent at a time.
    - `max_tokens`: the longest text the model reads. `client`: as for `OpenAILLM`; then give `dim`.

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
        batch_size: int = 64,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        extra_body: Mapping[str, Json] | None = None,
        name: str | None = None,
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        if batch_size < 1 or (dim is not None and dim < 1):
            raise ConfigError("batch_size and dim must be at least 1")
        known = DIMS.get(model)
        self.model = model
        self.max_tokens = max_tokens or (OPENAI_MAX_TOKENS if known else None)
        self.name = name or (f"{model} + {passage_prefix!r}" if passage_prefix else model)
        self._dim = dim or known
        self._batch_size = batch_size
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        shorter: dict[str, Json] = {"dimensions": dim} if known and dim and dim != known else {}
        self._extra_body = {**shorter, **(extra_body or {})}
        self._connection = Connection(base_url, api_key, timeout, max_retries, client)

    @property
    def dim(self) -> int:
        """The length of a vector; if it is unknown, this sends one small request and waits."""
        if self._dim is None:
            if self._connection.given is not None:
                raise ConfigError(f"the length of {self.model}'s vectors is not known: give dim=")
            with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
                vectors = thread.submit(asyncio.run, self._embed(["dim"])).result()
            self._dim = vectors.shape[1]
        return self._dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length, in the order of `texts`."""
        if not texts:
            return np.zeros((0, self._dim or 0), dtype=np.float32)
        prefixed = [self._prefixes[kind] + sanitize(text) for text in texts]
        size = self._batch_size
        batches = [prefixed[start : start + size] for start in range(0, len(prefixed), size)]
        gate = asyncio.Semaphore(CONCURRENT_BATCHES)

        async def embed_batch(batch: list[str]) -> Vectors:
            async with gate:
                return await self._embed(batch)

        return np.concatenate(await gather_all(embed_batch(batch) for batch in batches))

    def clip(self, text: str) -> str:
        """The part of a passage that the model reads: at most `max_tokens`, whole characters."""
        if self.max_tokens is None:
            return text
        limit = self.max_tokens - len(self._prefixes["passage"].encode("utf-8", "replace"))
        if len(text.encode("utf-8", "replace")) <= limit:  # a token is at least one byte
            return text
        tokenizer = default_tokenizer()
        margin = 1.0 - float(getattr(tokenizer, "error", 0.0))
        return tokenizer.truncate(text, max(1, int(limit * margin)))

    async def _embed(self, batch: list[str]) -> Vectors:
        try:
            with self._connection.failures():
                embeddings: Any = self._connection.client().embeddings.with_raw_response
                response = await embeddings.create(
                    model=self.model,
                    input=[text or " " for text in batch],  # OpenAI refuses an empty text
                    encoding_format="float",
                    extra_body=self._extra_body,
                )
                items = json_object(response.content).get("data")
        except RequestError as error:
            raise EmbeddingError(str(error)) from error.__cause__
        return self._vectors(items if isinstance(items, list) else [], len(batch))

    def _vectors(self, items: list[Json], count: int) -> Vectors:
        """The vectors of an answer in the order of their indices, which some servers leave out."""
        host = self._connection.host
        rows = {
            item.get("index", position): item.get("embedding")
            for position, item in enumerate(items)
            if isinstance(item, dict)
        }
        if len(items) != count or rows.keys() != set(range(count)):
            raise EmbeddingError(
                f"{host}: {count} texts gave {len(items)} vectors, or wrong indices"
            )
        ordered = [rows[index] for index in range(count)]
        return normalize_vectors(ordered, count=count, dim=self._dim, source=host)
