"""Options that several commands share, and the `Setup` made of those for folder and models."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import MODES
from lightrag_jsonl.core.text import name_key

Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
Names = TypeVar("Names", str | None, tuple[str, ...])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
TARGET = click.Path(dir_okay=False, path_type=Path)
COUNT = click.IntRange(min=0, max=1_000_000)
EMBEDDERS = "hash, st:NAME_OR_FOLDER or openai:NAME"


@dataclass(frozen=True, slots=True)
class Setup:
    """The folder and the models as given by the user; None means not given."""

    working_dir: Path = Path("kb")
    llm: str | None = None
    base_url: str | None = None
    embedder: str | None = None
    embedder_base_url: str | None = None
    language: str | None = None
    prompts: Path | None = None


SETUP_OPTIONS = tuple(Setup.__dataclass_fields__)


def user_default(name: str) -> str | None:
    """What the user's environment, or else a config file, has for an option that is not given.

    The config file of the current folder comes before that of the home folder.
    """
    value = os.environ.get(f"LIGHTRAG_JSONL_{name.upper()}")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path in (Path("lightrag-jsonl.toml"), home / "lightrag-jsonl" / "config.toml"):
        if not value and path.is_file():
            try:
                config = tomllib.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ConfigError(f"{path} is not TOML: {error}") from error
            if unknown := ", ".join(sorted(config.keys() - {*SETUP_OPTIONS})):
                raise ConfigError(f"{path}: unknown settings {unknown}")
            value = config.get(name)
    return str(value) if value else None


def visible(context: click.Context, option: click.Parameter, value: Names) -> Names:
    """An option's name or names; `BadParameter` for one without visible characters."""
    for name in value if isinstance(value, tuple) else (value,):
        if name is not None and not name_key(name):  # for example from an unset shell variable
            raise click.BadParameter(f"{name!r} has no visible character")
    return value


def _folder(context: click.Context, option: click.Parameter, value: str | None) -> Path:
    visible(context, option, value)
    path = Path(value or user_default("working_dir") or "kb")
    if path.is_file():
        raise click.BadParameter(f"{path} is a file")
    return path


def _embedder(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    kind, _, name = (value or "hash").partition(":")
    if (kind == "hash" and not name) or (kind in ("st", "openai") and name):
        return value
    raise click.BadParameter(f"{value!r} is none of {EMBEDDERS}")


def _url(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    value = value or user_default(str(option.name))
    if value is not None and not value.startswith(("http://", "https://")):
        raise click.BadParameter(f"{value!r} must begin with http:// or https://")
    if value is not None and "@" in value.split("/")[2]:
        raise click.BadParameter("no passwords here; put the key into OPENAI_API_KEY")
    return value


number_option = partial(click.option, type=click.IntRange(min=1), metavar="N")
working_dir = click.option(
    "-w",
    "--working-dir",
    callback=_folder,
    metavar="FOLDER",
    help="The folder of the index (default kb).",
)
llm = click.option(
    "--llm",
    metavar="MODEL",
    callback=visible,
    help="A model at an OpenAI-compatible endpoint; its key comes from OPENAI_API_KEY. The index "
    "remembers its name. Without a model (or with `none`) language rules do the work.",
)
base_url = click.option(
    "--base-url",
    metavar="URL",
    callback=_url,
    help="The endpoint, such as http://localhost:8000/v1 (default: OPENAI_BASE_URL, or OpenAI's).",
)
embedder = click.option(
    "--embedder",
    metavar="SPEC",
    callback=_embedder,
    help=f"{EMBEDDERS}: hashed words (the default), a sentence-transformers model, or one at an "
    "endpoint. The index remembers it.",
)
embedder_base_url = click.option(
    "--embedder-base-url",
    metavar="URL",
    callback=_url,
    help="The embedder's endpoint, if it differs from --base-url.",
)
language = click.option(
    "-l",
    "--language",
    metavar="CODE",
    help="en, zh, or a folder of prompts: the language of prompts and rules (default en). "
    "The index remembers it.",
)
prompts = click.option(
    "--prompts",
    type=FOLDER,
    metavar="FOLDER",
    help="Prompt files that replace packaged ones of the same name.",
)
models = (working_dir, llm, base_url, embedder, embedder_base_url, language, prompts)
mode = click.option(
    "-m",
    "--mode",
    type=click.Choice(MODES),
    default="mix",
    show_default=True,
    help="Where to search: naive (chunks), local (entities), global (relations), hybrid (local and "
    "global), mix (all three), walk (along the graph), bypass (nowhere: ask the model alone).",
)
reading_options = (
    number_option("--chunk-tokens", help="Tokens in a chunk (default 1200)."),
    number_option("--chunk-overlap", type=COUNT, help="Tokens neighbours share (default 100)."),
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
    number_option(
        "--gleanings",
        "max_gleanings",
        type=COUNT,
        help="How often to ask the model again for what it missed (default 1).",
    ),
)
limit_options = (
    number_option(
        "--concurrency", "max_concurrent_calls", help="Model calls at a time (default 16)."
    ),
    number_option("--max-calls", help="Stop after so many model calls; their answers are kept."),
    number_option("--max-input-tokens", help="Stop after so many tokens read."),
    number_option("--max-output-tokens", help="Stop after so many tokens written."),
)
