"""Options of several commands; the options for folder and models become a `Setup`."""

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

import click

from lightrag_jsonl.core.address import Address, as_address
from lightrag_jsonl.core.modes import DEFAULT_MODE, MODES, mode_summaries
from lightrag_jsonl.core.options import ExtractionPrompt, IndexOptions, ReadMode, Tagger
from lightrag_jsonl.core.types import MODEL_TASKS, ModelTask
from lightrag_jsonl.providers.model_names import EMBEDDERS
from lightrag_jsonl.providers.settings import Setup, chosen_setting
from lightrag_jsonl.readers.encoding import decoded
from lightrag_jsonl.readers.limits import FileLimits

Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
Parameters: TypeAlias = dict[str, Any]  # of a command, by name


class _PlaceType(click.ParamType[str]):
    """A path, a pattern of paths, or an address: any but the empty one, which Python takes for the
    current folder, such as an unset variable of the shell.
    """

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("the name of a file or folder is empty", param, ctx)
        return value


FILE_OR_FOLDER: Final = _PlaceType()
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
TARGET: Final = click.Path(dir_okay=False, path_type=Path)
NON_NEGATIVE: Final = click.IntRange(0, 1_000_000)
POSITIVE: Final = click.IntRange(1, 1_000_000_000_000)
EXTRACTION_PROMPTS: Final = click.Choice(get_args(ExtractionPrompt))
TAGGERS: Final = click.Choice(get_args(Tagger))
INDEX_OPTIONS: Final = tuple(field.name for field in fields(IndexOptions))


def option(
    flags: str, help: str, type: "click.ParamType[Any] | None" = None, **settings: Any
) -> Option:
    """An option, with flags and, if need be, the name of the parameter, separated by spaces.

    `settings` are further arguments of `click.option`.
    """
    if isinstance(type, click.IntRange):
        settings["metavar"] = "N"
    return click.option(*flags.split(), type=type, help=help, **settings)


def further(
    flags: str, help: str, type: "click.ParamType[Any] | None" = None, **settings: Any
) -> Option:
    """An option explained by `lightrag-jsonl help TOPIC`, and not in the help of each command."""
    return option(flags, help, type, hidden=True, **settings)


def together(*options: Option) -> Option:
    """Several options in a single decorator, in the order of help texts."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(options):
            function = decorator(function)
        return function

    return decorate


def collected(name: str, collect: Callable[[Parameters], object], *options: Option) -> Option:
    """Options with values collected in a single parameter `name` of a command.

    `collect` removes the values from the parameters of the command, and returns the new value.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(**parameters: Any) -> Any:
            parameters[name] = collect(parameters)
            return function(**parameters)

        return together(*options)(run)

    return decorate


def take(parameters: Parameters, names: Iterable[str]) -> Parameters:
    """Remove the named parameters, if present, and return the removed parameters."""
    return {name: parameters.pop(name) for name in names if name in parameters}


def read_stdin() -> str:
    """All of stdin, decoded like a text file."""
    return decoded(sys.stdin.buffer.read(), "stdin")


def _index_address(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> Address:
    return as_address(values or (chosen_setting("working_dir", Setup())[0] or "kb",))


def _task_models(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[ModelTask, str]:
    """The names of models by task, from TASK=MODEL."""
    models: dict[ModelTask, str] = {}
    for value in values:
        name, _, model = value.partition("=")
        task = next((task for task in MODEL_TASKS if task == name), None)
        if task is None or not model:
            raise click.BadParameter(
                f"{value!r} is not TASK=MODEL; the tasks are {', '.join(MODEL_TASKS)}"
            )
        models[task] = model
    return models


def _take_file_limits(parameters: Parameters) -> FileLimits:
    values: dict[str, Any] = {}
    for field in fields(FileLimits):
        is_pattern = field.name in ("exclude", "include")
        value = parameters.pop(field.name if is_pattern else f"max_file_{field.name}")
        if value:
            values[field.name] = value << 20 if field.name == "memory" else value
    return FileLimits(**values)


working_dir = option(
    "-w --working-dir",
    "An index: folder or PostgreSQL URL (default kb).",
    FILE_OR_FOLDER,
    multiple=True,
    callback=_index_address,
)
llm = option(
    "--llm",
    "The model, which the index remembers; `none` for language rules (`help models`).",
)
llm_for = further(
    "--llm-for models",
    f"A model for one task only, which the index remembers, too: {', '.join(MODEL_TASKS)} (such as "
    "`--llm-for answer=gpt-4o`; `none` for language rules); may be repeated.",
    metavar="TASK=MODEL",
    multiple=True,
    callback=_task_models,
)
base_url = further(
    "--base-url", "The endpoint of the model (default: OPENAI_BASE_URL, or OpenAI's)."
)
embedder = further(
    "--embedder", f"{EMBEDDERS} (default hash: hashed words). The index remembers it."
)
embedder_base_url = further(
    "--embedder-base-url", "The endpoint of the embedder (default: that of the model)."
)
reranker = together(
    further(
        "--reranker",
        "A model that orders the passages of a question, at --reranker-base-url. Neither is remembered.",
    ),
    further("--reranker-base-url", "The endpoint of the reranker, such as https://api.jina.ai/v1."),
)
check = further(
    "--check",
    "What tells whether claims of answers are supported: judge (the model) or st:NAME (a cross-encoder), "
    "once doctor --claims admitted it. It is not remembered.",
)
language = option(
    "-l --language",
    "en (default), zh, or another such as fr; remembered.",
)
prompts_folder = further(
    "--prompts",
    "A folder of prompt files, which replace packaged files of the same name.",
    DIRECTORY,
)
models = together(
    working_dir,
    llm,
    llm_for,
    base_url,
    embedder,
    embedder_base_url,
    reranker,
    check,
    language,
    prompts_folder,
)
mode = option(
    "-m --mode",
    f"Where to search: {mode_summaries()}.",
    click.Choice([*MODES]),
    default=DEFAULT_MODE,
    show_default=True,
)
reading_options = together(
    further("--chunk-tokens", "Tokens in a chunk (default 1200).", POSITIVE),
    further("--chunk-overlap", "Tokens that adjacent chunks share (default 100).", NON_NEGATIVE),
    further(
        "--extraction",
        f"The extraction prompt: {', '.join(EXTRACTION_PROMPTS.choices)}.",
        EXTRACTION_PROMPTS,
        metavar="PROMPT",
    ),
    further("--ontology", "A JSON or YAML file of classes and properties.", FILE),
    further("--entity-type entity_types", "A type to look for; may be repeated.", multiple=True),
    further(
        "--tagger",
        "What finds names in Chinese texts without a model (default: lac if that extra is installed).",
        TAGGERS,
    ),
    further("--keep-traces", "How many traces of queries to keep (default 1000).", NON_NEGATIVE),
    further(
        "--gleanings max_gleanings",
        "Further passes for missed records (default: one where it pays).",
        NON_NEGATIVE,
    ),
)
file_limit_options = collected(
    "file_limits",
    _take_file_limits,
    option(
        "--exclude",
        "Leave out what matches (as .gitignore; repeatable).",
        multiple=True,
    ),
    further(
        "--include",
        "Read what matches in a folder, even if it is hidden, ignored by a .gitignore, or in a folder of "
        "packages; may be repeated.",
        multiple=True,
    ),
    further("--max-file-seconds", "Time to read one file (default 300).", POSITIVE),
    further("--max-file-memory", "Memory to read one file, in MB (default 2048).", POSITIVE),
    further("--max-file-characters", "Characters in one file (default 50 million).", POSITIVE),
    further("--max-file-cells", "Cells in one table (default 20 million).", POSITIVE),
    further("--max-file-pages", "Pages, slides or sheets in one file (default 100,000).", POSITIVE),
)
upgrade_options = together(
    further(
        "--upgrade",
        "Also read again what was read without this model or with an older prompt; prints an estimate first.",
        is_flag=True,
    ),
    further("--yes", "Start the upgrade without confirmation.", is_flag=True),
    further(
        "--max-tokens", "End the upgrade after so many input and output tokens together.", POSITIVE
    ),
)
read_mode = further(
    "--read",
    "When the model reads a chunk: all (every chunk, when it is inserted; of a new index) or asked (when a "
    "question finds it). The index remembers it.",
    click.Choice(get_args(ReadMode)),
)
read_chunks = further(
    "--read-chunks",
    "With --read asked: how many chunks are read for a question (default 8).",
    NON_NEGATIVE,
)
restore_purged = option(
    "--restore-purged", "Bring back what was purged from the index.", is_flag=True
)
limit_options = together(
    further(
        "--concurrency max_concurrent_calls",
        "The most concurrent model calls (default 16).",
        POSITIVE,
    ),
    further("--max-calls", "Maximum number of model calls; their answers are kept.", POSITIVE),
    further("--max-input-tokens", "Maximum number of input tokens.", POSITIVE),
    further("--max-output-tokens", "Maximum number of output tokens.", POSITIVE),
)
