"""`prompts`, `parse` and `extract`: prompts and records, without an index."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import BinaryIO

import click

from lightrag_jsonl.cli.documents import read_stdin
from lightrag_jsonl.cli.opening import make_llm
from lightrag_jsonl.cli.options import FILE, as_json, base_url, language, llm
from lightrag_jsonl.cli.options import prompts as overrides
from lightrag_jsonl.cli.output import Reply, counted, emit, emit_json, one_line, replying, table
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import decoded
from lightrag_jsonl.core.types import Json, Rejection
from lightrag_jsonl.llm.prompt import Prompt
from lightrag_jsonl.llm.prompt_manager import PromptManager, check_set, unused_prompts
from lightrag_jsonl.llm.reader import parse_jsonl

PACKAGED = ("en", "zh")
TEXT_COLUMNS = 100


@click.group()
def prompts() -> None:
    """Show the prompts; check a folder of your own.

    To change a prompt: write the output of `show` to a file of the same name in a folder, edit
    it, `check` the folder, and pass it to other commands with --prompts.
    """


@prompts.command("list")
@language
@overrides
@replying
def list_(language: str | None, prompts: Path | None) -> Reply:
    """List the prompts: id, form of the answer, revision, variables, aliases."""
    manager = PromptManager.load(language or "en", prompts)
    found = [_summary(id, manager.prompt(id)) for id in manager.ids]
    rows = [
        [", ".join(value) if isinstance(value, tuple) else value for value in one.values()]
        for one in found
    ]
    return Reply(found, table(rows, ("id", "answer", "revision", "variables", "aliases")))


@prompts.command()
@click.argument("id")
@language
@overrides
@as_json
def show(id: str, language: str | None, prompts: Path | None, as_json: bool) -> None:
    """Print the file of the prompt ID, which may be an alias.

    \b
    Example:
      lightrag-jsonl prompts show extract-graph --language zh > mine/extract-graph.md
    """
    manager = PromptManager.load(language or "en", prompts)
    prompt = manager.prompt(id)
    if not as_json:
        click.echo(Path(prompt.origin).read_text(encoding="utf-8-sig"), nl=False)
        return
    system, user = prompt.text
    real = next(name for name in manager.ids if manager.prompt(name) is prompt)
    schema = prompt.schema.source if prompt.schema else None
    parts = {"system": system, "user": user, "schema": schema, "file": prompt.origin}
    emit_json({**_summary(real, prompt), **parts, "examples": prompt.examples})


@prompts.command()
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@replying
def check(folder: Path | None) -> Reply:
    """Check the prompt files of FOLDER, or the packaged ones; exit 1 if something is wrong.

    This checks templates, declared variables, schemas, and every example against its schema,
    and lists the files that replace no packaged prompt.
    """
    lines, plain = [], []
    for name in [folder] if folder else PACKAGED:
        problems, notes = check_set(name), unused_prompts(name)
        lines.append(f"{name}: {counted(len(problems), 'problem') if problems else 'OK'}")
        lines += [f"  {problem}" for problem in problems] + [f"  note: {note}" for note in notes]
        plain.append({"folder": name, "problems": problems, "notes": notes})
    return Reply(plain, "\n".join(lines), 1 if any(one["problems"] for one in plain) else 0)


def _summary(id: str, prompt: Prompt) -> dict[str, object]:
    return {
        "id": id,
        "response_type": prompt.response_type,
        "revision": prompt.revision,
        "inputs": tuple(prompt.inputs),
        "aliases": tuple(prompt.aliases),
    }


# ── records ─────────────────────────────────────────────────────────────────────


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--schema", type=FILE, metavar="FILE", help="A JSON Schema the records must match.")
@click.option("--strict", is_flag=True, help="Exit 1 if a line was refused or a byte is invalid.")
@as_json
def parse(file: BinaryIO, schema: Path | None, strict: bool, as_json: bool) -> None:
    """Read a model's JSONL answer from FILE or stdin.

    Records go to stdout, one per line; refused lines go to stderr. Code fences, arrays,
    pretty-printed objects and remarks in between are handled; an incomplete record is never
    completed.

    \b
    Example:
      lightrag-jsonl parse --schema record.json answer.txt > records.jsonl
    """
    data, problem = file.read(), ""
    try:
        text = decoded(data, "the answer")
    except ConfigError as error:
        text, problem = data.decode(errors="replace"), str(error)
    result = parse_jsonl(text, schema=_schema(schema) if schema else None)
    if as_json:
        emit_json(result)
    else:
        for record in result.records:
            emit_json(record, indent=None)
        for rejection in result.rejections:
            emit(_rejection_line(rejection), err=True)
    if problem:
        emit(f"{problem}; read as UTF-8, with U+FFFD for invalid bytes", err=True)
    if strict and (problem or any(one.reason != "repaired" for one in result.rejections)):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("id")
@click.argument("file", type=click.File("rb"), default="-")
@llm
@base_url
@language
@overrides
@click.option(
    "--set",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="A further variable of the prompt, as JSON or text. @FILE reads it from a file.",
)
@as_json
def extract(
    id: str,
    file: BinaryIO,
    llm: str | None,
    base_url: str | None,
    language: str | None,
    prompts: Path | None,
    variables: tuple[str, ...],
    as_json: bool,
) -> None:
    """Ask a model for records about a text, with one prompt.

    ID is the prompt (`prompts list` lists them), FILE the text (default stdin). The records are
    printed as JSONL; nothing is stored.

    \b
    Examples:
      lightrag-jsonl extract extract-topics notes.txt --llm gpt-4o-mini
      lightrag-jsonl extract extract-rows bill.txt --set schema=@table.json --llm gpt-4o-mini
    """
    from lightrag_jsonl.rag import LightRAG

    model = make_llm(llm, base_url)
    if model is None:
        raise click.UsageError("extract asks a model: name one with --llm")
    text = read_stdin() if file.name == "<stdin>" else decoded(file.read(), file.name)
    with (
        tempfile.TemporaryDirectory(prefix="lightrag-jsonl-") as folder,
        LightRAG(folder, llm=model, language=language or "en", prompts=prompts) as rag,
    ):
        records = rag.extract(id, text, **dict(map(_variable, variables)))
    if not records:
        emit("the model gave no records", err=True)
    if as_json:
        emit_json(records)
        return
    for record in records:
        emit_json(record, indent=None)


def _schema(path: Path) -> dict[str, Json]:
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path} must hold a JSON Schema, which is an object")
    return value


def _variable(given: str) -> tuple[str, object]:
    name, sign, value = given.partition("=")
    if not (name and sign):
        raise click.UsageError(f"--set {given}: expected NAME=VALUE")
    if value.startswith("@"):
        path = Path(value[1:])
        if not path.is_file():
            raise click.UsageError(f"--set {given}: no such file")
        value = decoded(path.read_bytes(), str(path))
    with contextlib.suppress(ValueError, RecursionError):
        return name, json.loads(value)
    return name, value


def _rejection_line(rejection: Rejection) -> str:
    detail = f" ({rejection.detail})" if rejection.detail else ""
    text = one_line(rejection.text, TEXT_COLUMNS)
    return f"line {rejection.line}: {rejection.reason}{detail}: {text}"
