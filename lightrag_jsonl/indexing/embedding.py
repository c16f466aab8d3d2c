"""Turns texts into vectors: in batches, each text once, and only those that have none yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from operator import methodcaller
from typing import TypeAlias

from anyio import to_thread

from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.core.user_code import embed_texts
from lightrag_jsonl.indexing.changes import GraphRow, IndexChange, StepCallback, winner
from lightrag_jsonl.storage.rows import EntityRow
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

    async def embed(self, texts: Texts, change: IndexChange, step: StepCallback) -> None:
        """Put the vectors of those texts into a change that have none yet."""
        wanted, missing, vectors = await read(self._store, partial(self._compare, texts, change))
        vectors |= await self._make(missing, step, keep=self._remote)
        for kind, row, digest in wanted:
            change.vectors.setdefault(kind, {})[row] = digest, vectors[digest]
            if self._remote:
                change.cached_vectors.append(digest)

    def _digests(self, texts: Mapping[int, str]) -> Digests:
        """For each text, the key of its vector and the part of it that the embedder reads."""
        digests = {}
        for row, text in texts.items():
            read = self._clip(text)
            key = sha256(f"{self._embedder.name}\0{read}".encode()).digest()[:16]
            digests[row] = key, read
        return digests

    async def _make(
        self, texts: Mapping[bytes, str], step: StepCallback, *, keep: bool
    ) -> dict[bytes, Vectors]:
        """The vectors of texts, by digest; with `keep`, each batch is stored as it comes."""
        keys, vectors = list(texts), {}

        async def embed_batch(start: int) -> None:
            batch = keys[start : start + self._batch_size]
            rows = await embed_texts(self._embedder, list(map(texts.__getitem__, batch)), "passage")
            made = dict(zip(batch, rows, strict=True))
            if keep:
                store = methodcaller("put_cached_vectors", made)
                await write(self._store, store, durable=False)
            vectors.update(made)
            step(len(vectors), len(keys))

        step(0, len(keys))
        starts = range(0, len(keys), self._batch_size)
        for failed in await asyncio.gather(*map(embed_batch, starts), return_exceptions=True):
            if failed is not None:  # the others came to their end: they may be kept
                raise failed
        return vectors

    async def replace_all(
        self, texts: Texts, settings: Mapping[str, str], step: StepCallback
    ) -> int:
        """Give every row a new vector, by an embedder that is new to the index, and record the
        settings; the old vectors are used until all new ones are there. Returns how many texts.

        New vectors are kept as they come, so an interrupted change goes on where it stopped.
        """
        digests = {kind: self._digests(rows) for kind, rows in texts.items()}
        distinct = {key: text for rows in digests.values() for key, text in rows.values()}
        items = list(distinct.items())
        for start in range(0, len(items), AT_ONCE):
            some = dict(items[start : start + AT_ONCE])
            kept = await read(self._store, methodcaller("cached_vectors", some))
            missing = {key: text for key, text in some.items() if key not in kept}
            await self._make(missing, lambda done, known: None, keep=True)
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
        missing: dict[bytes, str] = {}
        for kind, rows in texts.items():
            stored = reader.vector_digests(kind, rows)
            for row, (digest, text) in self._digests(rows).items():
                if stored.get(row) != digest:
                    wanted.append((kind, row, digest))
                    missing[digest] = text
        known = reader.cached_vectors(missing) if self._remote else {}
        if change.chunks and change.old_chunks:
            old = reader.vector_digests("chunk", change.old_chunks)
            kept = [row for row, digest in old.items() if digest in missing]
            known |= {old[row]: one for row, one in reader.vectors("chunk", kept).items()}
        for digest in known:
            del missing[digest]
        return wanted, missing, known


def embedded_text(row: GraphRow) -> str:
    """The text embedded for an entity (name and description) or for a relation (`source — keywords —
    target: description`).
    """
    if isinstance(row, EntityRow):
        return f"{row.name}\n{row.description}"
    ends = [winner(row.low_names), winner(row.high_names)]
    source, target = reversed(ends) if row.reversed else ends
    return f"{source} — {', '.join(sorted(row.keywords))} — {target}: {row.description}"
