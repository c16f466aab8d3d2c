"""Asks every question of several retrievers and scores what they find."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lightrag_jsonl.evaluation.lookup import Lookup
from lightrag_jsonl.evaluation.questions import EvalQuestion
from lightrag_jsonl.evaluation.scores import Interval, Score, interval, score
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.sync import LightRAG
from lightrag_jsonl.types import Chunk, Mode

FOUND = 20  # chunks that are scored
ROOMY = 1_000_000  # tokens; so large that the budget does not influence the ranks
GRAPH_MODES: tuple[Mode, ...] = ("local", "global", "hybrid", "mix", "walk")
BASELINE = "dense"

Retriever = Callable[[EvalQuestion], Sequence[Chunk]]


@dataclass(frozen=True, slots=True)
class Row:
    """A retriever's averages by metric; `gains` are differences to the baseline on the same questions.

    Milliseconds are those of a search with warm caches.
    """

    name: str
    metrics: Mapping[str, Interval]
    p50_ms: float
    p95_ms: float
    gains: Mapping[str, Interval] = field(default_factory=dict)


def retrievers(
    rag: LightRAG, modes: Iterable[Mode], *, lexical: bool = True
) -> dict[str, Retriever]:
    """Retrievers by name, one for each mode; without `lexical` the name says so."""
    suffix = "" if lexical else " (dense only)"
    return {f"{mode}{suffix}": _asking(rag, mode, lexical) for mode in modes}


def rank_retrievers(rag: LightRAG, lookup: Lookup) -> dict[str, Retriever]:
    """Retrievers that use chunks alone: by vectors, by words, and both fused."""
    return {
        BASELINE: _asking(rag, "naive", False),
        "bm25": lambda question: lookup.by_words(question.text, FOUND),
        "naive": _asking(rag, "naive", True),
    }


def evaluate(
    systems: Mapping[str, Retriever],
    questions: Sequence[EvalQuestion],
    *,
    budget: int = 4_000,
    seed: int = 0,
    watcher: Callable[[], object] | None = None,
) -> tuple[Row, ...]:
    """Every retriever's scores, in order; `budget` is the tokens in which the answer is looked for.

    Each question is asked once before it is timed. `watcher` is called after each question of each
    retriever.
    """
    scores: dict[str, list[Score]] = {name: [] for name in systems}
    for name, system in systems.items():
        for question in questions:
            scores[name].append(_scored(system, question, budget))
            if watcher is not None:
                watcher()
    base = scores.get(BASELINE)
    return tuple(_row(name, found, base, seed) for name, found in scores.items())


# ── helpers ─────────────────────────────────────────────────────────────────────


def _asking(rag: LightRAG, mode: Mode, lexical: bool) -> Retriever:
    def retrieve(question: EvalQuestion) -> Sequence[Chunk]:
        param = QueryParam(
            mode=mode,
            lexical=lexical,
            ll_keywords=question.names,
            chunk_top_k=FOUND,
            max_total_tokens=ROOMY,
        )
        return rag.retrieve(question.text, param).chunks

    return retrieve


def _scored(system: Retriever, question: EvalQuestion, budget: int) -> Score:
    system(question)
    started = time.perf_counter()
    chunks = system(question)
    seconds = time.perf_counter() - started
    return score(question, chunks, budget=budget, seconds=seconds)


def _row(name: str, scores: Sequence[Score], base: Sequence[Score] | None, seed: int) -> Row:
    metrics = {metric: interval(values, seed=seed) for metric, values in _columns(scores).items()}
    gains: dict[str, Interval] = {}
    if base is not None and base is not scores:
        before = _columns(base)
        for metric, values in _columns(scores).items():
            differences = [now - then for now, then in zip(values, before[metric], strict=True)]
            gains[metric] = interval(differences, seed=seed)
    milliseconds = 1000 * np.array([one.seconds for one in scores] or [0.0])
    p50, p95 = np.percentile(milliseconds, (50, 95))
    return Row(name, metrics, round(float(p50), 2), round(float(p95), 2), gains)


def _columns(scores: Sequence[Score]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for one in scores:
        for metric, value in one.values.items():
            columns.setdefault(metric, []).append(value)
    return columns
