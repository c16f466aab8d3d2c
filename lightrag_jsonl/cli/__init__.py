"""The command line: a thin layer over `LightRAG`."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from lightrag_jsonl import __version__
from lightrag_jsonl.cli import admin, demo, documents, explain, prompts, questions, transfer
from lightrag_jsonl.cli.output import format_usage, one_line, printable
from lightrag_jsonl.core.errors import LightRAGError

FAILED, INTERRUPTED = 1, 130
OUTPUT_CLOSED = 141  # the shell's status for a program ended by SIGPIPE
EPILOG = """\b
Examples:
  lightrag-jsonl demo
  lightrag-jsonl insert -w kb books/ 'notes/*.md'
  lightrag-jsonl query -w kb "Who was Scrooge's partner?"
  lightrag-jsonl insert -w kb --llm gpt-4o-mini report.txt
  lightrag-jsonl status -w kb --json

\b
Exit status: 0 done; 1 an error; 2 wrong usage of the command line; 3 some of
the texts could not be read (the others were); 130 interrupted; 141 the output
was closed. Keys come from the environment (OPENAI_API_KEY), never from an
option. Defaults for --llm, --base-url, --embedder, --embedder-base-url,
--language and --working-dir come from LIGHTRAG_JSONL_LLM and the like, from
./lightrag-jsonl.toml or from ~/.config/lightrag-jsonl/config.toml.
"""


class _Group(click.Group):
    """A group whose commands report the package's own errors in one line."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(OUTPUT_CLOSED) from None
        except (LightRAGError, OSError, KeyboardInterrupt) as error:
            if context.params.get("debug"):
                raise
            click.echo(printable(_words(error)), err=True)
            if isinstance(error, LightRAGError) and error.usage.calls:
                click.echo(format_usage(error.usage), err=True)
            status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
            raise click.exceptions.Exit(status) from None

    def list_commands(self, context: click.Context) -> list[str]:
        """The commands in the order a newcomer needs them, not alphabetically."""
        return list(self.commands)


def _words(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return (
            "interrupted; finished documents and the model's answers are kept, "
            "go on with: lightrag-jsonl resume"
        )
    if isinstance(error, OSError):
        file = f"{error.filename}: " if error.filename else ""
        return f"error: {file}{error.strerror or error}"
    return f"error: {one_line(str(error))}"


@click.group(
    cls=_Group,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--debug", is_flag=True, help="Show the log, and the traceback of an error.")
@click.version_option(__version__, prog_name="lightrag-jsonl", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context, debug: bool) -> None:
    """Turn texts into a knowledge graph, and answer questions with their sources.

    Without --llm nothing leaves this machine: language rules read the texts and
    answers are put together from cited sentences. With --llm a model does both.
    """
    context.with_resource(_log(debug))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _log(debug: bool) -> Iterator[None]:
    """Log this package's warnings to stderr, with --debug everything; other packages stay quiet."""
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
    documents.insert,
    questions.query,
    questions.retrieve,
    explain.explain,
    documents.status,
    documents.documents,
    documents.rejections,
    documents.retry,
    documents.resume,
    documents.delete,
    transfer.estimate,
    transfer.batch,
    transfer.import_folder,
    transfer.export,
    admin.entities,
    questions.evaluate,
    prompts.parse,
    prompts.extract,
    prompts.prompts,
    admin.cache,
    admin.vacuum,
    admin.reembed,
    admin.rebuild,
    admin.doctor,
):
    main.add_command(command)
