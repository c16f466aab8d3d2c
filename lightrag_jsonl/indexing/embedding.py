"""Turns texts into vectors: in batches, each text once, and only texts without a vector.

As many batches at a time as the embedder can do; a refused text costs no other text its vector.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from hashlib import sha256
from operator import attrgetter, methodcaller
from typing import TypeAlias

from msgspec import Struct

from lightrag_jsonl.core.aio import finish_all, in_thread
from lightrag_jsonl.core.errors import EmbeddingError
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.core.user_code import HARMLESS, embed_texts
from lightrag_jsonl.indexing.merging import IndexChange, StepCallback
from lightrag_jsonl.llm.scheduler import FIRST_CHUNK, FIRST_LIMIT, CallScheduler
from lightrag_jsonl.storage.rows import EntityRow, GraphRow, winner
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.vector_index import NO_VECTOR
from lightrag_jsonl.storage.views import StoreView, Transaction
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


class IsolatingEmbedder:
    """Embeds passages, and halves a refused batch until the refused text is found.

    A batch with two accepted halves was refused for its size, or took too long for it: from then on
    batches are smaller. Errors that concern every text are raised: `unavailable` errors, and all errors
    of an embedder that refuses even a harmless word. The embedder gets few requests at a time until it
    turns out to do more, and fewer after a request has waited in its queue for too long.
    """

    def __init__(self, embedder: Embedder, batch_size: int) -> None:
        self.batch_size = batch_size
        self._embedder = embedder
        self._scheduler = CallScheduler(
            BATCHES_AT_ONCE, first=getattr(embedder, "first_concurrent_calls", FIRST_LIMIT)
        )
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
        attempt = partial(self._embed_in_turn, texts)
        vectors = await embed_texts(self._embedder, texts, "passage", attempt=attempt)
        return [Embedding(vector) for vector in vectors]

    async def _embed_in_turn(self, texts: Sequence[str]) -> Vectors:
        """The vectors by a single request, after waiting for a turn."""
        async with self._scheduler.slot(FIRST_CHUNK) as slot:
            try:
                vectors = await self._embedder.embed(texts, kind="passage")
            except EmbeddingError as error:
                slot.report(error)
                raise
            slot.finish(output_tokens=len(texts), all_tokens=0)
        return vectors

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
                (embedding,) = await self._whole([text[:length]])
            except EmbeddingError as error:
                if error.unavailable:
                    raise
                length = int(length * SHORTER)
            else:
                shortened = f"only the first {length:,} characters are embedded ({refusal})"
                return Embedding(embedding.vector, shortened=shortened)
        await self._check_well(refusal)
        return Embedding(NO_VECTOR, refusal=str(refusal))

    async def _check_well(self, refusal: EmbeddingError) -> None:
        """Raise a refusal that does not concern the text alone."""
        try:
            await self._whole([HARMLESS])
        except EmbeddingError:
            raise refusal from None


def _may_be_for_size(error: EmbeddingError, texts: Sequence[str]) -> bool:
    """Whether fewer texts at a time might not have failed."""
    return not error.unavailable or (error.timed_out and len(texts) > 1)


# ── the texts of an index ─────────────────────────────────────────────────────

TextsByKind: TypeAlias = Mapping[Kind, Mapping[int, str]]  # by row id
Digests: TypeAlias = dict[int, tuple[bytes, str]]  # by row id, with the part that is embedded

SAMPLE_SETTING = "embedder_sample"  # the vector of a sample text, in base64; "" if there is none
AT_ONCE = 512  # texts that are embedded, and vectors that are moved
KEYWORDS = 3  # of a relation that are embedded, the most frequent: as many as a statement has


def _ignore_step(items_done: int, items_known: int) -> None:
    """A step callback without an effect."""


class PassageEmbedder:
    """Makes the vectors of chunks, entities and relations.

    Vectors of a remote embedder are stored on arrival, and stay until a commit uses them.
    """

    def __init__(self, embedder: Embedder, store: Store, *, batch_size: int) -> None:
        self._embedder = embedder
        self._store = store
        self._isolating = IsolatingEmbedder(embedder, batch_size)
        self._remote = bool(getattr(embedder, "remote", False))
        self._clip: Callable[[str], str] = getattr(
            embedder, "clip", str
        )  # to the part that is read

    def for_store(self, store: Store) -> "PassageEmbedder":
        """The same embedder for another store."""
        return PassageEmbedder(self._embedder, store, batch_size=self._isolating.batch_size)

    async def load(self) -> None:
        """Make the embedder find out the length of the vectors, which may load a model."""
        await in_thread(getattr, self._embedder, "dim")

    async def embed(
        self,
        texts: TextsByKind,
        change: IndexChange,
        step: StepCallback = _ignore_step,
        *,
        again: bool = False,
    ) -> None:
        """Put the vectors of texts without a vector into a change; `again` also those of other texts.

        A text that the embedder refuses gets `NO_VECTOR`, and is not tried again before a retry.
        """
        due, vectors = await read(self._store, partial(self._compare, texts, change, again))
        missing = _texts_by_digest(due, without=vectors)
        embeddings = await self._make(missing, step, keep=self._remote)
        for key, embedding in embeddings.items():
            vectors[key] = embedding.vector
        for kind, digests in due.items():
            change.vectors[kind] = {row: (key, vectors[key]) for row, (key, _) in digests.items()}
            change.refusals[kind] = _messages(digests, embeddings, attrgetter("refusal"))
            change.shortened[kind] = _messages(digests, embeddings, attrgetter("shortened"))
        if self._remote:
            change.cached_vectors += vectors

    async def replace_all(
        self,
        texts: TextsByKind,
        settings: Mapping[str, str],
        step: StepCallback,
        *,
        keep_cached: bool,
    ) -> int:
        """Give every row a new vector, by an embedder that is new to the index, and record the
        settings; the old vectors are used until all new ones are there. Returns how many texts.

        New vectors are stored on arrival, so an interrupted change goes on from there, unless they
        cannot be told from those of an embedder with the same name (not `keep_cached`).
        """
        digests_by_kind = {kind: self.digests(rows) for kind, rows in texts.items()}
        items = list(_texts_by_digest(digests_by_kind).items())
        if not keep_cached:
            keys = [key for key, _ in items]
            await write(self._store, methodcaller("delete_cached_vectors", keys), durable=False)
        for start in range(0, len(items), AT_ONCE):
            batch = dict(items[start : start + AT_ONCE])
            cached = await read(self._store, methodcaller("cached_vectors", batch))
            missing = {key: text for key, text in batch.items() if key not in cached}
            await self._make(missing, _ignore_step, keep=True)
            step(start + len(batch), len(items))

        def switch(transaction: Transaction) -> None:
            for kind, digests in digests_by_kind.items():
                _put_cached_vectors(transaction, kind, digests)
            transaction.delete_cached_vectors([key for key, _ in items])
            transaction.put_settings(settings)

        await write(self._store, switch)
        return len(items)

    def digests(self, texts: Mapping[int, str]) -> Digests:
        """For each text, the key of the vector and the part of the text that the embedder reads."""
        prefix = f"{self._embedder.name}\0"
        digests: Digests = {}
        for row, text in texts.items():
            part = self._clip(text)
            key = sha256((prefix + part).encode()).digest()[:16]
            digests[row] = (key, part)
        return digests

    async def _make(
        self, texts: Mapping[bytes, str], step: StepCallback, *, keep: bool
    ) -> dict[bytes, Embedding]:
        """The embeddings of texts, by digest; with `keep`, each batch is stored on arrival."""
        keys = list(texts)
        embeddings: dict[bytes, Embedding] = {}
        size = self._isolating.batch_size

        async def embed_batch(start: int) -> None:
            batch_keys = keys[start : start + size]
            batch_texts = [texts[key] for key in batch_keys]
            batch = await self._isolating.embed(batch_texts)
            batch_embeddings = dict(zip(batch_keys, batch, strict=True))
            if keep:
                await self._cache(batch_embeddings)
            embeddings.update(batch_embeddings)
            step(len(embeddings), len(keys))

        step(0, len(keys))
        at_once = size * BATCHES_AT_ONCE
        for first in range(0, len(keys), at_once):
            starts = range(first, min(first + at_once, len(keys)), size)
            work = map(embed_batch, starts)
            await finish_all(work)  # the batches that succeed may be stored
        return embeddings

    async def _cache(self, embeddings: Mapping[bytes, Embedding]) -> None:
        vectors = {
            key: embedding.vector for key, embedding in embeddings.items() if not embedding.refusal
        }
        await write(self._store, methodcaller("put_cached_vectors", vectors), durable=False)

    def _compare(
        self, texts: TextsByKind, change: IndexChange, again: bool, view: StoreView
    ) -> tuple[dict[Kind, Digests], dict[bytes, Vectors]]:
        """The rows that need a vector, and the vectors that are cached, or of old chunks."""
        due: dict[Kind, Digests] = {}
        for kind, rows in texts.items():
            stored_digests = {} if again else view.vector_digests(kind, rows)
            all_digests = self.digests(rows)
            due[kind] = {
                row: (key, part)
                for row, (key, part) in all_digests.items()
                if stored_digests.get(row) != key
            }
        missing = _texts_by_digest(due)
        vectors = view.cached_vectors(missing) if self._remote else {}
        for key, vector in change.known_vectors.items():
            if key in missing:
                vectors[key] = vector
        if change.chunks and change.old_chunks:
            old_digests = view.vector_digests("chunk", change.old_chunks)
            rows_to_reuse = [row for row, key in old_digests.items() if key in missing]
            for row, vector in view.vectors("chunk", rows_to_reuse).items():
                vectors[old_digests[row]] = vector
        return due, vectors


def embedded_text(row: GraphRow) -> str:
    """The text embedded for an entity (the name and the first description) or for a relation
    (`source — keywords — target: the first description`).

    Further descriptions are left out: with each addition the vector would have to be made anew.
    """
    first_description = row.description.partition("\n")[0]
    if isinstance(row, EntityRow):
        return f"{row.name}\n{first_description}"
    ends = [winner(row.low_names), winner(row.high_names)]
    source, target = reversed(ends) if row.reversed else ends
    keywords = ", ".join(row.ranked_keywords[:KEYWORDS])
    return f"{source} — {keywords} — {target}: {first_description}"


def _put_cached_vectors(transaction: Transaction, kind: Kind, digests: Digests) -> None:
    """Give the rows of a kind their cached vectors."""
    keys_by_row = [(row, key) for row, (key, _) in digests.items()]
    for start in range(0, len(keys_by_row), AT_ONCE):
        batch = keys_by_row[start : start + AT_ONCE]
        cached = transaction.cached_vectors({key for _, key in batch})
        vectors = {row: (key, cached.get(key, NO_VECTOR)) for row, key in batch}
        transaction.put_vectors(kind, vectors)


def _texts_by_digest(
    digests_by_kind: Mapping[Kind, Digests], without: Collection[bytes] = ()
) -> dict[bytes, str]:
    """Each text once, by digest; texts with a digest in `without` are left out."""
    return {
        key: text
        for digests in digests_by_kind.values()
        for key, text in digests.values()
        if key not in without
    }


def _messages(
    digests: Digests,
    embeddings: Mapping[bytes, Embedding],
    message_of: Callable[[Embedding], str],
) -> dict[int, str]:
    """The messages on embeddings, by row; rows without a message are left out."""
    messages = {
        row: message_of(embeddings[key]) for row, (key, _) in digests.items() if key in embeddings
    }
    return {row: message for row, message in messages.items() if message}
