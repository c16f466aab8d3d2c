"""`prompts`, `parse` and `extract`: prompts and records, without an index."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import BinaryIO

import click

from lightrag_jsonl import ConfigError, LightRAG, PromptManager, parse_jsonl
from lightrag_jsonl.cli import options
from lightrag_jsonl.cli.group import Reply, command, main
from lightrag_jsonl.cli.opening import make_llm
from lightrag_jsonl.cli.options import FILE, Setup, option, user_default
from lightrag_jsonl.cli.output import json_lines, one_line
from lightrag_jsonl.core.text import decoded
from lightrag_jsonl.core.types import Json, Rejection
from lightrag_jsonl.indexing.loading import read_text
from lightrag_jsonl.llm.prompt_manager import check_set

text_file = click.argument("file", type=click.File("rb"), default="-")


@main.group()
def prompts() -> None:
    """Show the prompts; check a folder of your own.

    To change a prompt: write the output of `show` to a file of the same name in a folder, edit
    it, `check` the folder, and pass it to other commands with --prompts.
    """


@command(options.language, options.prompts, name="list", group=prompts)
def list_(setup: Setup) -> Reply:
    """List the prompts: id, form of the answer, revision, variables, aliases."""
    manager = _manager(setup)
    found = [(id, manager.prompt(id)) for id in manager.ids]
    return Reply(
        [
            {
                "id": id,
                "response_type": prompt.response_type,
                "revision": prompt.revision,
                "inputs": prompt.inputs,
                "aliases": prompt.aliases,
            }
            for id, prompt in found
        ]
    )


@command(click.argument("id"), options.language, options.prompts, group=prompts)
def show(setup: Setup, id: str) -> Reply:
    """Print the file of the prompt ID, which may be an alias."""
    prompt = _manager(setup).prompt(id)
    text = Path(prompt.origin).read_text(encoding="utf-8-sig")
    schema = prompt.schema.source if prompt.schema else None
    return Reply({"file": prompt.origin, "text": text, "schema": schema}, text.encode())


@command(
    click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path)),
    group=prompts,
)
def check(folder: Path | None) -> Reply:
    """Check the prompt files of FOLDER, or the packaged ones; exit 1 if something is wrong.

    This checks templates, declared variables, schemas, and every example against its schema.
    """
    names = [str(folder)] if folder else ["en", "zh"]
    found = {name: check_set(name) for name in names}
    problems = [problem for listed in found.values() for problem in listed]
    return Reply(found, "\n".join(problems) or "OK", 1 if problems else 0)


def _manager(setup: Setup) -> PromptManager:
    language = setup.language or user_default("language") or "en"
    return PromptManager.load(language, setup.prompts or user_default("prompts"))


@command(
    text_file,
    option("--schema", "A JSON Schema the records must match.", FILE),
    option("--strict", "Exit 1 if a line was refused or a byte is invalid.", is_flag=True),
)
def parse(file: BinaryIO, schema: Path | None, strict: bool) -> Reply:
    """Read a model's JSONL answer from FILE or stdin.

    Records go to stdout, one per line; refused lines go to stderr. Code fences, arrays,
    pretty-printed objects and remarks in between are handled; an incomplete record is never
    completed.
    """
    data, problems = file.read(), []
    try:
        text = decoded(data, "the answer")
    except ConfigError as error:
        text = data.decode(errors="replace")
        problems.append(f"{error}; read as UTF-8, with U+FFFD for invalid bytes")
    result = parse_jsonl(text, schema=_schema(schema) if schema else None)
    refused = problems or any(one.reason != "repaired" for one in result.rejections)
    notes = [*map(_rejection_line, result.rejections), *problems]
    return Reply(result, json_lines(result.records), 1 if strict and refused else 0, notes)


def _schema(path: Path) -> dict[str, Json]:
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path} must hold a JSON Schema, which is an object")
    return value


def _rejection_line(rejection: Rejection) -> str:
    detail = f" ({rejection.detail})" if rejection.detail else ""
    return f"line {rejection.line}: {rejection.reason}{detail}: {one_line(rejection.text, 100)}"


@command(
    click.argument("id"),
    text_file,
    options.llm,
    options.base_url,
    options.language,
    options.prompts,
    option(
        "--set variables",
        "A further variable of the prompt, as JSON or text. @FILE reads it from a file.",
        metavar="NAME=VALUE",
        multiple=True,
    ),
)
def extract(setup: Setup, id: str, file: BinaryIO, variables: tuple[str, ...]) -> Reply:
    """Ask a model for records about a text, with one prompt.

    ID is the prompt (`prompts list` lists them), FILE the text (default stdin). The records are
    printed as JSONL; nothing is stored.

    \b
    Examples:
      lightrag-jsonl extract extract-topics notes.txt --llm gpt-4o-mini
      lightrag-jsonl extract extract-rows bill.txt --set schema=@table.json --llm gpt-4o-mini
    """
    model = make_llm(setup, {})
    if model is None:
        raise click.UsageError("extract asks a model: name one with --llm")
    values = dict(map(_variable, variables))
    text = decoded(file.read(), file.name)
    with (
        tempfile.TemporaryDirectory(prefix="lightrag-jsonl-") as folder,
        LightRAG(folder, llm=model, prompts=_manager(setup)) as rag,
    ):
        records = rag.extract(id, text, **values)
    return Reply(records, json_lines(records), notes=[] if records else ["no records were found"])


def _variable(given: str) -> tuple[str, object]:
    name, sign, value = given.partition("=")
    if not (name and sign):
        raise click.UsageError(f"--set {given}: expected NAME=VALUE")
    value = read_text(Path(value[1:])) if value.startswith("@") else value
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
