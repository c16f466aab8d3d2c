"""Indexing: inserts, updates, retries and deletes documents, and merges names."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from operator import methodcaller

from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.errors import ConfigError, NotFoundError, SettingsError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Embedder, Extractor, Tokenizer
from lightrag_jsonl.core.types import Chunk, DeleteReport, Failure, InsertReport
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing import aliases
from lightrag_jsonl.indexing.changes import GRAPH_KINDS, IndexChange
from lightrag_jsonl.indexing.commits import (
    IndexWriter,
    all_texts,
    plan_documents,
    plan_rebuilding,
    plan_summaries,
)
from lightrag_jsonl.indexing.embedding import PassageEmbedder
from lightrag_jsonl.indexing.inserting import Insert, unfinished_chunks
from lightrag_jsonl.indexing.loading import incoming
from lightrag_jsonl.indexing.progress import InsertState, Progress, ProgressCallback
from lightrag_jsonl.indexing.summaries import Describer
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import Aliases, PendingDocument, StoredDocument
from lightrag_jsonl.storage.store import Reader, Store, Transaction, read, write

log = logging.getLogger(__name__)


class IndexPipeline:
    """Everything that changes an index; one writer at a time."""

    def __init__(
        self,
        store: Store,
        client: ModelClient,
        extractor: Extractor,
        embedder: Embedder,
        tokenizer: Tokenizer,
        options: IndexOptions,
        *,
        language: str,
        settings: Callable[[], Mapping[str, str]],
        record_schema: Schema | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._settings = settings
        self._embedder = PassageEmbedder(embedder, store, batch_size=options.embed_batch_size)
        describer = Describer(client, options, tokenizer, language)
        relations = options.relation_vectors
        self._writer = IndexWriter(store, describer, self._embedder, relations, settings)
        self._insert = partial(Insert, self._writer, extractor, tokenizer, options, record_schema)
        self._lock = asyncio.Lock()

    # ── documents ───────────────────────────────────────────────────────────────

    async def insert(
        self,
        given: Iterable[PendingDocument],
        *,
        progress: ProgressCallback | None = None,
        tolerant: bool = False,
    ) -> InsertReport:
        """Index documents: known ones (same id and content) are skipped, changed ones replaced.

        A document that cannot be indexed is a failure in the report; if it is the only one, it
        raises `ConfigError`, unless `tolerant`.
        """
        async with self._writing():
            insert = self._insert(InsertState(self._options, progress))
            return await insert.insert(given, tolerant=tolerant)

    async def resume(self, *, progress: ProgressCallback | None = None) -> InsertReport:
        """Go on with the documents that an interrupted insert left waiting."""
        async with self._writing():
            pending = await read(self._store, methodcaller("pending"))
            insert = self._insert(InsertState(self._options, progress))
            return await insert.insert(pending, tolerant=True)

    async def retry(self, *, progress: ProgressCallback | None = None) -> InsertReport:
        """Ask again for every chunk that failed, and for the missing part of chunks read in part."""
        async with self._writing():
            stored = await read(self._store, methodcaller("documents"))
            insert = self._insert(InsertState(self._options, progress))
            return await insert.retry(one for one in stored if one.state != "done")

    async def delete(self, ids: Collection[str]) -> DeleteReport:
        """Remove documents as if they had never been inserted; no model is asked."""
        wanted = list(dict.fromkeys(ids))

        def plan(reader: Reader) -> IndexChange:
            known = {one.id for one in reader.documents(wanted)}
            known |= {one.document.id or "" for one in reader.pending()}
            if missing := [id for id in wanted if id not in known]:
                raise NotFoundError(f"no such document: {', '.join(missing)}")
            return plan_documents((), wanted, reader)

        async with self._writing():
            change = await self._writer.commit(plan)
        chunks = len(change.old_chunks)
        log.info("deleted %d documents, %d chunks", len(wanted), chunks)
        gone = [len(change.graph.rows(kind, gone=True)) for kind in GRAPH_KINDS]
        return DeleteReport(tuple(wanted), chunks, *gone)

    async def defer(self, given: Iterable[PendingDocument]) -> tuple[list[str], list[Failure]]:
        """Let new and changed documents wait, without reading them.

        Returns the ids of documents that are known already, and the documents that cannot be read.
        """
        state = InsertState(self._options)
        async with self._writing():
            documents = list(self._insert(state).incoming(given))

            def defer(writer: Transaction) -> None:
                for one in documents:
                    old = writer.documents([one.document.id])
                    if [one.document.content] == [stored.content for stored in old]:
                        state.unchanged.append(one.document.id)
                        writer.delete_pending([one.document.id])
                    else:
                        writer.put_pending(one.pending)

            await write(self._store, defer)
        return state.unchanged, state.failures

    def pending_work(self) -> Iterator[tuple[PendingDocument | StoredDocument, tuple[Chunk, ...]]]:
        """Waiting documents with the chunks to read, then stored ones with their unfinished chunks."""
        insert = self._insert(InsertState(self._options))
        with self._store.reader() as reader:
            pending = {one.document.id: one for one in reader.pending()}
            for one in pending.values():
                yield one, insert.cut(incoming(one), reader)[1] if one.records is None else ()
            for stored in reader.documents():
                if stored.state != "done" and stored.id not in pending:
                    yield stored, tuple(unfinished_chunks(stored.id, reader).values())

    # ── names, summaries, and what is derived ───────────────────────────────────

    async def merge(self, names: Collection[str], into: str) -> None:
        """Make several names one entity called `into`; the mentions of chunks do not change."""
        await self._rename(lambda reader: aliases.merged(reader, names, into))

    async def unmerge(self, names: Collection[str]) -> None:
        """Undo `merge` for these names; for the target of a merge, undo that merge."""
        await self._rename(lambda reader: aliases.unmerged(reader, names))

    async def _rename(self, new_aliases: Callable[[Reader], Aliases]) -> None:
        async with self._writing():
            await self._writer.commit(partial(aliases.plan_renaming, new_aliases))

    async def summarize(self) -> Usage:
        """Write every summary that is due; returns what that cost."""
        meter = UsageMeter()
        async with self._writing():
            with meter.attach_usage():
                await self._writer.commit(plan_summaries, meter=meter, deferred=set())
        return meter.spent

    async def rebuild(self) -> list[str]:
        """Make everything anew that is derived from documents and mentions; says what was done.

        Summaries that are due then are asked for again, mostly from the cache.
        """
        async with self._writing():
            change = await self._writer.commit(plan_rebuilding, deferred=set())
        entities, relations = (len(change.graph.rows(kind)) for kind in GRAPH_KINDS)
        chunks, vectors = len(change.chunk_texts), sum(map(len, change.vectors.values()))
        return [
            f"{entities} entities and {relations} relations merged from the mentions",
            f"full text of {chunks} chunks rebuilt",
            f"{vectors} vectors made anew",
        ]

    async def reembed(self, embedder: Embedder, *, progress: ProgressCallback | None = None) -> int:
        """Move the index to another embedder; returns the number of texts.

        `ConfigError` if it has the name of the old one, but vectors of another length.
        """
        new = PassageEmbedder(embedder, self._store, batch_size=self._options.embed_batch_size)

        def step(done: int, known: int) -> None:
            if progress is not None:
                progress(Progress(0, 0, 0, {"embedding": (done, known)}))

        async with self._writing():
            await new.load()
            old, name, dim = self._settings(), embedder.name, str(embedder.dim)
            if old["embedder"] == name and old["dim"] != dim:
                raise ConfigError(
                    f"the index has vectors of {old['dim']} dimensions by {name!r}; give the "
                    f"embedder of {dim} another name"
                )
            settings = {**old, "embedder": name, "dim": dim}
            texts = await read(self._store, partial(all_texts, self._options.relation_vectors))
            return await new.replace_all(texts, settings, step)

    # ── the right to write ──────────────────────────────────────────────────────

    @contextlib.asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """Become the only writer: among the tasks of this instance, and among all processes.

        Raises `SettingsError` if another writer has meanwhile built the index with other parts.
        """
        lock = self._store.writer_lock(self._options.lock_timeout)
        async with self._lock:
            with contextlib.ExitStack() as held:
                await in_thread(held.enter_context, lock)
                await self._embedder.load()
                recorded = await read(self._store, methodcaller("settings"))
                for name, value in self._settings().items():
                    if recorded.get(name, value) != value:
                        raise SettingsError(
                            f"{self._store.location} was built with {name} {recorded[name]!r}, "
                            f"not {value!r}",
                            path=self._store.location,
                        )
                yield
