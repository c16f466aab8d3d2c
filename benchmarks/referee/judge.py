"""Compares whole answers with a model: python -m benchmarks.referee.judge ours.jsonl nano.jsonl …

Needs a model (`--model`, `--base-url`, a key in OPENAI_API_KEY). Each file has one object a line with
`question` and either `answer` or `context`; the referee writes such contexts with `--contexts`. A
context is answered first, by the same model and the same instructions for everybody.

Every pair of answers is judged twice, once in each order. A verdict that changes with the order is a
flip and counts as a tie. Judges like length: beside the plain share of wins stands the share at equal
length, by a logistic regression of the verdicts on the difference of lengths (Dubois et al., 2024,
Length-Controlled AlpacaEval). Prints one JSON object.
"""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from lightrag_jsonl import Message, OpenAILLM
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.retrying import MAX_RETRIES, with_retries
from lightrag_jsonl.tools.evaluation import interval

LIMIT = 12_000  # characters of a context that is answered
STEPS, RIDGE = 50, 1e-3  # of the regression
TIE = 0.5
VERDICTS = {"1": 1.0, "2": 0.0, "0": TIE}

ANSWER = """Answer the question from the material alone, in at most 200 words. Say so if the material does
not answer it.

Material:
{context}

Question: {question}"""
JUDGE = """Two answers to one question follow. Which of them helps somebody who asked it more: by what is
right and to the point, not by its length or its order? Reply with one character: 1, 2, or 0 if they
are equally good.

Question: {question}

Answer 1:
{first}

Answer 2:
{second}"""


@dataclass(frozen=True, slots=True)
class Pair:
    """The verdict on two answers to a question: 1 for the first system, 0 for the second, 0.5 for a
    tie; whether it changed with the order; and how much longer the first answer is, in words.
    """

    verdict: float
    flipped: bool
    longer: int


def main() -> None:
    """Answer, judge every pair of systems, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="at least two")
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url")
    arguments = parser.parse_args()
    llm = OpenAILLM(arguments.model, base_url=arguments.base_url)
    figures = asyncio.run(_judged(llm, arguments.files))
    print(json.dumps({"benchmark": "judge", "model": arguments.model, "pairs": figures}, indent=2))


async def _judged(llm: LLM, files: Sequence[Path]) -> list[dict[str, Any]]:
    answers = {file.stem: await answers_of(llm, _rows(file)) for file in files}
    figures = []
    for first, second in combinations(answers, 2):
        pairs = await judged_pairs(llm, answers[first], answers[second])
        figures.append({"first": first, "second": second, **summary(pairs)})
    return figures


def _rows(file: Path) -> list[Mapping[str, str]]:
    lines = file.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


async def answers_of(llm: LLM, rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The answers by question; where there is only a context, the model answers from it."""
    answers = {}
    for row in rows:
        answer = row.get("answer")
        if answer is None:
            context = row["context"][:LIMIT]
            answer = await _reply(llm, ANSWER.format(context=context, question=row["question"]))
        answers[row["question"]] = answer
    return answers


async def judged_pairs(llm: LLM, first: Mapping[str, str], second: Mapping[str, str]) -> list[Pair]:
    """The verdicts on the questions that both have answered."""
    pairs = []
    for question in first:
        if question in second:
            pairs.append(await _pair(llm, question, first[question], second[question]))
    return pairs


async def _pair(llm: LLM, question: str, first: str, second: str) -> Pair:
    forward = await _verdict(llm, question, first, second)
    backward = 1 - await _verdict(llm, question, second, first)
    flipped = forward != backward
    return Pair(
        verdict=TIE if flipped else forward,
        flipped=flipped,
        longer=len(first.split()) - len(second.split()),
    )


async def _verdict(llm: LLM, question: str, first: str, second: str) -> float:
    """1 if the first answer is better, 0 if the second is; a tie if the reply is anything else."""
    reply = await _reply(llm, JUDGE.format(question=question, first=first, second=second))
    return VERDICTS.get(reply.strip()[:1], TIE)


async def _reply(llm: LLM, text: str) -> str:
    """The model's reply, asked for again after an error that passes."""
    ask = partial(llm.complete, [Message("user", text)])
    completion = await with_retries(ask, retries=MAX_RETRIES)
    return completion.text


def summary(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The shares of wins of the first system, of ties and of flips, in percent."""
    if not pairs:
        return {"questions": 0}
    verdicts = [pair.verdict for pair in pairs]
    wins = interval(verdicts)
    ties = sum(pair.verdict == TIE for pair in pairs)
    return {
        "questions": len(pairs),
        "wins": [round(100 * value, 1) for value in (wins.value, wins.low, wins.high)],
        "wins_at_equal_length": round(100 * wins_at_equal_length(pairs), 1),
        "ties": round(100 * ties / len(pairs), 1),
        "flips": round(100 * sum(pair.flipped for pair in pairs) / len(pairs), 1),
    }


def wins_at_equal_length(pairs: Sequence[Pair]) -> float:
    """The share of wins of the first system if its answers were as long as the others."""
    longer = np.array([pair.longer for pair in pairs], np.float64)
    spread = float(longer.std()) or 1.0
    inputs = np.stack([np.ones(len(pairs)), np.tanh(longer / spread)], axis=1)
    verdicts = np.array([pair.verdict for pair in pairs])
    weights = np.zeros(2)
    for _ in range(STEPS):  # Newton's method with a small ridge, so that it always converges
        chances = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (verdicts - chances) - RIDGE * weights
        curvature = (inputs.T * (chances * (1 - chances))) @ inputs + RIDGE * np.eye(2)
        weights += np.clip(np.linalg.solve(curvature, gradient), -1, 1)
    return float(1 / (1 + np.exp(-weights[0])))


if __name__ == "__main__":
    main()
