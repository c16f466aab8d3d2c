"""Opens an engine: its parts are the arguments, or else what the index has recorded."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightrag_jsonl.core.address import Address, AddressArgument, as_address
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.languages import usual_language
from lightrag_jsonl.core.options import IndexOptions
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
from lightrag_jsonl.core.types import MODEL_TASKS, ModelTask
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.lenses import index_lenses
from lightrag_jsonl.lenses.claims import ClaimMemory
from lightrag_jsonl.lenses.communities import CommunityMemory
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.providers.openai_embedder import OpenAIEmbedder
from lightrag_jsonl.providers.openai_llm import OpenAILLM
from lightrag_jsonl.providers.settings import RECORDED, Setup
from lightrag_jsonl.providers.silence import ServerSilence
from lightrag_jsonl.rag.engine import Clock, Engine, RulesInPlaceOfModel, random_id
from lightrag_jsonl.rag.settings import (
    EmbedderArgument,
    LLMArgument,
    check_settings,
    choose_embedder,
    choose_llm,
    choose_models,
    choose_tokenizer,
    is_built,
    recorded_options,
    recorded_settings,
)
from lightrag_jsonl.retrieval.searching import Searcher, SearchProcesses
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.tracing.checking import CheckFunction

log = logging.getLogger(__name__)


def open_engine(
    working_dir: AddressArgument,
    *,
    llm: LLMArgument | None = None,
    models: Mapping[ModelTask, LLMArgument] | None = None,
    embedder: EmbedderArgument | None = None,
    tokenizer: Tokenizer | None = None,
    reranker: Reranker | None = None,
    check: CheckFunction | str | None = None,
    language: str | None = None,
    options: IndexOptions | Mapping[str, Any] | None = None,
    prompts: PromptManager | Path | str | None = None,
    chunker: Chunker | None = None,
    extractor: Extractor | None = None,
    keyword_extractor: KeywordExtractor | None = None,
    answerer: Answerer | None = None,
    clock: Callable[[], float] = time.time,
    new_id: Callable[[], str] = random_id,
    search_processes: int = 0,
    create: bool = True,
) -> Engine:
    """The engine of an index; `AsyncLightRAG` tells of the arguments and of the errors."""
    setup = Setup(as_address(working_dir))
    recorded = recorded_settings(setup.working_dir) or {}
    options = IndexOptions.from_mapping(recorded_options(recorded) if options is None else options)
    chosen_language = _chosen_language(language, recorded.get("language", "en"))
    chosen_llm, task_models, chosen_embedder = _models(llm, models, embedder, recorded, setup)
    rules = RulesInPlaceOfModel.of(chosen_language, options, chosen_embedder)
    has_model = {task: task_models.get(task, chosen_llm) is not None for task in MODEL_TASKS}
    claims = ClaimMemory(_kinds_of_one_value(options))
    communities = CommunityMemory()
    searcher = Searcher(index_lenses(claims, communities))
    expected = _expected_settings(recorded, chosen_embedder, tokenizer, chosen_language)
    engine = Engine(
        working_dir=setup.working_dir,
        options=options,
        language=chosen_language,
        prompts=_choose_prompts(prompts, recorded, chosen_language),
        llm=chosen_llm,
        models=task_models,
        embedder=chosen_embedder,
        tokenizer=choose_tokenizer(tokenizer, recorded),
        reranker=reranker,
        check=check,
        chunker=chunker,
        extractor=extractor or (None if has_model["extract"] else rules.extractor),
        keyword_extractor=keyword_extractor
        or (None if has_model["keywords"] else rules.keyword_extractor),
        answerer=answerer or (None if has_model["answer"] else rules.answerer),
        clock=Clock(clock),
        new_id=new_id,
        claims=claims,
        communities=communities,
        searcher=searcher,
        processes=_processes(setup.working_dir, search_processes, searcher),
        store=_open_store(setup.working_dir, expected, create=create),  # last, or errors leak it
    )
    _record_first_settings(engine, recorded, is_language_given=language is not None)
    return engine


def _chosen_language(language: str | None, recorded: str) -> str:
    return usual_language(language or recorded, recorded)


def _models(
    llm: LLMArgument | None,
    models: Mapping[ModelTask, LLMArgument] | None,
    embedder: EmbedderArgument | None,
    recorded: Mapping[str, str],
    setup: Setup,
) -> tuple[LLM | None, Mapping[ModelTask, LLM | None], Embedder]:
    """The model, those for single tasks, and the embedder; beside a given model, those for single tasks that the index
    was made with do not count.
    """
    chosen_llm = choose_llm(llm, recorded, setup)
    task_models = choose_models(models or {}, recorded if llm is None else {}, setup)
    chosen_embedder = choose_embedder(embedder, recorded, setup)
    _share_silences([chosen_llm, *task_models.values(), chosen_embedder])
    return chosen_llm, task_models, chosen_embedder


def _share_silences(models: Iterable[object]) -> None:
    """Let the models of one server know together that it does not answer."""
    silences: dict[str, ServerSilence] = {}
    for model in models:
        if isinstance(model, OpenAILLM | OpenAIEmbedder):
            model.share_silence(silences)


def _record_first_settings(
    engine: Engine, recorded: Mapping[str, str], *, is_language_given: bool
) -> None:
    """Record language and models before anything is read with them: an insert may be interrupted, and an
    index opened, before the first commit. Until that, another language may be given.
    """
    if is_built(recorded):
        return
    settings = {"language": engine.language, **engine.model_settings()}
    kept_names = recorded.keys() - ({"language"} if is_language_given else set())
    new_settings = {name: text for name, text in settings.items() if name not in kept_names}
    if not engine.store.read_only and new_settings.items() - recorded.items():
        with engine.store.transaction() as transaction:
            transaction.put_settings(new_settings)


def _processes(address: Address, count: int, searcher: Searcher) -> SearchProcesses | None:
    return SearchProcesses(address, count, searcher) if count else None


def _kinds_of_one_value(options: IndexOptions) -> tuple[str, ...]:
    """The relations and attributes with one value at a time, by the options and by the ontology; a question
    does not need the file of the ontology.
    """
    kinds = list(options.functional_kinds)
    if options.ontology is not None:
        with suppress(ConfigError):
            kinds += Ontology.load(options.ontology).functional_kinds
    return tuple(kinds)


def _choose_prompts(
    prompts: PromptManager | Path | str | None, recorded: Mapping[str, str], language: str
) -> PromptManager:
    """The given prompts, those of the given folder, or else those that the index was made with."""
    if isinstance(prompts, PromptManager):
        return prompts
    folder = prompts or recorded.get(RECORDED["prompts"]) or None
    return PromptManager.load(language, folder)


def _expected_settings(
    recorded: Mapping[str, str], embedder: Embedder, tokenizer: Tokenizer | None, language: str
) -> dict[str, str]:
    """What an index must have been made with; any tokenizer will do if none is given. A new index may be made
    with anything.
    """
    if not is_built(recorded):
        return {}
    expected = {"embedder": embedder.name, "language": language}
    if tokenizer is not None:
        expected["tokenizer"] = tokenizer.name
    return expected


def _open_store(address: Address, expected: Mapping[str, str], *, create: bool) -> Store:
    """The open store; `SettingsError` if the index was built with other than the expected settings."""
    store = open_store(address, create=create)
    try:
        check_settings(store, expected, address)
    except BaseException:
        store.close()
        raise
    if store.read_only:
        log.warning("%s can only be read: answers and traces are not kept", store.location)
    return store
