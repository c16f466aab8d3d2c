"""The recall of supporting passages, by mode: python -m benchmarks.retrieval --data musique-a

No model but the embedder is called. Prints one JSON object on stdout, and tables on stderr. Each
passage is one chunk. `--keep` names a folder where indexes are kept, so that a second run is quick.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import hipporag_reference as reference
from benchmarks.corpora import make_embedder, opened
from benchmarks.datasets import Dataset, data_argument, load
from benchmarks.retrieval_table import write
from lightrag_jsonl.cli.output import table, to_json
from lightrag_jsonl.evaluation import (
    EvalQuestion,
    Lookup,
    Retriever,
    Row,
    evaluate,
    graph_health,
    rank_retrievers,
    report,
    retrievers,
)
from lightrag_jsonl.evaluation.running import FOUND, GRAPH_MODES
from lightrag_jsonl.types import Chunk

DEFAULT_EMBEDDER = {"en": "minilm", "zh": "hash"}  # all-MiniLM-L6-v2 knows no Chinese
BUDGET = 1_000  # tokens of the best chunks that are searched for the answer; passages are short


def main() -> None:
    """Measure each data set and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    data_argument(parser, "musique-a", "hotpotqa-train")
    parser.add_argument("--embedder", choices=("minilm", "hash"), help="default by language")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the indexes there")
    parser.add_argument("--modes", nargs="+", default=GRAPH_MODES, choices=GRAPH_MODES)
    parser.add_argument("--questions", type=int, metavar="N", help="only the first N")
    parser.add_argument("--no-reference", action="store_true", help="without HippoRAG-2-like rows")
    parser.add_argument("--no-ablation", action="store_true", help="without the dense-only rows")
    parser.add_argument("--readme", type=Path, nargs="+", default=(), help="update their table")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        sets = {name: _measured(load(name), root, given) for name in given.data}
    figures = {Path(name).name: value for name, value in sets.items()}
    print(
        json.dumps({"benchmark": "retrieval", "cores": os.cpu_count(), "sets": figures}, indent=2)
    )
    for path in given.readme:
        write(path, figures)


def _measured(dataset: Dataset, root: Path, given: argparse.Namespace) -> dict[str, Any]:
    name = given.embedder or DEFAULT_EMBEDDER[dataset.language]
    folder = root / f"{dataset.name}-{name}"
    questions = [
        EvalQuestion(one.text, one.supporting, one.answer, one.names)
        for one in dataset.questions[: given.questions]
    ]
    with opened(dataset, make_embedder(name), folder) as rag, Lookup(folder) as lookup:
        systems = {**rank_retrievers(rag, lookup), **retrievers(rag, given.modes)}
        if not given.no_ablation:
            systems |= retrievers(rag, given.modes, lexical=False)
        if not given.no_reference and name == "minilm":
            systems |= _references(dataset)
        rows = evaluate(systems, questions, budget=BUDGET)
        health = graph_health(lookup, questions)
    print(f"{dataset.name}, {len(questions)} questions, {name}", file=sys.stderr)
    print(table(report.cells(rows), report.header(rows)), file=sys.stderr)
    print(table(report.health_rows(health)), end="\n\n", file=sys.stderr)
    return {
        "questions": len(questions),
        "embedder": name,
        "rows": {row.name: _figures(row) for row in rows},
        "graph": to_json(health),
    }


def _figures(row: Row) -> dict[str, Any]:
    def rounded(intervals: Any) -> dict[str, list[float]]:
        return {
            name: [round(100 * value, 1) for value in (one.value, one.low, one.high)]
            for name, one in intervals.items()
        }

    times = {"p50": row.p50_ms, "p95": row.p95_ms}
    return {"percent": rounded(row.metrics), "gain over dense": rounded(row.gains), "ms": times}


# ── the reference ───────────────────────────────────────────────────────────────


def _references(dataset: Dataset) -> dict[str, Retriever]:
    """HippoRAG-2-like rankings, computed for all questions in advance; their times mean nothing."""
    embed = reference.minilm()
    arrays = reference.material(dataset, embed)
    systems = {"hipporag-2-like, names": _ranked(dataset, reference.hipporag(arrays, embed=embed))}
    if dataset.has_records:
        systems["hipporag-2-like"] = _ranked(dataset, reference.hipporag(arrays))
    return systems


def _ranked(dataset: Dataset, ranked: Sequence[Any]) -> Callable[[EvalQuestion], Sequence[Chunk]]:
    places = {one.text: number for number, one in enumerate(dataset.questions)}

    def retrieve(question: EvalQuestion) -> Sequence[Chunk]:
        best = ranked[places[question.text]][:FOUND]
        return [_chunk(dataset, int(place)) for place in best]

    return retrieve


def _chunk(dataset: Dataset, place: int) -> Chunk:
    passage = dataset.passages[place]
    text = passage.content
    return Chunk(passage.id, passage.id, 0, 1, 0, len(text), text, len(text) // 4)


if __name__ == "__main__":
    main()
