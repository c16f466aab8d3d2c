"""Embeds texts in batches so that a refused text costs no other text its vector."""

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.errors import EmbeddingError
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.user_code import can_embed, embed_texts

LENGTH_REFUSAL = re.compile(
    r"token|too (long|large)|length|longer|context|exceed|HTTP 413", re.IGNORECASE
)
SHORTER = 0.75  # of a text that is too long: the share to be tried next
SHORTEST = 0.05  # of a text: the least share whose vector still stands for the whole

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vector of a text; or None and the embedder's `refusal`.

    Of an overlong text only the first `characters` are embedded, for the reason in `cut`.
    """

    vector: Vectors | None
    refusal: str = ""
    characters: int = 0
    cut: str = ""


class IsolatingEmbedder:
    """Embeds passages, and halves a refused batch until the refused text is found.

    A batch with two accepted halves was refused for its size: from then on batches are smaller.
    Errors that concern every text are raised: `unavailable` errors, and all errors of an embedder
    that refuses even a harmless word.
    """

    def __init__(self, embedder: Embedder, batch_size: int) -> None:
        self.batch_size = batch_size
        self._embedder = embedder
        self._isolating = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """An embedding for each text, in the order of the texts."""
        try:
            return await self._whole(texts)
        except EmbeddingError as error:
            if error.unavailable:
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
            if error.unavailable:
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
        all_whole = not any(embedding.refusal or embedding.cut for embedding in embeddings)
        if all_whole and middle < self.batch_size:
            log.warning("the embedder refused %d texts at once, not %d", len(texts), middle)
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
                return Embedding(vectors[0], characters=length, cut=str(refusal))
        await self._check_well(refusal)
        return Embedding(None, refusal=str(refusal))

    async def _check_well(self, refusal: EmbeddingError) -> None:
        """Raise a refusal that does not concern the text alone."""
        if not await can_embed(self._embedder, "passage"):
            raise refusal
