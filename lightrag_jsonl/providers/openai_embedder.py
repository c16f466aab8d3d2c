"""Embedding models behind any endpoint of OpenAI's protocol."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np

from lightrag_jsonl.core.errors import EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.retrying import with_retries
from lightrag_jsonl.core.tokens import default_tokenizer
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.core.user_code import normalize_vectors
from lightrag_jsonl.providers.connection import ServerConnection
from lightrag_jsonl.providers.silence import ServerSilence
from lightrag_jsonl.text.strings import sanitize

DIMS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
OPENAI_MAX_TOKENS = 8191  # the longest text that the models in DIMS read
CLIPPED = (
    0.85  # of that, counted without the ranks: a server refuses a text that is a token too long
)


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint.

    - `dim`: known for OpenAI's own models; a smaller number asks text-embedding-3-* for shorter
      vectors. For other models, give the length, or reading `.dim` sends a request and waits.
    - `dimensions`: the length of vectors to ask for, from a server that can shorten vectors.
    - `query_prefix`, `passage_prefix`: put before every text. `query_input_type`,
      `passage_input_type`: sent as `input_type`, for servers that want a type instead of prefixes.
    - `max_tokens`: the longest text the model reads. `batch_size`: the most texts of one request.
    - `max_retries`: the repetitions of a request after a passing error, by an index with the
      embedder; a call of `embed` is a single request.
    - `max_answer_bytes`: a longer answer is not read to the end, and fails.
    - `spec`: the name that makes the embedder again; "" if a name is not enough.

    Raises `EmbeddingError`, or `ConfigError` without a key.
    """

    remote = True

    def __init__(
        self,
        model: str,
        *,
        dim: int | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        query_input_type: str = "",
        passage_input_type: str = "",
        max_tokens: int | None = None,
        batch_size: int | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        max_answer_bytes: int = 100_000_000,
        extra_body: Mapping[str, Json] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> None:
        model_dim = DIMS.get(model)
        input_types = {"query": query_input_type, "passage": passage_input_type}
        self.model = model
        self._batch_size = batch_size
        self.max_tokens = max_tokens or (OPENAI_MAX_TOKENS if model_dim else None)
        self.max_retries = max_retries
        passage_form = passage_prefix or passage_input_type
        is_named_only = not (query_prefix or query_input_type or passage_form or extra_body)
        self.name = f"{model} + {passage_form!r}" if passage_form else model
        self.spec = f"openai:{model}" if is_named_only else ""
        self._dim = dim or dimensions or model_dim
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        self._extra_bodies = {kind: dict(extra_body or {}) for kind in ("query", "passage")}
        for kind, body in self._extra_bodies.items():
            if dimensions or (model_dim and self._dim != model_dim):
                body.setdefault("dimensions", dimensions or dim)
            if input_types[kind]:
                body.setdefault("input_type", input_types[kind])
        self._connection = ServerConnection(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            max_bytes=max_answer_bytes,
            headers=dict(extra_headers or {}),
        )

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._connection.url

    def share_silence(self, silences: dict[str, ServerSilence]) -> None:
        """Share the clock of silence with other models at the same server."""
        self._connection.share_silence(silences)

    @property
    def first_concurrent_calls(self) -> int:
        """The requests in flight before anything is known about the server."""
        return self._connection.first_concurrent_calls

    @property
    def dim(self) -> int:
        """The length of a vector; if unknown, a small request is sent and awaited."""
        if self._dim is None:
            sample = with_retries(
                lambda: self.embed(["dim"], kind="query"), retries=self.max_retries
            )
            with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
                vectors = thread.submit(asyncio.run, sample).result()
            self._dim = vectors.shape[1]
        return self._dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length, in the order of `texts`."""
        if not texts:
            return np.zeros((0, self._dim or 0), dtype=np.float32)
        size = self._batch_size or len(texts)
        starts = range(0, len(texts), size)
        batches = [await self._embed_batch(texts[at : at + size], kind) for at in starts]
        return np.concatenate(batches)

    async def _embed_batch(
        self, texts: Sequence[str], kind: Literal["query", "passage"]
    ) -> Vectors:
        items = await self._create(texts, kind)
        host = self._connection.host
        try:
            rows = {item.get("index", at): item["embedding"] for at, item in enumerate(items)}
            ordered = [rows[index] for index in range(len(items))]
        except (TypeError, AttributeError, LookupError) as error:
            raise EmbeddingError(f"{host}: the response is not a list of vectors") from error
        return normalize_vectors(ordered, count=len(texts), dim=self._dim, source=host)

    async def _create(self, texts: Sequence[str], kind: Literal["query", "passage"]) -> Any:
        prefix = self._prefixes[kind]
        embeddings: Any = self._connection.client().embeddings.with_raw_response
        try:
            with self._connection.failures():
                response = await embeddings.create(
                    model=self.model,
                    input=[prefix + sanitize(text) or " " for text in texts],  # never empty
                    encoding_format="float",
                    extra_body=self._extra_bodies[kind],
                )
                self._connection.check_length(response.content)
                return json.loads(response.content).get("data")
        except LLMError as error:
            raise EmbeddingError(
                str(error),
                unavailable=not error.refused,
                transient=error.transient,
                retry_after=error.retry_after,
                rate_limited=error.rate_limited,
                timed_out=error.timed_out,
            ) from error.__cause__

    def clip(self, text: str) -> str:
        """The part of a passage read by the model: the beginning, at most `max_tokens` long."""
        if self.max_tokens is None:
            return text
        limit = self.max_tokens - len(self._prefixes["passage"].encode())
        if len(text) * 4 <= limit:  # a token is at least one byte, a character at most four
            return text
        tokenizer = default_tokenizer()
        is_exact = not getattr(tokenizer, "error", 0.0)
        return tokenizer.truncate(text, limit if is_exact else max(1, int(limit * CLIPPED)))
