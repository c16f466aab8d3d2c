"""The user's settings, from files, the environment and arguments."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.providers.connection import OPENAI_URL, gets_no_key

FOLDER_FILE = Path("lightrag-jsonl.toml")
RECORDED = {  # where an index keeps the names of its model, its embedder and so on
    "llm": "models.llm",
    "embedder": "models.embedder",
    "language": "language",
    "prompts": "cli.prompts",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """The folder and the models as the user sets them; None means not set."""

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


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """A place of settings; `trusted` unless somebody else may have written the settings there."""

    name: str
    values: Mapping[str, str] = field(repr=False)
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model's server, the key for it, and the sources of both.

    Without a key, `OPENAI_API_KEY` counts, unless the server is in the user's own network. `refused`
    is the reason why no request may be sent.
    """

    url: str | None
    url_from: str
    api_key: str | None = field(default=None, repr=False)
    key_from: str = ""
    refused: str = ""


def settings_sources(setup: Setup) -> list[SettingsSource]:
    """The user's settings by source; later ones win. `ConfigError` names a faulty file.

    An index folder is no source, not even as the current folder.
    """
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    user_file = home / "lightrag-jsonl" / "config.toml"
    openai_url = {"base_url": os.environ.get("OPENAI_BASE_URL")}
    variables = {name: os.environ.get(f"LIGHTRAG_JSONL_{name.upper()}") for name in SETUP}
    arguments = {name: getattr(setup, name) for name in SETUP if name != "working_dir"}
    sources = [
        SettingsSource("OPENAI_BASE_URL", _set_values(openai_url)),
        SettingsSource(str(user_file), _file_settings(user_file)),
    ]
    folder = setup.working_dir
    if not isinstance(folder, Path) or FOLDER_FILE.resolve().parent != folder.resolve():
        settings = _file_settings(FOLDER_FILE)
        sources.append(SettingsSource(f"./{FOLDER_FILE}", settings, trusted=False))
    sources.append(SettingsSource("LIGHTRAG_JSONL_*", _set_values(variables)))
    sources.append(SettingsSource("argument", _set_values(arguments)))
    return sources


def chosen_setting(
    name: str, setup: Setup, recorded: Mapping[str, str] | None = None
) -> tuple[str | None, str]:
    """A setting and its source: an argument, the index, or else the user's default."""
    *defaults, arguments = settings_sources(setup)
    index_values = {key: (recorded or {}).get(place) for key, place in RECORDED.items()}
    index = SettingsSource("index", _set_values(index_values))
    for source in (arguments, index, *reversed(defaults)):
        if name in source.values:
            return source.values[name], source.name
    return None, "default"


def endpoint(setup: Setup, kind: Literal["", "embedder_"] = "") -> Endpoint:
    """The endpoint of the model, or of the embedder with settings of its own.

    A key goes to the address of the same source. A key from the environment or an argument also goes
    to an address from any trusted source, but never to an address from the current folder's file: a
    prepared folder could name a server to collect keys.
    """
    sources = settings_sources(setup)
    server = _last_with(sources, f"{kind}base_url") or _last_with(sources, "base_url")
    url: str | None = None
    url_from = "default"
    if server is not None:
        url = server.values.get(f"{kind}base_url") or server.values["base_url"]
        url_from = server.name
    if source := _key_source(sources, server, kind):
        key = source.values.get(f"{kind}api_key") or source.values["api_key"]
        return Endpoint(url=url, url_from=url_from, api_key=key, key_from=source.name)
    is_prepared = server is not None and not server.trusted
    if gets_no_key(url or OPENAI_URL):
        return Endpoint(url=url, url_from=url_from, api_key="no-key" if is_prepared else None)
    if is_prepared:
        refusal = (
            f"{url_from} names the server {url}, and no key from elsewhere is sent there: add "
            f"{kind}api_key to that file, or repeat the address with --base-url"
        )
        return Endpoint(url=url, url_from=url_from, refused=refusal)
    key_from = "OPENAI_API_KEY" if "OPENAI_API_KEY" in os.environ else ""
    return Endpoint(url=url, url_from=url_from, key_from=key_from)


def _key_source(
    sources: Sequence[SettingsSource], server: SettingsSource | None, kind: str
) -> SettingsSource | None:
    """The source of the key for the address from the source `server`."""
    names = {f"{kind}api_key", "api_key"}
    for source in reversed(sources):
        is_allowed = server is None or source is server
        if server is not None and server.trusted:
            is_allowed = is_allowed or source in sources[-2:]  # the environment, an argument
        if is_allowed and names & source.values.keys():
            return source
    return None


def _last_with(sources: Sequence[SettingsSource], name: str) -> SettingsSource | None:
    """The last source with a setting: its value counts."""
    return next((source for source in reversed(sources) if name in source.values), None)


def _set_values(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value}


def _file_settings(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    if surplus := ", ".join(sorted(config.keys() - {*SETUP})):
        raise ConfigError(f"{path}: unknown settings {surplus} (there are: {', '.join(SETUP)})")
    if wrong := [name for name, value in config.items() if not isinstance(value, str)]:
        raise ConfigError(f"{path}: {wrong[0]} must be a text in quotes")
    return _set_values(config)
