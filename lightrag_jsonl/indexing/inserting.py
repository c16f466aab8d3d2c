"""Inserts documents: reads them side by side, and commits them in the order they were given."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Task
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller

import msgspec

from lightrag_jsonl.core.aio import gather_all
from lightrag_jsonl.core.errors import BudgetError, ConfigError, EmbeddingError, LLMError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Extractor, Tokenizer
from lightrag_jsonl.core.text import name_key, sanitize
from lightrag_jsonl.core.types import Chunk, Extraction, Failure, InsertReport
from lightrag_jsonl.indexing.changes import ExtractedDocument
from lightrag_jsonl.indexing.chunking import chunk_pages, provided_chunks, rechunk
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.loading import IncomingDocument, incoming, plain_json
from lightrag_jsonl.indexing.mentions import provided_extractions
from lightrag_jsonl.indexing.progress import InsertState
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument
from lightrag_jsonl.storage.store import Reader, read, write

AHEAD = 640  # chunks of documents that are being read and not committed yet
GROUP = 64  # chunks that are committed together, at least; fewer write the same pages more often
NO_TEXT = "the document has no text"
REPLACED = "documents of one insert share the id %r: the last one replaces the others"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Insert:
    """One insert: documents are read side by side, and committed in the order given, in groups.

    What a group holds depends on the documents only, not on how long they take.
    """

    writer: IndexWriter
    extractor: Extractor
    tokenizer: Tokenizer
    options: IndexOptions
    record_schema: Schema | None
    state: InsertState
    _reading: deque[Task[ExtractedDocument | None]] = field(default_factory=deque)
    _group: list[ExtractedDocument] = field(default_factory=list)  # to be committed next
    _uncommitted: dict[str, int] = field(default_factory=dict)  # chunks of begun documents, by id

    async def insert(self, given: Iterable[PendingDocument], *, tolerant: bool) -> InsertReport:
        """Index documents; a single one that cannot be indexed raises, unless `tolerant`."""
        await self._commit_all(self._prepared(given))
        state = self.state
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
        return self.state.report()

    # ── in order ────────────────────────────────────────────────────────────────

    async def _commit_all(self, documents: AsyncIterator[ExtractedDocument]) -> None:
        """Read and commit documents; if an embedder fails, what is in flight comes to its end, since
        it is paid for.
        """
        with self.state.attach_usage():
            try:
                async for document in documents:
                    await self._begin(document)
                await self._take_all()
            except EmbeddingError as error:
                self.state.stop(str(error))
                await asyncio.gather(*self._reading, return_exceptions=True)
                raise
            finally:
                for task in self._reading:
                    task.cancel()
                await asyncio.gather(*self._reading, return_exceptions=True)

    async def _begin(self, document: ExtractedDocument) -> None:
        chunks = len(document.chunks)
        self.state.chunks_known += chunks
        while self._reading and sum(self._uncommitted.values()) + chunks > AHEAD:
            await self._take()
        self._uncommitted[document.document.id] = chunks
        self._reading.append(asyncio.create_task(self._extracted(document)))

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
        if self._group:
            await self._commit()

    async def _commit(self) -> None:
        """Make the group visible."""
        documents, state = tuple(self._group), self.state
        commit = partial(
            self.writer.commit, partial(plan_documents, documents, ()), step=state.step
        )
        try:
            change = await commit(meter=state, deferred=state.deferred)
        except BudgetError as error:  # nothing left for summaries: the descriptions stand in
            state.stopped = str(error)
            change = await commit()
        for one in documents:
            del self._uncommitted[one.document.id]
        self._group.clear()
        state.committed(documents, change)

    # ── one document ────────────────────────────────────────────────────────────

    async def _prepared(self, given: Iterable[PendingDocument]) -> AsyncIterator[ExtractedDocument]:
        """The documents that have chunks to read, or records to add."""
        for one in self.incoming(given):
            if one.document.id in self._uncommitted:  # an earlier version, which this one replaces
                await self._take_all()
            try:
                prepared = await self._prepare(one)
            except ConfigError as error:
                self.state.refuse(one.pending, error)
            else:
                if prepared is not None:
                    yield prepared

    def incoming(self, given: Iterable[PendingDocument]) -> Iterator[IncomingDocument]:
        """The documents that can be indexed; the others are failures."""
        contents: dict[str, str] = {}
        for one in given:
            self.state.given += 1
            try:
                document = incoming(one)
            except ConfigError as error:
                self.state.refuse(one, error)
                continue
            id, content = document.document.id, document.document.content
            if not document.has_text:
                self.state.failures.append(Failure(id, None, NO_TEXT))
                continue
            if contents.setdefault(id, content) != content:
                log.warning(REPLACED, id)
            yield document

    async def _prepare(self, document: IncomingDocument) -> ExtractedDocument | None:
        """Cut a document, and let it wait in the store; None if it is known already."""
        pending, store = document.pending, self.writer.store
        extractions: tuple[Extraction, ...] = ()
        old, chunks = await read(store, partial(self.cut, document))
        if old is not None and not chunks:
            await write(store, methodcaller("delete_pending", [old.id]), durable=False)
            if old.state != "done" and pending.records is None:
                return await self._unfinished(old)
            self.state.unchanged.append(old.id)
            return None
        if pending.records is not None:
            extractions = provided_extractions(chunks, pending.records, self.record_schema)
            if pending.chunks is None:  # if this insert is killed, they are cut alike again
                sizes = self.options.chunk_tokens, self.options.chunk_overlap
                pending = replace(pending, chunk_size=pending.chunk_size or sizes)
        await write(store, methodcaller("put_pending", pending), durable=False)
        return ExtractedDocument(document.document, document.pages, chunks, extractions)

    def cut(
        self, document: IncomingDocument, reader: Reader
    ) -> tuple[StoredDocument | None, tuple[Chunk, ...]]:
        """The stored document of this id, and the chunks of the new one; none if it is the same.

        If it replaces an earlier version, as many of the old chunks as possible are kept.
        """
        pending, pages = document.pending, document.pages
        old = next(iter(reader.documents([document.document.id])), None)
        if old is not None and old.content == document.document.content:
            return old, ()
        if pending.chunks is not None:
            return old, provided_chunks(pages, pending.chunks, self.tokenizer)
        sizes = self.options.chunk_tokens, self.options.chunk_overlap
        size, overlap = pending.chunk_size or sizes
        if old is None:
            return None, chunk_pages(pages, tokenizer=self.tokenizer, size=size, overlap=overlap)
        before = reader.pages(old.id), tuple(reader.document_chunks([old.id]).values())
        return old, rechunk(pages, *before, tokenizer=self.tokenizer, size=size, overlap=overlap)

    async def _unfinished(self, stored: StoredDocument) -> ExtractedDocument:
        """A document with its unfinished chunks; calls that were answered come from the cache."""
        chunks = await read(self.writer.store, partial(unfinished_chunks, stored.id))
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
        if self.state.refusal:
            return None
        try:
            if isinstance(self.extractor, LLMExtractor):
                extraction = await self.extractor.extract(chunk, self.state)
            else:
                extraction = await _extract_by_user(self.extractor, chunk)
                self.state.add(extraction.usage)
        except BudgetError as error:
            self.state.stopped = str(error)
            return None
        except LLMError as error:  # permanent
            self.state.stop(str(error))
            return None
        self.state.chunk_read(extraction)
        return extraction


async def _extract_by_user(extractor: Extractor, chunk: Chunk) -> Extraction:
    """What a user's extractor finds; any error gives a `failed` extraction with the reason.

    A permanent `LLMError` is raised, since every other chunk would fail, too.
    """
    try:
        found = plain_json(msgspec.to_builtins(await extractor.extract(chunk)))
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


def unfinished_chunks(document_id: str, reader: Reader) -> dict[int, Chunk]:
    """The chunks of a stored document that a retry asks about, by row id."""
    reports = reader.chunk_reports([document_id])
    return reader.chunks([report.row for report in reports if report.unfinished])
