"""Inserts documents: reads them side by side, and commits them in the order they were given."""

import asyncio
import logging
from asyncio import Task
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from operator import methodcaller

import msgspec

from lightrag_jsonl.core.aio import abandonable, gather_all
from lightrag_jsonl.core.errors import (
    BudgetError,
    ConfigError,
    EmbeddingError,
    LightRAGError,
    LLMError,
)
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Extractor, Tokenizer
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import (
    PERSON,
    PROVIDED,
    Chunk,
    Extraction,
    ExtractionReport,
    Failure,
    InsertReport,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.chunking import chunk_pages, provided_chunks
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.loading import IncomingDocument, incoming, plain_json
from lightrag_jsonl.indexing.mentions import provided_extractions
from lightrag_jsonl.indexing.merging import GRAPH_KINDS, ExtractedDocument, GraphKey, IndexChange
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument
from lightrag_jsonl.storage.status import ALL_REFUSED, STOPPED, failures_without_vector
from lightrag_jsonl.storage.store import read, write
from lightrag_jsonl.storage.views import StoreView

AHEAD = 640  # chunks of documents that are being read and not committed yet
GROUP = 128  # chunks that are committed together, at least; fewer write the same pages more often
UNANSWERED = 16  # after so many unanswered chunks in a row (at least two a slot) the insert ends
NO_TEXT = "the document has no text"

log = logging.getLogger(__name__)


class Insert(UsageMeter):
    """One insert, what it did and what it spent; without `summarize`, no summary is asked for.

    It ends if too many chunks in a row get no answer, unless it is `patient`.
    What is committed together depends on the documents only, not on how long they take.
    """

    def __init__(
        self,
        writer: IndexWriter,
        extractor: Extractor,
        tokenizer: Tokenizer,
        options: IndexOptions,
        record_schema: Schema | None,
        *,
        patient: bool = False,
        progress: ProgressCallback | None = None,
        summarize: bool = True,
    ) -> None:
        super().__init__()
        self.unchanged: list[str] = []
        self.failures: list[Failure] = []
        self._shortened: list[Failure] = []
        self._writer = writer
        self._extractor = extractor
        self._tokenizer = tokenizer
        self._options = options
        self._sizes = options.chunk_tokens, options.chunk_overlap
        self._record_schema = record_schema
        self._patient = patient
        self._progress = progress
        self._deferred: set[GraphKey] | None = set() if summarize else None
        self._reading: deque[Task[ExtractedDocument | None]] = deque()
        self._group: list[ExtractedDocument] = []  # to be committed next
        self._uncommitted: dict[str, int] = {}  # chunks of begun documents, by id
        self._stopped = ""  # why no further call is made
        self._error: LightRAGError | None = None  # that stopped it, unless that was a budget
        self._given = self._calls = self._unanswered = 0
        self._refused: ConfigError | None = None  # of the last document that cannot be indexed
        self._chunks_known = self._chunks_done = 0
        self._documents: list[str] = []
        self._rows: set[GraphKey] = set()
        self._extraction = ExtractionReport()

    async def insert(self, given: Iterable[PendingDocument], *, tolerant: bool) -> InsertReport:
        """Index documents; a single one that cannot be indexed raises, unless `tolerant`."""
        await self._commit_all(self._prepared(given))
        if self._refused is not None and self._given == 1 and not tolerant:
            raise self._refused
        return await self._finished()

    async def retry(
        self, stored: Iterable[StoredDocument], *, upgrade: bool = False
    ) -> InsertReport:
        """Ask again about the unfinished chunks of documents; with `upgrade`, also about those that
        another extractor read.
        """

        async def unfinished() -> AsyncIterator[ExtractedDocument]:
            for one in stored:
                document = await self._unfinished(one, upgrade=upgrade)
                if document.chunks:
                    yield document

        await self._commit_all(unfinished())
        return await self._finished()

    async def _finished(self) -> InsertReport:
        """The report; an error that stopped the insert is raised with it.

        Why documents wait is recorded, so that a query of an empty index can say it.
        """
        report, store = self._report(), self._writer.store
        recorded = await read(store, methodcaller("settings"))
        if recorded.get(STOPPED, "") != report.stopped:
            await write(store, methodcaller("put_settings", {STOPPED: report.stopped}))
        if self._error is not None:
            self._error.usage = self.spent
            self._error.report = report
            raise self._error
        return report

    def _report(self) -> InsertReport:
        """What was done, in an order that does not depend on timing."""
        done = self._extraction
        report = InsertReport(
            documents=tuple(sorted(self._documents)),
            unchanged=tuple(sorted(self.unchanged)),
            chunks=done.ok + done.empty + done.partial + done.failed,
            entities=sum(kind == "entity" for kind, _ in self._rows),
            relations=sum(kind == "relation" for kind, _ in self._rows),
            failures=_sorted(self.failures),
            shortened=_sorted(self._shortened),
            usage=self.spent,
            extraction=done,
            stopped=self._stopped,
        )
        if self._unanswered and self._unanswered == report.chunks:
            log.warning("no chunk got an answer: %s", report.failures[0].reason)
        documents, failures = len(report.documents), len(report.failures)
        log.info(
            "inserted %d documents, %d chunks; %d failures", documents, report.chunks, failures
        )
        return report

    # ── in order ────────────────────────────────────────────────────────────────

    async def _commit_all(self, documents: AsyncIterator[ExtractedDocument]) -> None:
        """Read and commit documents; what is in flight when an embedder fails comes to its end.

        The embedder's error is kept for the end, as one of the model is.
        """
        with self.attach_usage():
            try:
                async for document in documents:
                    self._chunks_known += len(document.chunks)
                    await self._take(room=len(document.chunks))
                    self._uncommitted[document.document.id] = len(document.chunks)
                    self._reading.append(asyncio.create_task(self._extracted(document)))
                await self._take_all()
            except EmbeddingError as error:
                self._stop(error)
                await asyncio.gather(*self._reading, return_exceptions=True)
            finally:
                for task in self._reading:
                    task.cancel()
                await asyncio.gather(*self._reading, return_exceptions=True)

    async def _take_all(self) -> None:
        await self._take(room=AHEAD + 1)
        if self._group:
            await self._commit()

    async def _take(self, *, room: int) -> None:
        """Wait for documents, and commit them, until there is room to read so many more chunks."""
        while self._reading and sum(self._uncommitted.values()) + room > AHEAD:
            document = await self._reading[0]
            self._reading.popleft()
            if document is not None:
                self._group.append(document)
            if sum(len(one.chunks) for one in self._group) >= GROUP:
                await self._commit()

    async def _commit(self) -> None:
        """Make the group visible."""
        plan = partial(plan_documents, tuple(self._group), ())
        commit = partial(self._writer.commit, plan, step=self._show)
        try:
            change = await commit(meter=self, deferred=self._deferred)
        except BudgetError as error:  # nothing left for summaries: the descriptions stand in
            self._stopped = str(error)
            change = await commit()
        await self._note_refusals(change)
        self._rows |= {(kind, row) for kind in GRAPH_KINDS for row in change.graph.rows(kind)}
        for one in self._group:
            del self._uncommitted[one.document.id]
            self._documents.append(one.document.id)
            for chunk, extraction in zip(one.chunks, one.extractions, strict=True):
                self._extraction += extraction.report
                if extraction.unfinished:
                    reason = extraction.error or ALL_REFUSED
                    self.failures.append(Failure(one.document.id, chunk.id, reason))
        self._group.clear()
        self._show()

    async def _note_refusals(self, change: IndexChange) -> None:
        """Name the chunks whose texts the embedder refused, or of which it read only the beginning."""
        if any(change.refusals.values()):
            find = partial(failures_without_vector, change.refusals)
            self.failures += await read(self._writer.store, find)
        if too_long := change.shortened.get("chunk"):
            chunks = await read(self._writer.store, methodcaller("chunks", too_long))
            self._shortened += [
                Failure(chunk.document_id, chunk.id, too_long[row]) for row, chunk in chunks.items()
            ]

    def _show(self, step: str = "", done: int = 0, known: int = 0) -> None:
        """Report progress, with that of the step of a commit that is under way."""
        if self._progress is not None and (known or not step):
            steps = {step: (done, known)} if step else {}
            documents = len(self._documents)
            self._progress(Progress(self._chunks_done, self._chunks_known, documents, steps))

    # ── one document ────────────────────────────────────────────────────────────

    async def _prepared(self, given: Iterable[PendingDocument]) -> AsyncIterator[ExtractedDocument]:
        """The documents that have chunks to read, or records to add."""
        for one in self.incoming(given):
            if one.document.id in self._uncommitted:  # an earlier version, which this one replaces
                await self._take_all()
            try:
                prepared = await self._prepare(one)
            except ConfigError as error:
                self._refuse(one.pending, error)
            else:
                if prepared is not None:
                    yield prepared

    def incoming(self, given: Iterable[PendingDocument]) -> Iterator[IncomingDocument]:
        """The documents that can be indexed; the others are failures."""
        for one in given:
            self._given += 1
            try:
                document = incoming(one)
            except ConfigError as error:
                self._refuse(one, error)
                continue
            if any(page.text.strip() for page in document.pages):
                yield document
            else:
                self.failures.append(Failure(document.document.id, None, NO_TEXT))

    def _refuse(self, pending: PendingDocument, error: ConfigError) -> None:
        name = sanitize(pending.document.id or pending.document.source or "")
        self.failures.append(Failure(name, None, str(error)))
        self._refused = error

    async def _prepare(self, document: IncomingDocument) -> ExtractedDocument | None:
        """Cut a document, and let it wait in the store; None if it is known already."""
        pending, store = document.pending, self._writer.store
        extractions: tuple[Extraction, ...] = ()
        old, chunks = await read(store, partial(self.cut, document))
        if old is not None and not chunks:
            await write(store, methodcaller("delete_pending", [old.id]), durable=False)
            if old.state != "done" and pending.records is None:
                return await self._unfinished(old)
            self.unchanged.append(old.id)
            return None
        if old is not None and old.id in self._documents:
            words = "documents of one insert share the id %r: the last one replaces the others"
            log.warning(words, old.id)
        if pending.records is not None:
            extractions = provided_extractions(chunks, pending.records, self._record_schema)
            if pending.chunks is None:  # if this insert is killed, they are cut alike again
                pending = replace(pending, chunk_size=pending.chunk_size or self._sizes)
        await write(store, methodcaller("put_pending", pending), durable=False)
        return ExtractedDocument(document.document, document.pages, chunks, extractions)

    def cut(
        self, document: IncomingDocument, view: StoreView
    ) -> tuple[StoredDocument | None, tuple[Chunk, ...]]:
        """The stored document of this id, and the chunks of the new one; none if it is the same.

        If it replaces an earlier version, as many of the old chunks as possible are kept.
        """
        pending, pages, title = document.pending, document.pages, document.document.title or ""
        old = next(iter(view.documents([document.document.id])), None)
        if old is not None and old.content == document.document.content:
            return old, ()
        if pending.chunks is not None:
            chunks = provided_chunks(pages, pending.chunks, self._tokenizer)
        else:
            id, (size, overlap) = document.document.id, pending.chunk_size or self._sizes
            before = view.pages([id]), tuple(view.chunks(documents=[id]).values())
            count = self._tokenizer
            chunks = chunk_pages(pages, *before, tokenizer=count, size=size, overlap=overlap)
        return old, tuple([replace(chunk, title=title) for chunk in chunks])

    async def _unfinished(
        self, stored: StoredDocument, *, upgrade: bool = False
    ) -> ExtractedDocument:
        """A document with its unfinished chunks; calls that were answered come from the cache."""
        current = self._extractor.name if upgrade else None
        find = partial(unfinished_chunks, stored.id, current=current)
        chunks = await read(self._writer.store, find)
        return ExtractedDocument(stored, (), tuple(chunks.values()), (), tuple(chunks))

    async def _extracted(self, document: ExtractedDocument) -> ExtractedDocument | None:
        """The document with its extractions; None if the insert ended before all were made."""
        if document.extractions:
            return document
        found = await gather_all(map(self._extract, document.chunks))
        whole = tuple(filter(None, found))
        return replace(document, extractions=whole) if len(whole) == len(found) else None

    # ── one chunk ───────────────────────────────────────────────────────────────

    async def _extract(self, chunk: Chunk) -> Extraction | None:
        if self._stopped:
            return None
        try:
            if isinstance(self._extractor, LLMExtractor):
                extraction = await self._extractor.extract(chunk, self)
            else:
                extraction = await _extract_by_user(self._extractor, chunk)
                self.add(extraction.usage)
        except BudgetError as error:
            self._stopped = str(error)
            return None
        except LLMError as error:  # permanent
            self._stop(error)
            return None
        self._check_answered(extraction)
        self._chunks_done += 1
        self._show()
        return replace(extraction, extractor=self._extractor.name)

    def _check_answered(self, extraction: Extraction) -> None:
        """End the insert if too many chunks in a row got no answer."""
        answered = extraction.records or extraction.rejections or extraction.truncated
        unanswered = extraction.state == "failed" and extraction.error and not answered
        self._unanswered = self._unanswered + 1 if unanswered else 0
        most = max(UNANSWERED, 2 * self._options.max_concurrent_calls)
        if self._unanswered >= most and not self._patient:
            chunks = f"{self._unanswered} chunks in a row got no answer"
            self._stop(LLMError(f"{chunks} ({extraction.error})", transient=True))

    # ── what may be spent ───────────────────────────────────────────────────────

    def check(self) -> None:
        """Count a call that is about to be made; `BudgetError` if it may not be made."""
        if self._stopped:
            raise BudgetError(self._stopped)
        limits, spent = self._options, self.spent
        for name, limit, used in (
            ("calls", limits.max_calls, self._calls),
            ("input tokens", limits.max_input_tokens, spent.input_tokens),
            ("output tokens", limits.max_output_tokens, spent.output_tokens),
        ):
            if limit is not None and used >= limit:
                raise BudgetError(
                    f"stopped: {used} of {limit} {name} are used; progress saved, raise the limit"
                )
        self._calls += 1

    def add(self, usage: Usage) -> None:
        """Count what a call cost, and each of its requests if it was repeated."""
        self._calls += max(0, usage.calls - 1)
        super().add(usage)

    def _stop(self, error: LightRAGError) -> None:
        """Make no further call; the first reason is the one that is told."""
        if not self._stopped:
            self._stopped = f"stopped: {error}; progress saved, fix this first"
            self._error = error


def _sorted(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Failures by document and chunk."""
    return tuple(sorted(failures, key=lambda one: (one.document_id, one.chunk_id or "")))


async def _extract_by_user(extractor: Extractor, chunk: Chunk) -> Extraction:
    """What a user's extractor finds, or a `failed` extraction; a permanent `LLMError` is raised."""
    try:
        found = plain_json(msgspec.to_builtins(await abandonable(extractor.extract(chunk))))
        extraction = msgspec.convert(found, Extraction)
        names = {name_key(one.name) for one in extraction.entities}
        ends = {name_key(end) for one in extraction.relations for end in (one.source, one.target)}
        if "" in names or ends - names:
            raise ValueError("an entity has no name, or an end of a relation is no entity")
        return extraction
    except LLMError as error:
        if error.permanent:
            raise
        return Extraction(state="failed", error=str(error))
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        reason = f"{extractor.name} failed: {type(error).__name__}: {error}"
        return Extraction(state="failed", error=sanitize(reason))


def unfinished_chunks(
    document_id: str, view: StoreView, *, current: str | None = None
) -> dict[int, Chunk]:
    """The chunks of a stored document that a retry asks about, by row id; given the name of the
    `current` extractor, also those that another one read.
    """
    kept = (current, PERSON, PROVIDED)
    return view.chunks(
        [
            report.row
            for report in view.chunk_reports([document_id])
            if report.unfinished or (current is not None and report.extractor not in kept)
        ]
    )
