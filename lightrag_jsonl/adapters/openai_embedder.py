"""Embedding models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from lightrag_jsonl.adapters.endpoint import Endpoint, JsonObject
from lightrag_jsonl.adapters.faults import EndpointError
from lightrag_jsonl.concurrency import together
from lightrag_jsonl.errors import ConfigError, EmbeddingError
from lightrag_jsonl.protocols import Tokenizer, Vectors
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Json
from lightrag_jsonl.units import unit_rows

if TYPE_CHECKING:
    import openai

EMBEDDINGS = "/embeddings"
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
        batch_size: int = 64,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int | None = None,
        tokenizer: Tokenizer | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        extra_body: Mapping[str, Json] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        name: str | None = None,
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        if batch_size < 1 or (dim is not None and dim < 1):
            raise ConfigError("batch_size and dim must be at least 1")
        known = DIMS.get(model)
        self.model = model
        self.max_tokens = max_tokens or (OPENAI_MAX_TOKENS if known else None)
        self._name = name or (f"{model} + {passage_prefix!r}" if passage_prefix else model)
        self._dim = dim or known
        self._batch_size = batch_size
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        self._tokenizer = tokenizer
        self._extra = dict(extra_body or {})
        if known and dim and dim != known:
            self._extra.setdefault("dimensions", dim)
        self._endpoint = Endpoint(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            max_retries=max_retries,
            extra_headers=extra_headers,
            client=client,
        )

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.model!r}, host={self._endpoint.host!r})"

    @property
    def name(self) -> str:
        """The given name, or else the model's."""
        return self._name

    @property
    def dim(self) -> int:
        """The length of a vector; if it is unknown, this sends one small request and waits."""
        if self._dim is None:
            try:
                answer = self._endpoint.post_blocking(EMBEDDINGS, self._body(["dim"]))
            except EndpointError as error:
                raise EmbeddingError(str(error)) from error.__cause__
            self._dim = self._vectors(answer, 1).shape[1]
        return self._dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length, in the order of `texts`."""
        prefixed = [self._prefixes[kind] + sanitize(text) for text in texts]
        size = self._batch_size
        batches = [prefixed[at : at + size] for at in range(0, len(prefixed), size)]
        gate = asyncio.Semaphore(CONCURRENT_BATCHES)

        async def one(batch: list[str]) -> Vectors:
            async with gate:
                return await self._embed(batch)

        if not batches:
            return np.zeros((0, self._dim or 0), dtype=np.float32)
        return np.concatenate(await together(one(batch) for batch in batches))

    def clip(self, text: str) -> str:
        """The part of a passage that the model reads: at most `max_tokens`, whole characters."""
        limit = self.max_tokens
        if limit is None:
            return text
        limit -= len(self._prefixes["passage"].encode("utf-8", "replace"))
        if len(text.encode("utf-8", "replace")) <= limit:  # a token is at least one byte
            return text
        if self._tokenizer is None:
            from lightrag_jsonl.tokens import default_tokenizer

            self._tokenizer = default_tokenizer()
        margin = 1.0 - float(getattr(self._tokenizer, "error", 0.0))
        return self._tokenizer.truncate(text, max(1, int(limit * margin)))

    async def _embed(self, batch: list[str]) -> Vectors:
        try:
            answer = await self._endpoint.post(EMBEDDINGS, self._body(batch))
        except EndpointError as error:
            raise EmbeddingError(str(error)) from error.__cause__
        vectors = self._vectors(answer, len(batch))
        self._dim = vectors.shape[1]
        return vectors

    def _body(self, batch: Sequence[str]) -> JsonObject:
        # OpenAI refuses an empty text; a space means as little.
        texts: list[Json] = [text or " " for text in batch]
        return {"model": self.model, "input": texts, "encoding_format": "float", **self._extra}

    def _vectors(self, answer: JsonObject, count: int) -> Vectors:
        data = answer.get("data")
        items = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
        places = [item.get("index", at) for at, item in enumerate(items)]
        if not all(isinstance(at, int) for at in places) or {*places} != {*range(count)}:
            places = []
        if len(places) != count:
            raise EmbeddingError(
                f"{self._endpoint.host}: {count} texts gave {len(items)} vectors, or wrong indices"
            )
        rows = dict(zip(places, (item.get("embedding") for item in items), strict=True))
        ordered = [rows[at] for at in range(count)]
        return unit_rows(ordered, count=count, dim=self._dim, source=self._endpoint.host)
