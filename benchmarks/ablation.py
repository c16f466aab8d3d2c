"""What each number of the ranking is worth: python -m benchmarks.ablation --data musique-a --keep DIR

Switches each number off (where 0 makes sense), halves and doubles it, and asks all questions again.
Prints one JSON object on stdout, and a table on stderr: the differences of recall@2, @5 and @10 to the
package as it is, paired by question, with 95 % bootstrap intervals, and of the mean tokens of a
default context. relations@5 is the recall of supporting passages by the first five relations, each
of which stands for the passages that state it. `needed` lists the numbers whose change moves a recall by more than chance on a set.
`--keep` names a folder where indexes are kept, so that a second run is quick.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

from benchmarks.corpora import BUDGET, DATA, DEFAULT_EMBEDDER, make_embedder, opened
from benchmarks.datasets import Dataset, load
from benchmarks.tables import line
from lightrag_jsonl import AsyncLightRAG, Context, LightRAG, QueryParam
from lightrag_jsonl.core.modes import GRAPH_MODES
from lightrag_jsonl.retrieval import full_text, hits, pagerank, ranking, reranking
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.tools.evaluation import (
    SCORED_CHUNKS,
    UNLIMITED,
    EvalQuestion,
    Interval,
    interval,
    score,
)

RECALL = ("recall@2", "recall@5", "recall@10")
METRICS = (*RECALL, "relations@5")
FIRST_RELATIONS = 5
ALL_DATA = (*DATA, "2wiki-101-a", "zh-cmrc2018", "dragonball-en-multi-a", "dragonball-zh-multi-a")


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the ranking: its module and name, the value that switches it off, and its highest
    value that makes sense, if any.
    """

    module: ModuleType
    name: str
    off: float | None = None
    highest: float | None = None

    @property
    def shipped(self) -> Any:
        """The value in the package."""
        return getattr(self.module, self.name)

    def values(self) -> dict[str, Any]:
        """The values to try, by the name of the change."""
        values: dict[str, Any] = {}
        if self.off is not None:
            values["off"] = self.off
        values["half"] = _scaled(self.shipped, 0.5)
        values["double"] = _scaled(self.shipped, 2)
        if self.highest is not None:
            values["double"] = min(values["double"], self.highest)
        return {change: value for change, value in values.items() if value != self.shipped}


MODULES = (ranking, pagerank, hits, full_text, reranking)
NOT_MEASURED = {
    *("SPARE_CHUNKS", "TIES", "EQUAL"),  # bounds by reason
    "EDGES_TO_CHOOSE_FROM",  # only where a model selects relations
}
# The value that switches a number off; others are only halved and doubled.
OFF: Mapping[str, float] = {
    "SURE_NAME_COSINE": 2.0,
    "QUESTION_WEIGHT": 0.0,
    "OFTEN_MENTIONED": 0.0,
    "START_RELATION_COSINE": 2.0,
    "SHARPNESS": 0,
    "LEAST_RELEVANCE": 0.0,
    "NEAR_WEIGHT": 0.0,
    "LEXICAL_WEIGHT": 0.0,
    "LEXICAL_WEIGHT_OF_WORDS": 0.0,
    "FREQUENT_NAME": 10**9,
    "MANY_WORDS": 10**9,
    "TEXT_WEIGHT_OF_WORDS": 0.0,
    "NEAREST_RELATIONS": 0,
    "NEAREST_SHARE": -1.0,
    "FREQUENT": 0,
    "SYNONYM_COSINE": 2.0,
    "SYNONYMS": 0,
    "DAMPING": 1e-9,
    "RANK_OFFSET": 0,
    "POSTINGS": 0,
    "BEGINNING_POSTINGS": 0,
    "WRITTEN_OTHERWISE": 0.0,
    "COMMON": 1.0,
    "COMMON_FUNCTION_WORD": 1.0,
}
HIGHEST: Mapping[str, float] = {"DAMPING": 0.95}


def numbers_of(modules: Sequence[ModuleType]) -> list[Number]:
    """The public numbers of the ranking, each in the first of the modules that has it."""
    numbers: dict[str, Number] = {}
    for module in modules:
        for name, value in vars(module).items():
            is_public = name.isupper() and not name.startswith("_")
            if is_public and name not in NOT_MEASURED and _is_numeric(value):
                numbers.setdefault(name, Number(module, name, OFF.get(name), HIGHEST.get(name)))
    return [*numbers.values()]


def _is_numeric(value: object) -> bool:
    """Whether a value is a number, or a tuple of numbers."""
    if isinstance(value, tuple):
        return all(_is_numeric(part) for part in value)
    return isinstance(value, int | float)


NUMBERS = numbers_of(MODULES)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured for each question: values by metric, and the tokens of a default context."""

    recall: Mapping[str, Sequence[float]]
    tokens: Sequence[int]


def main() -> None:
    """Measure every change of every number on each question set, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=ALL_DATA, metavar="DIR")
    parser.add_argument("--embedder", choices=("minilm", "hash"), help="default by language")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the indexes there")
    parser.add_argument("--questions", type=int, metavar="N", help="only the first N of each set")
    parser.add_argument("--mode", default="mix", choices=GRAPH_MODES)
    parser.add_argument("--numbers", nargs="+", metavar="NAME", help="only these numbers")
    parser.add_argument("--no-tokens", action="store_true", help="without the tokens of contexts")
    arguments = parser.parse_args()
    numbers = [
        number
        for number in NUMBERS
        if arguments.numbers is None or number.name in arguments.numbers
    ]
    with tempfile.TemporaryDirectory() as scratch:
        root = arguments.keep or Path(scratch)
        sets = {
            Path(name).name: _measured(load(name), root, numbers, arguments)
            for name in arguments.data
        }
    result = {
        "benchmark": "ablation",
        "mode": arguments.mode,
        "needed": _needed(sets),
        "numbers": [number.name for number in numbers],
        "sets": sets,
    }
    print(json.dumps(result, indent=2, ensure_ascii=False))


def _measured(
    dataset: Dataset, root: Path, numbers: Sequence[Number], arguments: argparse.Namespace
) -> dict[str, Any]:
    """The figures of one question set."""
    embedder = arguments.embedder or DEFAULT_EMBEDDER[dataset.language]
    questions = [
        EvalQuestion(question.text, question.supporting, question.answer, question.names)
        for question in dataset.questions[: arguments.questions]
    ]
    mode = arguments.mode
    with_tokens = not arguments.no_tokens
    changes: dict[str, dict[str, Any]] = {}
    with opened(dataset, make_embedder(embedder), root / f"{dataset.name}-{embedder}") as rag:
        shipped = _measure(rag, questions, mode, with_tokens=with_tokens)
        print(f"{dataset.name}, {len(questions)} questions, {embedder}", file=sys.stderr)
        print(line(["number", "value", *METRICS, "tokens"]), file=sys.stderr)
        for number in numbers:
            for change, value in number.values().items():
                with changed(number, value):
                    measurement = _measure(rag, questions, mode, with_tokens=with_tokens)
                figures = _difference(shipped, measurement)
                changes.setdefault(number.name, {})[change] = {"value": value, **figures}
                print(_table_line(f"{number.name}, {change}", value, figures), file=sys.stderr)
    return {
        "questions": len(questions),
        "embedder": embedder,
        "shipped": {
            "percent": {metric: _percent(mean(shipped.recall[metric])) for metric in METRICS},
            "tokens": round(mean(shipped.tokens)),
        },
        "changes": changes,
    }


@contextlib.contextmanager
def changed(number: Number, value: Any) -> Iterator[None]:
    """The package with another value of a number, until the block ends."""
    shipped = number.shipped
    setattr(number.module, number.name, value)
    try:
        yield
    finally:
        setattr(number.module, number.name, shipped)


def _measure(
    rag: LightRAG, questions: Sequence[EvalQuestion], mode: Any, *, with_tokens: bool
) -> Measurement:
    """The recall of each question, and the tokens of its context."""
    recall: dict[str, list[float]] = {metric: [] for metric in METRICS}
    tokens: list[int] = []
    documents_by_chunk = rag.run(_documents_by_chunk)
    for question in questions:
        param = QueryParam(
            mode=mode,
            ll_keywords=question.names,
            chunk_top_k=SCORED_CHUNKS,
            max_total_tokens=UNLIMITED,
        )
        found_context = rag.retrieve(question.text, param)
        scores = score(question, found_context.chunks, BUDGET)
        for metric in RECALL:
            recall[metric].append(scores[metric])
        recall["relations@5"].append(_relation_recall(found_context, question, documents_by_chunk))
        context_tokens = 0
        if with_tokens:
            context = rag.retrieve(question.text, mode=mode, ll_keywords=question.names)
            context_tokens = context.tokens
        tokens.append(context_tokens)
    return Measurement(recall, tokens)


def _relation_recall(
    context: Context, question: EvalQuestion, documents_by_chunk: Mapping[str, str]
) -> float:
    """The share of the supporting passages that state one of the first relations."""
    documents = {
        documents_by_chunk[chunk_id]
        for relation in context.relations[:FIRST_RELATIONS]
        for chunk_id in relation.chunk_ids
    }
    return mean([id in documents for id in question.supporting])


async def _documents_by_chunk(rag: AsyncLightRAG) -> dict[str, str]:
    """The document of each chunk, by id."""
    reports = await read(rag.engine.store, lambda view: view.chunk_reports())
    return {report.chunk_id: report.document_id for report in reports}


def _difference(shipped: Measurement, measurement: Measurement) -> dict[str, Any]:
    """The differences to the package, paired by question: mean, low and high, in percent points."""
    recall: dict[str, list[float]] = {}
    for metric in METRICS:
        pairs = zip(measurement.recall[metric], shipped.recall[metric], strict=True)
        recall[metric] = _rounded(interval([value - base for value, base in pairs]))
    tokens = round(mean(measurement.tokens) - mean(shipped.tokens))
    return {"recall": recall, "tokens": tokens}


def _needed(sets: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The sets on which some change of a number moves a recall by more than chance, by number."""
    needed: dict[str, list[str]] = {}
    for name, figures in sets.items():
        for number, changes in figures["changes"].items():
            intervals = [
                bounds for change in changes.values() for bounds in change["recall"].values()
            ]
            is_needed = any(low > 0 or high < 0 for _, low, high in intervals)
            needed.setdefault(number, [])
            if is_needed:
                needed[number].append(name)
    return needed


def _table_line(label: str, value: Any, figures: Mapping[str, Any]) -> str:
    recall = [
        f"{mean_change:+.1f} ({low:+.1f} to {high:+.1f})"
        for mean_change, low, high in figures["recall"].values()
    ]
    return line([label, str(value), *recall, f"{figures['tokens']:+,}"])


def _scaled(value: Any, factor: float) -> Any:
    """A number, or each number of a tuple, times the factor; whole numbers stay whole."""
    if isinstance(value, tuple):
        return tuple(_scaled(part, factor) for part in value)
    return max(round(value * factor), 1) if isinstance(value, int) else value * factor


def _rounded(values: Interval) -> list[float]:
    return [_percent(values.value), _percent(values.low), _percent(values.high)]


def _percent(share: float) -> float:
    return round(100 * share, 1)


if __name__ == "__main__":
    main()
