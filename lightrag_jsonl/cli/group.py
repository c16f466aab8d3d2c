"""The command group `main`, with errors and exit statuses, and the decorators of commands."""

import contextlib
import functools
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

import click

from lightrag_jsonl import ConfigError, LightRAGError, __version__
from lightrag_jsonl.cli.options import (
    INDEX_OPTIONS,
    Option,
    Parameters,
    models,
    take,
    together,
    working_dir,
)
from lightrag_jsonl.cli.output import emit, emit_json, failure_notes, in_words, one_line, to_json
from lightrag_jsonl.core.errors import FREE, PACKAGE_MISSING
from lightrag_jsonl.core.files import FULL_DISK
from lightrag_jsonl.core.types import Failure
from lightrag_jsonl.providers.settings import SETUP, Setup
from lightrag_jsonl.rag.opening import open_index
from lightrag_jsonl.text.strings import sanitize

PACKAGE: Final = "lightrag_jsonl"
LONGEST_COMMAND: Final = 13  # characters of a command, in the list of all
LONGEST_SUMMARY: Final = 78 - LONGEST_COMMAND  # likewise of what it does
FAILED: Final = 1
INCOMPLETE: Final = 3
INTERRUPTED: Final = 130
OUTPUT_CLOSED: Final = 141  # the shell's status for a program ended by SIGPIPE
INTERRUPTION: Final = (
    "interrupted; nothing that was stored is lost; to go on, run the same command again"
)
COMMAND_GROUPS: Final[
    Mapping[str, Mapping[str, str]]
] = {  # in the order of use, with their modules
    "Start": {"insert": "documents", "serve": "serve", "demo": "demo", "help": "help"},
    "Ask": {
        "query": "questions",
        "retrieve": "questions",
        "explain": "explain",
        "mcp": "serve",
    },
    "Look": {
        "show": "entities",
        "status": "documents",
        "documents": "documents",
        "entities": "entities",
        "relations": "entities",
        "communities": "communities",
        "conflicts": "entities",
        "export": "transfer",
        "diff": "snapshots",
    },
    "Change": {
        "delete": "documents",
        "retry": "documents",
        "resume": "documents",
        "import": "transfer",
        "merge": "transfer",
        "split": "transfer",
        "copy": "transfer",
        "snapshot": "snapshots",
        "rollback": "snapshots",
    },
    "Cost": {"estimate": "transfer", "batch": "transfer", "cache": "admin"},
    "Upkeep": {"doctor": "doctor", "rebuild": "admin", "reembed": "admin", "vacuum": "admin"},
    "Develop": {
        "eval": "evaluation",
        "extract": "prompts",
        "parse": "prompts",
        "prompts": "prompts",
        "rejections": "documents",
    },
}
COMMAND_MODULES: Final = {
    name: module for modules in COMMAND_GROUPS.values() for name, module in modules.items()
}
EPILOG: Final = """\b
Examples:
  lightrag-jsonl insert -w kb books/ 'notes/*.md'
  lightrag-jsonl query -w kb "Who was Scrooge's partner?"
  lightrag-jsonl help models
"""


@dataclass(frozen=True)
class CommandOutput:
    """The output of a command.

    With --json, `value` is printed as JSON; otherwise `display` or, without it, the fields of `value`.
    Notes and failures go to stderr. `status` is the exit status unless there are failures.
    """

    value: object
    display: object = None
    status: int = 0
    notes: Sequence[str] = ()
    failures: Sequence[Failure] = ()


CommandFunction: TypeAlias = Callable[..., CommandOutput]


class _CommandGroup(click.Group):
    """A group whose errors say where an option belongs, if given in place of a command."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        try:
            return super().parse_args(context, arguments)
        except click.NoSuchOption as error:
            if not self.has_option(context, error.option_name):
                raise
            example = f"{context.command_path} COMMAND {error.option_name} ..."
            names = ", ".join(self.list_commands(context))
            message = f"{error.option_name} belongs after a command: {example}; commands: {names}"
            raise click.UsageError(message, context) from None

    def has_option(self, context: click.Context, option: str) -> bool:
        """Whether a command of the group, or of a group in it, has an option."""
        commands = [self.get_command(context, name) for name in self.list_commands(context)]
        return any(
            command.has_option(context, option)
            if isinstance(command, _CommandGroup)
            else any(option in parameter.opts for parameter in command.params)
            for command in commands
            if command is not None
        )


class _Main(_CommandGroup):
    """A group whose commands report errors in one line, with --json as a JSON object, and are listed in the
    order of use.
    """

    group_class = _CommandGroup

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(COMMAND_MODULES)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """A command, from its module; all are imported for an unknown name, which is told what it resembles."""
        modules = [COMMAND_MODULES[name]] if name in COMMAND_MODULES else COMMAND_MODULES.values()
        for module in modules:
            import_module(f"{PACKAGE}.cli.{module}")
        return super().get_command(context, name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under the headings of `COMMAND_GROUPS`."""
        for heading, names in COMMAND_GROUPS.items():
            commands = {name: self.get_command(context, name) for name in names}
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name, command.get_short_help_str(limit=LONGEST_SUMMARY))
                        for name, command in commands.items()
                        if command is not None
                    ],
                    col_max=LONGEST_COMMAND,
                )

    def invoke(self, context: click.Context) -> Any:
        as_json = "--json" in context.args
        try:
            return super().invoke(context)
        except BrokenPipeError:
            with contextlib.suppress(OSError):  # nothing is left to be written at the end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(OUTPUT_CLOSED) from None
        except (click.ClickException, click.Abort) as error:
            if not as_json:
                raise
            _emit_json_error(type(error).__name__, getattr(error, "message", "aborted"))
            raise click.exceptions.Exit(getattr(error, "exit_code", FAILED)) from None
        except (LightRAGError, OSError, ModuleNotFoundError, KeyboardInterrupt) as error:
            is_own_fault = isinstance(error, ImportError) and str(error.name).startswith(PACKAGE)
            if context.params.get("debug") or is_own_fault:
                raise
            if isinstance(error, ModuleNotFoundError):
                error = ConfigError(PACKAGE_MISSING.format(error.name))
            _emit_error(error, as_json)
            is_interrupted = isinstance(error, KeyboardInterrupt)
            raise click.exceptions.Exit(INTERRUPTED if is_interrupted else FAILED) from None


def _emit_error(error: BaseException, as_json: bool) -> None:
    """Print an error, with the usage of the model until then, or an interruption."""
    if isinstance(error, KeyboardInterrupt):
        code = "Interrupted"
        message = INTERRUPTION
        text = INTERRUPTION
    else:
        code = type(error).__name__
        message = one_line(_words(error))
        text = f"Error: {message}"
    usage = error.usage if isinstance(error, LightRAGError) else FREE
    details: dict[str, object] = {"usage": usage} if usage.calls else {}
    if as_json:
        _emit_json_error(code, message, details)
    else:
        emit(text, err=True)
        emit(in_words(details), err=True)


def _words(error: BaseException) -> str:
    """The message of an error; of the operating system, the file and the reason, without a number, and what to do if
    the output has no room.
    """
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    if error.errno in FULL_DISK:
        return f"nothing more can be written ({error.strerror}): make room, or choose another place"
    return str(error)


def _emit_json_error(code: str, message: str, details: Mapping[str, object] | None = None) -> None:
    error = to_json({"error": {"code": code, "message": message, **(details or {})}})
    click.echo(json.dumps(error), err=True)


@click.group(
    cls=_Main,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--debug", is_flag=True, help="Show the log, and the traceback of an error.")
@click.version_option(__version__, prog_name="lightrag-jsonl", message="%(prog)s %(version)s")
def main(debug: bool) -> None:
    """Turn texts into a knowledge graph, and answer questions with their sources.

    Without --llm nothing leaves this machine: language rules read the texts and
    answers are put together from cited sentences. With --llm a model does both.
    """
    logging.basicConfig(format="%(levelname)s: %(message)s")
    logging.getLogger("lightrag_jsonl").setLevel(logging.DEBUG if debug else logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def command(
    *options: Option, name: str | None = None, group: click.Group = main
) -> Callable[[CommandFunction], click.Command]:
    """Make a function a command with options and --json.

    The options for folder and models reach the function as a `setup`, the fields of `IndexOptions`
    as `index_options`. Without a `name`, the function's name without `_command` is used.
    """

    def decorate(function: CommandFunction) -> click.Command:
        @functools.wraps(function)
        def run(as_json: bool, **parameters: Any) -> None:
            _check_characters(parameters)
            _collect_shared(parameters)
            output = function(**parameters)
            setup = parameters.get("setup")
            _emit_output(output, as_json=as_json, folder=setup and setup.working_dir)
            raise click.exceptions.Exit(INCOMPLETE if output.failures else output.status)

        json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        return group.command(name)(together(*options, json_option)(run))

    return decorate


def index_command(
    *options: Option, name: str | None = None, group: click.Group = main
) -> Callable[[CommandFunction], click.Command]:
    """Like `command`, for a function of an existing index, which is opened as `rag`."""

    def decorate(function: CommandFunction) -> click.Command:
        @functools.wraps(function)
        def run(
            setup: Setup, index_options: Parameters | None = None, **parameters: Any
        ) -> CommandOutput:
            with open_index(setup, index_options or {}) as rag:
                return function(rag=rag, **parameters)

        folder = [] if models in options else [working_dir]
        return command(*[*folder, *options], name=name, group=group)(run)

    return decorate


def _check_characters(parameters: Parameters) -> None:
    """`BadParameter` for a text that is not UTF-8; the names of files may be something else."""
    context = click.get_current_context()
    for parameter in context.command.params:
        value = parameters.get(parameter.name or "")
        for text in value if isinstance(value, tuple) else (value,):
            is_text = parameter.type is click.STRING and isinstance(text, str)
            if is_text and sanitize(text) != text:
                raise click.BadParameter(f"{text!r} is not UTF-8", context, parameter)


def _collect_shared(parameters: Parameters) -> None:
    """Replace shared options by `setup` and `index_options`."""
    setup = take(parameters, SETUP)
    if setup:
        parameters["setup"] = Setup(**setup)
    index_options = take(parameters, INDEX_OPTIONS)
    if index_options:
        parameters["index_options"] = index_options


def _emit_output(output: CommandOutput, *, as_json: bool, folder: object) -> None:
    if as_json:
        emit_json(output.value)
    else:
        display = output.value if output.display is None else output.display
        emit(display if isinstance(display, bytes) else in_words(display))
    for note in (*output.notes, *failure_notes(output.failures, folder)):
        emit(note, err=True)
