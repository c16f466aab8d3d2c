"""Orders the steps of indexing: documents in, one transaction a group of documents out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from typing import Any

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.concurrency import both, to_the_end, together
from lightrag_jsonl.errors import (
    BudgetError,
    ConfigError,
    EmbeddingError,
    LLMError,
    NotFoundError,
)
from lightrag_jsonl.indexing import renaming, repairing
from lightrag_jsonl.indexing.committing import Committed, Committer, Ready
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.extraction import LLMExtractor, from_records
from lightrag_jsonl.indexing.foreign import extracted
from lightrag_jsonl.indexing.given import given_records
from lightrag_jsonl.indexing.grouping import in_groups
from lightrag_jsonl.indexing.intake import UNDONE, Intake, as_stored, content_of, identified
from lightrag_jsonl.indexing.repairing import Progress
from lightrag_jsonl.indexing.runs import Budget, Contents, Run, Watcher
from lightrag_jsonl.indexing.summaries import Describer
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.protocols import Extractor, Tokenizer, Vectors
from lightrag_jsonl.schemas import Schema
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import documents, pending, settings
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.documents import StoredDocument
from lightrag_jsonl.storage.lock import writing
from lightrag_jsonl.storage.pending import PendingDocument
from lightrag_jsonl.types import (
    Chunk,
    DeleteReport,
    Document,
    Extraction,
    Failure,
    InsertReport,
    Page,
)

CHARACTERS = 4  # in a token, roughly
NO_TEXT = "the document has no text"

log = logging.getLogger(__name__)


class IndexPipeline:
    """Inserts, updates, retries and deletes documents; one writer a directory at a time."""

    def __init__(
        self,
        database: Database,
        ask: Ask,
        extractor: Extractor,
        embeddings: Embeddings,
        tokenizer: Tokenizer,
        options: IndexOptions,
        *,
        language: str,
        built_with: Callable[[], Mapping[str, str]],
        record_schema: Schema | None = None,
    ) -> None:
        self._database = database
        self._extractor = extractor
        self._embeddings = embeddings
        self._tokenizer = tokenizer
        self._options = options
        self._record_schema = record_schema
        self._built_with = built_with
        self._committer = Committer(
            database, ask, embeddings, tokenizer, options, language=language, settings=built_with
        )
        self.intake = Intake(database, tokenizer, options)

    # ── what callers do ─────────────────────────────────────────────────────────

    async def insert(
        self,
        given: Iterable[PendingDocument],
        *,
        watcher: Watcher | None = None,
        summarize: bool = True,
        tolerant: bool = False,
    ) -> InsertReport:
        """Index documents: known ones (same id and content) are skipped, changed ones replaced.

        Without `summarize` no summaries are written; descriptions are listed as they are. A
        document that cannot be indexed is a failure in the report; if it is the only one, it raises
        `ConfigError`, unless `tolerant`.
        """
        async with self.writing():
            return await self._insert(given, watcher, summarize, tolerant)

    async def resume(
        self, *, watcher: Watcher | None = None, summarize: bool = True
    ) -> InsertReport:
        """Go on with the documents that an interrupted insert left waiting."""
        async with self.writing():
            with self._database.reading() as connection:
                waiting = pending.listed(connection)
            return await self._insert(waiting, watcher, summarize, True)

    async def postpone(self, given: Iterable[PendingDocument]) -> tuple[list[str], list[Failure]]:
        """Put new and changed documents on the waiting list without reading them.

        Returns the ids of documents that are known already, and the documents that cannot be read.
        """
        unchanged: list[str] = []
        failures: list[Failure] = []
        contents = Contents()
        async with self.writing():
            for waiting in given:
                try:
                    document, pages = identified(waiting.document)
                except ConfigError as error:
                    failures.append(Failure(waiting.document.id or "", None, str(error)))
                    continue
                waiting, id = replace(waiting, document=document), document.id or ""
                if not any(page.text.strip() for page in pages):
                    failures.append(Failure(id, None, NO_TEXT))
                    continue
                content, old = content_of(document, pages, waiting), self.intake.stored(id)
                contents.add(id, content)
                if old is not None and old.content == content:
                    unchanged.append(id)
                    await self._write(partial(pending.drop, ids=[id]))
                else:
                    await self._write(partial(pending.put, waiting=waiting))
        return unchanged, failures

    async def retry(
        self, *, watcher: Watcher | None = None, summarize: bool = True
    ) -> InsertReport:
        """Ask again for every chunk that failed, and for the missing part of chunks read in part."""
        async with self.writing():
            run = Run(Budget(self._options), watcher, summarize)
            with self._database.reading() as connection:
                failed = [
                    stored for stored in documents.documents(connection) if stored.state in UNDONE
                ]
            await self._all(run, ((1, self._retry(run, stored)) for stored in failed))
            return run.report()

    async def delete(self, ids: Collection[str]) -> DeleteReport:
        """Remove documents as if they had never been inserted; no model is asked."""
        async with self.writing():
            wanted = list(dict.fromkeys(ids))
            with self._database.reading() as connection:
                stored = documents.documents(connection, wanted)
                waiting = {p.document.id for p in pending.listed(connection)}
            known = {document.id for document in stored} | waiting
            missing = [one for one in wanted if one not in known]
            if missing:
                raise NotFoundError(f"no such document: {', '.join(missing)}")
            done = await self._committer.commit(delete=wanted, summarize=False)
            log.info("deleted %d documents, %d chunks", len(wanted), done.removed_chunks)
            return DeleteReport(
                tuple(wanted), done.removed_chunks, done.gone_entities, done.gone_relations
            )

    async def merge(self, names: Collection[str], into: str) -> Committed:
        """Make several names one entity, called `into`; the claims of chunks do not change.

        `into` is cleaned like names in texts.
        """
        into = renaming.cleaned(into)
        async with self.writing():
            with self._database.reading() as connection:
                planned = renaming.merging(connection, names, into)
            return await self._committer.rename(*planned)

    async def unmerge(self, names: Collection[str]) -> Committed:
        """Undo `merge` for these names: each becomes an entity of its own again.

        Given the target of a merge, this undoes that merge.
        """
        async with self.writing():
            with self._database.reading() as connection:
                planned = renaming.unmerging(connection, names)
            return await self._committer.rename(*planned)

    async def repair(self) -> list[str]:
        """Rebuild everything that is derived from the documents and their claims."""
        describer = Describer(self._options, self._tokenizer, summarize=False)
        async with self.writing():
            built_with = self._built_with()
            return await repairing.repair(self._database, self._embeddings, describer, built_with)

    async def reembed(
        self, embeddings: Embeddings, recorded: Mapping[str, str], watcher: Progress | None = None
    ) -> int:
        """Move the index to another embedder."""
        async with self.writing():
            return await repairing.reembed(self._database, embeddings, recorded, watcher=watcher)

    async def summarize(self) -> Committed:
        """Write every summary that is due."""
        spending = Spending()
        async with self.writing():
            with spending.told():
                return await self._committer.summarize_due(spending)

    # ── inserting ───────────────────────────────────────────────────────────────

    async def _insert(
        self,
        given: Iterable[PendingDocument],
        watcher: Watcher | None,
        summarize: bool,
        tolerant: bool,
    ) -> InsertReport:
        run = Run(Budget(self._options), watcher, summarize)
        await self._all(
            run, ((self._weight(one.document), self._take_in(run, one)) for one in given)
        )
        if run.refused is not None and run.begun == 1 and not tolerant:
            raise run.refused
        report = run.report()
        log.info(
            "inserted %d documents, %d chunks; %d unchanged, %d failures",
            len(run.documents),
            report.chunks,
            len(run.unchanged),
            len(run.failures),
        )
        return report

    async def _all(
        self, run: Run, work: Iterable[tuple[int, Coroutine[Any, Any, Ready | None]]]
    ) -> None:
        """Prepare documents concurrently, and commit those that are ready in groups."""

        async def commit(batch: list[Ready]) -> None:
            try:
                if run.broken is None:
                    run.account(batch, await self._commit(run, batch))
                    return
            except EmbeddingError as error:
                run.broke(error)
            except BaseException:
                self._keep_vectors(batch)
                raise
            self._keep_vectors(batch)
            for one in batch:
                run.end(one.document.id or "")

        with run.spending.told():
            await in_groups(work, commit, held_up=lambda: run.held_up)
            if run.broken is not None:
                raise run.broken

    def _keep_vectors(self, batch: Sequence[Ready]) -> None:
        for one in batch:
            self._embeddings.keep(one.vectors)

    async def _commit(self, run: Run, batch: Sequence[Ready]) -> Committed:
        try:
            return await self._committer.commit(
                batch,
                spending=run.spending,
                summarize=run.summarize,
                steps=run.steps,
                put_off=run.put_off,
            )
        except BudgetError as error:  # nothing left for summaries: list the descriptions instead
            run.stopped = str(error)
            return await self._committer.commit(batch, summarize=False, steps=run.steps)

    def _weight(self, document: Document) -> int:
        """Roughly the number of chunks that a document will have."""
        characters = len(document.text) + sum(len(page) for page in document.pages or ())
        return 1 + characters // (self._options.chunk_tokens * CHARACTERS)

    async def _take_in(self, run: Run, waiting: PendingDocument) -> Ready | None:
        """Prepare a document, after an earlier one of the same id has been committed."""
        run.begun += 1
        try:
            document, pages = identified(waiting.document)
            records = None if waiting.records is None else tuple(map(as_stored, waiting.records))
        except ConfigError as error:
            run.refuse(waiting.document, error)
            return None
        id = document.id or ""
        await run.begin(id)
        ready = None
        try:
            if run.broken is not None:
                return None
            waiting = replace(waiting, document=document, records=records)
            ready = await self._prepare(run, waiting, pages)
        except BudgetError as error:
            run.stopped = str(error)
        finally:
            if ready is None:
                run.end(id)
        return ready

    async def _prepare(
        self, run: Run, waiting: PendingDocument, pages: tuple[Page, ...]
    ) -> Ready | None:
        document, id = waiting.document, waiting.document.id or ""
        if not any(page.text.strip() for page in pages):
            run.failures.append(Failure(id, None, NO_TEXT))
            return None
        content = content_of(document, pages, waiting)
        run.contents.add(id, content)
        old = self.intake.stored(id)
        if old is not None and old.content == content:
            if old.state == "done" or waiting.records is not None:
                run.unchanged.append(id)
                await self._write(lambda connection: pending.drop(connection, [id]))
                return None
            await self._write(lambda connection: pending.drop(connection, [id]))
            return await self._retry(run, old)
        try:
            chunks = self.intake.cut(pages, waiting, old)
            given = self._given(waiting, chunks)
        except ConfigError as error:
            run.refuse(document, error)
            return None
        if given is not None and waiting.chunks is None and waiting.cut is None:
            waiting = replace(waiting, cut=self.intake.sizes)
        await self._write(lambda connection: pending.put(connection, waiting))
        extractions, vectors = await self._read(run, chunks, given)
        return Ready(
            document=document,
            content=content,
            characters=sum(len(page.text) for page in pages),
            created_at=waiting.created_at,
            pages=pages,
            chunks=chunks,
            extractions=extractions,
            vectors=vectors,
        )

    def _given(
        self, waiting: PendingDocument, chunks: Sequence[Chunk]
    ) -> tuple[Extraction, ...] | None:
        """The extractions of ready-made records, if the caller provided some."""
        if waiting.records is None:
            return None
        parts = given_records(waiting.records, self._record_schema, len(chunks))
        return tuple(from_records(chunk, *part) for chunk, part in zip(chunks, parts, strict=True))

    async def _read(
        self, run: Run, chunks: Sequence[Chunk], given: tuple[Extraction, ...] | None
    ) -> tuple[tuple[Extraction, ...], dict[bytes, Vectors]]:
        """Extract and embed a document's chunks concurrently; if it is stopped, the vectors are kept."""
        run.known += len(chunks)
        run.tell()
        keyed = await self._embeddings.keyed(chunk.text for chunk in chunks)
        if given is not None:
            run.done += len(chunks)
            try:
                return given, await self._embeddings.missing(keyed, run.steps)
            except EmbeddingError as error:
                run.broke(error)
                raise BudgetError(run.stopped) from error
        vectors: dict[bytes, Vectors] = {}

        async def embed() -> None:
            try:
                vectors.update(await self._embeddings.missing(keyed, run.steps))
            except EmbeddingError as error:  # what is being read is paid for: it comes to its end
                run.broke(error)

        try:
            extractions, _ = await both(self._extract_all(run, chunks), embed())
            if run.broken is not None:
                raise BudgetError(run.stopped)
        except BaseException:
            self._embeddings.keep(vectors)
            raise
        return extractions, vectors

    async def _extract_all(self, run: Run, chunks: Iterable[Chunk]) -> tuple[Extraction, ...]:
        """Extract from chunks concurrently; if the budget ends, let the calls in flight finish,
        then raise.
        """
        done = await together(self._extract(run, chunk) for chunk in chunks)
        whole = tuple(extraction for extraction in done if extraction is not None)
        if len(whole) < len(done):
            raise BudgetError(run.stopped)
        return whole

    async def _extract(self, run: Run, chunk: Chunk) -> Extraction | None:
        extractor = self._extractor
        if run.broken is not None:
            return None
        try:
            if isinstance(extractor, LLMExtractor):
                extraction = await extractor.extract(chunk, spending=run.spending)
            else:
                extraction = await extracted(extractor, chunk)
        except BudgetError as error:
            run.stopped = str(error)
            return None
        except LLMError as error:
            if not error.permanent:
                raise
            run.ended(str(error))
            return None
        run.heard(extraction)
        run.done += 1
        run.tell()
        return extraction

    async def _retry(self, run: Run, stored: StoredDocument) -> Ready | None:
        """Ask again about a document's unfinished chunks; calls that were answered come from the cache."""
        with self._database.reading() as connection:
            left = documents.chunks_of(connection, [stored.row], only=documents.UNFINISHED)
        run.known += len(left)
        try:
            extractions = await self._extract_all(run, left.values())
        except BudgetError as error:
            run.stopped = str(error)
            return None
        return Ready(
            document=Document("", id=stored.id),
            content=stored.content,
            characters=stored.characters,
            created_at=stored.created_at,
            pages=(),
            chunks=tuple(left.values()),
            extractions=extractions,
            stored=tuple(left),
        )

    # ── writing ─────────────────────────────────────────────────────────────────

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Become the only writer: in this process by the database's lock, in the directory by a lock file.

        Raises `SettingsError` if another writer has meanwhile built the index with other parts. On
        an error or cancellation, the directory is released only after all submitted writes are
        done: otherwise the next writer would plan its changes on rows that are about to change.
        """
        self._database.check_writable()
        folder, patience = self._database.path.parent, self._options.lock_timeout
        async with self._database.turn, writing(folder, patience):
            try:
                self._database.check_place()
                await self._embeddings.measured()
                self._check_settings()
                yield
            except (Exception, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                await to_the_end(self._database.settled())
                raise

    def _check_settings(self) -> None:
        with self._database.reading() as connection:
            recorded = settings.read(connection)
        settings.check(recorded, self._built_with(), self._database.working_dir)

    async def _write(self, job: Callable[..., object]) -> None:
        await self._database.committed(job, flush=False, single=True)
