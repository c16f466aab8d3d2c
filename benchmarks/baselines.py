"""Recall of a mode beside simpler searches, on every question set: python -m benchmarks.baselines --keep DIR

A mode must not be below the best of `naive`, `dense` (vectors alone) and `bm25` (words alone) beyond noise.
`bm25` shares no code with the package: Okapi BM25 over words, in Chinese the words of a segmenter. Each
passage is one chunk. No model has read the passages; a set with the records of one is measured with them, too.
Every set is in two halves, by a hash of each question's id: what is tuned is tuned on half `a`, and half
`b` is only reported. `--half` takes one of them.

Prints one JSON object on stdout, and tables on stderr: of each set recall@2, @5 and @10 with 95 % bootstrap intervals,
and for each mode the difference to the best baseline, paired by question, BELOW where the whole interval is
below 0; at the end these differences once more, each half in a table of its own.
"""

import argparse
import hashlib
import json
import math
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.corpora import make_embedder, opened
from benchmarks.datasets import Dataset, Question, load
from benchmarks.tables import line
from lightrag_jsonl import LightRAG, QueryParam
from lightrag_jsonl.core.modes import GRAPH_MODES
from lightrag_jsonl.tools.evaluation import UNLIMITED, interval

if TYPE_CHECKING:
    from rjieba import Jieba

ALL_DATA = (
    "musique-a",
    "hotpotqa-train",
    "2wiki-101-a",
    "dragonball-en-multi-a",
    "dragonball-zh-multi-a",
    "zh-cmrc2018",
    "multihoprag-a",
    "popqa-a",
    "rgb-zh-a",
)
ENGLISH_EMBEDDERS = ("minilm", "wordllama")
DEPTHS = (2, 5, 10)  # passages
BASELINES = ("naive", "dense", "bm25")

# Of Okapi BM25 as Lucene has them.
TERM_SATURATION = 1.2
LENGTH_WEIGHT = 0.75

Recall: TypeAlias = Mapping[int, Sequence[float]]  # of each question, by depth
Figures: TypeAlias = dict[str, Any]


class BM25:
    """Okapi BM25 over the words of passages."""

    def __init__(self, dataset: Dataset) -> None:
        self._ids = [passage.id for passage in dataset.passages]
        word_lists = [words(passage.content) for passage in dataset.passages]
        average_length = mean([float(len(word_list)) for word_list in word_lists])
        self._weights_by_word: dict[str, dict[int, float]] = defaultdict(dict)
        for position, word_list in enumerate(word_lists):
            length = 1 + LENGTH_WEIGHT * (len(word_list) / average_length - 1)
            for word, count in Counter(word_list).items():
                saturated = count * (TERM_SATURATION + 1) / (count + TERM_SATURATION * length)
                self._weights_by_word[word][position] = saturated

    def search(self, question: str) -> list[str]:
        """The ids of the passages with a word of the question, best first."""
        scores: dict[int, float] = defaultdict(float)
        for word in dict.fromkeys(words(question)):
            weights = self._weights_by_word.get(word, {})
            absent = len(self._ids) - len(weights)
            rarity = math.log(1 + (absent + 0.5) / (len(weights) + 0.5))
            for position, weight in weights.items():
                scores[position] += rarity * weight
        ranked = sorted(scores, key=lambda position: (-scores[position], position))
        return [self._ids[position] for position in ranked[: max(DEPTHS)]]


def words(text: str) -> list[str]:
    """The words of a text in small letters; Chinese words as a segmenter cuts them."""
    pieces = [text] if text.isascii() else _segmenter().cut(text)
    return [word for piece in pieces for word in re.findall(r"\w+", piece.casefold())]


@cache
def _segmenter() -> "Jieba":
    from rjieba import Jieba

    return Jieba()


def main() -> None:
    """Measure each question set, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=ALL_DATA, metavar="DIR")
    parser.add_argument("--embedders", nargs="+", default=("hash", "minilm"))
    parser.add_argument("--modes", nargs="+", default=GRAPH_MODES, choices=GRAPH_MODES)
    parser.add_argument("--half", choices=("a", "b"))
    parser.add_argument("--questions", type=int, metavar="N", help="only the first N of each half")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the indexes there")
    arguments = parser.parse_args()
    sets: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = arguments.keep or Path(scratch)
        for name in arguments.data:
            dataset = load(name)
            readings = {dataset.name: dataset.without_records()}
            if dataset.has_records:
                readings[f"{dataset.name}-records"] = dataset
            for embedder in arguments.embedders:
                if dataset.language != "en" and embedder in ENGLISH_EMBEDDERS:
                    continue
                for title, reading in readings.items():
                    folder = root / f"{title}-{embedder}"
                    halves = _measured(reading, embedder, folder, arguments)
                    sets[f"{title}, {embedder}"] = halves
                    for half, figures in halves.items():
                        heading = f"{title}, {embedder}, half {half}"
                        print(f"\n{heading}\n{_table(figures)}", file=sys.stderr, flush=True)
    for half in "ab":
        print(f"\nhalf {half}\n{_differences_table(sets, half)}", file=sys.stderr)
    result = {"benchmark": "baselines", "cores": os.cpu_count(), "sets": sets}
    print(json.dumps(result, indent=2))


def _measured(
    dataset: Dataset, embedder: str, folder: Path, arguments: argparse.Namespace
) -> Figures:
    """The figures of one question set with one embedder, by half."""
    bm25 = BM25(dataset)
    halves: Figures = {}
    with opened(dataset, make_embedder(embedder), folder) as rag:
        for half in [arguments.half] if arguments.half else ("a", "b"):
            questions = [question for question in dataset.questions if half_of(question) == half]
            questions = questions[: arguments.questions]
            if not questions:
                continue
            found: dict[str, list[list[str]]] = {
                "naive": [_found(rag, question, "naive") for question in questions],
                "dense": [_found(rag, question, "naive", lexical=False) for question in questions],
                "bm25": [bm25.search(question.text) for question in questions],
            }
            for mode in arguments.modes:
                found[mode] = [_found(rag, question, mode) for question in questions]
            recall_by_name = {name: _recall(questions, ids) for name, ids in found.items()}
            halves[half] = {"questions": len(questions), **_figures(recall_by_name)}
    return halves


def half_of(question: Question) -> str:
    """The half that a question belongs to."""
    return "ab"[hashlib.sha256(question.id.encode()).digest()[0] % 2]


def _found(rag: LightRAG, question: Question, mode: Any, *, lexical: bool = True) -> list[str]:
    """The ids of the best passages."""
    param = QueryParam(
        mode=mode,
        lexical=lexical,
        ll_keywords=question.names,
        chunk_top_k=max(DEPTHS),
        max_total_tokens=UNLIMITED,
    )
    return [chunk.document_id for chunk in rag.retrieve(question.text, param).chunks]


def _recall(questions: Sequence[Question], found: Sequence[Sequence[str]]) -> Recall:
    """The share of each question's supporting passages, or groups of them, among the first ones."""
    recall: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    for question, ids in zip(questions, found, strict=True):
        groups = question.groups or [(id,) for id in question.supporting]
        for depth in DEPTHS:
            first_ids = set(ids[:depth])
            recall[depth].append(mean([not first_ids.isdisjoint(group) for group in groups]))
    return recall


def _figures(recall_by_name: Mapping[str, Recall]) -> Figures:
    """Recall in percent by name and depth, and the modes' differences to the best baseline."""
    percent = {
        name: {f"@{depth}": _percents(values) for depth, values in recall.items()}
        for name, recall in recall_by_name.items()
    }
    differences: Figures = {}
    for name, recall in recall_by_name.items():
        if name in BASELINES:
            continue
        differences[name] = {}
        for depth, values in recall.items():
            best = max(BASELINES, key=lambda baseline: mean(recall_by_name[baseline][depth]))
            pairs = zip(values, recall_by_name[best][depth], strict=True)
            bounds = _percents([value - baseline_value for value, baseline_value in pairs])
            differences[name][f"@{depth}"] = {
                "best": best,
                "difference": bounds,
                "below": bounds[2] < 0,
            }
    return {"percent": percent, "differences": differences}


def _percents(values: Sequence[float]) -> list[float]:
    bounds = interval(values)
    return [round(100 * value, 1) for value in (bounds.value, bounds.low, bounds.high)]


def _table(figures: Figures) -> str:
    """The figures of a half as a table."""
    heading = f"{figures['questions']} questions"
    lines = [[heading, *(f"@{depth}" for depth in DEPTHS)], ["---"] * (1 + len(DEPTHS))]
    for name, percent in figures["percent"].items():
        lines.append([name, *(f"{value} [{low}, {high}]" for value, low, high in percent.values())])
    for name, differences in figures["differences"].items():
        lines.append([f"{name} − best", *_cells(differences)])
    return "\n".join(map(line, lines))


def _differences_table(sets: Mapping[str, Figures], half: str) -> str:
    """The differences of each mode to the best baseline of every set, of one half."""
    lines = [["set", "mode", *(f"@{depth}" for depth in DEPTHS)], ["---"] * (2 + len(DEPTHS))]
    for title, halves in sets.items():
        for mode, differences in halves.get(half, {}).get("differences", {}).items():
            lines.append([title, mode, *_cells(differences)])
    return "\n".join(map(line, lines))


def _cells(differences: Mapping[str, Figures]) -> list[str]:
    """The differences of a mode at each depth in words."""
    cells: list[str] = []
    for difference in differences.values():
        value, low, high = difference["difference"]
        mark = " BELOW" if difference["below"] else ""
        cells.append(f"{value:+} [{low:+}, {high:+}] to {difference['best']}{mark}")
    return cells


if __name__ == "__main__":
    main()
