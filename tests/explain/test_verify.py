"""Re-checking stored traces: healthy ones pass, each planted fault is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lightrag_jsonl.explain.events import End, Event
from lightrag_jsonl.explain.trace import Trace, fold
from lightrag_jsonl.explain.verify import verify

from .conftest import NOON, Shelf

Told = Callable[..., tuple[Event, ...]]


def checks(trace: Trace, shelf: Shelf) -> list[str]:
    return [problem.check for problem in verify(trace, shelf)]


def test_a_healthy_trace_has_no_problems(trace: Trace, shelf: Shelf) -> None:
    """The example passes."""
    assert verify(trace, shelf) == ()


def test_an_empty_answer_is_an_answer(trace: Trace, shelf: Shelf) -> None:
    """An answerer, or `fail_response=""`, may have nothing to say."""
    assert verify(replace(trace, answer="", citations=()), shelf) == ()


def test_every_prefix_of_a_query_is_sound(told: Told, shelf: Shelf) -> None:
    """A query that was killed or failed anywhere is no fault."""
    events = told()
    for length in range(1, len(events)):
        killed = fold(events[:length])
        failed = fold([*events[:length], End("0001", NOON, error="LLMError: gone")])
        assert verify(killed, shelf) == () == verify(failed, shelf)


FAULTS: dict[str, tuple[str, Callable[[Trace], Trace]]] = {
    "a lost stage": (
        "chain",
        lambda t: replace(t, stages=("session", "selection", "answer", "end")),
    ),
    "a failure without a reason": ("chain", lambda t: replace(t, status="failed")),
    "a citation of another chunk": (
        "citations",
        lambda t: replace(t, citations=(replace(t.citations[0], chunk_id="d1-1"),)),
    ),
    "a citation beyond its chunk": (
        "citations",
        lambda t: replace(t, citations=(replace(t.citations[0], end=99),)),
    ),
    "a lost answer": ("answer", lambda t: replace(t, answer=None)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, trace: Trace, shelf: Shelf) -> None:
    """Each fault is found by its own check."""
    check, plant = FAULTS[fault]

    assert check in checks(plant(trace), shelf)


def test_faults_of_the_stored_texts_are_found(trace: Trace, shelf: Shelf) -> None:
    """A chunk that is not its slice of its page, or whose page or document is lost, is a fault."""
    page = shelf.pages["d1", 1]
    shelf.pages["d1", 1] = replace(page, text="Someone else discovered radium.")
    assert checks(trace, shelf) == ["offsets"]

    del shelf.pages["d1", 1]
    assert checks(trace, shelf) == ["offsets"]

    shelf.pages["d1", 1] = page
    document = shelf.documents.pop("d1")
    assert checks(trace, shelf) == ["offsets", "offsets"]

    shelf.documents["d1"] = document
    assert verify(trace, shelf) == ()


def test_a_problem_says_where(trace: Trace, shelf: Shelf) -> None:
    """In words: which trace, which check, what is wrong."""
    broken = replace(trace, answer=None)

    assert [str(problem) for problem in verify(broken, shelf)] == [
        "0001: answer: the text is not stored"
    ]
