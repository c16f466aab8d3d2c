"""`help`: a page for a command, or for a topic shared by many commands."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
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


TOPICS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("topics.toml").read_text(encoding="utf-8")
)  # by name, "summary" and "text"
TOPIC_OPTIONS: Final[Mapping[str, Option]] = {
    "models": models,
    "reading": together(
        reading_options, read_mode, read_chunks, upgrade_options, file_limit_options
    ),
    "limits": limit_options,
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
        return CommandOutput(_topic_page(words[0]))
    page = _command_page(words)
    if words:
        return CommandOutput(page)
    summaries = {f"help {name}": topic["summary"] for name, topic in TOPICS.items()}
    topics = _definition_list(summaries.items())
    return CommandOutput(f"{page}\n\nTopics:\n{topics}")


def _command_page(names: tuple[str, ...]) -> str:
    """The help of a command by name; `UsageError` for an unknown command."""
    chosen: click.Command = main
    context = click.Context(main, info_name="lightrag-jsonl", max_content_width=HELP_COLUMNS)
    for name in names:
        subcommand: click.Command | None = None
        if isinstance(chosen, click.Group):
            subcommand = chosen.get_command(context, name)
        if subcommand is None:
            topics = ", ".join(TOPICS)
            raise click.UsageError(f"no command and no topic {name}; the topics are {topics}")
        chosen = subcommand
        context = click.Context(chosen, parent=context, info_name=name)
    return chosen.get_help(context)


def _topic_page(name: str) -> str:
    """The text of a topic, and the options with explanations, also where commands leave them out."""
    text = _formats_text() if name == "formats" else TOPICS[name]["text"]
    if name not in TOPIC_OPTIONS:
        return text.rstrip()
    listed = click.command(cls=click.Command)(TOPIC_OPTIONS[name](lambda **parameters: None))
    records: list[tuple[str, str]] = []
    for parameter in listed.params:
        assert isinstance(parameter, click.Option)
        parameter.hidden = False
        records.append(parameter.get_help_record(click.Context(main)) or ("", ""))
    return f"{text}\nOptions:\n{_definition_list(records)}"


def _formats_text() -> str:
    """The formats of files with their suffixes, first those that need no extra."""
    without_extra = [format for format in FILE_FORMATS if not format.needs_extra]
    with_extra = [format for format in FILE_FORMATS if format.needs_extra]
    return TOPICS["formats"]["text"].format(
        without_extra=_format_definitions(without_extra),
        with_extra=_format_definitions(with_extra),
        unpacked=" or ".join(UNPACKERS),
        old=", ".join(OLD_FORMATS),
    )


def _format_definitions(formats: Iterable[FileFormat]) -> str:
    rows: list[tuple[str, str]] = []
    for format in formats:
        english_name, _ = format.names
        rows.append((english_name, " ".join(format.suffixes)))
    return _definition_list(rows)


def _definition_list(rows: Iterable[tuple[str, str]]) -> str:
    formatter = click.HelpFormatter(width=HELP_COLUMNS)
    with formatter.indentation():
        formatter.write_dl([*rows])
    return formatter.getvalue().rstrip()
