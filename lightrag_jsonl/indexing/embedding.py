"""Turns texts into vectors: in batches, each text once, and only those that have none yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from hashlib import sha256
from typing import TypeAlias

from anyio import to_thread

from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.core.user_code import embed_texts
from lightrag_jsonl.indexing.changes import IndexChange
from lightrag_jsonl.storage.store import Reader, Store, Transaction, read, write

Texts: TypeAlias = Mapping[Kind, Mapping[int, str]]  # by kind and row id
Digests: TypeAlias = dict[int, tuple[bytes, str]]  # by row id, with the part that is embedded

AT_ONCE = 512  # texts that are embedded, and vectors that are moved


class PassageEmbedder:
    """Makes the vectors of chunks, entities and relations.

    Those of a remote embedder are kept in the store as they come, until a commit uses them.
    """

    def __init__(self, embedder: Embedder, store: Store, *, batch_size: int) -> None:
        self._embedder = embedder
        self._store = store
        self._batch_size = batch_size
        self._remote = bool(getattr(embedder, "remote", False))
        self._clip: Callable[[str], str] = getattr(embedder, "clip", str)  # to the part it reads

    async def load(self) -> None:
        """Make the embedder find out the length of its vectors, which may load a model."""
        await to_thread.run_sync(getattr, self._embedder, "dim")

    async def embed(
        self, texts: Texts, change: IndexChange, step: Callable[[int, int], None]
    ) -> None:
        """Put the vectors of those texts into a change that have none yet.

        `step` is called with the numbers of texts done and known.
        """
        wanted, missing, vectors = await read(self._store, partial(self._compare, texts, change))
        vectors |= await self.make(missing, step, keep=self._remote)
        for kind, row, digest in wanted:
            change.vectors.setdefault(kind, {})[row] = digest, vectors[digest]
        if self._remote:
            change.cached_vectors = [digest for _, _, digest in wanted]

    def digests(self, texts: Mapping[int, str]) -> Digests:
        """For each text, the key of its vector and the part of it that the embedder reads."""
        digests = {}
        for row, text in texts.items():
            read = self._clip(text)
            key = sha256(f"{self._embedder.name}\0{read}".encode()).digest()[:16]
            digests[row] = key, read
        return digests

    async def make(
        self, texts: Mapping[bytes, str], step: Callable[[int, int], None], *, keep: bool
    ) -> dict[bytes, Vectors]:
        """The vectors of texts, by digest; with `keep`, each batch is stored as it comes."""
        items, done = list(texts.items()), 0

        async def embed_batch(start: int) -> dict[bytes, Vectors]:
            nonlocal done
            batch = items[start : start + self._batch_size]
            rows = await embed_texts(self._embedder, [text for _, text in batch], "passage")
            made = {digest: row for (digest, _), row in zip(batch, rows, strict=True)}
            if keep:
                await write(self._store, partial(_put_cached, made), durable=False)
            done += len(batch)
            step(done, len(items))
            return made

        step(0, len(items))
        starts = range(0, len(items), self._batch_size)
        vectors: dict[bytes, Vectors] = {}
        for made in await asyncio.gather(*map(embed_batch, starts), return_exceptions=True):
            if isinstance(made, BaseException):  # the others came to their end: they may be kept
                raise made
            vectors |= made
        return vectors

    async def replace_all(
        self, texts: Texts, settings: Mapping[str, str], step: Callable[[int, int], None]
    ) -> int:
        """Give every row a new vector, by an embedder that is new to the index, and record the
        settings; the old vectors are used until all new ones are there. Returns how many texts.

        New vectors are kept as they come, so an interrupted change goes on where it stopped.
        """
        digests = {kind: self.digests(rows) for kind, rows in texts.items()}
        distinct = {key: text for rows in digests.values() for key, text in rows.values()}
        items = list(distinct.items())
        for start in range(0, len(items), AT_ONCE):
            some = dict(items[start : start + AT_ONCE])
            kept = await read(self._store, partial(_cached, some))
            missing = {key: text for key, text in some.items() if key not in kept}
            await self.make(missing, lambda done, known: None, keep=True)
            step(start + len(some), len(items))

        def switch(writer: Transaction) -> None:
            for kind, rows in digests.items():
                keys = [(row, key) for row, (key, _) in rows.items()]
                for start in range(0, len(keys), AT_ONCE):
                    some = keys[start : start + AT_ONCE]
                    vectors = writer.cached_vectors({key for _, key in some})
                    writer.put_vectors(kind, {row: (key, vectors[key]) for row, key in some})
            writer.delete_cached_vectors(distinct)
            writer.put_settings(settings)

        await write(self._store, switch)
        return len(items)

    def _compare(
        self, texts: Texts, change: IndexChange, reader: Reader
    ) -> tuple[list[tuple[Kind, int, bytes]], dict[bytes, str], dict[bytes, Vectors]]:
        """The rows that need a vector, the texts to embed, and the vectors that are there already:
        those of the same texts in old chunks, and those kept from a killed insert.
        """
        wanted: list[tuple[Kind, int, bytes]] = []
        by_digest = {}
        for kind, rows in texts.items():
            stored = reader.vector_digests(kind, rows)
            for row, (digest, text) in self.digests(rows).items():
                if stored.get(row) != digest:
                    wanted.append((kind, row, digest))
                    by_digest[digest] = text
        old = reader.vector_digests("chunk", change.old_chunks if change.chunks else ())
        kept = reader.vectors("chunk", [row for row, digest in old.items() if digest in by_digest])
        known = {old[row]: vector for row, vector in kept.items()}
        if self._remote:
            known |= reader.cached_vectors(by_digest)
        return wanted, {key: by_digest[key] for key in by_digest if key not in known}, known


def _cached(digests: Collection[bytes], reader: Reader) -> Collection[bytes]:
    return reader.cached_vectors(digests).keys()


def _put_cached(vectors: Mapping[bytes, Vectors], writer: Transaction) -> None:
    writer.put_cached_vectors(vectors)
