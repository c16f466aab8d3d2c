"""Indexing: inserts, updates, retries and deletes documents."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import methodcaller

from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Embedder, Extractor, Tokenizer
from lightrag_jsonl.core.types import Chunk, DeleteReport, Failure, InsertReport
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing import commits
from lightrag_jsonl.indexing.embedding import PassageEmbedder
from lightrag_jsonl.indexing.inserting import Insert, unfinished_chunks
from lightrag_jsonl.indexing.loading import incoming
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, IndexChange
from lightrag_jsonl.indexing.progress import Progress, ShowProgress, progress_bars
from lightrag_jsonl.indexing.summaries import Describer
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.views import StoreView, Transaction

log = logging.getLogger(__name__)


class IndexPipeline:
    """Every change of documents, summaries and vectors; `writer` is the right to write."""

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
        patient: bool = False,
    ) -> None:
        self._store = store
        self._extractor, self._tokenizer, self._language = extractor, tokenizer, language
        self._options = options
        self._settings = settings
        self._embedder = PassageEmbedder(embedder, store, batch_size=options.embed_batch_size)
        describer = Describer(client, options, tokenizer, language)
        self.writer = commits.IndexWriter(
            store=store,
            describer=describer,
            embedder=self._embedder,
            relation_vectors=options.relation_vectors,
            settings=settings,
            lock_timeout=options.lock_timeout,
        )
        self._insert = partial(
            Insert, self.writer, extractor, tokenizer, options, record_schema, patient=patient
        )

    # ── documents ───────────────────────────────────────────────────────────────

    async def insert(
        self,
        given: Iterable[PendingDocument],
        *,
        progress: ShowProgress = None,
        tolerant: bool = False,
        summarize: bool = True,
    ) -> InsertReport:
        """Index documents: known ones (same id and content) are skipped, changed ones replaced.

        A document that cannot be indexed is a failure in the report; if it is the only one, it
        raises `ConfigError`, unless `tolerant`. Without `summarize`, summaries stay due.
        """
        with progress_bars(progress) as show:
            async with self.writer.exclusive():
                insert = self._insert(progress=show, summarize=summarize)
                return await insert.insert(given, tolerant=tolerant)

    async def resume(self, *, progress: ShowProgress = None) -> InsertReport:
        """Go on with the documents that an interrupted insert left waiting."""
        with progress_bars(progress) as show:
            async with self.writer.exclusive():
                pending = await read(self._store, methodcaller("pending"))
                return await self._insert(progress=show).insert(pending, tolerant=True)

    async def retry(self, *, upgrade: bool = False, progress: ShowProgress = None) -> InsertReport:
        """Ask again for every chunk that failed, for the missing part of chunks read in part, and for
        the vectors of texts that the embedder refused.

        With `upgrade`, also read again every chunk that another extractor read.
        """
        with progress_bars(progress) as show:
            async with self.writer.exclusive():
                stored = await read(self._store, methodcaller("documents"))
                unfinished = (one for one in stored if upgrade or one.state != "done")
                report = await self._insert(progress=show).retry(unfinished, upgrade=upgrade)
                refused = await self.writer.embed_refused()
                known = {(one.document_id, one.chunk_id) for one in report.failures}
                again = [one for one in refused if (one.document_id, one.chunk_id) not in known]
                return replace(report, failures=(*report.failures, *again))

    def upgradable(self) -> Iterator[tuple[Chunk, ...]]:
        """The chunks of each document that `retry` with `upgrade` would read."""
        with self._store.view() as view:
            for one in view.documents():
                chunks = unfinished_chunks(one.id, view, current=self._extractor.name)
                if chunks:
                    yield tuple(chunks.values())

    async def delete(self, ids: Collection[str], *, purge: bool = False) -> DeleteReport:
        """Remove documents as if they had never been inserted; no model is asked.

        With `purge` also all that may quote these or earlier deleted documents, from every file.
        """
        wanted = list(dict.fromkeys(ids))

        def plan(view: StoreView) -> IndexChange:
            known = {one.id for one in view.documents(wanted)}
            known |= {one.document.id or "" for one in view.pending()}
            if missing := [id for id in wanted if id not in known]:
                raise NotFoundError(f"no such document: {', '.join(missing)}")
            change = commits.plan_documents((), wanted, view)
            if purge:
                mentions = view.entity_mentions(chunks=change.old_chunks)
                named = {one.owner for one in mentions if one.owner is not None}
                rows = view.entity_rows(ids=named).values()
                change.purge = {name for row in rows for name in (row.name, *row.names)}
            return change

        change = await self.writer.commit_alone(plan)
        chunks = len(change.old_chunks)
        log.info("deleted %d documents, %d chunks", len(wanted), chunks)
        entities, relations = (len(change.graph.rows(kind, gone=True)) for kind in GRAPH_KINDS)
        if purge:
            await in_thread(self._store.vacuum)
        return DeleteReport(tuple(wanted), chunks, entities, relations, *change.purged)

    async def defer(self, given: Iterable[PendingDocument]) -> tuple[list[str], list[Failure]]:
        """Let new and changed documents wait, without reading them.

        Returns the ids of documents that are known already, and the documents that cannot be read.
        """
        insert = self._insert()
        async with self.writer.exclusive():
            documents = list(insert.incoming(given))

            def defer(writer: Transaction) -> None:
                for one in documents:
                    old = writer.documents([one.document.id])
                    if [one.document.content] == [stored.content for stored in old]:
                        insert.unchanged.append(one.document.id)
                        writer.delete_pending([one.document.id])
                    else:
                        writer.put_pending(one.pending)

            await write(self._store, defer)
        return insert.unchanged, insert.failures

    def pending_work(self) -> Iterator[tuple[PendingDocument | StoredDocument, tuple[Chunk, ...]]]:
        """Waiting documents with the chunks to read, then stored ones with their unfinished chunks."""
        insert = self._insert()
        with self._store.view() as view:
            pending = {one.document.id: one for one in view.pending()}
            for one in pending.values():
                yield one, insert.cut(incoming(one), view)[1] if one.records is None else ()
            for stored in view.documents():
                if stored.state != "done" and stored.id not in pending:
                    yield stored, tuple(unfinished_chunks(stored.id, view).values())

    # ── summaries, and what is derived ──────────────────────────────────────────

    async def summarize(self) -> Usage:
        """Write every summary that is due; returns what that cost."""
        meter = UsageMeter()
        with meter.attach_usage():
            await self.writer.commit_alone(commits.plan_summaries, meter=meter, deferred=set())
        return meter.spent

    async def rebuild(self) -> list[str]:
        """Make everything anew that is derived from documents and mentions; says what was done.

        Summaries that are due then are asked for again, mostly from the cache.
        """
        change = await self.writer.commit_alone(commits.plan_rebuilding, deferred=set())
        entities, relations = (len(change.graph.rows(kind)) for kind in GRAPH_KINDS)
        chunks, vectors = len(change.chunk_texts), sum(map(len, change.vectors.values()))
        return [
            f"{entities} entities and {relations} relations merged from the mentions",
            f"full text of {chunks} chunks rebuilt",
            f"{vectors} vectors rebuilt",
        ]

    async def reembed(self, embedder: Embedder, *, progress: ShowProgress = None) -> int:
        """Move the index to another embedder; returns the number of texts.

        `ConfigError` if it has the name of the old one, but vectors of another length.
        """
        new = PassageEmbedder(embedder, self._store, batch_size=self._options.embed_batch_size)

        def step(done: int, known: int) -> None:
            if show is not None:
                show(Progress(0, 0, 0, {"embedding": (done, known)}))

        async with self.writer.exclusive():
            await new.load()
            old, name, dim = self._settings(), embedder.name, str(embedder.dim)
            if old["embedder"] == name and old["dim"] != dim:
                raise ConfigError(
                    f"the index has vectors of {old['dim']} dimensions by {name!r}; give the "
                    f"embedder of {dim} another name"
                )
            settings = {**old, "embedder": name, "dim": dim}
            texts = await read(
                self._store, partial(commits.all_texts, self._options.relation_vectors)
            )
            with progress_bars(progress) as show:
                return await new.replace_all(texts, settings, step)
