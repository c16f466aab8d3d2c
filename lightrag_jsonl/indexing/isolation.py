"""Embeds texts in batches, as many at a time as the embedder can do, so that a refused text costs no
other text its vector.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from lightrag_jsonl.core.errors import EmbeddingError
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.user_code import can_embed, embed_texts
from lightrag_jsonl.llm.scheduler import FIRST_CHUNK, FIRST_LIMIT, CallScheduler
from lightrag_jsonl.storage.vector_index import NO_VECTOR
from lightrag_jsonl.text.patterns import pattern_of

LENGTH_REFUSAL = pattern_of(
    r"token|too (long|large)|length|longer|context|exceed|HTTP 413", re.IGNORECASE
)
BATCHES_AT_ONCE = 32  # requests that an embedder gets at a time at most, however large a commit is
SHORTER = 0.75  # of a text that is too long: the share to be tried next
SHORTEST = 0.05  # of a text: the least share whose vector still stands for the whole

log = logging.getLogger(__name__)


class Embedding(Struct, frozen=True):
    """The vector of a text; or `NO_VECTOR` and the embedder's `refusal`. `shortened` says how much of an
    overlong text is embedded, and why not all of it.
    """

    vector: Vectors
    refusal: str = ""
    shortened: str = ""


class PacedEmbedder:
    """An embedder that gets few requests at a time until it turns out to do more, and fewer after a
    request has waited in its queue for too long.
    """

    def __init__(self, embedder: Embedder, *, max_concurrent_calls: int) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._scheduler = CallScheduler(
            max_concurrent_calls,
            first=getattr(embedder, "first_concurrent_calls", FIRST_LIMIT),
        )

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self._embedder.dim

    def __getattr__(self, name: str) -> Any:
        """The optional attributes of the embedder, such as `max_retries` and `url`."""
        return getattr(self._embedder, name)

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """The vectors of the embedder, after waiting for a turn."""
        async with self._scheduler.slot(FIRST_CHUNK) as slot:
            try:
                vectors = await self._embedder.embed(texts, kind=kind)
            except EmbeddingError as error:
                slot.report(error)
                raise
            slot.finish(output_tokens=len(texts), all_tokens=0)
        return vectors


class IsolatingEmbedder:
    """Embeds passages, and halves a refused batch until the refused text is found.

    A batch with two accepted halves was refused for its size, or took too long for it: from then on
    batches are smaller. Errors that concern every text are raised: `unavailable` errors, and all errors
    of an embedder that refuses even a harmless word.
    """

    def __init__(self, embedder: Embedder, batch_size: int) -> None:
        self.batch_size = batch_size
        self._embedder = PacedEmbedder(embedder, max_concurrent_calls=BATCHES_AT_ONCE)
        self._isolating = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """An embedding for each text, in the order of the texts."""
        try:
            return await self._whole(texts)
        except EmbeddingError as error:
            if not _may_be_for_size(error, texts):
                raise
            refusal = error
        async with self._isolating:  # waiting batches profit from the batch size that is found
            await self._check_well(refusal)
            if self.batch_size >= len(texts):
                return await self._in_parts(texts, refusal)
            embeddings: list[Embedding] = []
            for start in range(0, len(texts), self.batch_size):
                embeddings += await self._isolated(texts[start : start + self.batch_size])
            return embeddings

    async def _whole(self, texts: Sequence[str]) -> list[Embedding]:
        vectors = await embed_texts(self._embedder, texts, "passage")
        return [Embedding(vector) for vector in vectors]

    async def _isolated(self, texts: Sequence[str]) -> list[Embedding]:
        try:
            return await self._whole(texts)
        except EmbeddingError as error:
            if not _may_be_for_size(error, texts):
                raise
            return await self._in_parts(texts, error)

    async def _in_parts(self, texts: Sequence[str], refusal: EmbeddingError) -> list[Embedding]:
        """The embeddings of texts that were refused together."""
        if len(texts) == 1:
            return [await self._alone(texts[0], refusal)]
        middle = (len(texts) + 1) // 2
        first = await self._isolated(texts[:middle])
        second = await self._isolated(texts[middle:])
        embeddings = [*first, *second]
        all_whole = not any(embedding.refusal or embedding.shortened for embedding in embeddings)
        if all_whole and middle < self.batch_size:
            log.warning("the embedder cannot do %d texts at once, but %d", len(texts), middle)
            self.batch_size = middle
        return embeddings

    async def _alone(self, text: str, refusal: EmbeddingError) -> Embedding:
        """The embedding of a refused text: of the beginning if the text was too long, else none."""
        length = int(len(text) * SHORTER) if LENGTH_REFUSAL.search(str(refusal)) else 0
        while length > len(text) * SHORTEST:
            try:
                vectors = await embed_texts(self._embedder, [text[:length]], "passage")
            except EmbeddingError as error:
                if error.unavailable:
                    raise
                length = int(length * SHORTER)
            else:
                shortened = f"only the first {length:,} characters are embedded ({refusal})"
                return Embedding(vectors[0], shortened=shortened)
        await self._check_well(refusal)
        return Embedding(NO_VECTOR, refusal=str(refusal))

    async def _check_well(self, refusal: EmbeddingError) -> None:
        """Raise a refusal that does not concern the text alone."""
        if not await can_embed(self._embedder, "passage"):
            raise refusal


def _may_be_for_size(error: EmbeddingError, texts: Sequence[str]) -> bool:
    """Whether fewer texts at a time might not have failed."""
    return not error.unavailable or (error.timed_out and len(texts) > 1)
