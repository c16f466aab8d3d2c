"""Turns texts into vectors: in batches, each text once, and only those that have none yet."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from hashlib import sha256
from operator import attrgetter, methodcaller
from typing import TypeAlias

from anyio import to_thread

from lightrag_jsonl.core.aio import finish_all
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.indexing.isolation import Embedding, IsolatingEmbedder
from lightrag_jsonl.indexing.merging import IndexChange, StepCallback
from lightrag_jsonl.storage.rows import EntityRow, GraphRow, winner
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.vector_index import NO_VECTOR
from lightrag_jsonl.storage.views import StoreView, Transaction

Texts: TypeAlias = Mapping[Kind, Mapping[int, str]]  # by kind and row id
Digests: TypeAlias = dict[int, tuple[bytes, str]]  # by row id, with the part that is embedded

AT_ONCE = 512  # texts that are embedded, and vectors that are moved
KEYWORDS = 3  # of a relation that are embedded, the most frequent: as many as one statement has


class PassageEmbedder:
    """Makes the vectors of chunks, entities and relations.

    Those of a remote embedder are kept in the store as they come, until a commit uses them.
    """

    def __init__(self, embedder: Embedder, store: Store, *, batch_size: int) -> None:
        self._embedder = embedder
        self._store = store
        self._texts = IsolatingEmbedder(embedder, batch_size)
        self._remote = bool(getattr(embedder, "remote", False))
        self._clip: Callable[[str], str] = getattr(embedder, "clip", str)  # to the part it reads

    async def load(self) -> None:
        """Make the embedder find out the length of its vectors, which may load a model."""
        await to_thread.run_sync(getattr, self._embedder, "dim")

    async def embed(self, texts: Texts, change: IndexChange, step: StepCallback) -> None:
        """Put the vectors of those texts into a change that have none yet.

        A text that the embedder refuses gets `NO_VECTOR`, and is not tried again before a retry.
        """
        wanted, vectors = await read(self._store, partial(self._compare, texts, change))
        missing = _distinct(wanted, without=vectors)
        made = await self._make(missing, step, keep=self._remote)
        vectors |= {key: _stored_vector(embedding) for key, embedding in made.items()}
        for kind, rows in wanted.items():
            change.vectors[kind] = {row: (key, vectors[key]) for row, (key, _) in rows.items()}
            change.refusals[kind] = _reasons(rows, made, attrgetter("refusal"))
            change.shortened[kind] = _reasons(rows, made, _shortened_words)
        if self._remote:
            change.cached_vectors += vectors

    async def embed_refused(
        self, texts: Texts
    ) -> tuple[dict[Kind, dict[int, str]], dict[Kind, dict[int, tuple[bytes, Vectors]]]]:
        """Ask again for the vectors of refused texts: the reasons of those that are refused again,
        and the vectors of the others, by kind and row.
        """
        digests = {kind: self.digests(rows) for kind, rows in texts.items()}
        made = await self._make(_distinct(digests), lambda done, known: None, keep=False)
        reasons: dict[Kind, dict[int, str]] = {}
        vectors: dict[Kind, dict[int, tuple[bytes, Vectors]]] = {}
        for kind, rows in digests.items():
            reasons[kind] = _reasons(rows, made, attrgetter("refusal"))
            vectors[kind] = {
                row: (key, _stored_vector(made[key]))
                for row, (key, _) in rows.items()
                if not made[key].refusal
            }
        return reasons, vectors

    async def replace_all(
        self, texts: Texts, settings: Mapping[str, str], step: StepCallback
    ) -> int:
        """Give every row a new vector, by an embedder that is new to the index, and record the
        settings; the old vectors are used until all new ones are there. Returns how many texts.

        New vectors are kept as they come, so an interrupted change goes on where it stopped.
        """
        digests = {kind: self.digests(rows) for kind, rows in texts.items()}
        items = list(_distinct(digests).items())
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
                    found = {row: (key, vectors.get(key, NO_VECTOR)) for row, key in some}
                    writer.put_vectors(kind, found)
            writer.delete_cached_vectors([key for key, _ in items])
            writer.put_settings(settings)

        await write(self._store, switch)
        return len(items)

    def digests(self, texts: Mapping[int, str]) -> Digests:
        """For each text, the key of its vector and the part of it that the embedder reads."""
        prefix, digests = f"{self._embedder.name}\0", {}
        for row, text in texts.items():
            read = self._clip(text)
            digests[row] = sha256((prefix + read).encode()).digest()[:16], read
        return digests

    async def _make(
        self, texts: Mapping[bytes, str], step: StepCallback, *, keep: bool
    ) -> dict[bytes, Embedding]:
        """The embeddings of texts, by digest; with `keep`, each batch is stored as it comes."""
        keys = list(texts)
        embeddings: dict[bytes, Embedding] = {}
        size = self._texts.batch_size

        async def embed_batch(start: int) -> None:
            batch = keys[start : start + size]
            made = await self._texts.embed([texts[key] for key in batch])
            embedded = dict(zip(batch, made, strict=True))
            if keep:
                vectors = {
                    key: one.vector for key, one in embedded.items() if one.vector is not None
                }
                store = methodcaller("put_cached_vectors", vectors)
                await write(self._store, store, durable=False)
            embeddings.update(embedded)
            step(len(embeddings), len(keys))

        step(0, len(keys))
        starts = range(0, len(keys), size)
        await finish_all(map(embed_batch, starts))  # those that succeed may be kept
        return embeddings

    def _compare(
        self, texts: Texts, change: IndexChange, view: StoreView
    ) -> tuple[dict[Kind, Digests], dict[bytes, Vectors]]:
        """The rows that need a vector, and those vectors that are kept, or that old chunks have."""
        wanted: dict[Kind, Digests] = {}
        for kind, rows in texts.items():
            stored, digests = view.vector_digests(kind, rows), self.digests(rows)
            wanted[kind] = {row: one for row, one in digests.items() if stored.get(row) != one[0]}
        missing = _distinct(wanted)
        known = view.cached_vectors(missing) if self._remote else {}
        known |= {key: one for key, one in change.known_vectors.items() if key in missing}
        if change.chunks and change.old_chunks:
            old = view.vector_digests("chunk", change.old_chunks)
            kept = [row for row, digest in old.items() if digest in missing]
            known |= {old[row]: one for row, one in view.vectors("chunk", kept).items()}
        return wanted, known


def _distinct(digests: Mapping[Kind, Digests], without: Collection[bytes] = ()) -> dict[bytes, str]:
    """Each text once, by its digest."""
    texts = dict(one for rows in digests.values() for one in rows.values())
    return {key: text for key, text in texts.items() if key not in without}


def _stored_vector(embedding: Embedding) -> Vectors:
    return NO_VECTOR if embedding.vector is None else embedding.vector


def _reasons(
    rows: Digests, made: Mapping[bytes, Embedding], reason: Callable[[Embedding], str]
) -> dict[int, str]:
    """What is to be said of the rows whose text was not embedded as it is."""
    reasons = {row: reason(made[key]) for row, (key, _) in rows.items() if key in made}
    return {row: words for row, words in reasons.items() if words}


def _shortened_words(embedding: Embedding) -> str:
    if not embedding.cut:
        return ""
    return f"only the first {embedding.characters:,} characters are embedded ({embedding.cut})"


def embedded_text(row: GraphRow) -> str:
    """The text embedded for an entity (its name and the first of its descriptions) or for a relation
    (`source — keywords — target: the first of its descriptions`).

    What further chunks add is left out: each time the vector would have to be made anew.
    """
    first = row.description.partition("\n")[0]
    if isinstance(row, EntityRow):
        return f"{row.name}\n{first}"
    ends = [winner(row.low_names), winner(row.high_names)]
    source, target = reversed(ends) if row.reversed else ends
    best = row.ranked_keywords[:KEYWORDS]
    return f"{source} — {', '.join(best)} — {target}: {first}"
