"""`demo`: index the samples with their records and ask questions, in English and Chinese, without any model."""

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
from lightrag_jsonl.cli.output import one_line, width, wrapped
from lightrag_jsonl.cli.samples import sample_documents, sample_questions, sample_records
from lightrag_jsonl.core.languages import Language

SCREEN_COLUMNS: Final = 92
PROGRAM: Final = "lightrag-jsonl"
INTRODUCTION: Final = """\
Two small collections. Their graph is what a good model reads from them: the records come with the
demo, written by an AI assistant and checked by reading. No model is called now, so the answers are
put together from sentences; [n] leads to the source of each. Below them, the same question is
answered from names and neighbours alone, as you get them without a model."""
NEXT_STEPS: Final = f"""
{"─" * SCREEN_COLUMNS}
Next, query these indexes, or index your own files:
  {{command}} query -w {{english}} "Who discovered the electron?"
  {{command}} query -w {{chinese}} "班超是谁？"
  {{command}} insert -w kb FILES"""
QUESTION_NUMBERS: Final[dict[Language, tuple[int, ...]]] = {"en": (0, 3), "zh": (4, 5)}
DEMO_TITLES: Final = {"en": "English", "zh": "中文"}
SUMMARY_WORDS: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "size": "{} articles: {} entities, {} relations",
        "connected": "Most connected: ",
        "relations": "Strongest relations:",
        "comma": ", ",
        "question": "Q: ",
        "rules": "Without a model ({} names, {} pairs mentioned together):",
    },
    "zh": {
        "size": "{} 篇文章：{} 个实体，{} 条关系",
        "connected": "关系最多的实体：",
        "relations": "权重最高的关系：",
        "comma": "、",
        "question": "问：",
        "rules": "不用模型（{} 个名称，{} 对共同出现）：",
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
        questions = [sample_questions(language)[number] for number in numbers]
        with LightRAG(folder / language, language=language) as rag:
            records = sample_records(language)
            for document in sample_documents(language):
                rag.insert_records(document, records[document.id or ""])
            answers = {question: rag.query(question, mode="local") for question in questions}
            lines += _summary(rag, language, answers)
            value.append({"language": language, "status": rag.status(), "answers": answers})
        lines += _by_rules(folder / f"{language}-rules", language, questions[0])
    next_steps = NEXT_STEPS.format(
        command=command_line(),
        english=shlex.quote(str(folder / "en")),
        chinese=shlex.quote(str(folder / "zh")),
    )
    return CommandOutput(value, "\n".join([*lines, next_steps]))


def _by_rules(folder: Path, language: Language, question: str) -> Iterator[str]:
    """The answer to a question from an index that was made without a model."""
    words = SUMMARY_WORDS[language]
    with LightRAG(folder, language=language, llm="none") as rag:
        rag.insert(sample_documents(language), progress=False)
        status = rag.status()
        yield "\n" + words["rules"].format(status.entities, status.relations)
        yield f"{words['question']}{question}"
        yield from _indented(rag.query(question))


def _indented(answer: Answer) -> Iterator[str]:
    """The lines of an answer and its sources, as wide as the terminal."""
    for line in str(answer).split("\n"):
        yield wrapped(f"   {line}".rstrip(), indent="   ")


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
        source = f"  {data['source']} — "
        target = f" — {data['target']}"
        columns_left = SCREEN_COLUMNS - width(source + target)
        yield source + one_line(keywords, max(columns_left, 1)) + target
    for question, answer in answers.items():
        yield f"\n{words['question']}{question}"
        yield from _indented(answer)
