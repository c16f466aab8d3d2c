"""Texts to vectors: each text once, from the cache where it is there, in batches otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lightrag_jsonl.calls import embedded
from lightrag_jsonl.concurrency import together
from lightrag_jsonl.protocols import Embedder, Vectors
from lightrag_jsonl.storage import embeddings
from lightrag_jsonl.storage.database import Database


class Embeddings:
    """Embeds passages with one embedder; vectors are known by the hash of their text."""

    def __init__(self, embedder: Embedder, database: Database, *, batch_size: int) -> None:
        self._embedder = embedder
        self._database = database
        self._batch_size = batch_size
        self._clip: Callable[[str], str] = getattr(embedder, "clip", str)  # as far as it reads

    def key(self, text: str) -> bytes:
        """What identifies the vector of a text: the same for texts that begin alike as far as they are read."""
        return embeddings.text_key(self._embedder.name, self._clip(text))

    def keyed(self, texts: Iterable[str]) -> list[tuple[bytes, str]]:
        """Each text as far as the embedder reads it, with its key."""
        read = map(self._clip, texts)
        return [(embeddings.text_key(self._embedder.name, text), text) for text in read]

    async def missing(self, keyed: Iterable[tuple[bytes, str]]) -> dict[bytes, Vectors]:
        """The vectors (float32, shape (dim,)), by key, of those texts that the database has none for."""
        by_key = dict(keyed)
        with self._database.reading() as connection:
            stored = embeddings.embedding_ids(connection, by_key)
        wanted = [(key, text) for key, text in by_key.items() if key not in stored]
        batches = [
            wanted[start : start + self._batch_size]
            for start in range(0, len(wanted), self._batch_size)
        ]
        matrices = await together(self._embed([text for _, text in batch]) for batch in batches)
        return {
            key: vector
            for batch, matrix in zip(batches, matrices, strict=True)
            for (key, _), vector in zip(batch, matrix, strict=True)
        }

    async def _embed(self, texts: list[str]) -> Vectors:
        return await embedded(self._embedder, texts, "passage")
