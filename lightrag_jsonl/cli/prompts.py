"""`prompts`, `parse` and `extract`: prompts and records, without an index."""

import asyncio
import json
from pathlib import Path
from typing import Any, BinaryIO, cast

import click
import msgspec

from lightrag_jsonl import ConfigError, PromptManager, RecordList, parse_jsonl
from lightrag_jsonl.cli import options
from lightrag_jsonl.cli.group import Reply, command, main
from lightrag_jsonl.cli.options import FILE, option
from lightrag_jsonl.cli.output import json_lines, one_line
from lightrag_jsonl.core.encoding import decoded
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.indexing.loading import read_text
from lightrag_jsonl.llm.prompt_manager import check_set
from lightrag_jsonl.providers.model_names import make_llm
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import completed

text_file = click.argument("file", type=click.File("rb"), default="-")


@main.group()
def prompts() -> None:
    """Show the prompts; check a folder of your own.

    To change a prompt: write the output of `show ID` to a file ID.md in a folder, edit it, `check`
    the folder, and pass it to other commands with --prompts.
    """


@command(options.language, options.prompts, name="list", group=prompts)
def list_(setup: Setup) -> Reply:
    """List the prompts: id, form of the answer, revision, variables, aliases."""
    manager, found = _manager(setup), []
    for id in manager.ids:
        prompt = manager.prompt(id)
        fields = ("response_type", "revision", "inputs", "aliases")
        found.append({"id": id, **{name: getattr(prompt, name) for name in fields}})
    return Reply(found)


@command(click.argument("id"), options.language, options.prompts, group=prompts)
def show(setup: Setup, id: str) -> Reply:
    """Print the file of the prompt ID, which may be an alias."""
    prompt = _manager(setup).prompt(id)
    text = Path(prompt.origin).read_text(encoding="utf-8-sig")
    return Reply({"file": prompt.origin, "text": text, "schema": prompt.schema}, text.encode())


@command(
    click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path)),
    group=prompts,
)
def check(folder: Path | None) -> Reply:
    """Check the prompt files of FOLDER, or the packaged ones; exit 1 if there is a problem.

    This checks templates, declared variables, schemas, and every example against its schema.
    """
    names = [str(folder)] if folder else ["en", "zh"]
    found = {name: check_set(name) for name in names}
    problems = [problem for listed in found.values() for problem in listed]
    return Reply(found, "\n".join(problems) or "OK", 1 if problems else 0)


def _manager(given: Setup) -> PromptManager:
    setup = completed(given, {})
    return PromptManager.load(str(setup.language), setup.prompts)


@command(
    text_file,
    option("--schema", "A JSON Schema the records must match.", FILE),
    option("--strict", "Exit 1 if a line was rejected.", is_flag=True),
)
def parse(file: BinaryIO, schema: Path | None, strict: bool) -> Reply:
    """Read a model's JSONL answer from FILE or stdin.

    Records go to stdout, one per line; rejected lines go to stderr.
    """
    try:
        loaded = msgspec.json.decode(read_text(schema), type=dict[str, Any]) if schema else None
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{schema} is not a JSON Schema: {error}") from error
    result = parse_jsonl(decoded(file.read(), "the answer"), schema=loaded)
    notes = [
        f"line {one.line}: {one.reason} {one.detail}: {one_line(one.text, 100)}"
        for one in result.rejections
    ]
    rejected = any(one.reason != "repaired" for one in result.rejections)
    return Reply(result, json_lines(result.records), 1 if strict and rejected else 0, notes)


@command(
    click.argument("id"),
    text_file,
    options.llm,
    options.base_url,
    options.language,
    options.prompts,
    option(
        "--set variables",
        "A variable of the prompt, as JSON or text. @FILE reads it from a file.",
        metavar="NAME=VALUE",
        multiple=True,
    ),
)
def extract(setup: Setup, id: str, file: BinaryIO, variables: tuple[str, ...]) -> Reply:
    """Extract records from a text with a model and one prompt.

    ID is the prompt (`prompts list` lists them), FILE the text (default stdin). The records are
    printed as JSONL; nothing is stored.

    \b
    Example:
      lightrag-jsonl extract extract-rows bill.txt --set schema=@table.json --llm gpt-4o-mini
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
    found = asyncio.run(manager.invoke(id, {**values, "text": text}, model))
    records = cast(RecordList, found)
    return Reply(records, json_lines(records), notes=[] if records else ["no records"])


def _variable(given: str) -> tuple[str, object]:
    name, sign, value = given.partition("=")
    if not (name and sign):
        raise click.UsageError(f"--set {given}: expected NAME=VALUE")
    value = read_text(Path(value[1:])) if value.startswith("@") else value
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
