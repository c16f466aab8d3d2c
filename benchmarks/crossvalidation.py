"""Cross-validates the constants of the walk: python -m benchmarks.crossvalidation --keep DIR

The questions of each set are dealt to folds. For each fold, the setting that is best on all other
questions, of every set, is measured on the questions of the fold. So `chosen` is a figure of
questions that had no part in the choice; `shipped` is the package as it is, `no words` the package
without its lexical lane, and `reference` the walk of HippoRAG 2 from the questions' names. Settings
are compared by the average of recall@2, @5 and @10. Prints one JSON object.
"""

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import BUDGET, DATA, DEFAULT_EMBEDDER, make_embedder, opened
from benchmarks.datasets import Dataset, load
from lightrag_jsonl import LightRAG, QueryParam
from lightrag_jsonl.retrieval import pagerank
from lightrag_jsonl.tools.evaluation import (
    SCORED_CHUNKS,
    UNLIMITED,
    EvalQuestion,
    interval,
    score,
)

METRICS = ("recall@2", "recall@5", "recall@10")
GRID: Mapping[str, Sequence[float]] = {
    "LEXICAL_WEIGHT": (0.0, 0.5, 0.75, 1.0),
    "NEAR_WEIGHT": (0.1, 0.2, 0.4),
    "DAMPING": (0.6, 0.7, 0.8),
}
MODULES = {"LEXICAL_WEIGHT": pagerank, "NEAR_WEIGHT": pagerank, "DAMPING": pagerank}
Setting = tuple[Any, ...]  # a value for each name in GRID
Scores = list[tuple[float, ...]]  # of each question, by METRICS


def main() -> None:
    """Measure every setting on every question, choose by folds, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=(*DATA, "zh-cmrc2018"), metavar="DIR")
    parser.add_argument("--embedder", choices=("minilm", "hash"), help="default by language")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the indexes there")
    parser.add_argument("--questions", type=int, metavar="N", help="only the first N of each set")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--mode", default="mix", choices=("mix",))
    given = parser.parse_args()
    measured, baselines = {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.data:
            dataset = load(name)
            found = _measured(dataset, given.keep or Path(scratch), given)
            measured[dataset.name], baselines[dataset.name] = found
    held, chosen = _cross_validated(measured, given.folds)
    sets = {
        name: {
            row: _figures(scores) for row, scores in {**baselines[name], "chosen": found}.items()
        }
        for name, found in held.items()
    }
    settings = [{**dict(zip(GRID, one, strict=True)), "folds": n} for one, n in chosen.items()]
    result = {"folds": given.folds, "mode": given.mode, "settings": settings, "sets": sets}
    print(json.dumps({"benchmark": "crossvalidation", **result}, indent=2, default=str))


def _measured(
    dataset: Dataset, root: Path, given: argparse.Namespace
) -> tuple[dict[Setting, Scores], dict[str, Scores]]:
    """The scores of each setting, and those of what it is compared with."""
    embedder = given.embedder or DEFAULT_EMBEDDER[dataset.language]
    questions = [
        EvalQuestion(one.text, one.supporting, one.answer, one.names)
        for one in dataset.questions[: given.questions]
    ]
    settings: dict[Setting, Scores] = {}
    with opened(dataset, make_embedder(embedder), root / f"{dataset.name}-{embedder}") as rag:
        baselines = {
            "shipped": _scores(rag, questions, given.mode),
            "no words": _scores(rag, questions, given.mode, lexical=False),
        }
        for values in map(tuple, itertools.product(*GRID.values())):
            with _set(values):
                settings[_key(values)] = _scores(rag, questions, given.mode)
            print(dataset.name, values, file=sys.stderr)
    return settings, baselines


@contextlib.contextmanager
def _set(values: Setting) -> Iterator[None]:
    """The package with these values, until the block ends."""
    shipped = {name: getattr(MODULES[name], name) for name in GRID}
    for name, value in zip(GRID, values, strict=True):
        setattr(MODULES[name], name, value)
    try:
        yield
    finally:
        for name, value in shipped.items():
            setattr(MODULES[name], name, value)


def _key(values: Setting) -> Setting:
    return tuple(str(value) for value in values)


def _scores(
    rag: LightRAG, questions: Sequence[EvalQuestion], mode: Any, *, lexical: bool = True
) -> Scores:
    found = []
    for question in questions:
        param = QueryParam(
            mode=mode,
            lexical=lexical,
            ll_keywords=question.names,
            chunk_top_k=SCORED_CHUNKS,
            max_total_tokens=UNLIMITED,
        )
        values = score(question, rag.retrieve(question.text, param).chunks, BUDGET)
        found.append(tuple(values[metric] for metric in METRICS))
    return found


def _cross_validated(
    measured: Mapping[str, Mapping[Setting, Scores]], folds: int
) -> tuple[dict[str, Scores], Counter[Setting]]:
    """For each set the scores of held-out questions; and how often each setting was chosen."""
    held: dict[str, Scores] = {name: [] for name in measured}
    chosen: Counter[Setting] = Counter()
    for fold in range(folds):

        def rest(setting: Setting, fold: int = fold) -> float:
            """The average over the sets, of the questions that are not in the fold."""
            means = [
                np.mean([row for n, row in enumerate(scores[setting]) if n % folds != fold])
                for scores in measured.values()
            ]
            return float(np.mean(means))

        best = max(next(iter(measured.values())), key=rest)
        chosen[best] += 1
        for name, scores in measured.items():
            held[name] += scores[best][fold::folds]
    return held, chosen


def _figures(scores: Scores) -> dict[str, list[float]]:
    columns = zip(METRICS, zip(*scores, strict=True), strict=True)
    found = {metric: interval(values) for metric, values in columns}
    return {
        metric: [round(100 * value, 1) for value in (one.value, one.low, one.high)]
        for metric, one in found.items()
    }


if __name__ == "__main__":
    main()
