"""The command group `main`, its errors and exit statuses, and how commands are added to it."""

import contextlib
import functools
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from lightrag_jsonl import Failure, LightRAGError, __version__
from lightrag_jsonl.cli import options
from lightrag_jsonl.cli.options import Option
from lightrag_jsonl.cli.output import emit, emit_json, failure_notes, in_words, one_line, to_json
from lightrag_jsonl.core.errors import FREE
from lightrag_jsonl.providers.settings import SETUP, Setup
from lightrag_jsonl.rag.opening import open_index

FAILED, INCOMPLETE, INTERRUPTED = 1, 3, 130
OUTPUT_CLOSED = 141  # the shell's status for a program ended by SIGPIPE
GO_ON = "nothing that was stored is lost; to go on, run the same command again"
EPILOG = """\b
Examples:
  lightrag-jsonl demo
  lightrag-jsonl insert -w kb books/ 'notes/*.md'
  lightrag-jsonl query -w kb "Who was Scrooge's partner?"

\b
Exit status: 0 done; 1 an error; 2 wrong usage of the command line; 3 some of
the texts could not be read (the others were); 130 interrupted; 141 the output
was closed. With --json, an error is one JSON object on stderr, {"error":
{"code", "message"}}; the code is the name of the Python exception, or
"Interrupted". Keys come from the environment (OPENAI_API_KEY), never from an
option. If neither an option nor the index names a model, an embedder and the
like, they come from LIGHTRAG_JSONL_LLM, LIGHTRAG_JSONL_BASE_URL and so on, from
./lightrag-jsonl.toml or from ~/.config/lightrag-jsonl/config.toml. No key but
its own is sent to an address in ./lightrag-jsonl.toml.
"""


class Reply(NamedTuple):
    """A value to print as JSON or, unless there are `words`, by its fields; and what goes to stderr."""

    value: object
    words: object = None
    status: int = 0
    notes: Sequence[str] = ()
    failures: Sequence[Failure] = ()


class _Main(click.Group):
    """A group whose commands report errors in one line, with --json as a JSON object."""

    def invoke(self, context: click.Context) -> Any:
        as_json = "--json" in (*context._protected_args, *context.args)
        try:
            return super().invoke(context)
        except BrokenPipeError:
            with contextlib.suppress(OSError):  # nothing is left to be written at the end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(OUTPUT_CLOSED) from None
        except (click.ClickException, click.Abort) as error:
            if not as_json:
                raise
            status = getattr(error, "exit_code", FAILED)
            _emit_error(type(error).__name__, getattr(error, "message", "aborted"))
            raise click.exceptions.Exit(status) from None
        except (LightRAGError, OSError, KeyboardInterrupt) as error:
            if context.params.get("debug"):
                raise
            interrupted = isinstance(error, KeyboardInterrupt)
            words = f"interrupted; {GO_ON}" if interrupted else one_line(str(error))
            spent = error.usage if isinstance(error, LightRAGError) else FREE
            usage = {"usage": spent} if spent.calls else {}
            if as_json:
                _emit_error("Interrupted" if interrupted else type(error).__name__, words, **usage)
            else:
                emit(words if interrupted else f"error: {words}", err=True)
                emit(in_words(usage), err=True)
            raise click.exceptions.Exit(INTERRUPTED if interrupted else FAILED) from None


def _emit_error(code: str, message: str, **more: object) -> None:
    error = to_json({"error": {"code": code, "message": message, **more}})
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
    *declared: Option, name: str | None = None, group: click.Group = main
) -> Callable[[Callable[..., Reply]], click.Command]:
    """Make a function a command with these options and --json; the shared ones become a `Setup`."""

    def decorate(function: Callable[..., Reply]) -> click.Command:
        @functools.wraps(function)
        def run(as_json: bool, **given: Any) -> None:
            setup = {name: given.pop(name) for name in SETUP if name in given}
            reply = function(Setup(**setup), **given) if setup else function(**given)
            if as_json:
                emit_json(reply.value)
            else:
                words = reply.value if reply.words is None else reply.words
                emit(words if isinstance(words, bytes) else in_words(words))
            failed = failure_notes(reply.failures, setup.get("working_dir"))
            for note in (*reply.notes, *failed):
                emit(note, err=True)
            raise click.exceptions.Exit(INCOMPLETE if reply.failures else reply.status)

        json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        decorated: Any = run
        for option in reversed([*declared, json_option]):
            decorated = option(decorated)
        return group.command(name)(decorated)

    return decorate


def index_command(
    *declared: Option, name: str | None = None, group: click.Group = main
) -> Callable[[Callable[..., Reply]], click.Command]:
    """Like `command`, for a function of an existing index, which gets it opened."""

    def decorate(function: Callable[..., Reply]) -> click.Command:
        @functools.wraps(function)
        def run(setup: Setup, **given: Any) -> Reply:
            indexing = {name: given.pop(name) for name in options.INDEXING if name in given}
            with open_index(setup, indexing) as rag:
                return function(rag, **given)

        setup = () if options.llm in declared else (options.working_dir,)
        return command(*setup, *declared, name=name, group=group)(run)

    return decorate
