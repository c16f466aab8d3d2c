"""AsyncLightRAG: the index and the questions, put together from their parts."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.defaults import Parts, complete, tokenizer_for
from lightrag_jsonl.errors import ConfigError, NotFoundError
from lightrag_jsonl.files import Given, read_all
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.indexing.pipeline import IndexPipeline, Watcher
from lightrag_jsonl.options import IndexOptions, QueryParam
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import (
    LLM,
    Answerer,
    Embedder,
    Extractor,
    KeywordExtractor,
    Reranker,
    Tokenizer,
)
from lightrag_jsonl.querying.pipeline import QueryPipeline
from lightrag_jsonl.storage import documents, overview, schema, settings
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.documents import PendingDocument
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.types import (
    Answer,
    Context,
    DeleteReport,
    Document,
    DocumentStatus,
    Failure,
    InsertReport,
    Message,
    Mode,
    Page,
    Record,
    Rejection,
    Status,
)

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)


class AsyncLightRAG:
    """A knowledge graph over texts, in one folder, and answers from it.

    With no model (`llm=None`) entities, keywords and answers come from language rules, and with
    no embedder from hashed words: neither needs a key or a network. `language` ("en", "zh", or
    one that `prompts` brings) is the language of prompts and of the rules. Raises `StorageError`
    where the folder cannot be used, `SettingsError` where it was built with other settings.
    """

    def __init__(
        self,
        working_dir: str | Path,
        *,
        llm: LLM | Callable[..., object] | None = None,
        embedder: Embedder | Callable[..., object] | None = None,
        tokenizer: Tokenizer | None = None,
        reranker: Reranker | None = None,
        language: str = "en",
        options: IndexOptions | None = None,
        prompts: PromptManager | Path | str | None = None,
        extractor: Extractor | None = None,
        keyword_extractor: KeywordExtractor | None = None,
        answerer: Answerer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.options = options or IndexOptions()
        self.language = language
        self._clock = clock
        self._prompts = (
            prompts if isinstance(prompts, PromptManager) else PromptManager.load(language, prompts)
        )
        parts = complete(llm, embedder, extractor, keyword_extractor, answerer, language)
        self._llm, self._embedder = parts.llm, parts.embedder
        self._database = Database(working_dir)
        try:
            self._tokenizer = self._check_settings(tokenizer)
            self._assemble(parts, reranker)
        except BaseException:
            self._database.close()
            raise

    def _check_settings(self, tokenizer: Tokenizer | None) -> Tokenizer:
        with self._database.reading() as connection:
            recorded = settings.read(connection)
        wanted = {"embedder": self._embedder.name, "language": self.language}
        if tokenizer is not None:
            wanted["tokenizer"] = tokenizer.name
        settings.check(recorded, wanted, self._database.path)
        return tokenizer or tokenizer_for(recorded.get("tokenizer"))

    def _assemble(self, parts: Parts, reranker: Reranker | None) -> None:
        limit = self.options.max_concurrent_calls
        self._ask = Ask(
            parts.llm, self._prompts, self._database, max_concurrent_calls=limit, clock=self._clock
        )
        extractor = parts.extractor or self._model_extractor()
        self._keeper = SnapshotKeeper(self._database)
        self._indexing = IndexPipeline(
            self._database,
            self._ask,
            extractor,
            Embeddings(self._embedder, self._database, batch_size=self.options.embed_batch_size),
            self._tokenizer,
            self.options,
            language=self.language,
            settings=self._settings,
            record_schema=self._prompts.prompt("extract-graph").schema,
            clock=self._clock,
        )
        self._querying = QueryPipeline(
            ask=self._ask,
            keeper=self._keeper,
            embedder=self._embedder,
            tokenizer=self._tokenizer,
            reranker=reranker,
            keyword_extractor=parts.keyword_extractor,
            answerer=parts.answerer,
            language=self.language,
        )

    def _model_extractor(self) -> Extractor:
        given = self.options.ontology
        ontology = None if given is None else Ontology.load(given)
        if self.options.extraction == "extract-with-ontologies" and ontology is None:
            raise ConfigError("extraction='extract-with-ontologies' needs IndexOptions(ontology=…)")
        return LLMExtractor(
            self._ask,
            self.options,
            language=self.language,
            ontology=ontology,
            ontology_variables=None if ontology is None else ontology.variables(),
        )

    def _settings(self) -> Mapping[str, str]:
        return {
            "embedder": self._embedder.name,
            "dim": str(self._embedder.dim),
            "tokenizer": self._tokenizer.name,
            "language": self.language,
            "llm": "none" if self._llm is None else self._llm.name,
        }

    @property
    def working_dir(self) -> Path:
        """The folder of the index."""
        return self._database.working_dir

    # ── documents ───────────────────────────────────────────────────────────────

    async def insert(
        self, documents: Given | Iterable[Given], *, watcher: Watcher | None = None
    ) -> InsertReport:
        """Index texts (`str`), files and folders (`Path`) and `Document`s.

        A document with a known id and content is passed over, one with a known id and another
        content takes the old one's place. `watcher` is told of progress.
        """
        unreadable: list[Failure] = []
        report = await self._indexing.insert(
            self._pending(read_all(documents), unreadable), watcher=watcher
        )
        return _with_failures(report, unreadable)

    async def insert_records(
        self,
        document: Document | str,
        records: Iterable[Record],
        chunks: Sequence[str] | None = None,
    ) -> InsertReport:
        """Index a document from ready-made records of the `extract-graph` kinds; no model is asked.

        Each record may name its chunk by index (`"chunk"`, default 0). `chunks` are pieces of
        the document in order; without them it is cut as usual.
        """
        whole = Document(document) if isinstance(document, str) else document
        pieces = None if chunks is None else tuple(chunks)
        waiting = PendingDocument(whole, tuple(records), pieces, self._clock())
        return await self._indexing.insert([waiting])

    async def update(self, document: Document) -> InsertReport:
        """Replace the document of the same id; only chunks whose text changed are asked about."""
        if document.id is None:
            raise ConfigError("update needs a document with the id of the one it replaces")
        with self._database.reading() as connection:
            if not self._known(connection, document.id):
                raise NotFoundError(f"no such document: {document.id}")
        return await self.insert(document)

    async def resume(self, *, watcher: Watcher | None = None) -> InsertReport:
        """Go on with documents that an interrupted insert left waiting."""
        return await self._indexing.resume(watcher=watcher)

    async def retry(self, *, watcher: Watcher | None = None) -> InsertReport:
        """Ask again for every chunk that failed."""
        return await self._indexing.retry(watcher=watcher)

    async def delete(self, *ids: str) -> DeleteReport:
        """Remove documents by id; `NotFoundError` names ids that are unknown (then none is removed)."""
        return await self._indexing.delete(ids)

    def _pending(
        self, found: Iterable[Document | Failure], unreadable: list[Failure]
    ) -> Iterator[PendingDocument]:
        for one in found:
            if isinstance(one, Failure):
                unreadable.append(one)
            else:
                yield PendingDocument(one, None, None, self._clock())

    # ── questions ───────────────────────────────────────────────────────────────

    async def query(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Message] = (),
    ) -> Answer:
        """Answer a question from the index. `mode` and `history` override those of `param`."""
        return await self._querying.answer(question, _param(param, mode, history))

    async def retrieve(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Message] = (),
    ) -> Context:
        """What would be shown to the model: ranked entities, relations and chunks, and the prompt."""
        return await self._querying.retrieve(question, _param(param, mode, history))

    # ── looking ─────────────────────────────────────────────────────────────────

    async def status(self) -> Status:
        """The index as a whole."""
        with self._database.reading() as connection:
            recorded = settings.read(connection)
            counts = overview.counts(connection)
            return Status(
                working_dir=str(self.working_dir),
                documents=overview.document_counts(connection),
                **counts,
                language=self.language,
                llm="none" if self._llm is None else self._llm.name,
                embedder=self._embedder.name,
                dim=int(recorded.get("dim", 0)),
                tokenizer=self._tokenizer.name,
                format=schema.FORMAT,
                bytes_on_disk=overview.bytes_on_disk(self.working_dir),
                extraction=overview.extraction(connection),
            )

    async def documents(self) -> tuple[DocumentStatus, ...]:
        """Every document, with how its extraction went."""
        with self._database.reading() as connection:
            return overview.document_statuses(connection)

    async def pages(self, document_id: str) -> tuple[Page, ...]:
        """A document's pages, as they were indexed."""
        with self._database.reading() as connection:
            found = documents.pages(connection, document_id)
        if not found:
            raise NotFoundError(f"no such document: {document_id}")
        return found

    async def rejections(self, *ids: str) -> list[tuple[str, str, Rejection]]:
        """(document id, chunk id, rejection) of what was refused, of all or of the named documents."""
        with self._database.reading() as connection:
            return overview.rejections(connection, list(ids) or None)

    @staticmethod
    def _known(connection: sqlite3.Connection, id: str) -> bool:
        waiting = {one.document.id for one in documents.pending_documents(connection)}
        return bool(documents.documents(connection, [id])) or id in waiting

    # ── the end ─────────────────────────────────────────────────────────────────

    async def close(self) -> None:
        """Finish what is being written and let go of the folder; further calls raise `StorageError`."""
        self._database.close()

    async def __aenter__(self) -> AsyncLightRAG:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _param(param: QueryParam | None, mode: Mode | None, history: Sequence[Message]) -> QueryParam:
    param = param or QueryParam()
    if mode is not None:
        param = replace(param, mode=mode)
    return replace(param, conversation_history=tuple(history)) if history else param


def _with_failures(report: InsertReport, more: Sequence[Failure]) -> InsertReport:
    return replace(report, failures=(*more, *report.failures)) if more else report
