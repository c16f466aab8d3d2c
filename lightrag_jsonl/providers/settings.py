"""The user's settings, from files, the environment and arguments."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import Natural, Positive
from lightrag_jsonl.core.types import MODEL_TASKS, ModelTask
from lightrag_jsonl.providers.addresses import remembered_address, user_folder
from lightrag_jsonl.providers.connection import KEY, OPENAI_URL, environment_value, gets_no_key

FOLDER_FILE = Path("lightrag-jsonl.toml")
RECORDED = {  # where an index keeps the names of its model, its embedder and so on
    "llm": "models.llm",
    "embedder": "models.embedder",
    "language": "language",
    "prompts": "cli.prompts",
}
RECORDED_TASKS: Mapping[ModelTask, str] = {task: f"models.{task}" for task in MODEL_TASKS}

Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Headers: TypeAlias = dict[str, str]
Body: TypeAlias = dict[str, Any]  # JSON
Temperature: TypeAlias = float | None

# Arguments of the classes of models, with their types; the first of all of them.
SERVER_SETTINGS: Mapping[str, Any] = {
    "timeout": Seconds,
    "max_retries": Natural,
    "max_answer_bytes": Positive,
    "extra_body": Body,
    "extra_headers": Headers,
}
LLM_SETTINGS: Mapping[str, Any] = {
    **SERVER_SETTINGS,
    "temperature": Temperature,
    "requests_per_minute": Positive,
    "tokens_per_minute": Positive,
    "max_tokens": Positive,
    "context_tokens": Positive,
    "reasoning_effort": str,
    "constrain": Literal["auto", "off", "grounded"],
}
EMBEDDER_SETTINGS: Mapping[str, Any] = {
    **SERVER_SETTINGS,
    "dim": Positive,
    "dimensions": Positive,
    "query_prefix": str,
    "passage_prefix": str,
    "query_input_type": str,
    "passage_input_type": str,
    "max_tokens": Positive,
    "batch_size": Positive,
}
RERANKER_SETTINGS: Mapping[str, Any] = {**SERVER_SETTINGS, "batch_size": Positive}
NO_VALUE = "none"  # no model; in place of a temperature: leaves the choice to the server
MAY_HOLD_SECRETS = ("extra_body", "extra_headers")
EMBEDDER = "embedder_"  # before the names of the embedder's settings
RERANKER = "reranker_"
TASK_PREFIXES: Mapping[ModelTask, str] = {task: f"{task}_" for task in MODEL_TASKS}


@dataclass(frozen=True, slots=True)
class Setup:
    """The folder and the models set by the user; None means not set.

    `models` are the names of models for single tasks, in place of `llm`.
    """

    working_dir: Address = Path("kb")
    llm: str | None = None
    models: Mapping[ModelTask, str] = field(default_factory=dict)
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    embedder: str | None = None
    embedder_base_url: str | None = None
    embedder_api_key: str | None = field(default=None, repr=False)
    reranker: str | None = None
    reranker_base_url: str | None = None
    check: str | None = None
    language: str | None = None
    prompts: Path | None = None


SETUP = tuple(Setup.__dataclass_fields__)


def _setting_types() -> dict[str, Any]:
    """The types of all settings in files and in the environment, by name."""
    types: dict[str, Any] = {name: str for name in SETUP if name != "models"}
    types |= LLM_SETTINGS
    types |= {f"{EMBEDDER}{name}": kind for name, kind in EMBEDDER_SETTINGS.items()}
    types["reranker_api_key"] = str
    types |= {f"{RERANKER}{name}": kind for name, kind in RERANKER_SETTINGS.items()}
    for prefix in TASK_PREFIXES.values():
        types |= {f"{prefix}{name}": str for name in ("llm", "base_url", "api_key")}
        types |= {f"{prefix}{name}": kind for name, kind in LLM_SETTINGS.items()}
    return types


SETTING_TYPES: Mapping[str, Any] = MappingProxyType(_setting_types())


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """A place of settings.

    - `trusted`: nobody but the user may have written the settings there.
    - `shares_key`: a key from there also goes to an address from another trusted source.
    """

    name: str
    values: Mapping[str, Any] = field(repr=False)
    trusted: bool = True
    shares_key: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model's server, the key, and the sources of both.

    Without a key, `OPENAI_API_KEY` counts, unless the server is in the user's own network.
    `refused` is the reason why no request may be sent. `settings` are further arguments of the
    model's class, and `settings_from` their sources.
    """

    url: str | None
    url_from: str
    api_key: str | None = field(default=None, repr=False)
    key_from: str = ""
    refused: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    settings_from: Mapping[str, str] = field(default_factory=dict)


def settings_sources(setup: Setup) -> list[SettingsSource]:
    """The user's settings by source; later ones win. `ConfigError` names a faulty file or variable.

    An index folder is not a source, even as the current folder.
    """
    user_file = user_folder() / "config.toml"
    openai_url = environment_value("OPENAI_BASE_URL")
    sources = [
        SettingsSource("OPENAI_BASE_URL", {"base_url": openai_url} if openai_url else {}),
        SettingsSource(str(user_file), _file_settings(user_file)),
    ]
    folder = setup.working_dir
    if not isinstance(folder, Path) or FOLDER_FILE.resolve().parent != folder.resolve():
        settings = _file_settings(FOLDER_FILE)
        sources.append(SettingsSource(f"./{FOLDER_FILE}", settings, trusted=False))
    sources.append(SettingsSource("LIGHTRAG_JSONL_*", _variables(), shares_key=True))
    sources.append(SettingsSource("argument", _arguments(setup), shares_key=True))
    return sources


def chosen_setting(
    name: str, setup: Setup, recorded: Mapping[str, str] | None = None
) -> tuple[str | None, str]:
    """A setting and its source: an argument, the index, or else the user's default."""
    *defaults, arguments = settings_sources(setup)
    index_value = (recorded or {}).get(RECORDED.get(name, ""))
    index = SettingsSource("index", {name: index_value} if index_value else {})
    for source in (arguments, index, *reversed(defaults)):
        if name in source.values:
            return source.values[name], source.name
    return None, "default"


def chosen_models(
    setup: Setup, recorded: Mapping[str, str] | None = None
) -> tuple[dict[ModelTask, str], str]:
    """The names of models for single tasks, and the source of the names not from arguments.

    The names have the same source as the name of the model for all other tasks: with `--llm`, only
    from arguments; in an index with a model, only from the index.
    """
    _, llm_from = chosen_setting("llm", setup, recorded)
    models: dict[ModelTask, str] = {}
    if llm_from == "index":
        models = {task: (recorded or {}).get(key, "") for task, key in RECORDED_TASKS.items()}
    elif llm_from != "argument":
        for task, prefix in TASK_PREFIXES.items():
            models[task] = chosen_setting(f"{prefix}llm", setup)[0] or ""
    models |= setup.models
    return {task: name for task, name in models.items() if name}, llm_from


def endpoint(setup: Setup, prefix: str = "", *, model: str = "") -> Endpoint:
    """The endpoint of the model, or with a `prefix` of the embedder, of the reranker or of the model
    for a task. A reranker has neither address nor key of the model.

    The address is an argument, or remembered for the `model` of the index, or else a default. A key
    goes to the address of the same source. A key from the environment or an argument also goes to
    an address from any trusted source, but never to an address from the current folder's file: a
    prepared folder could name a server to collect keys.
    """
    sources = settings_sources(setup)
    server = _server_source(sources, setup.working_dir, prefix, model)
    is_prepared = server is not None and not server.trusted
    chosen = _model_settings(sources, prefix, is_prepared=is_prepared)
    unlocked = Endpoint(
        url=None if server is None else _first_value(server, _setting_names("base_url", prefix)),
        url_from="default" if server is None else server.name,
        settings={name: value for name, (value, _) in chosen.items()},
        settings_from={name: source for name, (_, source) in chosen.items()},
    )
    key_source = _key_source(sources, server, prefix)
    if key_source is not None:
        key = _first_value(key_source, _setting_names("api_key", prefix))
        return replace(unlocked, api_key=key, key_from=key_source.name)
    return _without_own_key(unlocked, prefix, is_prepared=is_prepared)


def _without_own_key(server: Endpoint, prefix: str, *, is_prepared: bool) -> Endpoint:
    """An endpoint without a key in the settings: with `OPENAI_API_KEY`, without a key, or refused."""
    if gets_no_key(server.url or OPENAI_URL):
        return replace(server, api_key="no-key" if is_prepared else None)
    if is_prepared:
        refusal = (
            f"{server.url_from} names the server {server.url}, and no key from elsewhere is sent "
            f"there: add {prefix}api_key to that file, or repeat the address with --base-url"
        )
        return replace(server, refused=refusal)
    if environment_value(KEY) and prefix != RERANKER:
        return replace(server, key_from="OPENAI_API_KEY")
    return server


def has_endpoint(prefix: str, name: str) -> bool:
    """Whether a model, or with a prefix an embedder, is at an endpoint."""
    if prefix == EMBEDDER:
        return name.startswith("openai:")
    return name != NO_VALUE and not name.startswith("custom:")


def _server_source(
    sources: Sequence[SettingsSource], index: Address, prefix: str, model: str
) -> SettingsSource | None:
    """The source of the address."""
    names = _setting_names("base_url", prefix)
    arguments = sources[-1]
    is_argument = any(name in arguments.values for name in names)
    remembered = None if is_argument else remembered_address(index, model)
    if remembered is not None:
        url, file = remembered
        return SettingsSource(file, {names[0]: url})
    return next(filter(None, (_last_with(sources, name) for name in names)), None)


def _model_settings(
    sources: Sequence[SettingsSource], prefix: str, *, is_prepared: bool
) -> dict[str, tuple[Any, str]]:
    """The settings of the model's class, each with the source.

    Settings with possible secrets go to an address from a prepared file only if from the same file.
    """
    chosen: dict[str, tuple[Any, str]] = {}
    tables = {EMBEDDER: EMBEDDER_SETTINGS, RERANKER: RERANKER_SETTINGS}
    for name in tables.get(prefix, LLM_SETTINGS):
        keys = [f"{prefix}{name}"] if prefix in tables else [f"{prefix}{name}", name]
        for key in keys:
            source = _last_with(sources, key)
            if source is None:
                continue
            if not (is_prepared and source.trusted and name in MAY_HOLD_SECRETS):
                chosen[name] = (source.values[key], source.name)
            break
    return chosen


def _key_source(
    sources: Sequence[SettingsSource], server: SettingsSource | None, prefix: str
) -> SettingsSource | None:
    """The source of the key for the address from the source `server`."""
    names = set(_setting_names("api_key", prefix))
    for source in reversed(sources):
        is_allowed = server is None or source is server
        if server is not None and server.trusted:
            is_allowed = is_allowed or source.shares_key
        if is_allowed and names & source.values.keys():
            return source
    return None


def _setting_names(name: str, prefix: str) -> list[str]:
    """The possible names of a setting of the address, the most particular first."""
    return [f"{prefix}{name}"] if prefix in ("", RERANKER) else [f"{prefix}{name}", name]


def _first_value(source: SettingsSource, names: Sequence[str]) -> str:
    """The value of the first of the settings present in a source."""
    return next(str(source.values[name]) for name in names if name in source.values)


def _last_with(sources: Sequence[SettingsSource], name: str) -> SettingsSource | None:
    """The last source with a setting, so that later sources win."""
    return next((source for source in reversed(sources) if name in source.values), None)


# ── the sources ─────────────────────────────────────────────────────────────────


def _arguments(setup: Setup) -> dict[str, str]:
    names = [name for name in SETUP if name not in ("working_dir", "models")]
    values = {name: getattr(setup, name) for name in names}
    values |= {f"{task}_llm": model for task, model in setup.models.items()}
    return {name: str(value) for name, value in values.items() if value}


def _variables() -> dict[str, Any]:
    """The settings in the environment; tables are written as JSON."""
    values: dict[str, Any] = {}
    for name, kind in SETTING_TYPES.items():
        variable = f"LIGHTRAG_JSONL_{name.upper()}"
        text = _without_ends(name, os.environ.get(variable, ""))
        if text:
            values[name] = _variable_value(variable, text, kind)
    return values


def _without_ends(name: str, text: str) -> str:
    """A setting without surrounding white space; the prefix of a text loses only line ends."""
    return text.strip("\r\n") if name.endswith("_prefix") else text.strip()


def _variable_value(variable: str, text: str, kind: Any) -> Any:
    try:
        if kind is str:
            return text
        if kind in (Body, Headers):
            return msgspec.convert(json.loads(text), kind)
        return _converted(text, kind, strict=False)
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(f"the environment variable {variable}: {error}") from error


def _file_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    for name in sorted(config.keys() - SETTING_TYPES.keys()):
        raise ConfigError(f"{path}: unknown setting {name}{_advice_on_name(name)}")
    values = {name: _file_value(path, name, value) for name, value in config.items()}
    return {name: value for name, value in values.items() if value != ""}


def _advice_on_name(name: str) -> str:
    """The probably meant setting, and the place of the list of settings."""
    import difflib

    similar = difflib.get_close_matches(name, SETTING_TYPES, n=1)
    question = f"; did you mean {similar[0]}?" if similar else ""
    return f"{question} (docs/models.md lists all settings)"


def _file_value(path: Path, name: str, value: Any) -> Any:
    kind = SETTING_TYPES[name]
    if kind is str and not isinstance(value, str):
        raise ConfigError(f"{path}: {name} must be a text in quotes")
    try:
        return _converted(_without_ends(name, value) if kind is str else value, kind, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {name}: {error}") from error


def _converted(value: Any, kind: Any, *, strict: bool) -> Any:
    if kind == Temperature and value == NO_VALUE:
        return None
    return msgspec.convert(value, kind, strict=strict)
