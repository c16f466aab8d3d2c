"""The parts of an index: chosen from arguments and what the index records, and connected."""

import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightrag_jsonl.core import protocols
from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.errors import ConfigError, SettingsError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.tokens import tokenizer_for
from lightrag_jsonl.core.types import known_language
from lightrag_jsonl.core.user_code import CheckedTokenizer
from lightrag_jsonl.core.validation import names_replacements
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.indexing.pipeline import IndexPipeline
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.providers import as_embedder, as_llm, offline
from lightrag_jsonl.providers.configured import (
    NO_MODEL,
    RECORDED,
    Setup,
    make_embedder,
    make_llm,
    name_of,
)
from lightrag_jsonl.rag.namespaces import Admin, Entities, Traces
from lightrag_jsonl.retrieval.answer_cache import AnswerCache
from lightrag_jsonl.retrieval.pipeline import QueryPipeline
from lightrag_jsonl.storage.completion_cache import CompletionCache
from lightrag_jsonl.storage.opening import has_index, open_store
from lightrag_jsonl.storage.store import OWN_SETTINGS, Store, read, write
from lightrag_jsonl.tracing.citations import resolve_citations

if TYPE_CHECKING:
    import networkx as nx

LATEST = 10_000_000_000  # in seconds: the year 2286; as milliseconds, April 1970
OPTIONS = "cli.options"  # the setting that holds the options of the last insert, as JSON

log = logging.getLogger(__name__)


def _random_id() -> str:
    return str(uuid.uuid4())


class IndexParts:
    """The parts that `AsyncLightRAG` works with, made from its arguments and what the index records."""

    @names_replacements
    def __init__(
        self,
        working_dir: str | Address,
        *,
        llm: protocols.LLM | Callable[..., object] | str | None = None,
        embedder: protocols.Embedder | Callable[..., object] | str | None = None,
        tokenizer: protocols.Tokenizer | None = None,
        reranker: protocols.Reranker | None = None,
        language: str | None = None,
        options: IndexOptions | Mapping[str, Any] | None = None,
        prompts: PromptManager | Path | str | None = None,
        extractor: protocols.Extractor | None = None,
        keyword_extractor: protocols.KeywordExtractor | None = None,
        answerer: protocols.Answerer | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = _random_id,
        create: bool = True,
    ) -> None:
        self.working_dir = as_address(working_dir)
        known = recorded_settings(self.working_dir) or {}
        given = recorded_options(known) if options is None else options
        self.options = IndexOptions.from_mapping(given)
        self.language = language = language or known.get("language", "en")
        setup = Setup(self.working_dir)
        self._llm = choose_llm(llm, known, setup)
        self._embedder = choose_embedder(embedder, known, setup)
        self._clock, self._new_id = clock, new_id
        if not isinstance(prompts, PromptManager):
            folder = prompts or known.get(RECORDED["prompts"]) or None
            prompts = PromptManager.load(language, folder)
        self._prompts = prompts
        if self._llm is None:
            rules = known_language(language)
            extractor = extractor or offline.OfflineExtractor(rules)
            keyword_extractor = keyword_extractor or offline.OfflineKeywords(rules)
            answerer = answerer or offline.ExtractiveAnswerer(rules)
        self._reranker, self._extractor = reranker, extractor
        self._keyword_extractor, self._answerer = keyword_extractor, answerer
        self._network: tuple[int, nx.Graph] | None = None
        self._store: Store = open_store(self.working_dir, create=create)
        if self._store.read_only:
            log.warning(
                "%s can only be read: answers and traces are not kept", self._store.location
            )
        try:
            self._tokenizer = self._checked_tokenizer(tokenizer)
            self._connect(self._embedder)
        except BaseException:
            self._store.close()
            raise
        self.entities = Entities(self)
        self.traces = Traces(self)
        self.admin = Admin(self)

    def _connect(self, embedder: protocols.Embedder) -> None:
        self._embedder = embedder
        self._client = self._model_client(self._llm)
        self.__dict__.pop("_indexing", None)
        self._querying = QueryPipeline(
            store=self._store,
            client=self._client,
            embedder=embedder,
            tokenizer=self._tokenizer,
            reranker=self._reranker,
            keyword_extractor=self._keyword_extractor,
            answerer=self._answerer,
            language=self.language,
            cite=resolve_citations,
            secret_marks=self._new_id is _random_id,
        )
        others = (self._answerer, self._keyword_extractor, self._reranker, self._tokenizer)
        self._answers = AnswerCache(self._store, self._client, embedder, others)

    @cached_property
    def _indexing(self) -> IndexPipeline:
        """Made at first use, since questions need neither it nor the ontology that it reads."""
        return self._index_pipeline(self._client)

    def _index_pipeline(self, client: ModelClient) -> IndexPipeline:
        return IndexPipeline(
            self._store,
            client,
            self._extractor or self._model_extractor(client),
            self._embedder,
            self._tokenizer,
            self.options,
            language=self.language,
            settings=self._settings,
            record_schema=self._prompts.schema("extract-graph", {}),
        )

    def _model_client(
        self, llm: protocols.LLM | None, *, store_answers: bool = True
    ) -> ModelClient:
        return ModelClient(
            llm,
            self._prompts,
            CompletionCache(self._store),
            max_concurrent_calls=self.options.max_concurrent_calls,
            store_answers=store_answers,
            limits=self.options.limits,
        )

    def _checked_tokenizer(self, given: protocols.Tokenizer | None) -> protocols.Tokenizer:
        """The tokenizer; `SettingsError` if the folder was built with other settings."""
        with self._store.view() as view:
            recorded = view.settings()
        wanted = {"embedder": self._embedder.name, "language": self.language}
        if given is not None:
            wanted["tokenizer"] = given.name
        for key, value in wanted.items():
            if recorded.get(key, value) != value:
                other = "move it to the new one with reembed"
                if key != "embedder":
                    other = "insert the documents into a new folder"
                built = f"{self.working_dir} was built with {key} {recorded[key]!r}, not {value!r}"
                advice = f"open it with that {key}, or {other}"
                raise SettingsError(f"{built}: {advice}", path=self._store.location)
        return CheckedTokenizer(given) if given else tokenizer_for(recorded.get("tokenizer"))

    def _model_names(self) -> dict[str, str]:
        """Which model and embedder later openings use, as the settings that record it."""
        parts = {"llm": self._llm, "embedder": self._embedder}
        return {RECORDED[kind]: name_of(one) for kind, one in parts.items()}

    async def _record_models(self, *, keep: bool = False) -> None:
        """Record the names of model and embedder; with `keep`, only those not recorded yet."""
        known = await read(self._store, lambda view: view.settings()) if keep else {}
        names = {name: one for name, one in self._model_names().items() if name not in known}
        await write(self._store, lambda writer: writer.put_settings(names))

    def _settings(self) -> dict[str, str]:
        """What the first commit records, and every later opening is compared with."""
        return {
            "embedder": self._embedder.name,
            "dim": str(self._embedder.dim),
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
            names_in=_names_in(self._llm, self.language),
        )

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._seconds(), UTC)

    def _seconds(self) -> float:
        """The time of the clock; `ConfigError` if it cannot be seconds since 1970."""
        now = self._clock()
        if isinstance(now, int | float) and 0 <= now <= LATEST:
            return round(now, 6)  # a datetime holds no more digits
        raise ConfigError(
            f"clock returned {now!r}: it must return seconds since 1970, as time.time"
        )


def recorded_settings(address: Address) -> dict[str, str] | None:
    """The settings that an index was built with; None if there is no index yet."""
    if not has_index(address):
        return None
    with closing(open_store(address, create=False)) as store, store.view() as view:
        return view.settings()


def adopt_settings(store: Store, settings: Mapping[str, str]) -> None:
    """Record the settings of another index in a new one, which is then opened like that."""
    with store.transaction() as transaction:
        if not transaction.settings().keys() - OWN_SETTINGS:
            kept = {name: one for name, one in settings.items() if name not in OWN_SETTINGS}
            transaction.put_settings(kept)


def recorded_options(known: Mapping[str, str]) -> dict[str, Any]:
    """The options of indexing that the command line recorded."""
    return dict(json.loads(known.get(OPTIONS, "{}")))


def choose_llm(
    given: protocols.LLM | Callable[..., object] | str | None,
    known: Mapping[str, str],
    setup: Setup,
) -> protocols.LLM | None:
    """The given model, or else the recorded one; None for none."""
    given = known.get(RECORDED["llm"], NO_MODEL) if given is None else given
    return make_llm(given, setup) if isinstance(given, str) else as_llm(given)


def choose_embedder(
    given: protocols.Embedder | Callable[..., object] | str | None,
    known: Mapping[str, str],
    setup: Setup,
) -> protocols.Embedder:
    """The given embedder, or else the recorded one, if necessary by its name only."""
    if given is not None and not isinstance(given, str):
        return as_embedder(given)
    name = known.get(RECORDED["embedder"], "hash")
    if given not in (None, name) or "embedder" not in known:
        return make_embedder(given or name, setup)
    built_with, dim = known["embedder"], int(known["dim"])
    made = make_embedder(name, setup, dim)
    return made if made.name == built_with else make_embedder(f"custom:{built_with}", setup, dim)


def _names_in(llm: protocols.LLM | None, language: str) -> Callable[[str], Sequence[str]] | None:
    """For a model that may only write names from the text: a function that finds names in a text."""
    if getattr(llm, "constrain", "") != "grounded":
        return None
    rules = known_language(language)
    return lambda text: [one.name for one in offline.extract_text(text, rules).entities]
