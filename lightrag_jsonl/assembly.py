"""Puts the parts of one index together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.defaults import Parts, tokenizer_for
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.explain.edges import candidate_edges, resolve_selection
from lightrag_jsonl.explain.library import cite
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.indexing.pipeline import IndexPipeline
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import Extractor, Reranker, Tokenizer
from lightrag_jsonl.querying.edges import EdgeBook
from lightrag_jsonl.querying.pipeline import QueryPipeline
from lightrag_jsonl.storage import settings
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.types import Citation, Context


@dataclass(frozen=True, slots=True)
class Engine:
    """One index, ready for use."""

    database: Database
    parts: Parts
    tokenizer: Tokenizer
    ask: Ask
    keeper: SnapshotKeeper
    embeddings: Embeddings
    indexing: IndexPipeline
    querying: QueryPipeline

    @property
    def model_name(self) -> str:
        """The model's name, or "none"."""
        return "none" if self.parts.llm is None else self.parts.llm.name


def assemble(
    working_dir: Path | str,
    parts: Parts,
    *,
    tokenizer: Tokenizer | None,
    reranker: Reranker | None,
    language: str,
    options: IndexOptions,
    prompts: PromptManager,
    clock: Callable[[], float] = time.time,
) -> Engine:
    """Open the folder, check that it fits the parts, and connect them."""
    database = Database(working_dir)
    try:
        counter = _fitting_tokenizer(database, parts, tokenizer, language)
        return _connect(database, parts, counter, reranker, language, options, prompts, clock)
    except BaseException:
        database.close()
        raise


def _fitting_tokenizer(
    database: Database, parts: Parts, tokenizer: Tokenizer | None, language: str
) -> Tokenizer:
    """Check the recorded settings; the tokenizer is the given one, or the recorded one."""
    with database.reading() as connection:
        recorded = settings.read(connection)
    wanted = {"embedder": parts.embedder.name, "language": language}
    if tokenizer is not None:
        wanted["tokenizer"] = tokenizer.name
    settings.check(recorded, wanted, database.working_dir)
    return tokenizer or tokenizer_for(recorded.get("tokenizer"))


def _connect(
    database: Database,
    parts: Parts,
    tokenizer: Tokenizer,
    reranker: Reranker | None,
    language: str,
    options: IndexOptions,
    prompts: PromptManager,
    clock: Callable[[], float],
) -> Engine:
    limit = options.max_concurrent_calls
    ask = Ask(parts.llm, prompts, database, max_concurrent_calls=limit, clock=clock)
    keeper = SnapshotKeeper(database)
    embeddings = Embeddings(parts.embedder, database, batch_size=options.embed_batch_size)

    def recorded() -> Mapping[str, str]:
        return {
            "embedder": parts.embedder.name,
            "dim": str(parts.embedder.dim),
            "tokenizer": tokenizer.name,
            "language": language,
        }

    indexing = IndexPipeline(
        database,
        ask,
        parts.extractor or _model_extractor(ask, options, language),
        embeddings,
        tokenizer,
        options,
        language=language,
        settings=recorded,
        record_schema=prompts.prompt("extract-graph").schema,
        clock=clock,
    )

    def cited(text: str, context: Context) -> tuple[tuple[Citation, ...], tuple[int, ...]]:
        found = cite(database, text, context)
        return found.citations, found.invented

    querying = QueryPipeline(
        ask=ask,
        keeper=keeper,
        embedder=parts.embedder,
        tokenizer=tokenizer,
        reranker=reranker,
        keyword_extractor=parts.keyword_extractor,
        answerer=parts.answerer,
        language=language,
        cite=cited,
        book=EdgeBook(candidate_edges, resolve_selection),
    )
    return Engine(database, parts, tokenizer, ask, keeper, embeddings, indexing, querying)


def _model_extractor(ask: Ask, options: IndexOptions, language: str) -> Extractor:
    ontology = None if options.ontology is None else Ontology.load(options.ontology)
    if options.extraction == "extract-with-ontologies" and ontology is None:
        raise ConfigError("extraction='extract-with-ontologies' needs IndexOptions(ontology=…)")
    return LLMExtractor(
        ask,
        options,
        language=language,
        ontology=ontology,
        ontology_variables=None if ontology is None else ontology.variables(),
    )
