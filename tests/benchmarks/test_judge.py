"""A judge's verdict counts only if it survives a change of order, and length is taken out."""

import asyncio

import pytest

from benchmarks.referee.judge import Pair, answers_of, judged_pairs, summary
from lightrag_jsonl.testing import Request, ScriptedLLM

GOOD = {"Who?": "Ida Holm.", "Where?": "In Port Varen."}
BAD = {"Who?": "Nobody knows.", "Where?": "Somewhere."}


def fair(request: Request) -> str:
    """The place of the answer with a name."""
    first = request.messages[0].content.partition("Answer 2:")[0]
    return "1" if "Holm" in first or "Varen" in first else "2"


def test_a_fair_judge_names_the_better_system_in_both_orders() -> None:
    """All wins, no tie, no flip."""
    pairs = asyncio.run(judged_pairs(ScriptedLLM(fair), GOOD, BAD))
    figures = summary(pairs)
    assert figures["wins"][0] == 100.0 and figures["ties"] == figures["flips"] == 0.0


def test_a_judge_that_prefers_the_first_place_flips() -> None:
    """Every verdict changes with the order, and counts as a tie."""
    pairs = asyncio.run(judged_pairs(ScriptedLLM(lambda request: "1"), GOOD, BAD))
    figures = summary(pairs)
    assert figures["flips"] == figures["ties"] == 100.0
    assert figures["wins"][0] == 50.0


def test_length_is_taken_out_of_the_wins() -> None:
    """A system that wins three of four where it is longer, and one of four where it is shorter, wins
    half at equal length, however often it is longer.
    """
    longer = [Pair(verdict=float(place % 4 > 0), flipped=False, longer=40) for place in range(40)]
    shorter = [
        Pair(verdict=float(place % 4 == 0), flipped=False, longer=-40) for place in range(20)
    ]
    figures = summary(longer + shorter)
    assert figures["wins"][0] == pytest.approx(58.3)
    assert figures["wins_at_equal_length"] == pytest.approx(50.0, abs=0.5)


def test_contexts_are_answered_first() -> None:
    """Everybody's context goes to the same model with the same instructions."""
    rows = [{"question": "Who?", "context": "Ida Holm founded it."}]
    llm = ScriptedLLM(
        lambda request: "Ida Holm." if "founded" in request.messages[0].content else "?"
    )
    assert asyncio.run(answers_of(llm, rows)) == {"Who?": "Ida Holm."}
