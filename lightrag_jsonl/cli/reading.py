"""`parse` and `extract`: from model output to records, without an index."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from lightrag_jsonl.cli.opening import make_llm
from lightrag_jsonl.cli.options import FILE, as_json, base_url, language, llm, prompts
from lightrag_jsonl.cli.output import emit_json, one_line, say
from lightrag_jsonl.errors import ConfigError

if TYPE_CHECKING:
    from lightrag_jsonl.types import Json, JsonlResult, Rejection

TEXT_COLUMNS = 100
NOTE = "repaired"  # a rejection for this reason is only a note: the record was kept


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--schema", type=FILE, metavar="FILE", help="A JSON Schema the records must match.")
@click.option("--strict", is_flag=True, help="Exit 1 if a line was refused or a byte is invalid.")
@as_json
def parse(file: BinaryIO, schema: Path | None, strict: bool, as_json: bool) -> None:
    """Read a model's JSONL answer from FILE or stdin.

    Records go to stdout, one per line; refused lines go to stderr. Code fences, arrays,
    pretty-printed objects and remarks in between are handled; an incomplete record is never
    completed. Reads the encodings that `insert` reads; a line with invalid bytes may be lost.

    \b
    Example:
      lightrag-jsonl parse --schema record.json answer.txt > records.jsonl
    """
    from lightrag_jsonl.decoding import decoded
    from lightrag_jsonl.jsonl import parse_jsonl
    from lightrag_jsonl.reading.thoughts import without_opening_thought

    given, data, trouble = _schema(schema) if schema else None, file.read(), ""
    try:
        text = decoded(data, "the answer")
    except ConfigError as error:
        text, trouble = data.decode(errors="replace"), str(error)
    result = parse_jsonl(without_opening_thought(text), schema=given)
    _print_result(result, as_json=as_json)
    if trouble:
        say(f"{trouble}; read as UTF-8, with U+FFFD for invalid bytes", err=True)
    if strict and (trouble or any(one.reason != NOTE for one in result.rejections)):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("id")
@click.argument(
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    default="-",
)
@llm
@base_url
@language
@prompts
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
    file: Path,
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
    import tempfile

    from lightrag_jsonl.cli.sources import read_stdin
    from lightrag_jsonl.files import read_text
    from lightrag_jsonl.sync import LightRAG

    model = make_llm(llm, base_url)
    if model is None:
        raise click.UsageError("extract asks a model: name one with --llm")
    text = read_stdin() if str(file) == "-" else read_text(file)
    given = dict(map(_variable, variables))
    with (
        tempfile.TemporaryDirectory(prefix="lightrag-jsonl-") as folder,
        LightRAG(folder, llm=model, language=language or "en", prompts=prompts) as rag,
    ):
        records = rag.extract(id, text, **given)
    if not records:
        say("the model gave no records", err=True)
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
    from lightrag_jsonl.files import read_text

    name, sign, value = given.partition("=")
    if not (name and sign):
        raise click.UsageError(f"--set {given}: expected NAME=VALUE")
    if value.startswith("@"):
        if not Path(value[1:]).is_file():
            raise click.UsageError(f"--set {given}: no such file")
        value = read_text(Path(value[1:]))
    with contextlib.suppress(ValueError, RecursionError):
        return name, json.loads(value)
    return name, value


def _print_result(result: JsonlResult, *, as_json: bool) -> None:
    if as_json:
        emit_json(result)
        return
    for record in result.records:
        emit_json(record, indent=None)
    for rejection in result.rejections:
        say(_rejection_line(rejection), err=True)


def _rejection_line(rejection: Rejection) -> str:
    detail = f" ({rejection.detail})" if rejection.detail else ""
    text = one_line(rejection.text, TEXT_COLUMNS)
    return f"line {rejection.line}: {rejection.reason}{detail}: {text}"
