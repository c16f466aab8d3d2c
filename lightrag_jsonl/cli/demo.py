"""`demo`: index the samples and ask questions, in English and Chinese, without any model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.output import Reply, counted, one_line, replying
from lightrag_jsonl.cli.samples import SampleQuestion, sample_documents, sample_questions
from lightrag_jsonl.core.types import Answer, Language

if TYPE_CHECKING:
    from lightrag_jsonl.rag import LightRAG

INTRODUCTION = """\
Two small collections, indexed and queried without a model: language rules read the texts, and
answers are put together from their sentences; [n] leads to the source of each."""
QUESTIONS: dict[Language, tuple[int, ...]] = {"en": (0, 3), "zh": (3, 5)}
SHOWN_ENTITIES, SHOWN_RELATIONS = 6, 4
COLUMNS = 92


@click.command()
@click.option(
    "-w",
    "--working-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to put the two indexes (default: a new folder).",
)
@replying
def demo(working_dir: Path | None) -> Reply:
    """Index two small collections and ask them questions.

    One is English, one Chinese. Needs no key and no network: no model is asked. Takes a few
    seconds.
    """
    from lightrag_jsonl.rag import LightRAG

    folder = working_dir or Path(tempfile.mkdtemp(prefix="lightrag-jsonl-demo-"))
    lines, plain = [INTRODUCTION], []
    for language, numbers in QUESTIONS.items():
        with LightRAG(folder / language, language=language) as rag:
            rag.insert(sample_documents(language))
            samples = [sample_questions(language)[number] for number in numbers]
            answers = [rag.query(sample.question, mode="local") for sample in samples]
            lines += _lines(rag, samples, answers)
            plain.append({"language": language, "status": rag.status(), "answers": answers})
    lines += [
        "",
        "Go on with these indexes, or with texts of your own:",
        f'  lightrag-jsonl query -w {folder / "en"} "Who was Niels Bohr?"',
        f'  lightrag-jsonl query -w {folder / "zh"} "张骞去了哪里？"',
        "  lightrag-jsonl insert -w kb FILES",
    ]
    return Reply(plain, "\n".join(lines))


def _lines(rag: LightRAG, samples: list[SampleQuestion], answers: list[Answer]) -> Iterator[str]:
    status, graph = rag.status(), rag.graph
    degrees = sorted(graph.degree, key=lambda pair: (-pair[1], pair[0]))[:SHOWN_ENTITIES]
    edges = sorted(graph.edges(data=True), key=lambda edge: (-edge[2]["weight"], edge[:2]))
    yield f"\n── {status.language} " + "─" * (COLUMNS - 6)
    yield (
        f"\n{counted(sum(status.documents.values()), 'article')}: "
        f"{counted(status.entities, 'entity', 'entities')}, {counted(status.relations, 'relation')}"
    )
    yield "Most connected: " + ", ".join(f"{name} ({degree})" for name, degree in degrees)
    yield "Strongest relations:"
    for _, _, data in edges[:SHOWN_RELATIONS]:
        keywords = ", ".join(data["keywords"][:3]) or "—"
        yield "  " + one_line(f"{data['source']} — {keywords} — {data['target']}", COLUMNS)
    for sample, answer in zip(samples, answers, strict=True):
        yield f"\nQ: {sample.question}"
        yield from (f"   {line}".rstrip() for line in str(answer).split("\n"))
