"""AsyncLightRAG: documents in, answers out, and how each answer came about."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from lightrag_jsonl.core.errors import ConfigError, NotFoundError, SettingsError
from lightrag_jsonl.core.options import IndexOptions, QueryParam, Turn
from lightrag_jsonl.core.protocols import (
    LLM,
    Answerer,
    Embedder,
    Extractor,
    KeywordExtractor,
    Reranker,
    Tokenizer,
)
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.tokens import tokenizer_for
from lightrag_jsonl.core.types import (
    Answer,
    Context,
    DeleteReport,
    Document,
    DocumentStatus,
    Failure,
    InsertReport,
    Mode,
    Page,
    Record,
    Rejection,
    Status,
    known_language,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import CheckedTokenizer
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.loading import Given, load_documents
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.indexing.pipeline import IndexPipeline
from lightrag_jsonl.indexing.progress import ProgressCallback
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.rag.namespaces import Admin, Entities, Traces, network
from lightrag_jsonl.retrieval.answer_cache import AnswerCache
from lightrag_jsonl.retrieval.pipeline import AnswerStream, QueryPipeline
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.sqlite.database import SQLiteStore
from lightrag_jsonl.storage.status import document_statuses, index_status
from lightrag_jsonl.storage.store import CompletionCache, Store, read
from lightrag_jsonl.tracing.citations import cite
from lightrag_jsonl.tracing.events import End, Event, Session
from lightrag_jsonl.tracing.recorder import Listener, Recorder, replay

if TYPE_CHECKING:
    import networkx as nx

Item = TypeVar("Item")
ADVICE = {
    "embedder": "open it with that embedder, or move it to the new one with reembed",
    "tokenizer": "open it with that tokenizer, or insert the documents into a new folder",
    "language": "open it with that language, or insert the documents into a new folder",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """Model, embedder and the like of one index; the offline ones in place of a missing model."""

    llm: LLM | None
    embedder: Embedder
    tokenizer: Tokenizer | None
    reranker: Reranker | None
    extractor: Extractor | None
    keyword_extractor: KeywordExtractor | None
    answerer: Answerer | None


class AsyncLightRAG:
    """A knowledge graph over texts, kept in one folder, and answers from it.

    Without a model (`llm=None`), language rules find entities and keywords and put answers
    together; without an embedder, vectors are hashes of words. Neither needs a key or a network.
    `language` is "en", "zh", or a language that `prompts` provides. Fix `clock` (seconds since
    1970) and `new_id` (ids of traces) to get the same results, byte for byte, in every run. One
    instance is used from one event loop.

    Raises `StorageError` if the folder cannot be used, and `SettingsError` if it was built with
    other settings.
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
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.options = options or IndexOptions()
        self.language = language
        self.working_dir = Path(working_dir)
        self._clock = clock
        self._new_id = new_id
        self._prompts = (
            prompts if isinstance(prompts, PromptManager) else PromptManager.load(language, prompts)
        )
        from lightrag_jsonl.providers import offline
        from lightrag_jsonl.providers.functions import as_embedder, as_llm

        if llm is None:
            rules = known_language(language)
            extractor = extractor or offline.OfflineExtractor(rules)
            keyword_extractor = keyword_extractor or offline.OfflineKeywords(rules)
            answerer = answerer or offline.ExtractiveAnswerer(rules)
        parts = Parts(
            None if llm is None else as_llm(llm),
            offline.HashEmbedder() if embedder is None else as_embedder(embedder),
            tokenizer,
            reranker,
            extractor,
            keyword_extractor,
            answerer,
        )
        self._network: tuple[int, nx.Graph] | None = None
        self._store: Store = SQLiteStore(self.working_dir)
        try:
            self._connect(parts)
        except BaseException:
            self._store.close()
            raise
        self.entities = Entities(self)
        self.traces = Traces(self)
        self.admin = Admin(self)

    def __repr__(self) -> str:
        return f"AsyncLightRAG({str(self.working_dir)!r})"

    def _connect(self, parts: Parts) -> None:
        """Connect the parts; `SettingsError` if the folder was built with other ones."""
        self._parts = parts
        self._tokenizer = self._checked_tokenizer(parts)
        self._client = self._model_client(parts.llm)
        self._indexing = self._index_pipeline(self._client)
        self._querying = QueryPipeline(
            store=self._store,
            client=self._client,
            embedder=parts.embedder,
            tokenizer=self._tokenizer,
            reranker=parts.reranker,
            keyword_extractor=parts.keyword_extractor,
            answerer=parts.answerer,
            language=self.language,
            cite=cite(self._store),
        )
        others = (parts.answerer, parts.keyword_extractor, parts.reranker, self._tokenizer)
        self._answers = AnswerCache(self._store, self._client, parts.embedder, others)

    def _index_pipeline(self, client: ModelClient) -> IndexPipeline:
        return IndexPipeline(
            self._store,
            client,
            self._parts.extractor or self._model_extractor(client),
            self._parts.embedder,
            self._tokenizer,
            self.options,
            language=self.language,
            settings=self._settings,
            record_schema=self._prompts.prompt("extract-graph").schema,
        )

    def _model_client(self, llm: LLM | None, *, store_answers: bool = True) -> ModelClient:
        return ModelClient(
            llm,
            self._prompts,
            CompletionCache(self._store),
            max_concurrent_calls=self.options.max_concurrent_calls,
            clock=self._clock,
            store_answers=store_answers,
        )

    def _checked_tokenizer(self, parts: Parts) -> Tokenizer:
        with self._store.reader() as reader:
            recorded = reader.settings()
        wanted = {"embedder": parts.embedder.name, "language": self.language}
        if parts.tokenizer is not None:
            wanted["tokenizer"] = parts.tokenizer.name
        for key, value in wanted.items():
            if recorded.get(key, value) != value:
                raise SettingsError(
                    f"{self.working_dir} was built with {key} {recorded[key]!r}, not {value!r}: "
                    f"{ADVICE[key]}",
                    path=self.working_dir,
                )
        if parts.tokenizer is None:
            return tokenizer_for(recorded.get("tokenizer"))
        return CheckedTokenizer(parts.tokenizer)

    def _settings(self) -> Mapping[str, str]:
        """What the first commit records, and every later opening is compared with."""
        return {
            "embedder": self._parts.embedder.name,
            "dim": str(self._parts.embedder.dim),
            "tokenizer": self._tokenizer.name,
            "language": self.language,
        }

    def _model_extractor(self, client: ModelClient) -> LLMExtractor:
        ontology = None if self.options.ontology is None else Ontology.load(self.options.ontology)
        if self.options.extraction == "extract-with-ontologies" and ontology is None:
            raise ConfigError("extraction='extract-with-ontologies' needs IndexOptions(ontology=…)")
        return LLMExtractor(
            client,
            self.options,
            language=self.language,
            ontology=ontology,
            names_in=_names_in(self._parts.llm, self.language),
        )

    # ── documents ───────────────────────────────────────────────────────────────

    async def insert(
        self, documents: Given | Iterable[Given], *, progress: ProgressCallback | None = None
    ) -> InsertReport:
        """Index texts (`str`), files and folders (`Path`) and `Document`s.

        A document whose id and content are known is skipped; one with a known id and a new content
        replaces the old one. `progress` is called as work is done. A file or document that cannot
        be read or indexed becomes a failure in the report; if it is the only one given, it raises
        `ConfigError`. Like every method that writes, this raises `LockedError` if another process
        keeps writing for longer than `IndexOptions.lock_timeout`.
        """
        failures: list[Failure] = []
        pending = self._pending(documents, failures)
        report = await self._indexing.insert(pending, progress=progress)
        return replace(report, failures=(*failures, *report.failures))

    def _pending(
        self, documents: Given | Iterable[Given], failures: list[Failure]
    ) -> Iterator[PendingDocument]:
        """The documents, read one at a time; those that cannot be read are added to `failures`."""
        for loaded in load_documents(documents):
            if isinstance(loaded, Failure):
                failures.append(loaded)
            else:
                yield PendingDocument(loaded, self._clock())

    async def insert_records(
        self,
        document: Document | str,
        records: Iterable[Record],
        chunks: Sequence[str] | None = None,
    ) -> InsertReport:
        """Index a document from ready-made records of the prompt `extract-graph`; no model is
        asked.

        A record may name its chunk by index (`"chunk"`, default 0). `chunks` are the pieces of the
        document in order; without them the document is cut as usual. `ConfigError` names a record
        or a piece that does not fit.
        """
        if chunks is not None and (isinstance(chunks, str) or not chunks):
            raise ConfigError("chunks must be the pieces of the document, at least one, or None")
        document = Document(document) if isinstance(document, str) else document
        pieces = None if chunks is None else tuple(chunks)
        pending = PendingDocument(document, self._clock(), tuple(records), pieces)
        return await self._indexing.insert([pending])

    async def resume(self, *, progress: ProgressCallback | None = None) -> InsertReport:
        """Go on with documents that an interrupted insert left waiting."""
        return await self._indexing.resume(progress=progress)

    async def retry(self, *, progress: ProgressCallback | None = None) -> InsertReport:
        """Ask again for every chunk that failed, and for the missing part of chunks read in part."""
        return await self._indexing.retry(progress=progress)

    async def delete(self, *ids: str) -> DeleteReport:
        """Remove documents by id; if some ids are unknown, `NotFoundError` names them and none is
        removed.
        """
        return await self._indexing.delete(checked_texts(ids))

    async def status(self) -> Status:
        """How much the index holds, and what it was built with."""
        status = await read(self._store, index_status)
        return replace(
            status,
            working_dir=str(self.working_dir),
            language=self.language,
            llm=self._client.llm.name if self._client.has_model else "none",
            embedder=self._parts.embedder.name,
            tokenizer=self._tokenizer.name,
            bytes_on_disk=self._store.size(),
        )

    async def documents(self) -> tuple[DocumentStatus, ...]:
        """Every document, with how its extraction went; waiting ones last."""
        return await read(self._store, document_statuses)

    async def pages(self, document_id: str) -> tuple[Page, ...]:
        """A document's pages, as they were indexed."""
        id = sanitize(document_id)
        found = await read(self._store, lambda reader: reader.pages(id))
        if not found:
            raise NotFoundError(f"no such document: {id}")
        return found

    async def rejections(self, *ids: str) -> list[tuple[str, str, Rejection]]:
        """Refused lines as (document id, chunk id, rejection); without ids, those of all documents."""
        wanted = checked_texts(ids) or None
        return await read(self._store, lambda reader: reader.rejections(wanted))

    # ── questions ───────────────────────────────────────────────────────────────

    async def query(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
    ) -> Answer:
        """Answer a question from the index. `mode` and `history` override those of `param`.

        Every query leaves a trace, whose id is `Answer.trace_id`. An error that ends the query has
        in `usage` what was paid. With `explain=True` the model chooses the relations and gives its
        reasons, unless there is no model or `selection` is "all". `listener` receives each event
        once it is stored.
        """
        param = self._param(question, param, mode, history, explain)
        return await self._answer(question, param, UsageMeter(), listener)

    async def retrieve(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
    ) -> Context:
        """What a model would be shown: ranked entities, relations and chunks, and the text of the
        prompt.
        """
        return await self._querying.retrieve(
            question, self._param(question, param, mode, history, False)
        )

    def stream(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = False,
        listener: Listener | None = None,
    ) -> AsyncAnswerStream:
        """The answer in pieces; after the last one, `.answer` holds it complete. Arguments as in
        `query`.

        `.usage` is what was paid so far, even if the stream is left early.
        """
        param = self._param(question, param, mode, history, explain)
        meter = UsageMeter()

        async def run(put: Callable[[str | Answer], None]) -> None:
            put(await self._answer(question, param, meter, listener, put))

        return AsyncAnswerStream(_queued(run), meter)

    async def events(
        self,
        question: str,
        param: QueryParam | None = None,
        *,
        mode: Mode | None = None,
        history: Sequence[Turn] = (),
        explain: bool = True,
    ) -> AsyncGenerator[Event]:
        """The events of a query as they happen, each stored before it is yielded.

        The last event is always an `End`, with the error if the query failed. `aclose()` ends the
        query early.
        """
        param = self._param(question, param, mode, history, explain)

        async def run(put: Callable[[Event], None]) -> None:
            ended: list[End] = []

            def listen(event: Event) -> None:
                if isinstance(event, End):
                    ended.append(event)
                put(event)

            try:
                await self._answer(question, param, UsageMeter(), listen, lambda piece: None)
            except Exception:
                if not ended:  # the end could not be stored
                    raise

        async with aclosing(_queued(run)) as items:
            async for event in items:
                yield event

    async def extract(self, /, prompt: str, text: str, **variables: object) -> list[Record]:
        """The records that one of the extraction prompts yields for a text; nothing is stored.

        `variables` are what the prompt needs besides `text` (`schema`, `classes`, …). Lines that
        are not valid records are logged as warnings.
        """
        if self._prompts.prompt(prompt).response_type != "jsonl":
            raise ConfigError(f"prompt {prompt!r} does not answer with records")
        records = await self._client.jsonl(prompt, {**variables, "text": sanitize(text)})
        for refused in records.result.rejections:
            if refused.reason != "repaired":
                why = f"{refused.reason}: {refused.detail}" if refused.detail else refused.reason
                log.warning("line %d is no record (%s): %.200s", refused.line, why, refused.text)
        return list(records.result.records)

    @property
    def graph(self) -> nx.Graph:
        """A read-only networkx view: nodes by entity name, with all their attributes."""
        with self._store.reader() as reader:
            if self._network is None or self._network[0] != reader.generation:
                self._network = (reader.generation, network(reader))
        return self._network[1]

    # ── the end ─────────────────────────────────────────────────────────────────

    async def close(self) -> None:
        """Close the index; further calls raise `StorageError`."""
        self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # ── one question ────────────────────────────────────────────────────────────

    async def _answer(
        self,
        question: str,
        param: QueryParam,
        meter: UsageMeter,
        listener: Listener | None = None,
        put_piece: Callable[[str], None] | None = None,
    ) -> Answer:
        """The answer to a question, recorded from its first event to its last.

        With `put_piece` the answer is passed on in pieces as it is written.
        """
        with self._store.reader() as reader:
            generation = reader.generation
        session = Session(self._new_id(), sanitize(question), param.mode, self._now(), generation)
        recorder = Recorder(self._store, session, meter, listener=listener, clock=self._now)
        await recorder.begin()
        try:
            with meter.attach_usage():
                answer = await self._answers.find(question, param, meter)
                if answer is not None:
                    await replay(answer, recorder)
                    if put_piece is not None:
                        put_piece(answer.text)
                else:
                    answer = await self._written(question, param, meter, recorder, put_piece)
                    await self._answers.keep(question, param, answer)
        except BaseException as error:
            await recorder.failed(error)
            raise
        return replace(answer, trace_id=recorder.stored_trace_id)

    async def _written(
        self,
        question: str,
        param: QueryParam,
        meter: UsageMeter,
        recorder: Recorder,
        put_piece: Callable[[str], None] | None,
    ) -> Answer:
        if put_piece is None:
            return await self._querying.answer(question, param, observer=recorder, meter=meter)
        stream = self._querying.stream(question, param, observer=recorder, meter=meter)
        async with aclosing(stream):
            async for piece in stream:
                put_piece(piece)
        return stream.answer

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _param(
        self,
        question: str,
        param: QueryParam | None,
        mode: Mode | None,
        history: Sequence[Turn],
        explain: bool,
    ) -> QueryParam:
        if not isinstance(question, str):
            raise TypeError(f"a question must be a text, not {type(question).__name__}")
        param = param or QueryParam()
        if not isinstance(param, QueryParam):
            raise TypeError(f"param must be a QueryParam, not {type(param).__name__}")
        if mode is not None:
            param = replace(param, mode=mode)
        if explain and param.selection == "score" and self._client.has_model:
            param = replace(param, selection="llm")
        return replace(param, conversation_history=tuple(history)) if history else param


class AsyncAnswerStream(AnswerStream):
    """The pieces of an answer; after the last one, `.answer` holds it complete."""

    def __init__(self, pieces: AsyncGenerator[str | Answer], meter: UsageMeter) -> None:
        super().__init__(pieces)
        self._meter = meter

    @property
    def usage(self) -> Usage:
        """What was paid so far; a call that was cut off counts as a call without tokens."""
        return self._meter.spent


async def _queued(
    run: Callable[[Callable[[Item], None]], Awaitable[None]],
) -> AsyncGenerator[Item]:
    """What `run` puts out, as it comes; leaving the iterator early cancels `run`."""
    items: asyncio.Queue[Item | None] = asyncio.Queue()
    task = asyncio.ensure_future(run(items.put_nowait))
    task.add_done_callback(lambda done: items.put_nowait(None))
    try:
        while (item := await items.get()) is not None:
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])


def checked_texts(given: Iterable[str]) -> list[str]:
    """Ids or names as they are stored; `TypeError` if one is not a `str`."""
    listed = list(given)
    for text in listed:
        if not isinstance(text, str):
            raise TypeError(f"expected texts, one after another, got {type(text).__name__}")
    return [sanitize(text) for text in listed]


def _names_in(llm: LLM | None, language: str) -> Callable[[str], Sequence[str]] | None:
    """For a model that may only write names from the text: a function that finds names in a text."""
    if getattr(llm, "constrain", "") != "grounded":
        return None
    from lightrag_jsonl.providers.offline.extraction import extract_text

    rules = known_language(language)
    return lambda text: [mention.name for mention in extract_text(text, language=rules).entities]
