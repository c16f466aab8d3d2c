"""The command line: a thin layer over `LightRAG`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from lightrag_jsonl.cli import (
    asking,
    batch,
    demo,
    doctor,
    entities,
    estimating,
    evaluating,
    explaining,
    exporting,
    importing,
    indexing,
    looking,
    prompts,
    reading,
    upkeep,
)
from lightrag_jsonl.cli.output import one_line, say, told_usage
from lightrag_jsonl.cli.progress import INTERRUPTED
from lightrag_jsonl.errors import LightRAGError

FAILED = 1
READER_LEFT = 141  # the shell's status for a program ended by SIGPIPE
EPILOG = """\b
Examples:
  lightrag-jsonl demo
  lightrag-jsonl insert -w kb books/ 'notes/*.md'
  lightrag-jsonl query -w kb "Who was Scrooge's partner?"
  lightrag-jsonl insert -w kb --llm gpt-4o-mini report.txt
  lightrag-jsonl status -w kb --json

\b
Exit status: 0 done; 1 an error; 2 wrong usage of the command line; 3 some of
the texts could not be read (the others were); 130 ended by Ctrl-C; 141 the
reader of the output has closed it. Keys come from the environment
(OPENAI_API_KEY), never from an option.
"""


class _Group(click.Group):
    """A group whose commands report the package's own errors in one line."""

    def invoke(self, context: click.Context) -> Any:
        try:
            with _reader_may_leave():
                return super().invoke(context)
        except (LightRAGError, OSError, MemoryError, KeyboardInterrupt) as error:
            if context.params.get("debug"):
                raise
            say(_told(error), err=True)
            if isinstance(error, LightRAGError) and error.usage.calls:
                say(told_usage(error.usage), err=True)
            status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
            raise click.exceptions.Exit(status) from None

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """Parse the arguments, which prints --help and --version."""
        with _reader_may_leave():
            return super().parse_args(context, words)

    def list_commands(self, context: click.Context) -> list[str]:
        """The commands in the order a newcomer needs them, not alphabetically."""
        return list(self.commands)


@contextlib.contextmanager
def _reader_may_leave() -> Iterator[None]:
    """If the reader of stdout has closed it, exit quietly, and discard what is still buffered."""
    try:
        yield
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(READER_LEFT) from None


def _told(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemoryError):
        return "error: there is not enough memory; what was stored before is kept"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"error: {where}{error.strerror or error}"
    return "error: " + one_line(str(error))


def _print_version(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        say(f"lightrag-jsonl {doctor.own_version()}")
        context.exit()


@click.group(
    cls=_Group,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--debug", is_flag=True, help="Show the log, and the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """Turn texts into a knowledge graph, and answer questions with their sources.

    Without --llm nothing leaves this machine: language rules read the texts and
    answers are put together from cited sentences. With --llm a model does both.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the calling process, as cron may do
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    context.with_resource(_log(debug))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(io.UnsupportedOperation):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _log(debug: bool) -> Iterator[None]:
    """Log this package's warnings to stderr, with --debug everything; other packages stay quiet."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logger = logging.getLogger("lightrag_jsonl")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


for command in (
    demo.demo,
    indexing.insert,
    asking.query,
    asking.retrieve,
    explaining.explain,
    looking.status,
    looking.documents,
    looking.rejections,
    indexing.retry,
    indexing.resume,
    indexing.delete,
    estimating.estimate,
    batch.batch,
    importing.import_folder,
    exporting.export,
    entities.entities,
    evaluating.evaluate,
    reading.parse,
    reading.extract,
    prompts.prompts,
    upkeep.cache,
    upkeep.vacuum,
    upkeep.reembed,
    doctor.doctor,
):
    main.add_command(command)
