"""The engine of an index: store, models, and the pipelines between store and models."""

import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Self, get_args

from msgspec import Struct

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.aio import gather_all
from lightrag_jsonl.core.answers import Answer, Reading
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.modes import Mode
from lightrag_jsonl.core.options import IndexOptions, QueryParam, ReadMode
from lightrag_jsonl.core.protocols import (
    LLM,
    Answerer,
    Chunker,
    Embedder,
    Extractor,
    KeywordExtractor,
    Reranker,
    Tokenizer,
)
from lightrag_jsonl.core.types import Chunk, Document, Extraction, ModelTask
from lightrag_jsonl.indexing.chunking import document_pages
from lightrag_jsonl.indexing.incoming import DocumentCutter
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.lenses.claims import ClaimMemory
from lightrag_jsonl.lenses.communities import CommunityMemory
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.context_window import ContextWindow, context_tokens, fitted_options
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.providers.model_names import name_of
from lightrag_jsonl.providers.sentence_transformers import EntailmentChecker
from lightrag_jsonl.providers.settings import RECORDED, RECORDED_TASKS
from lightrag_jsonl.rag.same_embedder import SameEmbedder
from lightrag_jsonl.rag.settings import check_new_models
from lightrag_jsonl.readers.limits import FileLimits
from lightrag_jsonl.retrieval.answer_cache import AnswerCache
from lightrag_jsonl.retrieval.answer_writer import AnswerWriter
from lightrag_jsonl.retrieval.pipeline import Check, QueryPipeline
from lightrag_jsonl.retrieval.scope import LikenessScale
from lightrag_jsonl.retrieval.searching import Searcher, SearchProcesses
from lightrag_jsonl.rules import ExtractiveAnswerer, OfflineExtractor, OfflineKeywords
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.status import READ, ReportTotals
from lightrag_jsonl.storage.store import CompletionCache, Store, read, write
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.tracing.checking import (
    CHECKER_SETTING,
    Checker,
    CheckFunction,
    FunctionChecker,
    ModelChecker,
    admitted_figures,
    checked,
)
from lightrag_jsonl.tracing.citations import resolve_citations
from lightrag_jsonl.tracing.events import Session
from lightrag_jsonl.tracing.recorder import Listener, Recorder, replay

if TYPE_CHECKING:
    from lightrag_jsonl.curation.pipeline import CurationPipeline
    from lightrag_jsonl.indexing.extraction import LLMExtractor
    from lightrag_jsonl.indexing.loading import Given, UnreadSource
    from lightrag_jsonl.indexing.pipeline import IndexPipeline
    from lightrag_jsonl.readers.formats import Readers

LATEST = 10_000_000_000  # in seconds: the year 2286; as milliseconds, April 1970
DIGITS = 6  # of a second's fraction: a datetime holds no more

log = logging.getLogger(__name__)


class Clock(Struct, frozen=True):
    """Checks the times of a function like `time.time`."""

    function: Callable[[], float]

    def seconds(self) -> float:
        """The time in seconds since 1970; `ConfigError` if the function returns anything else."""
        seconds = self.function()
        if isinstance(seconds, int | float) and 0 <= seconds <= LATEST:
            return round(seconds, DIGITS)
        raise ConfigError(
            f"clock returned {seconds!r}: it must return seconds since 1970, as time.time"
        )

    def now(self) -> datetime:
        """The time in UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)


class RulesInPlaceOfModel(Struct, frozen=True):
    """What reads texts, finds keywords and answers where no model does."""

    extractor: Extractor
    keyword_extractor: KeywordExtractor
    answerer: Answerer

    @classmethod
    def of(cls, language: str, options: IndexOptions, embedder: Embedder) -> Self:
        """The rules for a language; answers also by the meanings of an embedder."""
        rules = known_language(language)
        return cls(
            extractor=OfflineExtractor(rules, options.tagger),
            keyword_extractor=OfflineKeywords(rules),
            answerer=ExtractiveAnswerer(rules, embedder),
        )


def random_id() -> str:
    """A new id of a trace."""
    return str(uuid.uuid4())


@dataclass(kw_only=True, eq=False, repr=False)
class Engine:
    """An open index: its parts, and the pipelines between the parts.

    `rag.engine` is the engine of a `LightRAG` or `AsyncLightRAG`, for programs in need of single
    steps; `open_engine` makes an engine alone. Parts, chosen when the index is opened:

    - `working_dir`: the folder or the database; `store`: the open store there.
    - `options`, `language`, `prompts`: the rules for reading documents, and the words for models.
    - `llm`: the model, and `models`: the models for single tasks, in place of `llm`; `embedder`: texts
      to vectors; `tokenizer`: counts and cuts; `reranker`: scores of chunks. `llm`, the values of
      `models` and `reranker` may be `None`.
    - `check`: what tells whether claims of answers are supported, as in `AsyncLightRAG`.
    - `chunker`: the user's function that divides pages into chunks, or `None`.
    - `extractor`, `keyword_extractor`, `answerer`: the user's replacements for the model in a single
      step, or `None`; without a model, language rules take all three places.
    - `clock`: the time; `new_id`: the ids of traces.
    - `claims`: the claims of the index; `communities`: those of its graph; `searcher`: searches it, through lenses.
      `processes`: the processes that search the index, or `None`, where this process searches.

    Pipelines, made at first use:

    - `client`: every call of the models, with cache, retries and a limit of calls in flight.
    - `cutter`: documents into chunks.
    - `indexing`: every change of documents.
    - `curation`: edits by hand, merges of names and of indexes, and checks.
    - `retrieval`: from a question to a context and an answer.
    - `answers`: stored answers of similar questions.

    `answer` is a question from begin to end, and `recorder` starts its trace.

    `store` may be used from any thread, and blocks. Use everything else from the event loop of the
    index: of a `LightRAG`, in a function for `LightRAG.run`. `close` closes the store and thereby
    the engine; the facades do so in `close` and at the end of their `with` block. Models are never
    closed here: the caller made the models.
    """

    working_dir: Address
    store: Store
    options: IndexOptions
    language: str
    prompts: PromptManager
    llm: LLM | None
    embedder: Embedder
    tokenizer: Tokenizer
    claims: ClaimMemory
    communities: CommunityMemory
    searcher: Searcher
    models: Mapping[ModelTask, LLM | None] = field(default_factory=dict)
    reranker: Reranker | None = None
    check: CheckFunction | str | None = None
    chunker: Chunker | None = None
    extractor: Extractor | None = None
    keyword_extractor: KeywordExtractor | None = None
    answerer: Answerer | None = None
    clock: Clock = Clock(time.time)
    new_id: Callable[[], str] = random_id
    processes: SearchProcesses | None = None

    def __repr__(self) -> str:
        return f"Engine({str(self.working_dir)!r})"

    # ── the pipelines ───────────────────────────────────────────────────────────

    @cached_property
    def client(self) -> ModelClient:
        """The client of the models."""
        return self.client_for(self.llm, self.models)

    @cached_property
    def indexing(self) -> "IndexPipeline":
        """The pipeline of documents; `ConfigError` if the ontology in the options is missing."""
        return self.indexing_for(self.client)

    @cached_property
    def cutter(self) -> DocumentCutter:
        """What cuts documents into chunks."""
        options = self._fitted_options
        return DocumentCutter(
            tokenizer=self.tokenizer,
            size=options.chunk_tokens,
            overlap=options.chunk_overlap,
            chunker=self.chunker,
        )

    @cached_property
    def curation(self) -> "CurationPipeline":
        """The pipeline of corrections, with the writer of `indexing`."""
        from lightrag_jsonl.curation.pipeline import CurationPipeline

        return CurationPipeline(self.indexing.writer, self.tokenizer, self.language)

    @cached_property
    def same_embedder(self) -> SameEmbedder:
        """The embedder, which refuses to work if the index was built with another one."""
        return SameEmbedder(self.embedder, self.store)

    @cached_property
    def retrieval(self) -> QueryPipeline:
        """The pipeline of questions."""
        return QueryPipeline(
            store=self.store,
            client=self.client,
            embedder=self.same_embedder,
            tokenizer=self.tokenizer,
            reranker=self.reranker,
            keyword_extractor=self.keyword_extractor,
            writer=AnswerWriter(
                store=self.store,
                client=self.client,
                embedder=self.same_embedder,
                answerer=self.answerer,
                language=self.language,
            ),
            language=self.language,
            cite=resolve_citations,
            likeness=LikenessScale(self.same_embedder, self.language),
            check=self._check,
            secret_marks=self.new_id is random_id,
            searcher=self.searcher,
            processes=self.processes,
            read_chunks=None if self.reads_by_rules else self._read_chunks,
            most_read_chunks=self.options.read_chunks,
        )

    @property
    def reads_by_rules(self) -> bool:
        """Whether there is no model and no user's extractor to read chunks."""
        return isinstance(self.extractor, OfflineExtractor)

    async def _read_chunks(
        self,
        chunk_ids: Sequence[str],
        *,
        limit: int,
        meter: UsageMeter,
        tell: Callable[[int, int], Awaitable[None]],
        earlier: Reading,
    ) -> Reading | None:
        """What a model reads for a question that none has read; None if there is nothing."""
        return await self.indexing.for_questions.read(
            chunk_ids, limit=limit, meter=meter, tell=tell, earlier=earlier
        )

    @cached_property
    def checker(self) -> Checker | None:
        """The checker of claims, admitted or not; `ConfigError` for an unknown name."""
        if self.check is None:
            return None
        if callable(self.check):
            return FunctionChecker(self.check)
        if self.check == "judge":
            _ = self.client.model("judge")  # `ConfigError` without a model
            return ModelChecker(self.client)
        if self.check.startswith("st:"):
            return EntailmentChecker(self.check.removeprefix("st:"))
        raise ConfigError(
            f"check must be 'judge', 'st:' and the name of a cross-encoder, or a function, not {self.check!r}"
        )

    @property
    def _check(self) -> Check | None:
        """What the checker tells of the claims of an answer; `ConfigError` unless it was admitted."""
        checker = self.checker
        if checker is None:
            return None
        with self.store.view() as view:
            stored = view.settings().get(f"{CHECKER_SETTING}{checker.name}")
        _ = admitted_figures(stored, checker.name)
        return partial(checked, checker)

    @cached_property
    def report_totals(self) -> ReportTotals:
        """The sums of the extraction reports, for the status."""
        return ReportTotals()

    @cached_property
    def answers(self) -> AnswerCache:
        """The answers of earlier questions; an answer is valid for the same parts only."""
        return AnswerCache(
            store=self.store,
            client=self.client,
            embedder=self.same_embedder,
            parts=(
                self.answerer,
                self.keyword_extractor,
                self.reranker,
                self.tokenizer,
                self.checker,
            ),
        )

    async def answer(
        self,
        question: str,
        param: QueryParam,
        meter: UsageMeter,
        *,
        listener: Listener | None = None,
        put_piece: Callable[[str], None] | None = None,
    ) -> Answer:
        """The answer, recorded from the first event to the last; `put_piece` gets the pieces."""
        recorder = self.recorder(question, mode=param.mode, meter=meter, listener=listener)
        await recorder.begin()
        try:
            with meter.attach_usage():
                answer = await self._reused_or_new_answer(question, param, recorder, put_piece)
        except BaseException as error:
            await recorder.failed(error)
            raise
        return replace(answer, trace_id=recorder.stored_trace_id)

    async def _reused_or_new_answer(
        self,
        question: str,
        param: QueryParam,
        recorder: Recorder,
        put_piece: Callable[[str], None] | None,
    ) -> Answer:
        """The stored answer of a similar question, if `param` allows reuse, or else a new answer."""
        answers = None if param.similarity_reuse is None else self.answers
        if answers is not None:
            reused = await answers.find(question, param, recorder.meter)
            if reused is not None:
                await replay(reused, recorder)
                if put_piece is not None:
                    put_piece(reused.text)
                return reused
        answer = await self.retrieval.answer(
            question, param, observer=recorder, meter=recorder.meter, put_piece=put_piece
        )
        if answers is not None:
            await answers.keep(question, param, answer, recorder.generation)
        return answer

    def recorder(
        self,
        question: str,
        *,
        mode: Mode,
        meter: UsageMeter,
        listener: Listener | None = None,
    ) -> Recorder:
        """The recorder of a question about the present state of the index."""
        with self.store.view() as view:
            generation = view.generation
        session = Session(
            trace_id=self.new_id(),
            question=sanitize(question),
            mode=mode,
            started_at=self.clock.now(),
            generation=generation,
        )
        return Recorder(
            store=self.store,
            session=session,
            meter=meter,
            listener=listener,
            clock=self.clock.now,
            keep=self.options.keep_traces,
        )

    # ── the same pipelines with another model, for batch files and estimates ────

    def client_for(
        self,
        llm: LLM | None,
        models: Mapping[ModelTask, LLM | None] | None = None,
        *,
        store_answers: bool = True,
    ) -> ModelClient:
        """A client of a model, and of models for single tasks, with prompts, cache and limits of the index."""
        return ModelClient(
            llm,
            self.prompts,
            CompletionCache(self.store),
            max_concurrent_calls=self.options.max_concurrent_calls,
            models=models or {},
            store_answers=store_answers,
            limits=self.options.limits,
        )

    @property
    def _fitted_options(self) -> IndexOptions:
        """The options with sizes that fit the windows of the models."""
        extract_model = self.models.get("extract", self.llm) if self.extractor is None else None
        return fitted_options(
            self.options,
            extract=context_tokens(extract_model),
            summarize=context_tokens(self.models.get("summarize", self.llm)),
        )

    def extractor_for(self, client: ModelClient) -> "LLMExtractor":
        """The extractor with the model of a client; `ConfigError` for a missing ontology."""
        from lightrag_jsonl.indexing.extraction import LLMExtractor

        ontology = None
        if self.options.ontology is not None:
            ontology = Ontology.load(self.options.ontology)
        if self.options.extraction == "extract-with-ontologies" and ontology is None:
            raise ConfigError("extraction='extract-with-ontologies' needs IndexOptions(ontology=…)")
        model = self.models.get("extract", self.llm)
        return LLMExtractor(
            client,
            self.options,
            language=self.language,
            ontology=ontology,
            window=ContextWindow(context_tokens(model), self.tokenizer.count),
            grounded=getattr(model, "constrain", "") == "grounded",
        )

    def chunks_of(self, document: Document) -> list[Chunk]:
        """The chunks of a document, cut as an insert cuts a new one."""
        chunks = self.cutter.new_chunks(document_pages(document.id or "", document))
        title = document.title or ""
        date = document.date or ""
        return [replace(chunk, title=title, date=date) for chunk in chunks]

    async def extract(self, document: Document, meter: UsageMeter) -> list[Extraction]:
        """The extraction of each chunk of a document; nothing is stored, not even answers."""
        from lightrag_jsonl.indexing.extraction import extract_chunk

        extractor = self.extractor
        if extractor is None:
            model = self.client.model("extract")
            extractor = self.extractor_for(self.client_for(model, store_answers=False))
        chunks = self.chunks_of(document)
        return await gather_all([extract_chunk(extractor, chunk, meter) for chunk in chunks])

    def indexing_for(self, client: ModelClient, *, patient: bool = False) -> "IndexPipeline":
        """The indexing pipeline with the model of a client; a `patient` one goes on whatever fails."""
        from lightrag_jsonl.indexing.pipeline import IndexPipeline

        return IndexPipeline(
            store=self.store,
            client=client,
            extractor=self.extractor or self.extractor_for(client),
            embedder=self.same_embedder,
            tokenizer=self.tokenizer,
            options=self._fitted_options,
            rules=OfflineExtractor(known_language(self.language), self.options.tagger),
            cutter=self.cutter,
            language=self.language,
            settings=self.index_settings,
            record_schema=self.prompts.schema("extract-graph", {}),
            patient=patient,
        )

    # ── what goes in ────────────────────────────────────────────────────────────

    def pending_documents(
        self,
        sources: "Given | Iterable[Given]",
        unread: "list[UnreadSource]",
        *,
        readers: "Readers | None" = None,
        file_limits: FileLimits | None = None,
        allow_empty: bool | None = None,
    ) -> Iterator[PendingDocument]:
        """The documents in texts, files and folders, read on demand, for `indexing.insert`.

        Unreadable sources and skipped files are appended to `unread`.
        """
        from lightrag_jsonl.indexing.loading import load_documents

        sees = self.client.has_model("see")
        items = load_documents(sources, readers, file_limits, sees=sees, allow_empty=allow_empty)
        for item in items:
            if isinstance(item, Document):
                yield PendingDocument(item, self.clock.seconds())
            else:
                unread.append(item)

    # ── what the index records ──────────────────────────────────────────────────

    def index_settings(self) -> dict[str, str]:
        """The settings for the first commit to record, and for later openings to compare.

        May block: an embedder may have to load a model to know the dimension.
        """
        return {
            "embedder": self.embedder.name,
            "dim": str(self.embedder.dim),
            "tokenizer": self.tokenizer.name,
            "language": self.language,
        }

    def model_settings(self) -> dict[str, str]:
        """The names of models and embedder, for later openings to make them again."""
        settings = {
            RECORDED["llm"]: name_of(self.llm),
            RECORDED["embedder"]: name_of(self.embedder),
        }
        for task, key in RECORDED_TASKS.items():
            settings[key] = name_of(self.models[task]) if task in self.models else ""
        return settings

    async def check_new_models(self) -> None:
        """Raise `ConfigError` for a model that is new to the index and cannot be asked, before documents are
        stored for it. A user's own extractor may need no model.
        """
        has_own_extractor = self.extractor is not None and not self.reads_by_rules
        if not has_own_extractor:
            recorded = await read(self.store, lambda view: view.settings())
            check_new_models(self.llm, self.models, recorded)

    async def record_models(self, *, overwrite: bool = True) -> None:
        """Record the names of models and embedder; without `overwrite`, recorded names stay."""
        settings = self.model_settings()
        if not overwrite:
            recorded = await read(self.store, lambda view: view.settings())
            has_models = RECORDED["llm"] in recorded
            kept_names = {*recorded, *(RECORDED_TASKS.values() if has_models else ())}
            settings = {name: value for name, value in settings.items() if name not in kept_names}
        await write(self.store, lambda writer: writer.put_settings(settings))

    async def record_read_mode(self, mode: ReadMode) -> None:
        """Record when a model reads chunks."""
        if mode not in get_args(ReadMode):
            raise ConfigError(f"read must be 'all' or 'asked', not {mode!r}")
        await write(self.store, lambda writer: writer.put_settings({READ: mode}))

    # ── changes of the engine itself ────────────────────────────────────────────

    def use_embedder(self, embedder: Embedder) -> None:
        """Replace the embedder, once the store has the vectors of the new embedder."""
        self.embedder = embedder
        if isinstance(self.answerer, ExtractiveAnswerer):
            rules = RulesInPlaceOfModel.of(self.language, self.options, embedder)
            self.answerer = rules.answerer
        self._forget("same_embedder", "indexing", "curation", "retrieval", "answers")

    def use_llm(self, llm: LLM | None) -> None:
        """Do every task with another model, or with none. Questions under way end with the former one."""
        rules = (
            None
            if llm is not None
            else RulesInPlaceOfModel.of(self.language, self.options, self.embedder)
        )
        self.llm = llm
        self.models = {}
        self.extractor = None if rules is None else rules.extractor
        self.keyword_extractor = None if rules is None else rules.keyword_extractor
        self.answerer = None if rules is None else rules.answerer
        self._forget("client", "cutter", "indexing", "curation", "retrieval", "checker", "answers")

    def use_language(self, language: str) -> None:
        """Read in another language, as long as nothing has been read; its prompts are the packaged ones."""
        self.language = language
        self.prompts = PromptManager.load(language, None)
        if self.llm is None:
            self.use_llm(None)
        self._forget("client", "cutter", "indexing", "curation", "retrieval", "checker", "answers")

    def _forget(self, *pipelines: str) -> None:
        """Let pipelines be made anew at their next use."""
        for pipeline in pipelines:
            self.__dict__.pop(pipeline, None)

    def close(self) -> None:
        """Close the store; further calls raise `StorageError`."""
        if self.processes is not None:
            self.processes.close()
        self.store.close()
