"""The user's settings, from files, the environment and arguments; and models made from names."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, LightRAGError
from lightrag_jsonl.core.protocols import LLM, Embedder, Vectors
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.providers.connection import OPENAI_URL, gets_no_key
from lightrag_jsonl.providers.offline import HashEmbedder
from lightrag_jsonl.providers.openai import OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.providers.sentence_transformers import SentenceTransformerEmbedder

NO_MODEL = "none"
EMBEDDERS = "hash, st:NAME_OR_FOLDER or openai:NAME"
FOLDER_FILE = Path("lightrag-jsonl.toml")
RECORDED = {  # where an index keeps the names of what it was made with
    "llm": "models.llm",
    "embedder": "models.embedder",
    "language": "language",
    "prompts": "cli.prompts",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """The folder and the models as given by the user; None means not given."""

    working_dir: Address = Path("kb")
    llm: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    embedder: str | None = None
    embedder_base_url: str | None = None
    embedder_api_key: str | None = field(default=None, repr=False)
    language: str | None = None
    prompts: Path | None = None


SETUP = tuple(Setup.__dataclass_fields__)


class Source(NamedTuple):
    """A place that settings come from; `own` unless somebody else may have written it."""

    name: str
    values: Mapping[str, str]
    own: bool = True


class Endpoint(NamedTuple):
    """Where a model is asked, with which key, and where both come from.

    Without a key, `OPENAI_API_KEY` counts, unless the server is in the user's own network. `refused`
    is the reason why no request may be sent.
    """

    url: str | None
    url_from: str
    api_key: str | None
    key_from: str
    refused: str = ""


def sources(setup: Setup) -> list[Source]:
    """The user's settings by source; later ones win. `ConfigError` names a file that is wrong.

    An index folder is no source, not even if it is the current one.
    """
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    user_file = home / "lightrag-jsonl" / "config.toml"
    variables = {name: os.environ.get(f"LIGHTRAG_JSONL_{name.upper()}") for name in SETUP}
    given = {name: getattr(setup, name) for name in SETUP if name != "working_dir"}
    found = [
        Source("OPENAI_BASE_URL", _set({"base_url": os.environ.get("OPENAI_BASE_URL")})),
        Source(str(user_file), _file_settings(user_file)),
    ]
    place = setup.working_dir
    if not isinstance(place, Path) or FOLDER_FILE.resolve().parent != place.resolve():
        found.append(Source(f"./{FOLDER_FILE}", _file_settings(FOLDER_FILE), own=False))
    return [
        *found,
        Source("LIGHTRAG_JSONL_*", _set(variables)),
        Source("argument", _set(given)),
    ]


def chosen(
    name: str, setup: Setup, recorded: Mapping[str, str] | None = None
) -> tuple[str | None, str]:
    """A setting and its source: an argument, the index, or else the user's default."""
    *defaults, arguments = sources(setup)
    index = {one: (recorded or {}).get(key) for one, key in RECORDED.items()}
    for source in (arguments, Source("index", _set(index)), *reversed(defaults)):
        if name in source.values:
            return source.values[name], source.name
    return None, "default"


def endpoint(setup: Setup, kind: Literal["", "embedder_"] = "") -> Endpoint:
    """The endpoint of the model, or of the embedder, which may have one of its own.

    A key goes to the address of the same source. A key from the environment or an argument also
    goes to any other address of the user's, but never to one from the current folder's file: a
    prepared folder could name a server that collects keys.
    """
    found = sources(setup)
    named = [one for one in found if f"{kind}base_url" in one.values]
    named = named or [one for one in found if "base_url" in one.values]
    keys = [one for one in found if {f"{kind}api_key", "api_key"} & one.values.keys()]
    url, url_from = None, "default"
    if named:
        at = named[-1]
        url, url_from = at.values.get(f"{kind}base_url") or at.values["base_url"], at.name
        keys = [one for one in keys if one is at or (at.own and one in found[-2:])]
    if keys:
        values = keys[-1].values
        key = values.get(f"{kind}api_key") or values["api_key"]
        return Endpoint(url, url_from, key, keys[-1].name)
    if gets_no_key(url or OPENAI_URL):
        return Endpoint(url, url_from, "no-key" if named and not at.own else None, "")
    if named and not at.own:
        why = (
            f"{at.name} names the server {url}, and no key from elsewhere is sent there: add "
            f"{kind}api_key to that file, or repeat the address with --base-url"
        )
        return Endpoint(url, url_from, None, "", why)
    return Endpoint(url, url_from, None, "OPENAI_API_KEY" if "OPENAI_API_KEY" in os.environ else "")


def make_llm(name: str, setup: Setup) -> LLM | None:
    """The model of this name at the user's endpoint; None for "none".

    A model that cannot be made here has its name, but raises `ConfigError` when it is asked.
    """
    kind, _, own = name.partition(":")
    if name == NO_MODEL:
        return None
    if kind == "custom":
        why = "only a program can make it: give it with llm=…, or name another with --llm NAME"
        return _missing_llm(own, why, name)
    at = endpoint(setup)
    if at.refused:
        return _missing_llm(name, at.refused, name)
    return OpenAILLM(name, base_url=at.url, api_key=at.api_key)


def make_embedder(name: str, setup: Setup, dim: int | None = None) -> Embedder:
    """The embedder of this name; `dim`, if known, saves a request. `ConfigError` for other names.

    One that cannot be made here has its name, but raises `EmbeddingError` when it is used.
    """
    kind, _, own = name.partition(":")
    if kind == "st" and own:
        return SentenceTransformerEmbedder(own)
    if kind == "openai" and own:
        at = endpoint(setup, "embedder_")
        if at.refused:
            return _missing_embedder(own, at.refused, name, dim)
        return OpenAIEmbedder(own, dim=dim, base_url=at.url, api_key=at.api_key)
    if kind == "custom":
        return _missing_embedder(own, "the program that made the index has it", name, dim)
    if name != "hash":
        raise ConfigError(f"{name!r} is not an embedder: it must be {EMBEDDERS}")
    return HashEmbedder()


def name_of(part: object) -> str:
    """The name by which a model or embedder can be made again, else `custom:` and its own name."""
    if part is None:
        return NO_MODEL
    if isinstance(part, OpenAILLM):
        return part.model
    if isinstance(part, HashEmbedder) and part.name == HashEmbedder().name:
        return "hash"
    if isinstance(part, OpenAIEmbedder | SentenceTransformerEmbedder) and part.spec:
        return part.spec
    return str(getattr(part, "recorded_as", "") or f"custom:{getattr(part, 'name', '')}")


class Missing:
    """A model or embedder known by its name only; it raises `error` when it is asked."""

    def __init__(
        self, name: str, error: LightRAGError, recorded_as: str = "", dim: int = 0
    ) -> None:
        self.name, self.recorded_as, self.dim = name, recorded_as, dim
        self._error = error

    async def complete(self, *messages: object, **how: object) -> Completion:
        raise self._error

    async def embed(self, *texts: object, **how: object) -> Vectors:
        raise self._error


def _missing_llm(name: str, why: str, recorded_as: str) -> Missing:
    advice = 'without a model: --llm none (in Python llm="none")'
    error = ConfigError(f"the model {name} is needed, but {why}; {advice}")
    return Missing(name, error, recorded_as)


def _missing_embedder(name: str, why: str, recorded_as: str, dim: int | None) -> Missing:
    advice = "name it with --embedder, or give it with embedder=…"
    error = EmbeddingError(f"the embedder {name} is needed: {advice} ({why})")
    return Missing(name, error, recorded_as, dim or 0)


def _set(values: Mapping[str, object]) -> dict[str, str]:
    """The values that are set."""
    return {name: str(value) for name, value in values.items() if value}


def _file_settings(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    if unknown := ", ".join(sorted(config.keys() - {*SETUP})):
        raise ConfigError(f"{path}: unknown settings {unknown} (there are: {', '.join(SETUP)})")
    if wrong := [name for name, value in config.items() if not isinstance(value, str)]:
        raise ConfigError(f"{path}: {wrong[0]} must be a text in quotes")
    return _set(config)
