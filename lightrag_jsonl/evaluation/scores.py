"""Scores of one search, and averages over questions with their confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lightrag_jsonl.evaluation.questions import EvalQuestion
from lightrag_jsonl.text import name_key
from lightrag_jsonl.types import Chunk

RECALL_AT = (1, 2, 5, 10)
ALL_AT = (5, 10)
RESAMPLES = 2_000
COVERAGE = 0.95
YES_OR_NO = frozenset({"", "yes", "no", "是", "不是", "否", "有", "没有"})  # found in any passage


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of one search by metric; metrics that do not apply are left out.

    `recall@k`: the share of the supporting ids among the first k chunks. `all@k`: 1 if none of them
    is missing. `answer`: 1 if the answer occurs in the first chunks that fit the token budget.
    """

    values: Mapping[str, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class Interval:
    """An average over questions, and its 95 % confidence interval."""

    value: float
    low: float
    high: float


def score(question: EvalQuestion, chunks: Sequence[Chunk], *, budget: int, seconds: float) -> Score:
    """How well ranked chunks answer a question; `budget` is in tokens."""
    values: dict[str, float] = {}
    for count in RECALL_AT:
        found = {name for chunk in chunks[:count] for name in (chunk.id, chunk.document_id)}
        share = sum(name in found for name in question.supporting) / len(question.supporting)
        values[f"recall@{count}"] = share
        if count in ALL_AT:
            values[f"all@{count}"] = float(share == 1)
    wanted = name_key(question.answer) if question.answer else ""
    if wanted not in YES_OR_NO:
        values["answer"] = float(wanted in _folded(chunks, budget))
    return Score(values, seconds)


def interval(values: Sequence[float], *, seed: int = 0) -> Interval:
    """The mean with its bootstrap interval; the same values and seed give the same interval.

    It is the percentile interval of `RESAMPLES` samples drawn with replacement (Efron, 1979). Value
    lists of equal length are resampled alike, so that the intervals of two systems can be compared.
    """
    row = np.asarray(values, np.float64)
    if not len(row):
        return Interval(0.0, 0.0, 0.0)
    picked = np.random.default_rng(seed).integers(0, len(row), (RESAMPLES, len(row)))
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(row[picked].mean(axis=1), (tail, 1 - tail))
    return Interval(float(row.mean()), float(low), float(high))


# ── helpers ─────────────────────────────────────────────────────────────────────


def _folded(chunks: Sequence[Chunk], budget: int) -> str:
    """The text of the first whole chunks within the budget, folded like answers."""
    parts: list[str] = []
    for chunk in chunks:
        budget -= chunk.tokens
        if budget < 0:
            break
        parts.append(chunk.text)
    return name_key("\n".join(parts)) if parts else ""
