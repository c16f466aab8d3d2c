"""Puts the parts of one index together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.calls import ToldTokenizer
from lightrag_jsonl.defaults import Parts, candidate_names, tokenizer_for
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.explain.library import cite
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.indexing.pipeline import IndexPipeline
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import LLM, Reranker, Tokenizer
from lightrag_jsonl.querying.pipeline import QueryPipeline
from lightrag_jsonl.questions import Questions
from lightrag_jsonl.reuse import Reuse
from lightrag_jsonl.storage import settings
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.tokens import FittedTokenizer, TiktokenTokenizer
from lightrag_jsonl.types import Citation, Context

OURS = (FittedTokenizer, TiktokenTokenizer)


@dataclass(frozen=True, slots=True)
class Setup:
    """What an index is assembled from."""

    parts: Parts
    tokenizer: Tokenizer | None
    reranker: Reranker | None
    language: str
    options: IndexOptions
    prompts: PromptManager
    clock: Callable[[], float]
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Engine:
    """One assembled index."""

    setup: Setup
    tokenizer: Tokenizer
    ask: Ask
    indexing: IndexPipeline
    querying: QueryPipeline
    questions: Questions

    @property
    def model_name(self) -> str:
        """The model's name, or "none"."""
        llm = self.setup.parts.llm
        return "none" if llm is None else llm.name


def connect(database: Database, setup: Setup) -> Engine:
    """Assemble an index; `SettingsError` if the folder was built with other parts."""
    parts, options = setup.parts, setup.options
    tokenizer = _fitting_tokenizer(database, setup)
    keeper = SnapshotKeeper(database, embedder=parts.embedder.name)
    limit = options.max_concurrent_calls
    ask = Ask(parts.llm, setup.prompts, database, max_concurrent_calls=limit, clock=setup.clock)
    indexing = IndexPipeline(
        database,
        ask,
        parts.extractor or _model_extractor(ask, setup),
        Embeddings(parts.embedder, database, batch_size=options.embed_batch_size),
        tokenizer,
        options,
        language=setup.language,
        built_with=lambda: _recorded(setup, tokenizer),
        record_schema=setup.prompts.prompt("extract-graph").schema,
    )

    def cited(text: str, context: Context) -> tuple[tuple[Citation, ...], tuple[int, ...]]:
        found = cite(database, text, context)
        return found.citations, found.invented

    querying = QueryPipeline(
        ask=ask,
        keeper=keeper,
        embedder=parts.embedder,
        tokenizer=tokenizer,
        reranker=setup.reranker,
        keyword_extractor=parts.keyword_extractor,
        answerer=parts.answerer,
        language=setup.language,
        cite=cited,
    )
    others = (parts.answerer, parts.keyword_extractor, setup.reranker, tokenizer)
    reuse = Reuse(database, ask, parts.embedder, others)
    questions = Questions(database, querying, reuse, clock=setup.clock, new_id=setup.new_id)
    return Engine(setup, tokenizer, ask, indexing, querying, questions)


def rehearsal(database: Database, setup: Setup, llm: LLM) -> LLMExtractor:
    """An extractor that takes answers from the cache, asks `llm` for all others, and stores nothing."""
    ask = Ask(
        llm,
        setup.prompts,
        database,
        max_concurrent_calls=setup.options.max_concurrent_calls,
        clock=setup.clock,
        keep=False,
    )
    return _model_extractor(ask, setup)


def _fitting_tokenizer(database: Database, setup: Setup) -> Tokenizer:
    """Check the recorded settings; the tokenizer is the given one, or the recorded one."""
    with database.reading() as connection:
        recorded = settings.read(connection)
    wanted = {"embedder": setup.parts.embedder.name, "language": setup.language}
    if setup.tokenizer is not None:
        wanted["tokenizer"] = setup.tokenizer.name
    settings.check(recorded, wanted, database.working_dir)
    if setup.tokenizer is None:
        return tokenizer_for(recorded.get("tokenizer"))
    return setup.tokenizer if type(setup.tokenizer) in OURS else ToldTokenizer(setup.tokenizer)


def _recorded(setup: Setup, tokenizer: Tokenizer) -> Mapping[str, str]:
    """The settings that the first commit records, and that every later opening is compared with."""
    return {
        "embedder": setup.parts.embedder.name,
        "dim": str(setup.parts.embedder.dim),
        "tokenizer": tokenizer.name,
        "language": setup.language,
    }


def _model_extractor(ask: Ask, setup: Setup) -> LLMExtractor:
    options = setup.options
    ontology = None if options.ontology is None else Ontology.load(options.ontology)
    if options.extraction == "extract-with-ontologies" and ontology is None:
        raise ConfigError("extraction='extract-with-ontologies' needs IndexOptions(ontology=…)")
    return LLMExtractor(
        ask,
        options,
        language=setup.language,
        ontology=ontology,
        ontology_variables=None if ontology is None else ontology.variables(),
        candidates=candidate_names(setup.parts.llm, setup.language),
    )
