"""`demo`: index the samples and ask questions, in English and Chinese, without any model."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from lightrag_jsonl import Answer, LightRAG
from lightrag_jsonl.cli.group import Reply, command
from lightrag_jsonl.cli.options import option
from lightrag_jsonl.cli.output import one_line
from lightrag_jsonl.cli.samples import sample_documents, sample_questions
from lightrag_jsonl.core.types import Language

COLUMNS = 92
PROGRAM = "lightrag-jsonl"
INTRODUCTION = """\
Two small collections, indexed and queried without a model: language rules read the texts, and
answers are put together from their sentences; [n] leads to the source of each."""
END = f"""
{"─" * COLUMNS}
Next, query these indexes, or index your own files:
  {{command}} query -w {{english}} "Who was Niels Bohr?"
  {{command}} query -w {{chinese}} "张骞去了哪里？"
  {{command}} insert -w kb FILES"""
QUESTIONS: dict[Language, tuple[int, ...]] = {"en": (0, 3), "zh": (3, 5)}
TITLES = {"en": "English", "zh": "中文"}
SHOWN_ENTITIES, SHOWN_RELATIONS = 6, 4


@command(
    option(
        "-w --working-dir folder",
        "The folder of the two indexes (default: a new folder).",
        click.Path(file_okay=False, path_type=Path),
    )
)
def demo(folder: Path | None) -> Reply:
    """Index two small collections and ask them questions.

    One is English, one Chinese. Needs no key and no network: no model is called. Takes a few
    seconds.
    """
    folder = folder or Path(tempfile.mkdtemp(prefix="lightrag-jsonl-demo-"))
    lines, value = [INTRODUCTION], []
    for language, numbers in QUESTIONS.items():
        with LightRAG(folder / language, language=language) as rag:
            rag.insert(sample_documents(language))
            questions = [sample_questions(language)[number] for number in numbers]
            answers = {question: rag.query(question, mode="local") for question in questions}
            lines += _lines(rag, TITLES[language], answers)
            value.append({"language": language, "status": rag.status(), "answers": answers})
    end = END.format(
        command=command_line(),
        english=shlex.quote(str(folder / "en")),
        chinese=shlex.quote(str(folder / "zh")),
    )
    return Reply(value, "\n".join([*lines, end]))


def command_line() -> str:
    """The words that start this program again in the current folder, as it was started now.

    The script may lie in an environment that is not on the path, such as `.venv/bin`.
    """
    script = Path(sys.argv[0])
    if script.stem == PROGRAM:
        return shlex.quote(_callable_name(script))
    return f"{shlex.quote(_callable_name(Path(sys.executable)))} -m lightrag_jsonl"


def _callable_name(program: Path) -> str:
    """A program's name if the shell finds it by that, or else its path, from here if it is below."""
    on_path = shutil.which(program.name)
    if on_path is not None and Path(on_path).absolute() == program.absolute():
        return program.name
    path = program.absolute()
    folder = Path.cwd()
    return f".{os.sep}{path.relative_to(folder)}" if path.is_relative_to(folder) else str(path)


def _lines(rag: LightRAG, title: str, answers: Mapping[str, Answer]) -> Iterator[str]:
    status, graph = rag.status(), rag.graph
    degrees = sorted(graph.degree, key=lambda pair: (-pair[1], pair[0]))[:SHOWN_ENTITIES]
    edges = sorted(graph.edges(data=True), key=lambda edge: (-edge[2]["weight"], edge[:2]))
    yield f"\n── {title} {'─' * (COLUMNS - 10)}"
    yield f"\n{status.chunks} articles: {status.entities} entities, {status.relations} relations"
    yield "Most connected: " + ", ".join(f"{name} ({degree})" for name, degree in degrees)
    yield "Strongest relations:"
    for _, _, data in edges[:SHOWN_RELATIONS]:
        keywords = ", ".join(data["keywords"].split("; ")[:3]) or "—"
        yield "  " + one_line(f"{data['source']} — {keywords} — {data['target']}", COLUMNS)
    for question, answer in answers.items():
        yield f"\nQ: {question}"
        yield from (f"   {line}".rstrip() for line in str(answer).split("\n"))
