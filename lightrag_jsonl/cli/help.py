"""`help`: a page for a command, or for a topic shared by many commands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import click

from lightrag_jsonl.cli.group import CommandOutput, command, main
from lightrag_jsonl.cli.options import (
    Option,
    file_limit_options,
    limit_options,
    models,
    read_chunks,
    read_mode,
    reading_options,
    together,
    upgrade_options,
)
from lightrag_jsonl.readers.formats import FILE_FORMATS, UNPACKERS, FileFormat
from lightrag_jsonl.readers.old_office import OLD_FORMATS

HELP_COLUMNS: Final = 80


@dataclass(frozen=True, slots=True)
class Topic:
    """A page of help: the subject, and the options, if it is about some."""

    summary: str
    text: str
    options: Option | None = None


def _formats_text() -> str:
    """The formats of files with their suffixes, first those that need no extra."""
    without_extra = [format for format in FILE_FORMATS if not format.needs_extra]
    with_extra = [format for format in FILE_FORMATS if format.needs_extra]
    return f"""\
Read without an extra:
{_format_definitions(without_extra)}

With the extra `files` (pip install '.[files]'):
{_format_definitions(with_extra)}

Also: each file in a {" or ".join(UNPACKERS)}, each line of a .jsonl as a document, all of
these compressed (.gz), and {", ".join(OLD_FORMATS)} where LibreOffice is installed.
"""


def _format_definitions(formats: Iterable[FileFormat]) -> str:
    return _definition_list((format.names[0], " ".join(format.suffixes)) for format in formats)


def _definition_list(rows: Iterable[tuple[str, str]]) -> str:
    formatter = click.HelpFormatter(width=HELP_COLUMNS)
    with formatter.indentation():
        formatter.write_dl([*rows])
    return formatter.getvalue().rstrip()


TOPICS: Final[Mapping[str, Topic]] = {
    "models": Topic(
        summary="which model reads and answers, its address and key",
        text="""\
Without a model, language rules read the texts, and answers are quoted from
them; nothing leaves this machine. Name one to have both written by it:

  lightrag-jsonl insert -w kb --llm gpt-4o-mini notes/          # OpenAI
  lightrag-jsonl insert -w kb --llm qwen3:8b \\
      --base-url http://localhost:11434/v1 notes/               # Ollama
  lightrag-jsonl doctor -w kb --ask            # does everything answer?

The index remembers names, this machine the addresses. Keys come from the
environment (OPENAI_API_KEY), never from an option. Without an option and a
remembered name, settings come from LIGHTRAG_JSONL_LLM,
LIGHTRAG_JSONL_BASE_URL and so on, from ./lightrag-jsonl.toml or from
~/.config/lightrag-jsonl/config.toml; no key but its own is sent to an address
in ./lightrag-jsonl.toml. In the page (`serve`), a model can be set and tested.
""",
        options=models,
    ),
    "reading": Topic(
        summary="how texts are cut and read, upgrades, and limits of files",
        text="""\
These belong to `insert`, and the index remembers the first group. A file above
a limit is not read, and named with the reason.
""",
        options=together(
            reading_options, read_mode, read_chunks, upgrade_options, file_limit_options
        ),
    ),
    "limits": Topic(
        summary="how many calls and tokens a command may use",
        text="""\
What was paid for until a limit is kept: the same command goes on from there.
""",
        options=limit_options,
    ),
    "formats": Topic(summary="kinds of files that are read", text=_formats_text()),
    "status": Topic(
        summary="exit statuses, and errors as JSON",
        text="""\
Exit status: 0 done; 1 an error; 2 wrong usage of the command line; 3 some of
the texts could not be read (the with_extra were); 130 interrupted; 141 the output
was closed. With --json, an error is one JSON object on stderr, {"error":
{"code", "message"}}; the code is the name of the Python exception, or
"Interrupted".
""",
    ),
}


@command(click.argument("words", nargs=-1, metavar=f"[COMMAND|{'|'.join(TOPICS)}]"))
def help_command(words: tuple[str, ...]) -> CommandOutput:
    """Explain a command, or the options of models.

    \b
    Examples:
      lightrag-jsonl help models
      lightrag-jsonl help insert
    """
    if len(words) == 1 and words[0] in TOPICS:
        return CommandOutput(_topic_page(TOPICS[words[0]]))
    page = _command_page(words)
    if words:
        return CommandOutput(page)
    topics = _definition_list((f"help {name}", topic.summary) for name, topic in TOPICS.items())
    return CommandOutput(f"{page}\n\nTopics:\n{topics}")


def _command_page(names: tuple[str, ...]) -> str:
    """The help of a command by name; `UsageError` for an unknown command."""
    chosen: click.Command = main
    context = click.Context(main, info_name="lightrag-jsonl", max_content_width=HELP_COLUMNS)
    for name in names:
        subcommand = chosen.get_command(context, name) if isinstance(chosen, click.Group) else None
        if subcommand is None:
            topics = ", ".join(TOPICS)
            raise click.UsageError(f"no command and no topic {name}; the topics are {topics}")
        chosen = subcommand
        context = click.Context(chosen, parent=context, info_name=name)
    return chosen.get_help(context)


def _topic_page(topic: Topic) -> str:
    """The text of a topic, and the options with explanations, also where commands leave them out."""
    if topic.options is None:
        return topic.text.rstrip()
    listed = click.command(cls=click.Command)(topic.options(lambda **parameters: None))
    records: list[tuple[str, str]] = []
    for parameter in listed.params:
        assert isinstance(parameter, click.Option)
        parameter.hidden = False
        records.append(parameter.get_help_record(click.Context(main)) or ("", ""))
    return f"{topic.text}\nOptions:\n{_definition_list(records)}"
