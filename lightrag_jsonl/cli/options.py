"""Options that several commands share, and the `Setup` made of them."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import MODES
from lightrag_jsonl.core.text import name_key

Command = Callable[..., None]
Option = Callable[[Command], Command]
Names = TypeVar("Names", str | None, tuple[str, ...])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
TARGET = click.Path(dir_okay=False, path_type=Path)
EMBEDDERS = "hash, st:NAME_OR_FOLDER or openai:NAME"
CONFIG_FILES = (Path("lightrag-jsonl.toml"), Path("lightrag-jsonl") / "config.toml")


@dataclass(frozen=True, slots=True)
class Setup:
    """The folder and the models as given by the user; None means not given."""

    working_dir: Path
    llm: str | None = None
    base_url: str | None = None
    embedder: str | None = None
    embedder_base_url: str | None = None
    language: str | None = None
    prompts: Path | None = None


@functools.cache
def user_config() -> dict[str, str]:
    """The user's defaults; those of the current folder come before those of the home folder."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    found: dict[str, str] = {}
    for path in (home / CONFIG_FILES[1], CONFIG_FILES[0]):
        if path.is_file():
            try:
                values = tomllib.loads(path.read_text(encoding="utf-8"))
            except tomllib.TOMLDecodeError as error:
                raise ConfigError(f"{path} is not TOML: {error}") from error
            unknown = values.keys() - {field.name for field in fields(Setup)}
            if unknown:
                raise ConfigError(f"{path}: unknown settings {', '.join(sorted(unknown))}")
            found |= {name: str(value) for name, value in values.items()}
    return found


def _configured(name: str, default: str | None = None) -> Callable[[], str | None]:
    return lambda: user_config().get(name, default)


def visible(context: click.Context, option: click.Parameter, value: Names) -> Names:
    """An option's name or names; `BadParameter` for one without visible characters."""
    for name in value if isinstance(value, tuple) else (value,):
        if name is not None and not name_key(name):  # for example from an unset shell variable
            raise click.BadParameter(f"{name!r} has no visible character")
    return value


def _embedder(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    kind, _, name = (value or "hash").partition(":")
    if (kind == "hash" and not name) or (kind in ("st", "openai") and name):
        return value
    raise click.BadParameter(f"{value!r} is none of {EMBEDDERS}")


def _url(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise click.BadParameter(f"{value!r} must begin with http:// or https://")
    if value is not None and "@" in value.split("//", 1)[1].split("/", 1)[0]:
        raise click.BadParameter("no passwords here; put the key into OPENAI_API_KEY")
    return value


def _folder(context: click.Context, option: click.Parameter, value: str) -> Path:
    if not str(value).strip():  # to Python the current folder
        raise click.BadParameter("the name of a folder is empty")
    path = Path(value)
    if path.is_file():
        raise click.BadParameter(f"{path} is a file")
    return path


number_option = functools.partial(click.option, type=click.IntRange(min=1), metavar="N")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
working_dir = click.option(
    "-w",
    "--working-dir",
    callback=_folder,
    default=_configured("working_dir", "kb"),
    envvar="LIGHTRAG_JSONL_WORKING_DIR",
    show_default="kb",
    metavar="FOLDER",
    help="The folder of the index.",
)
llm = click.option(
    "--llm",
    metavar="MODEL",
    callback=visible,
    default=_configured("llm"),
    envvar="LIGHTRAG_JSONL_LLM",
    help="A model at an OpenAI-compatible endpoint; its key comes from OPENAI_API_KEY. The index "
    "remembers its name. Without a model (or with `none`) language rules do the work.",
)
base_url = click.option(
    "--base-url",
    metavar="URL",
    callback=_url,
    default=_configured("base_url"),
    envvar="LIGHTRAG_JSONL_BASE_URL",
    help="The endpoint, such as http://localhost:8000/v1 (default: OPENAI_BASE_URL, or OpenAI's).",
)
embedder = click.option(
    "--embedder",
    metavar="SPEC",
    callback=_embedder,
    default=_configured("embedder"),
    envvar="LIGHTRAG_JSONL_EMBEDDER",
    help=f"{EMBEDDERS}: hashed words (the default), a sentence-transformers model, or one at an "
    "endpoint. The index remembers it.",
)
embedder_base_url = click.option(
    "--embedder-base-url",
    metavar="URL",
    callback=_url,
    default=_configured("embedder_base_url"),
    envvar="LIGHTRAG_JSONL_EMBEDDER_BASE_URL",
    help="The embedder's endpoint, if it differs from --base-url.",
)
language = click.option(
    "-l",
    "--language",
    metavar="CODE",
    default=_configured("language"),
    envvar="LIGHTRAG_JSONL_LANGUAGE",
    help="en, zh, or a folder of prompts: the language of prompts and rules (default en). "
    "The index remembers it.",
)
prompts = click.option(
    "--prompts",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Prompt files that replace packaged ones of the same name.",
)
mode = click.option(
    "-m",
    "--mode",
    type=click.Choice(MODES),
    default="mix",
    show_default=True,
    help="Where to search: naive (chunks), local (entities), global (relations), hybrid (local and "
    "global), mix (all three), walk (along the graph), bypass (nowhere: ask the model alone).",
)

MODEL_OPTIONS = (working_dir, llm, base_url, embedder, embedder_base_url, language, prompts)


def models(function: Command) -> Command:
    """Give a command the options for folder and models, as a `Setup` in its first argument."""
    return _with_setup(function, MODEL_OPTIONS, [field.name for field in fields(Setup)])


def folder(function: Command) -> Command:
    """Give a command the option for the folder alone, as a `Setup` in its first argument."""
    return _with_setup(function, (working_dir,), ["working_dir"])


def with_options(*groups: Sequence[Option]) -> Option:
    """Give a command these groups of options, in this order."""

    def decorate(function: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorate


def _with_setup(function: Command, options: Sequence[Option], names: Sequence[str]) -> Command:
    @functools.wraps(function)
    def with_setup(**given: Any) -> None:
        function(Setup(**{name: given.pop(name) for name in names}), **given)

    return with_options(options)(with_setup)


# ── how texts are read ──────────────────────────────────────────────────────────

chunk_options = (
    number_option("--chunk-tokens", help="Tokens in a chunk (default 1200)."),
    number_option(
        "--chunk-overlap", type=click.IntRange(min=0), help="Tokens neighbours share (default 100)."
    ),
    click.option(
        "--extraction",
        type=click.Choice(["extract-graph", "agent-kg-extract", "extract-with-ontologies"]),
        help="The prompt that asks a model for facts (default extract-graph).",
    ),
    click.option(
        "--ontology",
        type=FILE,
        metavar="FILE",
        help="A JSON or YAML file of classes and properties.",
    ),
    click.option(
        "--entity-type",
        "entity_types",
        multiple=True,
        callback=visible,
        metavar="NAME",
        help="A type of entity to look for; may be repeated.",
    ),
)
gleaning_options = (
    number_option(
        "--gleanings",
        "max_gleanings",
        type=click.IntRange(min=0),
        help="How often to ask the model again for what it missed (default 1).",
    ),
)
limit_options = (
    *gleaning_options,
    number_option(
        "--concurrency", "max_concurrent_calls", help="Model calls at a time (default 16)."
    ),
    number_option("--max-calls", help="Stop after so many model calls; their answers are kept."),
    number_option("--max-input-tokens", help="Stop after so many tokens read."),
    number_option("--max-output-tokens", help="Stop after so many tokens written."),
)
