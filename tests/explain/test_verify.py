"""Re-checking stored traces: healthy ones pass, each planted fault is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lightrag_jsonl.explain.events import End, Event
from lightrag_jsonl.explain.sources import look_up
from lightrag_jsonl.explain.trace import Trace, fold
from lightrag_jsonl.explain.verify import verify

from .conftest import NOON, Shelf

Told = Callable[..., tuple[Event, ...]]


def checks(trace: Trace, shelf: Shelf) -> list[str]:
    return [problem.check for problem in verify(trace, shelf)]


def test_a_healthy_trace_has_no_problems(trace: Trace, shelf: Shelf) -> None:
    """The example passes."""
    assert verify(trace, shelf) == ()


def test_a_deleted_source_is_no_fault(trace: Trace, shelf: Shelf) -> None:
    """Deleting documents leaves old traces sound."""
    shelf.remove("d1")

    assert verify(trace, shelf) == ()
    assert look_up(trace.chunk_ids, shelf).deleted(trace) == ("d1-0",)


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
    "stages out of order": (
        "chain",
        lambda t: replace(t, stages=("session", "selection", "retrieval", "answer", "end")),
    ),
    "a failure without a reason": ("chain", lambda t: replace(t, status="failed")),
    "an edge without a chunk": (
        "edges",
        lambda t: replace(t, candidates=(t.candidates[0], replace(t.candidates[1], chunk_ids=()))),
    ),
    "a changed label": (
        "edges",
        lambda t: replace(
            t, candidates=(t.candidates[0], replace(t.candidates[1], target="Paris"))
        ),
    ),
    "a chosen edge that was no candidate": (
        "edges",
        lambda t: replace(
            t, selected=(replace(t.selected[0], edge=replace(t.selected[0].edge, target="gold")),)
        ),
    ),
    "a shown edge that was no candidate": (
        "shown",
        lambda t: replace(t, shown=(replace(t.shown[0], id="ffffffff"),)),
    ),
    "a number given twice": ("shown", lambda t: replace(t, shown=t.shown * 2)),
    "a citation of nothing": (
        "citations",
        lambda t: replace(t, citations=(replace(t.citations[0], number=9),)),
    ),
    "a citation of another chunk": (
        "citations",
        lambda t: replace(t, citations=(replace(t.citations[0], chunk_id="d1-1"),)),
    ),
    "a shifted citation": (
        "citations",
        lambda t: replace(t, citations=(replace(t.citations[0], start=1),)),
    ),
    "a citation beyond its chunk": (
        "citations",
        lambda t: replace(t, citations=(replace(t.citations[0], end=99),)),
    ),
    "a misquotation": (
        "citations",
        lambda t: replace(t, citations=(replace(t.citations[0], text="Marie discovered gold."),)),
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
