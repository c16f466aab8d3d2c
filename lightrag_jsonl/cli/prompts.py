"""`prompts`, `parse` and `extract`: prompts and records, without an index."""

import asyncio
import json
from pathlib import Path
from typing import Any, BinaryIO, cast

import click
import msgspec

from lightrag_jsonl import ConfigError
from lightrag_jsonl.cli import options
from lightrag_jsonl.cli.group import CommandOutput, command, main
from lightrag_jsonl.cli.options import FILE, option
from lightrag_jsonl.cli.output import json_lines, one_line
from lightrag_jsonl.indexing.loading import read_text
from lightrag_jsonl.llm.prompt_manager import PromptManager, RecordList, check_set
from lightrag_jsonl.llm.reader import read_answer
from lightrag_jsonl.providers.model_names import make_llm
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import completed
from lightrag_jsonl.readers.encoding import decoded
from lightrag_jsonl.text.strings import sanitize

text_file = click.argument("file", type=click.File("rb"), default="-")


@main.group()
def prompts_group() -> None:
    """Show the prompts; check a folder of your own.

    To change a prompt: write the output of `show ID` to a file ID.md in a folder, edit the file,
    `check` the folder, and name the folder to other commands with --prompts.
    """


@command(options.language, options.prompts_folder, name="list", group=prompts_group)
def list_prompts(setup: Setup) -> CommandOutput:
    """List the prompts: id, form of the answer, revision, variables, aliases."""
    manager = _manager(setup)
    fields = ("response_type", "revision", "inputs", "aliases")
    prompts = {id: manager.prompt(id) for id in manager.ids}
    rows = [
        {"id": id, **{name: getattr(prompt, name) for name in fields}}
        for id, prompt in prompts.items()
    ]
    return CommandOutput(rows)


@command(
    click.argument("id"), options.language, options.prompts_folder, name="show", group=prompts_group
)
def show_prompt(setup: Setup, id: str) -> CommandOutput:
    """Print the file of the prompt ID, which may be an alias."""
    prompt = _manager(setup).prompt(id)
    text = Path(prompt.origin).read_text(encoding="utf-8-sig")
    value = {"file": prompt.origin, "text": text, "schema": prompt.schema}
    return CommandOutput(value, text.encode())


@command(
    click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path)),
    name="check",
    group=prompts_group,
)
def check_prompts(folder: Path | None) -> CommandOutput:
    """Check the prompt files of FOLDER, or the packaged ones; exit 1 if there is a problem.

    This checks templates, declared variables, schemas, and every example against its schema.
    """
    names = [str(folder)] if folder else ["en", "zh"]
    problems_by_set = {name: check_set(name) for name in names}
    problems = [problem for problems in problems_by_set.values() for problem in problems]
    status = 1 if problems else 0
    return CommandOutput(problems_by_set, "\n".join(problems) or "OK", status=status)


def _manager(setup: Setup) -> PromptManager:
    complete_setup = completed(setup, {})
    return PromptManager.load(str(complete_setup.language), complete_setup.prompts)


@command(
    text_file,
    option("--schema", "A JSON Schema the records must match.", FILE),
    option("--strict", "Exit 1 if a line was rejected.", is_flag=True),
)
def parse_command(file: BinaryIO, schema: Path | None, strict: bool) -> CommandOutput:
    """Read a model's JSONL answer from FILE or stdin.

    Records go to stdout, one per line; rejected lines go to stderr.
    """
    try:
        schema_json = (
            msgspec.json.decode(read_text(schema), type=dict[str, Any]) if schema else None
        )
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{schema} is not a JSON Schema: {error}") from error
    result = read_answer(decoded(file.read(), "the answer"), schema=schema_json)
    notes = [
        f"line {line.line}: {line.reason} {line.detail}: {one_line(line.text, 100)}"
        for line in result.rejections
    ]
    is_incomplete = any(line.reason != "repaired" for line in result.rejections)
    return CommandOutput(
        value=result,
        display=json_lines(result.records),
        status=1 if strict and is_incomplete else 0,
        notes=notes,
    )


@command(
    click.argument("id"),
    text_file,
    options.llm,
    options.base_url,
    options.language,
    options.prompts_folder,
    option(
        "--set variables",
        "A variable of the prompt, as JSON or text. @FILE reads it from a file.",
        metavar="NAME=VALUE",
        multiple=True,
    ),
)
def extract_command(
    setup: Setup, id: str, file: BinaryIO, variables: tuple[str, ...]
) -> CommandOutput:
    """Extract records from a text with a model and one prompt.

    ID is the prompt (`prompts list` lists them), FILE the text (default stdin). The records are
    printed as JSONL; nothing is stored.

    \b
    Example:
      lightrag-jsonl extract extract-rows bill.txt --llm gpt-4o-mini \\
          --set schema=@table.json
    """
    setup = completed(setup, {})
    model = make_llm(str(setup.llm), setup)
    if model is None:
        raise click.UsageError("extract needs a model: name it with --llm")
    manager = _manager(setup)
    if manager.prompt(id).response_type != "jsonl":
        raise click.UsageError(f"the prompt {id} does not answer with records")
    values = dict(map(_variable, variables))
    text = sanitize(decoded(file.read(), "the text"))
    response = asyncio.run(manager.invoke(id, {**values, "text": text}, model))
    records = cast(RecordList, response)
    notes = [] if records else ["no records"]
    return CommandOutput(records, json_lines(records), notes=notes)


def _variable(assignment: str) -> tuple[str, object]:
    """The name and the value of a variable in `NAME=VALUE` or `NAME=@FILE`."""
    name, sign, text = assignment.partition("=")
    if not (name and sign):
        raise click.UsageError(f"--set {assignment}: expected NAME=VALUE")
    if text.startswith("@"):
        text = read_text(Path(text[1:]))
    try:
        return name, json.loads(text)
    except (ValueError, RecursionError):
        return name, text
