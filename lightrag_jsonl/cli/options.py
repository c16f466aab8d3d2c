"""Options that several commands share, and the `Setup` made of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from lightrag_jsonl.cli.folders import explained
from lightrag_jsonl.errors import MISREAD, ConfigError, LightRAGError, PromptError
from lightrag_jsonl.options import MODES
from lightrag_jsonl.text import name_key

Command = Callable[..., None]
Option = Callable[[Command], Command]
Names = TypeVar("Names", str | None, tuple[str, ...])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EMBEDDERS = "hash, st:NAME_OR_FOLDER or openai:NAME"


class _Folder(click.Path):
    """A folder, which need not exist; an empty name, to Python the current folder, is refused."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(
        self, value: Any, option: click.Parameter | None, context: click.Context | None
    ) -> Any:
        """The path; fails for an empty name."""
        if not str(value).strip():  # for example from an unset shell variable
            self.fail("the name of a folder is empty", option, context)
        return super().convert(value, option, context)


FOLDER = _Folder()


@dataclass(frozen=True, slots=True)
class Setup:
    """The folder and the models as given on the command line; `None` means not given."""

    working_dir: Path
    llm: str | None = None
    base_url: str | None = None
    embedder: str | None = None
    embedder_base_url: str | None = None
    language: str | None = None
    prompts: Path | None = None


def _embedder(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    kind, _, name = (value or "hash").partition(":")
    if (kind == "hash" and not name) or (kind in ("st", "openai") and name):
        return value
    raise click.BadParameter(f"{value!r} is none of {EMBEDDERS}")


def _url(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    if not value.startswith(("http://", "https://")):
        raise click.BadParameter(f"{value!r} must begin with http:// or https://")
    if "@" in value.split("//", 1)[1].split("/", 1)[0]:
        raise click.BadParameter("no passwords here; put the key into OPENAI_API_KEY")
    from lightrag_jsonl.adapters.endpoint import check_url

    try:
        check_url(value)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from error
    return value


def visible(context: click.Context, option: click.Parameter, value: Names) -> Names:
    """An option's name or names, unchanged; `BadParameter` for one without visible characters."""
    for name in value if isinstance(value, tuple) else (value,):
        if name is not None and not name_key(name):  # for example from an unset shell variable
            raise click.BadParameter(f"{name!r} has no character that can be seen")
    return value


def has_prompts(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A language's code, or a folder, unchanged; `BadParameter` if it has no prompts."""
    from lightrag_jsonl.prompts.files import prompt_folder

    try:
        if value is not None:
            prompt_folder(value)
    except PromptError as error:
        raise click.BadParameter(str(error)) from error
    return value


def embedder_option(*, required: bool = False) -> Option:
    """The option --embedder; `reembed` requires it."""
    return click.option(
        "--embedder",
        metavar="SPEC",
        required=required,
        callback=_embedder,
        help=f"{EMBEDDERS}: hashed words (the default), a sentence-transformers model, or one "
        "at an endpoint. The index remembers it.",
    )


number_option = functools.partial(click.option, type=click.IntRange(min=1), metavar="N")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
working_dir = click.option(
    "-w",
    "--working-dir",
    type=FOLDER,
    default=Path("kb"),
    show_default=True,
    help="The folder of the index.",
)
llm = click.option(
    "--llm",
    metavar="MODEL",
    callback=visible,
    help="A model at an OpenAI-compatible endpoint; its key comes from OPENAI_API_KEY. "
    "Without a model (or with `none`) language rules do the work.",
)
base_url = click.option(
    "--base-url",
    metavar="URL",
    callback=_url,
    help="The endpoint, such as http://localhost:8000/v1 (default: OPENAI_BASE_URL, or OpenAI's).",
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
    callback=has_prompts,
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

MODEL_OPTIONS = (
    working_dir,
    llm,
    base_url,
    embedder_option(),
    embedder_base_url,
    language,
    prompts,
)


def models(function: Command) -> Command:
    """Give a command the options for folder and models, as a `Setup` in its first argument."""
    return _with_setup(function, MODEL_OPTIONS, [field.name for field in fields(Setup)])


def folder(function: Command) -> Command:
    """Give a command the option for the folder alone, as a `Setup` in its first argument."""
    return _with_setup(function, (working_dir,), ["working_dir"])


def with_options(*groups: Sequence[Option]) -> Option:
    """Give a command these groups of options, in this order."""

    def decorate(function: Command) -> Command:
        for option in reversed([one for group in groups for one in group]):
            function = option(function)
        return function

    return decorate


def _with_setup(function: Command, options: Sequence[Option], names: Sequence[str]) -> Command:
    @functools.wraps(function)
    def with_setup(**given: Any) -> None:
        setup = Setup(**{name: given.pop(name) for name in names})
        try:
            function(setup, **given)
        except LightRAGError:
            raise
        except MISREAD:
            with explained(setup.working_dir):
                raise

    return with_options(options)(with_setup)
