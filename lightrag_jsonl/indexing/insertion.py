"""Inserts documents: reads them side by side, and commits them in the order of arrival."""

import logging
from asyncio import Task
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING

from msgspec import structs

from lightrag_jsonl.core.aio import gather_all, task_group
from lightrag_jsonl.core.errors import BudgetError, ConfigError, EmbeddingError
from lightrag_jsonl.core.index_reports import FileNote, InsertReport
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Extractor
from lightrag_jsonl.core.telemetry import span
from lightrag_jsonl.core.types import Failure
from lightrag_jsonl.indexing.budget import Budget
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.extraction import ChunkReader
from lightrag_jsonl.indexing.incoming import (
    DocumentCutter,
    IncomingDocument,
    documents_of_chunks,
    incoming_document,
    unfinished_document,
    with_extractions,
)
from lightrag_jsonl.indexing.merging import GraphKey, IndexChange
from lightrag_jsonl.indexing.outcome import InsertOutcome
from lightrag_jsonl.indexing.progress import ProgressCallback, ProgressCounter
from lightrag_jsonl.indexing.provided_records import provided_extractions
from lightrag_jsonl.indexing.seeing import read_pictures
from lightrag_jsonl.indexing.stated_names import may_state_names, with_stated_names
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument, text_mark
from lightrag_jsonl.storage.status import STOPPED, failures_without_vector
from lightrag_jsonl.storage.store import read, write
from lightrag_jsonl.storage.views import StoreView, Transaction

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.loading import UnreadSource

UNANSWERED = 16  # after so many unanswered chunks in a row (at least two a slot) the insert ends
READ_TOGETHER = 64  # chunks that are read again in an order and committed together
# Chunks that are committed together, at least. The first group is seen soon; each next one is twice as large, since small
# groups write the rows of frequent names again and again.
FIRST_GROUP = 128
LARGEST_GROUP = 1_024
AHEAD = 512  # chunks that are read beside those of the next group: no model waits for a commit

log = logging.getLogger(__name__)


class Insertion:
    """One insert.

    An insert ends if too many chunks in a row get no answer, a `patient` insert goes on. Without
    `summarize`, no summary is asked for. With `completes`, unchanged documents that were read in part
    are read to the end.
    """

    def __init__(
        self,
        *,
        writer: IndexWriter,
        client: ModelClient,
        extractor: Extractor,
        cutter: DocumentCutter,
        options: IndexOptions,
        record_schema: Schema | None,
        patient: bool = False,
        progress: ProgressCallback | None = None,
        summarize: bool = True,
        completes: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        self._writer = writer
        self._client = client
        self._cutter = cutter
        self._record_schema = record_schema
        self._deferred: set[GraphKey] | None = set() if summarize else None
        self._completes = completes
        self._budget = Budget(options, max_tokens=max_tokens)
        self._progress = ProgressCounter(progress, meter=self._budget)
        most_unanswered = max(UNANSWERED, 2 * options.max_concurrent_calls)
        self._chunk_reader = ChunkReader(
            extractor=extractor,
            budget=self._budget,
            progress=self._progress,
            most_unanswered=None if patient else most_unanswered,
        )
        # by the document's id, in the order of arrival: as it is read, and as it was read, or None
        self._readings: dict[str, tuple[IncomingDocument, Task[IncomingDocument | None]]] = {}
        self._group_chunks = FIRST_GROUP
        self.outcome = InsertOutcome()
        self.accepted = 0  # documents that wait in the store now, or are there already

    async def insert(
        self,
        pending_documents: Iterable[PendingDocument],
        *,
        tolerant: bool,
        restore_purged: bool = False,
        unread: "Sequence[UnreadSource]" = (),
    ) -> InsertReport:
        """Index documents, without those that were purged, unless `restore_purged`; a single document that
        cannot be indexed raises, unless `tolerant`. What is `unread` at the end is in the report.
        """
        self.outcome.unread = unread
        readable = self.readable(pending_documents, restore_purged=restore_purged)
        with span("lightrag_jsonl.insert") as open_span:
            await self._index(self._prepared(readable))
            open_span.add({"lightrag_jsonl.documents": len(self.outcome.documents)})
        refusal = self.outcome.refusal
        if refusal is not None and self.outcome.received == 1 and not tolerant:
            raise refusal
        return await self._finished()

    async def retry(
        self, stored_documents: Iterable[StoredDocument], *, upgrade: bool = False
    ) -> InsertReport:
        """Ask again about the unfinished chunks of documents; with `upgrade`, also about chunks
        that another extractor read.
        """
        with span("lightrag_jsonl.retry") as open_span:
            await self._index(self._unfinished(stored_documents, upgrade=upgrade))
            open_span.add({"lightrag_jsonl.documents": len(self.outcome.documents)})
        return await self._finished()

    async def read_again(self, rows: Sequence[int]) -> InsertReport:
        """Read stored chunks again, by row id, in this order, until a limit is reached."""
        with span("lightrag_jsonl.retry"):
            await self._index(self._in_order(rows))
        return await self._finished()

    # ── documents to read ───────────────────────────────────────────────────────

    async def readable(
        self, pending_documents: Iterable[PendingDocument], *, restore_purged: bool
    ) -> AsyncIterator[tuple[IncomingDocument, PendingDocument]]:
        """The documents that can be indexed, with what a model reads on their pictures; the others are
        noted in the outcome.
        """
        marks: set[str] = set()
        if not restore_purged:
            marks = await read(self._writer.store, methodcaller("purge_marks"))
        for received in pending_documents:
            self.outcome.received += 1
            pending: PendingDocument | None = received
            if received.document.pictures:
                pending = await self._with_pictures_read(received)
            pending = pending and self.outcome.storable_document(pending)
            if pending is None:
                continue
            document = incoming_document(pending)
            if marks and text_mark(document.pages) in marks:
                self.outcome.purged.append(document.id)
            else:
                yield document, pending

    async def _prepared(
        self, documents: AsyncIterator[tuple[IncomingDocument, PendingDocument]]
    ) -> AsyncIterator[IncomingDocument]:
        """The documents that have chunks to read, or records to add."""
        async for document, pending in documents:
            if document.id in self._readings:  # an earlier version, to be replaced by this document
                await self._commit_groups()
            try:
                prepared = await self._prepare(document, pending)
            except ConfigError as error:
                self.outcome.refuse(pending.document, error)
            else:
                self.accepted += 1
                if prepared is not None:
                    yield prepared

    async def _with_pictures_read(self, pending: PendingDocument) -> PendingDocument | None:
        """The document with what a model reads on its pictures; None, and a failure, if the budget of
        the insert does not suffice.
        """
        document = pending.document
        if not self._client.has_model("see"):
            return replace(pending, document=replace(document, pictures=()))
        try:
            pending, notes = await read_pictures(pending, self._client, self._budget)
        except BudgetError as error:
            self._budget.exhaust(error)
            name = document.id or document.source or ""
            self.outcome.failures.append(Failure(name, None, str(error)))
            return None
        path = document.source or document.id or ""
        self.outcome.notes += [FileNote(path, note) for note in notes]
        return pending

    async def _prepare(
        self, document: IncomingDocument, pending: PendingDocument
    ) -> IncomingDocument | None:
        """Cut a document, and let the document wait in the store; None for a stored document."""
        store = self._writer.store
        stored, document, pending = await read(store, partial(self._cut, document, pending))
        if stored is not None and not document.chunks:
            return await self._already_stored(stored, pending)
        if stored is not None and document.id in self.outcome.documents:
            log.warning(
                "documents of one insert share the id %r: the last one replaces the others",
                document.id,
            )
        let_wait = partial(_let_wait, pending, replaces=stored is not None)
        row = await write(store, let_wait, durable=False)
        # without a row, a later version came meanwhile, or nobody wants it any more
        return None if row is None else structs.replace(document, pending_row=row)

    def _cut(
        self, document: IncomingDocument, pending: PendingDocument, view: StoreView
    ) -> tuple[StoredDocument | None, IncomingDocument, PendingDocument]:
        """The stored version of a document, if there is one; the document with its chunks, and with the extractions of
        given records; and what waits in the store, with what cuts it into the same chunks.
        """
        stored, document = self._cutter.cut(document, pending, view)
        if pending.records is None or (stored is not None and not document.chunks):
            return stored, document, pending
        extractions = provided_extractions(document.chunks, pending.records, self._record_schema)
        document = document_with_stated_names(structs.replace(document, extractions=extractions))
        if pending.chunks is not None:
            return stored, document, pending
        # if this insert is killed, the text is cut alike again
        if self._cutter.chunker is not None and pending.chunk_size is None:
            texts = tuple(chunk.text for chunk in document.chunks)
            return stored, document, replace(pending, chunks=texts)
        sizes = pending.chunk_size or (self._cutter.size, self._cutter.overlap)
        return stored, document, replace(pending, chunk_size=sizes)

    async def _already_stored(
        self, stored: StoredDocument, pending: PendingDocument
    ) -> IncomingDocument | None:
        """The unfinished chunks of a document that is stored with the same content, if any; it waits no longer."""
        await write(self._writer.store, partial(_end_waiting, stored, pending), durable=False)
        if stored.state != "done" and pending.records is None and self._completes:
            return await read(self._writer.store, partial(unfinished_document, stored))
        self.outcome.unchanged.append(stored.id)
        return None

    async def _unfinished(
        self, stored_documents: Iterable[StoredDocument], *, upgrade: bool
    ) -> AsyncIterator[IncomingDocument]:
        """The documents with chunks to read again; answered calls come from the cache."""
        current = self._chunk_reader.extractor.name if upgrade else None
        for stored in stored_documents:
            find = partial(unfinished_document, stored, current=current)
            document = await read(self._writer.store, find)
            if document.chunks:
                yield document

    async def _in_order(self, rows: Sequence[int]) -> AsyncIterator[IncomingDocument]:
        """The documents of chunks, some chunks at a time, so that the first ones are committed first."""
        for first in range(0, len(rows), READ_TOGETHER):
            batch = rows[first : first + READ_TOGETHER]
            documents = await read(self._writer.store, partial(documents_of_chunks, batch))
            for document in documents:
                if document.id in self._readings:
                    await self._commit_groups()
                yield document

    # ── reading ─────────────────────────────────────────────────────────────────

    async def _index(self, documents: AsyncIterator[IncomingDocument]) -> None:
        """Read and commit documents; if an embedder fails, documents in flight are read to the end.

        The embedder's error is raised at the end, as an error of the model is.
        """
        with self._budget.attach_usage():
            async with task_group() as tasks:
                try:
                    async for document in documents:
                        self._progress.chunks_known += len(document.chunks)
                        await self._commit_groups(room=len(document.chunks))
                        task = tasks.create_task(self._read_document(document))
                        self._readings[document.id] = document, task
                    await self._commit_groups()
                except EmbeddingError as error:
                    self._budget.stop(error)

    async def _read_document(self, document: IncomingDocument) -> IncomingDocument | None:
        """The document with its extractions; None if the insert ended before the last one. Of a stored
        document, the chunks that were read until then.
        """
        if document.extractions:
            return document
        extractions = await gather_all(map(self._chunk_reader.read, document.chunks))
        complete = tuple(extraction for extraction in extractions if extraction is not None)
        if len(complete) == len(extractions):
            return document_with_stated_names(structs.replace(document, extractions=complete))
        if not (document.rows and complete):
            return None
        results = {
            row: extraction
            for row, extraction in zip(document.rows, extractions, strict=True)
            if extraction is not None
        }
        return document_with_stated_names(with_extractions(document, results))

    # ── commits ─────────────────────────────────────────────────────────────────

    async def _commit_groups(self, *, room: int | None = None) -> None:
        """Commit documents until there is room to read so many more chunks, or else all."""
        while self._readings and (
            room is None or self._chunks_in_work + room > self._group_chunks + AHEAD
        ):
            if group := await self._next_group():
                await self._commit(group)

    @property
    def _chunks_in_work(self) -> int:
        return sum(len(document.chunks) for document, _ in self._readings.values())

    async def _next_group(self) -> list[IncomingDocument]:
        """The next documents to be committed together, without those that were not read to the end: the groups
        depend on the order of arrival, not on the time that reading takes.
        """
        group: list[IncomingDocument] = []
        chunks = 0
        for id, (_, task) in [*self._readings.items()]:
            document = await task
            del self._readings[id]
            if document is not None:
                group.append(document)
                chunks += len(document.chunks)
            if chunks >= self._group_chunks:
                self._group_chunks = min(2 * self._group_chunks, LARGEST_GROUP)
                break
        return group

    async def _commit(self, group: Sequence[IncomingDocument]) -> None:
        """Make a group visible."""
        commit = partial(
            self._writer.commit, partial(plan_documents, group, ()), step=self._progress.step
        )
        try:
            change = await commit(meter=self._budget, deferred=self._deferred)
        except BudgetError as error:  # nothing left for summaries: the descriptions stand in
            self._budget.exhaust(error)
            change = await commit()
        await self._add_refusals(change)
        self.outcome.add_commit(group, change)
        self._progress.documents_done += len(group)
        self._progress.tell()

    async def _add_refusals(self, change: IndexChange) -> None:
        """Add the chunks whose texts the embedder refused, or read only in part."""
        store = self._writer.store
        if any(change.refusals.values()):
            find = partial(failures_without_vector, change.refusals)
            self.outcome.failures += await read(store, find)
        if too_long := change.shortened.get("chunk"):
            chunks = await read(store, methodcaller("chunks", too_long))
            self.outcome.shortened += [
                Failure(chunk.document_id, chunk.id, too_long[row]) for row, chunk in chunks.items()
            ]

    # ── the end ─────────────────────────────────────────────────────────────────

    async def _finished(self) -> InsertReport:
        """The report; an error that stopped the insert is raised with the report.

        The reason why documents wait is recorded for the answers of an empty index.
        """
        report = self.outcome.report(usage=self._budget.spent, stopped=self._budget.stopped)
        unanswered = self._chunk_reader.unanswered
        if unanswered and unanswered == report.chunks:
            log.warning("no chunk got an answer: %s", report.failures[0].reason)
        store = self._writer.store
        settings = await read(store, methodcaller("settings"))
        if settings.get(STOPPED, "") != report.stopped:
            await write(store, methodcaller("put_settings", {STOPPED: report.stopped}))
        error = self._budget.error
        if error is not None:
            error.usage = self._budget.spent
            error.report = report
            raise error
        return report


def _let_wait(pending: PendingDocument, transaction: Transaction, *, replaces: bool) -> int | None:
    """Let a document wait, which may replace a stored version; its row, or None if it is not wanted any more."""
    if replaces:  # what is cached so far is about the earlier version
        transaction.outdate_answers([pending.name])
    return transaction.put_pending(pending)


def _end_waiting(
    stored: StoredDocument, pending: PendingDocument, transaction: Transaction
) -> None:
    """Let a document that is stored wait no longer, unless an open job brought it."""
    rows = transaction.pending_rows([stored.id])
    waiting = [own.row for own in transaction.pending([stored.id]) if own.row]
    own_rows = [row for row in waiting if row == pending.row]
    transaction.delete_pending([*rows, *own_rows])


def document_with_stated_names(document: IncomingDocument) -> IncomingDocument:
    """The document, in whose extractions the bearers of names have the other names that it states."""
    metadata = document.document.metadata
    extractions = list(document.extractions)
    for number, chunk in enumerate(document.chunks):
        if may_state_names(extractions[number], chunk, metadata):
            extractions[number] = with_stated_names(extractions[number], chunk, metadata)
    return structs.replace(document, extractions=tuple(extractions))
