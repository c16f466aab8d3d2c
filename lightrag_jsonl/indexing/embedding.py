"""Turns texts into vectors: each text once, from the database if it is there, otherwise in batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from lightrag_jsonl.calls import embedded
from lightrag_jsonl.concurrency import together
from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.indexing.steps import Steps
from lightrag_jsonl.loops import PerLoop
from lightrag_jsonl.protocols import Embedder, Vectors
from lightrag_jsonl.storage import embeddings
from lightrag_jsonl.storage.database import Database

Batch: TypeAlias = list[tuple[bytes, str]]
Making: TypeAlias = "asyncio.Future[dict[bytes, Vectors]]"


class Embeddings:
    """Embeds passages with one embedder; vectors are found by the hash of their text."""

    def __init__(self, embedder: Embedder, database: Database, *, batch_size: int) -> None:
        self._embedder = embedder
        self._database = database
        self._batch_size = batch_size
        self._remote = bool(getattr(embedder, "remote", False))
        self._clip: Callable[[str], str] = getattr(embedder, "clip", str)  # to the part it reads
        self._measured = self._read = False  # each first use may load a model
        self._loading = PerLoop(asyncio.Lock)
        self._under_way: PerLoop[dict[bytes, Making]] = PerLoop(dict)

    def key(self, text: str) -> bytes:
        """The key of a text's vector; texts that agree in the part the embedder reads share one."""
        return embeddings.text_key(self._embedder.name, self._clip(text))

    async def measured(self) -> None:
        """Make the embedder find out the length of its vectors, outside the event loop."""
        if not self._measured:
            await asyncio.to_thread(getattr, self._embedder, "dim")
            self._measured = True

    async def keyed(self, texts: Iterable[str]) -> list[tuple[bytes, str]]:
        """For each text, its key and the part of it that the embedder reads."""
        waiting = list(texts)
        if waiting and not self._read:
            async with self._loading.here:  # one thread is enough for many waiting documents
                if not self._read:
                    await asyncio.to_thread(self._clip, waiting[0])
                    self._read = True
        read = map(self._clip, waiting)
        return [(embeddings.text_key(self._embedder.name, text), text) for text in read]

    async def missing(
        self, keyed: Iterable[tuple[bytes, str]], steps: Steps | None = None
    ) -> dict[bytes, Vectors]:
        """The vectors that the database lacks, by key: float32, shape (dim,).

        They are not stored yet, except batches of a remote embedder, and those that were finished
        when another one failed. Vectors that another caller is making are waited for.
        """
        by_key, under_way = dict(keyed), self._under_way.here
        shared = {key: text for key, text in by_key.items() if key in under_way}
        others = list(dict.fromkeys(under_way[key] for key in shared))
        with self._database.reading() as connection:
            stored = embeddings.embedding_ids(connection, by_key.keys() - shared)
        wanted = [(k, text) for k, text in by_key.items() if k not in stored and k not in shared]
        done: Making = asyncio.get_running_loop().create_future()
        under_way.update(dict.fromkeys((key for key, _ in wanted), done))
        try:
            vectors = await self._vectors(wanted, steps)
            done.set_result(vectors)
        finally:
            done.cancel()  # who waits makes what is missing
            for key, _ in wanted:
                del under_way[key]
        if not others:
            return vectors
        await asyncio.wait(others)
        found = dict(vectors)
        for other in others:
            found |= {} if other.cancelled() else other.result()
        left = [(key, text) for key, text in shared.items() if key not in found]
        found |= await self.missing(left, steps) if left else {}
        return {key: found[key] for key in by_key if key in found}

    async def _vectors(self, wanted: Batch, steps: Steps | None) -> dict[bytes, Vectors]:
        """The vectors of texts, made in batches."""
        batches = [
            wanted[start : start + self._batch_size]
            for start in range(0, len(wanted), self._batch_size)
        ]
        made: dict[int, Vectors] = {}
        try:
            with (steps or Steps()).step("embedding", len(wanted)) as add:
                await together(
                    self._made(number, batches, made, add) for number in range(len(batches))
                )
        except BaseException:
            if not self._remote:
                self.keep(_by_key(batches, made))
            raise
        return _by_key(batches, made)

    def keep(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Store vectors that may not be used soon, so that they need not be made again."""
        if vectors:
            with contextlib.suppress(StorageError):  # the database is closed: they are lost
                self._database.submit(
                    partial(embeddings.put_embeddings, vectors=vectors), flush=False
                )

    async def _made(
        self,
        number: int,
        batches: Sequence[Batch],
        made: dict[int, Vectors],
        add: Callable[[int], None],
    ) -> None:
        batch = batches[number]
        made[number] = await embedded(self._embedder, [text for _, text in batch], "passage")
        add(len(batch))
        if self._remote:
            self.keep(_by_key(batches, {number: made[number]}))


def _by_key(batches: Sequence[Batch], made: Mapping[int, Vectors]) -> dict[bytes, Vectors]:
    """The vectors of batches, given by number, in the order of their texts."""
    return {
        key: vector
        for number in sorted(made)
        for (key, _), vector in zip(batches[number], made[number], strict=True)
    }
