"""Options that several commands share, and the `Setup` made of those for folder and models."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import click

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import MODES, IndexOptions

Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
TARGET = click.Path(dir_okay=False, path_type=Path)
COUNT, NUMBER = click.IntRange(0, 1_000_000), click.IntRange(min=1)
PROMPTS = click.Choice(["extract-graph", "agent-kg-extract", "extract-with-ontologies"])
NO_MODEL = "none"
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


SETUP = tuple(Setup.__dataclass_fields__)
INDEXING = tuple(IndexOptions.__dataclass_fields__)


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
            if unknown := ", ".join(sorted(config.keys() - {*SETUP})):
                raise ConfigError(f"{path}: unknown settings {unknown}")
            value = config.get(name)
    return str(value) if value else None


def option(flags: str, help: str, type: click.ParamType[Any] | None = None, **more: Any) -> Option:
    """An option with these flags, separated by spaces."""
    if isinstance(type, click.IntRange):
        more["metavar"] = "N"
    return click.option(*flags.split(), type=type, help=help, **more)


def _folder(context: click.Context, option: click.Parameter, value: str | None) -> Path:
    if value is not None and not value.strip():  # to Python the current folder
        raise click.BadParameter("the name of a folder is empty")
    return Path(value or user_default("working_dir") or "kb")


def _url(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    return value or user_default(str(option.name))


working_dir = option("-w --working-dir", "The folder of the index (default kb).", callback=_folder)
llm = option(
    "--llm",
    "A model at an OpenAI-compatible endpoint, whose name the index remembers. Without a model (or "
    "with `none`) language rules do the work.",
)
base_url = option(
    "--base-url", "Its endpoint (default: OPENAI_BASE_URL, or OpenAI's).", callback=_url
)
embedder = option(
    "--embedder", f"{EMBEDDERS} (default hash: hashed words). The index remembers it."
)
embedder_base_url = option(
    "--embedder-base-url", "The embedder's endpoint, if it is another one.", callback=_url
)
language = option(
    "-l --language", "en, zh, or a folder of prompts (default en). The index remembers it."
)
prompts = option("--prompts", "Prompt files that replace packaged ones of the same name.", FOLDER)
models = (working_dir, llm, base_url, embedder, embedder_base_url, language, prompts)
mode = option(
    "-m --mode",
    "Where to search: naive (chunks), local (entities), global (relations), hybrid (local and "
    "global), mix (all three), walk (along the graph), bypass (nowhere: ask the model alone).",
    click.Choice(MODES),
    default="mix",
    show_default=True,
)
reading_options = (
    option("--chunk-tokens", "Tokens in a chunk (default 1200).", NUMBER),
    option("--chunk-overlap", "Tokens neighbours share (default 100).", COUNT),
    option("--extraction", "The prompt that asks for facts (default extract-graph).", PROMPTS),
    option("--ontology", "A JSON or YAML file of classes and properties.", FILE),
    option("--entity-type entity_types", "A type to look for; may be repeated.", multiple=True),
    option("--gleanings max_gleanings", "How often to ask for what was missed (default 1).", COUNT),
)
limit_options = (
    option("--concurrency max_concurrent_calls", "Model calls at a time (default 16).", NUMBER),
    option("--max-calls", "Stop after so many model calls; their answers are kept.", NUMBER),
    option("--max-input-tokens", "Stop after so many tokens read.", NUMBER),
    option("--max-output-tokens", "Stop after so many tokens written.", NUMBER),
)
