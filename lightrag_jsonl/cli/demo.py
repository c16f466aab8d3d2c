"""`demo`: index the samples and ask questions, in English and Chinese, without any model."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from lightrag_jsonl import Answer, LightRAG
from lightrag_jsonl.cli.group import CommandOutput, command
from lightrag_jsonl.cli.options import option
from lightrag_jsonl.cli.output import one_line
from lightrag_jsonl.cli.samples import sample_documents, sample_questions
from lightrag_jsonl.core.languages import Language

SCREEN_COLUMNS: Final = 92
PROGRAM: Final = "lightrag-jsonl"
INTRODUCTION: Final = """\
Two small collections, indexed and queried without a model: language rules read the texts, and
answers are put together from their sentences; [n] leads to the source of each."""
NEXT_STEPS: Final = f"""
{"─" * SCREEN_COLUMNS}
Next, query these indexes, or index your own files:
  {{command}} query -w {{english}} "Who was Niels Bohr?"
  {{command}} query -w {{chinese}} "张骞去了哪里？"
  {{command}} insert -w kb FILES"""
QUESTION_NUMBERS: Final[dict[Language, tuple[int, ...]]] = {"en": (0, 3), "zh": (3, 5)}
DEMO_TITLES: Final = {"en": "English", "zh": "中文"}
SUMMARY_WORDS: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "size": "{} articles: {} entities, {} relations",
        "connected": "Most connected: ",
        "relations": "Strongest relations:",
        "comma": ", ",
        "question": "Q: ",
    },
    "zh": {
        "size": "{} 篇文章：{} 个实体，{} 条关系",
        "connected": "关系最多的实体：",
        "relations": "权重最高的关系：",
        "comma": "、",
        "question": "问：",
    },
}
SHOWN_ENTITIES: Final = 6
SHOWN_RELATIONS: Final = 4


@command(
    option(
        "-w --working-dir folder",
        "The folder of the two indexes (default: a new folder).",
        click.Path(file_okay=False, path_type=Path),
    )
)
def demo_command(folder: Path | None) -> CommandOutput:
    """Index two small collections and ask them questions.

    The first is English, the second Chinese. No key, network or model is needed. Takes a few
    seconds.
    """
    folder = folder or Path(tempfile.mkdtemp(prefix="lightrag-jsonl-demo-"))
    lines = [INTRODUCTION]
    value: list[dict[str, object]] = []
    for language, numbers in QUESTION_NUMBERS.items():
        with LightRAG(folder / language, language=language) as rag:
            rag.insert(sample_documents(language))
            questions = [sample_questions(language)[number] for number in numbers]
            answers = {question: rag.query(question, mode="local") for question in questions}
            lines += _summary(rag, language, answers)
            value.append({"language": language, "status": rag.status(), "answers": answers})
    next_steps = NEXT_STEPS.format(
        command=command_line(),
        english=shlex.quote(str(folder / "en")),
        chinese=shlex.quote(str(folder / "zh")),
    )
    return CommandOutput(value, "\n".join([*lines, next_steps]))


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
    return f".{os.sep}{path.relative_to(folder)}" if path.is_relative_to(folder) else str(path)


def _summary(rag: LightRAG, language: Language, answers: Mapping[str, Answer]) -> Iterator[str]:
    """The size of an index, its strongest entities and relations, and the answers, in its language."""
    words = SUMMARY_WORDS[language]
    status = rag.status()
    graph = rag.graph
    degrees = sorted(graph.degree, key=lambda pair: (-pair[1], pair[0]))[:SHOWN_ENTITIES]
    edges = sorted(graph.edges(data=True), key=lambda edge: (-edge[2]["weight"], edge[:2]))
    most_connected = words["comma"].join(f"{name} ({degree})" for name, degree in degrees)
    yield f"\n── {DEMO_TITLES[language]} {'─' * (SCREEN_COLUMNS - 10)}"
    yield "\n" + words["size"].format(status.chunks, status.entities, status.relations)
    yield words["connected"] + most_connected
    yield words["relations"]
    for _, _, data in edges[:SHOWN_RELATIONS]:
        keywords = words["comma"].join(data["keywords"].split("; ")[:3]) or "—"
        yield "  " + one_line(f"{data['source']} — {keywords} — {data['target']}", SCREEN_COLUMNS)
    for question, answer in answers.items():
        yield f"\n{words['question']}{question}"
        yield from (f"   {line}".rstrip() for line in str(answer).split("\n"))
