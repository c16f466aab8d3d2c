"""Inserts documents: reads them side by side, and commits them in the order they were given."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Task
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from functools import partial

from lightrag_jsonl.core.aio import gather_all
from lightrag_jsonl.core.errors import BudgetError, ConfigError, EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Extractor
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Chunk, Extraction, Failure, InsertReport
from lightrag_jsonl.indexing.changes import ExtractedDocument, IndexParts
from lightrag_jsonl.indexing.chunking import chunk_pages
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.documents import (
    IncomingDocument,
    checked_extraction,
    incoming,
    provided_chunks,
    provided_extractions,
)
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.progress import InsertState
from lightrag_jsonl.indexing.rechunking import rechunk
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument
from lightrag_jsonl.storage.store import Reader, read, write

AHEAD = 640  # chunks of documents that are being read and not committed yet
GROUP = 64  # chunks that are committed together, at least; fewer write the same pages more often
NO_TEXT = "the document has no text"
REPLACED = "documents of one insert share the id %r: the last one replaces the others"

log = logging.getLogger(__name__)


class Insert:
    """One insert: documents are read side by side, and committed in the order given, in groups.

    What a group holds depends on the documents only, not on how long they take.
    """

    def __init__(self, parts: IndexParts, writer: IndexWriter, state: InsertState) -> None:
        self._parts = parts
        self._store = parts.store
        self._writer = writer
        self._state = state
        self._reading: deque[Task[ExtractedDocument | None]] = deque()
        self._group: list[ExtractedDocument] = []  # to be committed next
        self._uncommitted: dict[str, int] = {}  # chunks of documents that were begun, by id

    async def insert(self, given: Iterable[PendingDocument], *, tolerant: bool) -> InsertReport:
        """Index documents; a single one that cannot be indexed raises, unless `tolerant`."""
        await self._commit_all(self._prepared(given))
        state = self._state
        if state.refused is not None and state.given == 1 and not tolerant:
            raise state.refused
        report = state.report()
        counts = len(report.documents), report.chunks, len(report.failures)
        log.info("inserted %d documents, %d chunks; %d failures", *counts)
        return report

    async def retry(self, stored: Iterable[StoredDocument]) -> InsertReport:
        """Ask again about the unfinished chunks of documents."""

        async def unfinished() -> AsyncIterator[ExtractedDocument]:
            for one in stored:
                yield await self._unfinished(one)

        await self._commit_all(unfinished())
        return self._state.report()

    # ── in order ────────────────────────────────────────────────────────────────

    async def _commit_all(self, documents: AsyncIterator[ExtractedDocument]) -> None:
        reading = self._reading
        try:
            with self._state.budget.attach_usage():
                async for document in documents:
                    chunks = len(document.chunks)
                    self._state.chunks_known += chunks
                    while reading and sum(self._uncommitted.values()) + chunks > AHEAD:
                        await self._take()
                    self._uncommitted[document.document.id] = chunks
                    reading.append(asyncio.create_task(self._extracted(document)))
                await self._take_all()
        except EmbeddingError as error:  # what is in flight is paid for: it comes to its end
            self._state.stop(str(error))
            await asyncio.gather(*reading, return_exceptions=True)
            raise
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    async def _take(self) -> None:
        """Wait for the first of the documents that are being read; commit if there are enough."""
        document = await self._reading[0]
        self._reading.popleft()
        if document is not None:
            self._group.append(document)
        if sum([len(one.chunks) for one in self._group]) >= GROUP:
            await self._commit()

    async def _take_all(self) -> None:
        while self._reading:
            await self._take()
        await self._commit()

    async def _commit(self) -> None:
        """Make the group visible."""
        if not self._group:
            return
        documents, state = tuple(self._group), self._state
        commit = partial(self._writer.commit, partial(plan_documents, documents, ()))
        try:
            change = await commit(meter=state.budget, deferred=state.deferred, step=state.step)
        except BudgetError as error:  # nothing left for summaries: the descriptions stand in
            state.stopped = str(error)
            change = await commit(step=state.step)
        for one in documents:
            del self._uncommitted[one.document.id]
        self._group.clear()
        state.committed(documents, change)

    # ── one document ────────────────────────────────────────────────────────────

    async def _prepared(self, given: Iterable[PendingDocument]) -> AsyncIterator[ExtractedDocument]:
        """The documents that have chunks to read, or records to add."""
        for one in self.incoming(given):
            if one.id in self._uncommitted:  # an earlier version, which this one replaces
                await self._take_all()
            try:
                prepared = await self._prepare(one)
            except ConfigError as error:
                self._state.refuse(one.pending, error)
            else:
                if prepared is not None:
                    yield prepared

    def incoming(self, given: Iterable[PendingDocument]) -> Iterator[IncomingDocument]:
        """The documents that can be indexed; the others are failures."""
        contents: dict[str, str] = {}
        for one in given:
            self._state.given += 1
            try:
                document = incoming(one)
            except ConfigError as error:
                self._state.refuse(one, error)
                continue
            if not [page for page in document.pages if page.text.strip()]:
                self._state.failures.append(Failure(document.id, None, NO_TEXT))
                continue
            content = document.document.content
            if contents.setdefault(document.id, content) != content:
                log.warning(REPLACED, document.id)
            yield document

    async def _prepare(self, document: IncomingDocument) -> ExtractedDocument | None:
        """Cut a document, and let it wait in the store; None if it is known already."""
        pending = document.pending
        extractions: tuple[Extraction, ...] = ()
        old, chunks = await read(self._store, partial(cut, self._parts, document))
        if old is not None and not chunks:
            await write(self._store, lambda writer: writer.delete_pending([old.id]), durable=False)
            if old.state != "done" and pending.records is None:
                return await self._unfinished(old)
            self._state.unchanged.append(old.id)
            return None
        if pending.records is not None:
            schema = self._parts.record_schema
            extractions = provided_extractions(chunks, pending.records, schema)
            if pending.chunks is None:  # if this insert is killed, they are cut alike again
                options = self._parts.options
                sizes = options.chunk_tokens, options.chunk_overlap
                pending = replace(pending, chunk_size=pending.chunk_size or sizes)
        await write(self._store, lambda writer: writer.put_pending(pending), durable=False)
        return ExtractedDocument(document.document, document.pages, chunks, extractions)

    async def _unfinished(self, stored: StoredDocument) -> ExtractedDocument:
        """A document with its unfinished chunks; calls that were answered come from the cache."""
        chunks = await read(self._store, partial(unfinished_chunks, stored.id))
        return ExtractedDocument(stored, (), tuple(chunks.values()), (), tuple(chunks))

    async def _extracted(self, document: ExtractedDocument) -> ExtractedDocument | None:
        """The document with its extractions; None if the insert ended before all were made."""
        if document.extractions:
            return document
        found = await gather_all(map(self._extract, document.chunks))
        whole = tuple([extraction for extraction in found if extraction is not None])
        return replace(document, extractions=whole) if len(whole) == len(found) else None

    # ── one chunk ───────────────────────────────────────────────────────────────

    async def _extract(self, chunk: Chunk) -> Extraction | None:
        state, extractor = self._state, self._parts.extractor
        if state.budget.refusal:
            return None
        try:
            if isinstance(extractor, LLMExtractor):
                extraction = await extractor.extract(chunk, state.budget)
            else:
                extraction = await _extract_by_user(extractor, chunk)
                state.budget.add(extraction.usage)
        except BudgetError as error:
            state.stopped = str(error)
            return None
        except LLMError as error:  # permanent
            state.stop(str(error))
            return None
        state.chunk_read(extraction)
        return extraction


async def _extract_by_user(extractor: Extractor, chunk: Chunk) -> Extraction:
    """What a user's extractor finds; any error gives a `failed` extraction with the reason.

    A permanent `LLMError` is raised, since every other chunk would fail, too.
    """
    try:
        return checked_extraction(await extractor.extract(chunk))
    except LLMError as error:
        if error.permanent:
            raise
        return Extraction(state="failed", error=str(error))
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        reason = f"{extractor.name} failed: {type(error).__name__}: {error}"
        return Extraction(state="failed", error=sanitize(reason))


def cut(
    parts: IndexParts, document: IncomingDocument, reader: Reader
) -> tuple[StoredDocument | None, tuple[Chunk, ...]]:
    """The stored document of this id, and the chunks of the new one; none if it is the same.

    If it replaces an earlier version, as many of the old chunks as possible are kept.
    """
    pending, old = document.pending, next(iter(reader.documents([document.id])), None)
    if old is not None and old.content == document.document.content:
        return old, ()
    if pending.chunks is not None:
        return old, provided_chunks(document.pages, pending.chunks, parts.tokenizer)
    size, overlap = pending.chunk_size or (parts.options.chunk_tokens, parts.options.chunk_overlap)
    if old is None:
        pages, tokenizer = document.pages, parts.tokenizer
        return None, chunk_pages(pages, tokenizer=tokenizer, size=size, overlap=overlap)
    return old, rechunk(
        document.pages,
        reader.pages(old.id),
        tuple(reader.document_chunks([old.id]).values()),
        tokenizer=parts.tokenizer,
        size=size,
        overlap=overlap,
    )


def unfinished_chunks(document_id: str, reader: Reader) -> dict[int, Chunk]:
    """The chunks of a stored document that a retry asks about, by row id."""
    reports = reader.chunk_reports([document_id])
    return reader.chunks([report.row for report in reports if report.unfinished])
