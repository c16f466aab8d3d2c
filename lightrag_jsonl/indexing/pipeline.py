"""Indexing: inserts, updates, retries and deletes documents."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING

from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.index_reports import DeleteReport, InsertReport
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Embedder, Extractor, Tokenizer
from lightrag_jsonl.core.types import Chunk, Failure
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing import commits
from lightrag_jsonl.indexing.asked import QuestionReader, by_worth
from lightrag_jsonl.indexing.embedding import SAMPLE_SETTING, PassageEmbedder
from lightrag_jsonl.indexing.incoming import (
    DocumentCutter,
    incoming_document,
    storable,
    unfinished_document,
)
from lightrag_jsonl.indexing.insertion import Insertion
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, IndexChange
from lightrag_jsonl.indexing.outcome import InsertOutcome
from lightrag_jsonl.indexing.progress import (
    ProgressCallback,
    ProgressCounter,
    ShowProgress,
    progress_bars,
)
from lightrag_jsonl.indexing.purging import Purging
from lightrag_jsonl.indexing.summaries import Describer
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument
from lightrag_jsonl.storage.status import reads_when_asked
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.views import StoreView, Transaction
from lightrag_jsonl.text.strings import counted

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.loading import UnreadSource

log = logging.getLogger(__name__)


class IndexPipeline:
    """Every change of documents, summaries and vectors; `writer` is the right to write.

    In an index that is read when questions come, `rules` read inserted chunks, and `for_questions` has
    the `extractor` read the chunks that questions find.
    """

    def __init__(
        self,
        store: Store,
        client: ModelClient,
        extractor: Extractor,
        embedder: Embedder,
        tokenizer: Tokenizer,
        options: IndexOptions,
        *,
        rules: Extractor,
        cutter: DocumentCutter,
        language: str,
        settings: Callable[[], Mapping[str, str]],
        record_schema: Schema | None = None,
        patient: bool = False,
    ) -> None:
        self._store = store
        self._extractor = extractor
        self._rules = rules
        self._options = options
        self._settings = settings
        self._record_schema = record_schema
        self._client = client
        self._patient = patient
        self._cutter = cutter
        self.writer = commits.IndexWriter(
            store=store,
            describer=Describer(client, options, tokenizer, language),
            embedder=PassageEmbedder(embedder, store, batch_size=options.embed_batch_size),
            relation_vectors=options.relation_vectors,
            settings=settings,
            lock_timeout=options.lock_timeout,
        )
        words = FIXED_WORDS[known_language(language)]
        self.for_questions = QuestionReader(self.writer, extractor, options, words)

    # ── documents ───────────────────────────────────────────────────────────────

    async def insert(
        self,
        pending_documents: Iterable[PendingDocument],
        *,
        progress: ShowProgress = None,
        tolerant: bool = False,
        summarize: bool = True,
        restore_purged: bool = False,
        unread: "Sequence[UnreadSource]" = (),
    ) -> InsertReport:
        """Index documents: an unchanged document (same id and content) is skipped, a changed one
        replaces the stored version, and one whose text was purged stays out, unless `restore_purged`.

        A document that cannot be indexed is a failure in the report; a single such document raises
        `ConfigError`, unless `tolerant`. Without `summarize`, summaries stay due. The report also has the sources
        that are `unread` at the end.
        """
        with progress_bars(progress) as show:
            async with self.writer.exclusive() as settings:
                by_rules = reads_when_asked(settings)
                insertion = self._insertion(show, by_rules=by_rules, summarize=summarize)
                return await insertion.insert(
                    pending_documents,
                    tolerant=tolerant,
                    restore_purged=restore_purged,
                    unread=unread,
                )

    async def resume(
        self, *, job: str | None = None, progress: ShowProgress = None
    ) -> InsertReport:
        """Go on with the documents and files that wait: those of a `job` of a server, or all."""
        from lightrag_jsonl.indexing.loading import WaitingFiles

        with progress_bars(progress) as show:
            async with self.writer.exclusive() as settings:
                waiting = await read(self._store, methodcaller("pending", job=job))
                insertion = self._insertion(show, by_rules=reads_when_asked(settings))
                files = WaitingFiles(
                    self._store,
                    accepted=lambda: insertion.accepted,
                    sees=self._client.has_model("see"),
                )
                report = await insertion.insert(
                    files.read_in(waiting),
                    tolerant=True,
                    restore_purged=True,  # what waits was accepted after the purge
                    unread=files.unread,
                )
                if not report.stopped:
                    await write(self._store, methodcaller("delete_pending", files.read_rows))
                return report

    async def retry(
        self,
        *,
        upgrade: bool = False,
        max_tokens: int | None = None,
        progress: ShowProgress = None,
    ) -> InsertReport:
        """Ask again for every chunk that failed, for the missing part of chunks read in part, and for
        the vectors of texts that the embedder refused.

        With `upgrade`, also read again every chunk that another extractor read; in an index that is
        read when questions come, the chunks of most worth first. The retry ends after `max_tokens`.
        """
        with progress_bars(progress) as show:
            async with self.writer.exclusive() as settings:
                insertion = self._insertion(show, max_tokens=max_tokens)
                if upgrade and reads_when_asked(settings):
                    report = await insertion.read_again(await read(self._store, self._by_worth))
                else:
                    documents = await read(self._store, methodcaller("documents"))
                    due = [row for row in documents if upgrade or row.state != "done"]
                    report = await insertion.retry(due, upgrade=upgrade)
                refused = await self.writer.embed_refused()
                return _with_failures(report, refused)

    def _by_worth(self, view: StoreView) -> list[int]:
        """The row ids of the chunks that an upgrade reads, those of most worth first."""
        rows: list[int] = []
        for document in view.documents():
            rows += unfinished_document(document, view, current=self._extractor.name).rows
        return by_worth(rows, view)

    def upgradable(self) -> Iterator[tuple[Chunk, ...]]:
        """The chunks of each document that `retry` with `upgrade` would read."""
        with self._store.view() as view:
            for document in view.documents():
                chunks = unfinished_document(document, view, current=self._extractor.name).chunks
                if chunks:
                    yield chunks

    async def delete(self, ids: Collection[str], *, purge: bool = False) -> DeleteReport:
        """Remove documents without a trace in the graph; no model is asked.

        With `purge` also everything that may quote these or earlier deleted documents, from every
        file.
        """
        ids = list(dict.fromkeys(ids))
        async with self.writer.exclusive():
            purging = Purging(self.writer, ids) if purge else None
            if purging is not None:
                await purging.rewrite_states()
            change = await self.writer.commit(partial(_plan_deletion, ids, purging))
        chunks = len(change.old_chunks)
        log.info("deleted %d documents, %d chunks", len(ids), chunks)
        if purge:
            await in_thread(self._store.vacuum)
        answers, traces = change.purged
        return DeleteReport(
            documents=tuple(ids),
            chunks=chunks,
            entities=len(change.graph.rows("entity", gone=True)),
            relations=len(change.graph.rows("relation", gone=True)),
            answers=answers,
            traces=traces,
        )

    async def deletable_ids(self, ids: Collection[str], *, purge: bool) -> set[str]:
        """Those of the ids that `delete` knows: of visible and waiting documents, and for a `purge` also
        of documents that only a snapshot holds.
        """

        def find(view: StoreView) -> set[str]:
            known_ids = view.existing_ids(ids)
            if purge and len(known_ids) < len(set(ids)):
                for state in view.saved_states():
                    known_ids |= view.documents_at(state).keys() & set(ids)
            return known_ids

        return await read(self._store, find)

    async def defer(
        self, pending_documents: Iterable[PendingDocument], *, restore_purged: bool = False
    ) -> InsertOutcome:
        """Let new and changed documents wait, without reading them; their pictures are read.

        Returns the ids of unchanged and of purged documents, and the failures of unreadable ones.
        """
        insertion = self._insertion(None)
        async with self.writer.exclusive():
            readable = insertion.readable(pending_documents, restore_purged=restore_purged)
            waiting = [pending async for _, pending in readable]
            insertion.outcome.unchanged += await write(self._store, partial(_defer, waiting))
        return insertion.outcome

    def pending_work(self) -> Iterator[tuple[PendingDocument | StoredDocument, tuple[Chunk, ...]]]:
        """Waiting documents with the chunks to read, then stored ones with their unfinished chunks."""
        with self._store.view() as view:
            pending_by_id = {pending.document.id: pending for pending in view.pending()}
            for pending in pending_by_id.values():
                if not pending.is_file:  # `resume` reads it
                    yield pending, self._chunks_to_read(pending, view)
            for stored in view.documents():
                if stored.state != "done" and stored.id not in pending_by_id:
                    yield stored, unfinished_document(stored, view).chunks

    def _chunks_to_read(self, pending: PendingDocument, view: StoreView) -> tuple[Chunk, ...]:
        if pending.records is not None:
            return ()
        pending = storable(pending)
        _, document = self._cutter.cut(incoming_document(pending), pending, view)
        return document.chunks

    def _insertion(
        self,
        progress: ProgressCallback | None,
        *,
        by_rules: bool = False,
        summarize: bool = True,
        max_tokens: int | None = None,
    ) -> Insertion:
        """An insert; if `by_rules`, it asks a model for nothing: the index is read when it is asked."""
        return Insertion(
            writer=self.writer,
            client=self._client,
            extractor=self._rules if by_rules else self._extractor,
            cutter=self._cutter,
            options=self._options,
            record_schema=self._record_schema,
            patient=self._patient,
            progress=progress,
            summarize=summarize and not by_rules,
            completes=not by_rules,
            max_tokens=max_tokens,
        )

    # ── summaries, and what is derived ──────────────────────────────────────────

    async def summarize(self) -> Usage:
        """Write every due summary; returns the cost."""
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
        vectors = sum(map(len, change.vectors.values()))
        return [
            f"{counted(entities, 'entities')} and {counted(relations, 'relations')} merged from the mentions",
            f"full text of {counted(len(change.chunk_texts), 'chunks')} rebuilt",
            f"{counted(vectors, 'vectors')} rebuilt",
        ]

    async def reembed(self, embedder: Embedder, *, progress: ShowProgress = None) -> int:
        """Move the index to another embedder, also to one with the old name; returns the number of texts."""
        batch_size = self._options.embed_batch_size
        passage_embedder = PassageEmbedder(embedder, self._store, batch_size=batch_size)
        async with self.writer.exclusive():
            await read(self._store, _check_no_snapshots)
            await passage_embedder.load()
            settings = _settings_with(embedder, self._settings())
            has_old_name = settings["embedder"] == self._settings()["embedder"]
            find = partial(commits.all_texts, self._options.relation_vectors)
            texts = await read(self._store, find)
            with progress_bars(progress) as show:
                step = partial(ProgressCounter(show, UsageMeter()).step, "embedding")
                return await passage_embedder.replace_all(
                    texts, settings, step, keep_cached=not has_old_name
                )


def _check_no_snapshots(view: StoreView) -> None:
    """`ConfigError` if there are snapshots, which hold vectors of the old embedder."""
    names = ", ".join(state.name for state in view.saved_states())
    if names:
        raise ConfigError(
            f"the snapshots {names} hold vectors of the present embedder: delete them before "
            "you change the embedder"
        )


def _with_failures(report: InsertReport, failures: Iterable[Failure]) -> InsertReport:
    """The report with further failures, of chunks that have none yet."""
    failed = {(failure.document_id, failure.chunk_id) for failure in report.failures}
    further = [
        failure for failure in failures if (failure.document_id, failure.chunk_id) not in failed
    ]
    return replace(report, failures=(*report.failures, *further))


def _plan_deletion(ids: Collection[str], purging: Purging | None, view: StoreView) -> IndexChange:
    """The change that removes documents; `NotFoundError` names ids without a document."""
    present = view.existing_ids(ids)
    if purging is not None:
        present |= purging.documents_in_states
    if missing := [id for id in ids if id not in present]:
        raise NotFoundError(f"no such document: {', '.join(missing)}")
    change = commits.plan_documents((), ids, view)
    if purging is not None:
        purging.complete(change, view)
    return change


def _defer(waiting: Iterable[PendingDocument], transaction: Transaction) -> list[str]:
    """Let documents wait in the store; returns the ids of unchanged documents."""
    unchanged: list[str] = []
    for pending in waiting:
        document = incoming_document(pending).document
        stored = next(iter(transaction.documents([document.id])), None)
        if stored is not None and stored.content == document.content:
            unchanged.append(document.id)
            transaction.delete_pending(transaction.pending_rows([document.id]))
        else:
            if stored is not None:
                transaction.outdate_answers([document.id])
            transaction.put_pending(pending)
    return unchanged


def _settings_with(embedder: Embedder, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of an index after a change of the embedder, whose sample is not known yet."""
    dim = str(embedder.dim)
    return {**settings, "embedder": embedder.name, "dim": dim, SAMPLE_SETTING: ""}
