"""`demo`: index the samples with their records and ask a question, in English and in Chinese, without any model."""

import os
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, get_args

import click

from lightrag_jsonl import Answer, LightRAG, Relation
from lightrag_jsonl.cli.group import CommandOutput, command
from lightrag_jsonl.cli.options import option
from lightrag_jsonl.cli.output import one_line, width, wrapped
from lightrag_jsonl.cli.samples import SAMPLES, sample_documents, sample_records
from lightrag_jsonl.core.answers import source_lines
from lightrag_jsonl.core.index_reports import Status
from lightrag_jsonl.core.languages import Language

SCREEN_COLUMNS: Final = 92
PROGRAM: Final = "lightrag-jsonl"
INTRODUCTION: Final = """\
Two small collections. Their graph is what a good model reads from them: its records come with the demo.
No model is called now, so an answer is the nearest sentences, and [n] is where they stand."""
NEXT_STEPS: Final = """
Next, query these indexes, or index your own files:
  {command} query -w {english} "Who discovered the electron?"
  {command} query -w {chinese} "班超是谁？"
  {command} insert -w kb FILES"""
DEMO_WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    SAMPLES.joinpath("demo.toml").read_text("utf-8")
)
SHOWN_RELATIONS: Final = 3


@command(
    option(
        "-w --working-dir folder",
        "The folder of the two indexes (default: a new folder).",
        click.Path(file_okay=False, path_type=Path),
    )
)
def demo_command(folder: Path | None) -> CommandOutput:
    """Index two small collections and ask each a question.

    The first is English, the second Chinese. No key, network or model is needed. Takes a few
    seconds.
    """
    folder = folder or Path(tempfile.mkdtemp(prefix="lightrag-jsonl-demo-"))
    lines = [INTRODUCTION]
    value: list[dict[str, object]] = []
    for language in get_args(Language):
        question = DEMO_WORDS[language]["asked"]
        records = sample_records(language)
        with LightRAG(folder / language, language=language, llm="none") as rag:
            for document in sample_documents(language):
                rag.insert_records(document, records[document.id or ""])
            answer = rag.query(question, mode="local")
            status = rag.status()
        lines += _tour(language, status, question, answer)
        value.append({"language": language, "status": status, "answers": {question: answer}})
    next_steps = NEXT_STEPS.format(
        command=command_line(),
        english=shlex.quote(str(folder / "en")),
        chinese=shlex.quote(str(folder / "zh")),
    )
    return CommandOutput(value, "\n".join([*lines, next_steps]))


def _tour(language: Language, status: Status, question: str, answer: Answer) -> Iterator[str]:
    """The size of an index, relations found by a question, and the question with the answer."""
    words = DEMO_WORDS[language]
    size = words["size"].format(status.chunks, status.entities, status.relations)
    yield f"\n── {size}"
    for relation in _best_known(answer)[:SHOWN_RELATIONS]:
        source = f"   {relation.source} — "
        target = f" — {relation.target}"
        keywords = words["comma"].join(relation.keywords)
        columns_left = SCREEN_COLUMNS - width(source + target)
        yield source + one_line(keywords, max(columns_left, 1)) + target
    yield f"{words['question']}{question}"
    sentences = [line for line in answer.text.split("\n") if line.startswith("- ")]
    for line in (*sentences, *source_lines(answer.citations, language, beside=answer.text)):
        yield wrapped(f"   {line}", indent="     ")


def _best_known(answer: Answer) -> list[Relation]:
    """The relations of the cited passages, relations between names of the answer first."""

    def names_missing(relation: Relation) -> int:
        return sum(name not in answer.text for name in (relation.source, relation.target))

    return sorted(answer.evidence, key=names_missing)


def command_line() -> str:
    """The command line that starts this program in the current folder.

    The script may lie in an environment outside of the path, such as `.venv/bin`.
    """
    script = Path(sys.argv[0])
    if script.stem == PROGRAM:
        return shlex.quote(_callable_name(script))
    return f"{shlex.quote(_callable_name(Path(sys.executable)))} -m lightrag_jsonl"


def _callable_name(program: Path) -> str:
    """The name of a program on the path, or else the path from the current folder."""
    on_path = shutil.which(program.name)
    if on_path is not None and Path(on_path).absolute() == program.absolute():
        return program.name
    path = program.absolute()
    folder = Path.cwd()
    if path.is_relative_to(folder):
        return f".{os.sep}{path.relative_to(folder)}"
    return str(path)
