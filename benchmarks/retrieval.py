"""The recall of supporting passages, by mode: python -m benchmarks.retrieval --data musique-a

No model but the embedder is called. Prints one JSON object on stdout, and tables on stderr. Each
passage is one chunk. `--keep` names a folder where indexes are kept, so that a second run is quick.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.corpora import make_embedder, opened
from benchmarks.datasets import Dataset, load
from benchmarks.tables import line
from lightrag_jsonl import AsyncLightRAG, Context, LightRAG, QueryParam
from lightrag_jsonl.core.modes import GRAPH_MODES
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.tools.evaluation import (
    SCORED_CHUNKS,
    UNINFORMATIVE_ANSWERS,
    UNLIMITED,
    EvalQuestion,
    RetrieverScores,
    evaluate,
    figures,
    interval,
    score,
)

DEFAULT_EMBEDDER = {"en": "minilm", "zh": "hash"}  # all-MiniLM-L6-v2 knows no Chinese
BUDGET = 1_000  # tokens of the best chunks that are searched for the answer; passages are short
CONTEXT = 4_000  # tokens of a whole context that is searched for the answer
DATA = ("musique-a", "hotpotqa-train")

Retriever = Callable[[EvalQuestion], Sequence[Chunk]]


def main() -> None:
    """Measure each data set and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=DATA, metavar="DIR")
    parser.add_argument("--embedder", choices=("minilm", "hash"), help="default by language")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the indexes there")
    parser.add_argument("--modes", nargs="+", default=GRAPH_MODES, choices=GRAPH_MODES)
    parser.add_argument("--questions", type=int, metavar="N", help="only the first N")
    parser.add_argument("--no-ablation", action="store_true", help="without the dense-only rows")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        sets = {Path(name).name: _measured(load(name), root, given) for name in given.data}
    print(json.dumps({"benchmark": "retrieval", "cores": os.cpu_count(), "sets": sets}, indent=2))


def _measured(dataset: Dataset, root: Path, given: argparse.Namespace) -> dict[str, Any]:
    name = given.embedder or DEFAULT_EMBEDDER[dataset.language]
    questions = [
        EvalQuestion(one.text, one.supporting, one.answer, one.names)
        for one in dataset.questions[: given.questions]
    ]
    with opened(dataset, make_embedder(name), root / f"{dataset.name}-{name}") as rag:
        for _ in range(2):  # the first time, the questions are embedded
            rows = list(rag.run(evaluate, questions, modes=given.modes, budget=BUDGET))
        contexts = {mode: _contexts(rag, mode, questions) for mode in ("naive", *given.modes)}
        if not given.no_ablation:
            for mode in given.modes:
                rows.append(_row(f"{mode} (dense only)", _dense_only(rag, mode), questions))
    print(f"{dataset.name}, {len(questions)} questions, {name}", file=sys.stderr)
    shown = [figures(row) for row in rows]
    lines = [list(shown[0]), *(list(one.values()) for one in shown)]
    print("\n".join(map(line, lines)), file=sys.stderr)
    heads = ["", *next(iter(contexts.values()))]
    lines = [heads, *([mode, *map(str, one.values())] for mode, one in contexts.items())]
    print("\n".join(map(line, lines)), file=sys.stderr)
    return {
        "questions": len(questions),
        "embedder": name,
        "rows": {row.name: _figures(row) for row in rows},
        "contexts": contexts,
    }


def _figures(row: RetrieverScores) -> dict[str, Any]:
    def rounded(intervals: Any) -> dict[str, list[float]]:
        return {
            name: [round(100 * value, 1) for value in (one.value, one.low, one.high)]
            for name, one in intervals.items()
        }

    return {
        "percent": rounded(row.metrics),
        "gain over dense": rounded(row.gains),
        "p50_ms": row.p50_ms,
    }


def _contexts(rag: LightRAG, mode: Any, questions: Sequence[EvalQuestion]) -> dict[str, float]:
    """Percent of the contexts of `CONTEXT` tokens, and of the default size, that hold the answer;
    percent of the latter with the answer in a relation that a supporting passage states; and their
    mean tokens.
    """
    short_prompts: list[bool] = []
    prompts: list[bool] = []
    relations: list[bool] = []
    tokens: list[int] = []
    chunk_ids = rag.run(_chunk_ids)
    for question in questions:
        names, answer = question.names, name_key(question.answer)
        limited = QueryParam(mode=mode, ll_keywords=names, max_total_tokens=CONTEXT)
        context = rag.retrieve(question.text, mode=mode, ll_keywords=names)
        tokens.append(context.tokens)
        if answer not in UNINFORMATIVE_ANSWERS:
            supporting = {id for passage in question.supporting for id in chunk_ids[passage]}
            short_prompts.append(answer in name_key(rag.retrieve(question.text, limited).prompt))
            prompts.append(answer in name_key(context.prompt))
            relations.append(_in_a_relation(context, answer, supporting))
    return {
        "answer": _percent(short_prompts),
        "answer_full": _percent(prompts),
        "answer_in_relation": _percent(relations),
        "tokens": round(mean(tokens)),
    }


def _in_a_relation(context: Context, answer: str, supporting: Set[str]) -> bool:
    """Whether a relation of a context that these chunks state has the answer."""
    texts = [
        f"{relation.source} {relation.predicate} {relation.target}: {relation.description}"
        for relation in context.relations
        if not supporting.isdisjoint(relation.chunk_ids)
    ]
    return any(answer in name_key(text) for text in texts)


async def _chunk_ids(rag: AsyncLightRAG) -> dict[str, list[str]]:
    """The ids of the chunks of each document."""
    ids: dict[str, list[str]] = defaultdict(list)
    for report in await read(rag.engine.store, lambda view: view.chunk_reports()):
        ids[report.document_id].append(report.chunk_id)
    return ids


def _percent(values: Sequence[bool]) -> float:
    return round(100 * sum(values) / (len(values) or 1), 1)


def _dense_only(rag: LightRAG, mode: Any) -> Retriever:
    def retrieve(question: EvalQuestion) -> Sequence[Chunk]:
        param = QueryParam(
            mode=mode,
            lexical=False,
            ll_keywords=question.names,
            chunk_top_k=SCORED_CHUNKS,
            max_total_tokens=UNLIMITED,
        )
        return rag.retrieve(question.text, param).chunks

    return retrieve


def _row(name: str, retrieve: Retriever, questions: Sequence[EvalQuestion]) -> RetrieverScores:
    """The averages of a retriever that `evaluate` does not know."""
    values: dict[str, list[float]] = {}
    seconds = []
    for question in questions:
        started = time.perf_counter()
        chunks = retrieve(question)
        seconds.append(time.perf_counter() - started)
        for metric, value in score(question, chunks, BUDGET).items():
            values.setdefault(metric, []).append(value)
    metrics = {metric: interval(found) for metric, found in values.items()}
    return RetrieverScores(name, metrics, round(1000 * median(seconds), 2))


if __name__ == "__main__":
    main()
