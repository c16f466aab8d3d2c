"""Options that several commands share; those for folder and models make up a `Setup`."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import click

from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.modes import DEFAULT_MODE, MODES, mode_summaries
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.providers.configured import EMBEDDERS, Setup, chosen
from lightrag_jsonl.readers.limits import FileLimits

Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
TARGET = click.Path(dir_okay=False, path_type=Path)
COUNT, NUMBER = click.IntRange(0, 1_000_000), click.IntRange(min=1)
PROMPTS = click.Choice(["extract-graph", "agent-kg-extract", "extract-with-ontologies"])
INDEXING = tuple(IndexOptions.__dataclass_fields__)


def option(
    flags: str, help: str, type: "click.ParamType[Any] | None" = None, **more: Any
) -> Option:
    """An option with these flags, separated by spaces."""
    if isinstance(type, click.IntRange):
        more["metavar"] = "N"
    return click.option(*flags.split(), type=type, help=help, **more)


def _folder(context: click.Context, option: click.Parameter, value: str | None) -> Address:
    if value is not None and not value.strip():  # to Python the current folder
        raise click.BadParameter("the name of a folder is empty")
    return as_address(value or chosen("working_dir", Setup())[0] or "kb")


working_dir = option(
    "-w --working-dir",
    "The folder of the index, or a PostgreSQL URL (default kb).",
    callback=_folder,
)
llm = option(
    "--llm",
    "A model at an OpenAI-compatible endpoint, whose name the index remembers. Without a model (or "
    "with `none`) language rules are used.",
)
base_url = option("--base-url", "Its endpoint (default: OPENAI_BASE_URL, or OpenAI's).")
embedder = option(
    "--embedder", f"{EMBEDDERS} (default hash: hashed words). The index remembers it."
)
embedder_base_url = option("--embedder-base-url", "The embedder's endpoint, if it is another one.")
language = option(
    "-l --language", "en, zh, another (fr), or a folder of prompts (default en); is remembered."
)
prompts = option("--prompts", "Prompt files that replace packaged ones of the same name.", FOLDER)
models = (working_dir, llm, base_url, embedder, embedder_base_url, language, prompts)
mode = option(
    "-m --mode",
    f"Where to search: {mode_summaries()}.",
    click.Choice(list(MODES)),
    default=DEFAULT_MODE,
    show_default=True,
)
reading_options = (
    option("--chunk-tokens", "Tokens in a chunk (default 1200).", NUMBER),
    option("--chunk-overlap", "Tokens that adjacent chunks share (default 100).", COUNT),
    option("--extraction", "The extraction prompt (default extract-graph).", PROMPTS),
    option("--ontology", "A JSON or YAML file of classes and properties.", FILE),
    option("--entity-type entity_types", "A type to look for; may be repeated.", multiple=True),
    option("--keep-traces", "How many traces of queries to keep (default 1000).", COUNT),
    option("--gleanings max_gleanings", "Further passes for missed records (default 1).", COUNT),
)
file_limit_options = (
    option("--max-file-seconds", "Time to read one file (default 300).", NUMBER),
    option("--max-file-memory", "Memory to read one file, in MB (default 2048).", NUMBER),
    option("--max-file-characters", "Characters in one file (default 50 million).", NUMBER),
    option("--max-file-cells", "Cells in one table (default 20 million).", NUMBER),
    option("--max-file-pages", "Pages, slides or sheets in one file (default 100,000).", NUMBER),
)


def take_file_limits(options: dict[str, Any]) -> FileLimits:
    """The limits of files, which are taken out of the options of a command."""
    values: dict[str, Any] = {}
    for field in fields(FileLimits):
        value = options.pop(f"max_file_{field.name}")
        if value is not None:
            values[field.name] = value << 20 if field.name == "memory" else value
    return FileLimits(**values)


limit_options = (
    option("--concurrency max_concurrent_calls", "Concurrent model calls (default 16).", NUMBER),
    option("--max-calls", "Maximum number of model calls; their answers are kept.", NUMBER),
    option("--max-input-tokens", "Maximum number of input tokens.", NUMBER),
    option("--max-output-tokens", "Maximum number of output tokens.", NUMBER),
)
