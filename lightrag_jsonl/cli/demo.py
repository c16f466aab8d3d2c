"""`demo`: index the samples and ask questions, in English and Chinese, without any model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lightrag_jsonl.cli.options import FOLDER, as_json
from lightrag_jsonl.cli.output import counted, emit_json, one_line, say, width
from lightrag_jsonl.cli.progress import progress_bar

if TYPE_CHECKING:
    from lightrag_jsonl.sync import LightRAG
    from lightrag_jsonl.types import Answer, Language, Mode

INTRODUCTION = """\
Two small collections, indexed and asked. No model is used: language rules read the texts, and
answers are put together from their sentences; [n] leads to the place each one was taken from."""
LANGUAGES: tuple[tuple[Language, str], ...] = (("en", "English"), ("zh", "中文"))
MODES: tuple[Mode, ...] = ("local", "naive")
QUESTIONS: Mapping[Language, tuple[int, ...]] = {"en": (0, 3), "zh": (3, 5)}
BEST_CONNECTED = 6
RELATIONS = 4
LINE_COLUMNS = 92


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its mode and the answer; `expected` is the right answer by the collection."""

    question: str
    expected: str
    mode: Mode
    answer: Answer


@dataclass(frozen=True, slots=True)
class Tour:
    """One index of the demonstration, and the questions it was asked."""

    language: Language
    working_dir: Path
    documents: int
    chunks: int
    entities: int
    relations: int
    best_connected: tuple[str, ...]
    strongest: tuple[str, ...]
    asked: tuple[Asked, ...] = ()


@click.command()
@click.option(
    "-w", "--working-dir", type=FOLDER, help="Where to put the two indexes (default: a new folder)."
)
@as_json
def demo(working_dir: Path | None, as_json: bool) -> None:
    """Index two small collections and ask them questions.

    One is English, one Chinese. Needs no key and no network: no model is asked. Takes a few
    seconds.
    """
    import tempfile

    folder = working_dir or Path(tempfile.mkdtemp(prefix="lightrag-jsonl-demo-"))
    started = time.monotonic()
    if not as_json:
        say(INTRODUCTION)
    tours = [_tour(folder, code, name, quiet=as_json) for code, name in LANGUAGES]
    if as_json:
        emit_json(tours)
    else:
        _show_end(tours, time.monotonic() - started)


def _tour(folder: Path, code: Language, name: str, *, quiet: bool) -> Tour:
    from lightrag_jsonl.samples import sample_documents
    from lightrag_jsonl.sync import LightRAG

    with LightRAG(folder / code, language=code) as rag:
        with progress_bar() as watcher:
            rag.insert(sample_documents(code), watcher=watcher)
        tour = _look(rag, code)
        if not quiet:
            _show_graph(tour, name)
        asked = []
        for one in _ask(rag, code):
            asked.append(one)
            if not quiet:
                _show_answer(one)
    return replace(tour, asked=tuple(asked))


def _look(rag: LightRAG, code: Language) -> Tour:
    status, graph = rag.status(), rag.graph
    degrees = sorted(graph.degree, key=lambda pair: (-pair[1], pair[0]))
    edges = sorted(graph.edges(data=True), key=lambda e: (-e[2]["weight"], e[0], e[1]))
    return Tour(
        language=code,
        working_dir=rag.working_dir,
        documents=sum(status.documents.values()),
        chunks=status.chunks,
        entities=status.entities,
        relations=status.relations,
        best_connected=tuple(f"{name} ({degree})" for name, degree in degrees[:BEST_CONNECTED]),
        strongest=tuple(_relation_line(data) for _, _, data in edges[:RELATIONS]),
    )


def _ask(rag: LightRAG, code: Language) -> Iterator[Asked]:
    from lightrag_jsonl.samples import sample_questions

    questions = sample_questions(code)
    for number in QUESTIONS[code]:
        sample = questions[number]
        for mode in MODES:
            answer = rag.query(sample.question, mode=mode)
            yield Asked(sample.question, sample.answer, mode, answer)


def _relation_line(data: Mapping[str, Any]) -> str:
    keywords = ", ".join(data["keywords"][:3]) or "—"
    return f"{data['source']} — {keywords} — {data['target']} (weight {data['weight']:.1f})"


# ── for people ──────────────────────────────────────────────────────────────────


def _show_graph(tour: Tour, name: str) -> None:
    say(f"\n── {name} " + "─" * (LINE_COLUMNS - width(name) - 4))
    say(
        f"\n{counted(tour.documents, 'article')} gave {counted(tour.entities, 'entity', 'entities')} "
        f"and {counted(tour.relations, 'relation')}."
    )
    say(f"Best connected: {', '.join(tour.best_connected)}")
    say("Strongest relations:")
    for line in tour.strongest:
        say(f"  {one_line(line, LINE_COLUMNS)}")


def _show_answer(asked: Asked) -> None:
    if asked.mode == MODES[0]:
        say(f"\nQ: {asked.question}\n   (the articles say: {asked.expected})")
    say(f"\nA, mode {asked.mode}:")
    for line in str(asked.answer).split("\n"):
        say(f"   {line}".rstrip())


def _show_end(tours: list[Tour], seconds: float) -> None:
    say("\n" + "─" * LINE_COLUMNS)
    say(f"\nDone in {seconds:.0f} s. The indexes are kept in")
    for tour in tours:
        say(f"  {tour.working_dir}")
    say("\nGo on with them, or with texts of your own:")
    say(f'  lightrag-jsonl query -w {tours[0].working_dir} "Who was Niels Bohr?"')
    say("  lightrag-jsonl insert -w kb FILES")
