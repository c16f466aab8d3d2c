"""Checking traces again: sound ones pass, each planted fault is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lightrag_jsonl.core.types import Page
from lightrag_jsonl.tracing.events import End
from lightrag_jsonl.tracing.source_lookup import Sources
from lightrag_jsonl.tracing.trace import Trace, assemble_trace
from lightrag_jsonl.tracing.verify import verify_trace

from .conftest import NOON, Events


def test_a_sound_trace_has_no_problems(trace: Trace, sources: Sources) -> None:
    """The example passes, also with an empty answer, and after its sources were deleted."""
    assert verify_trace(trace, sources) == ()
    assert verify_trace(replace(trace, answer="", citations=()), sources) == ()
    assert verify_trace(trace, Sources()) == ()


def test_every_prefix_of_a_query_is_sound(events: Events, sources: Sources) -> None:
    """A query that was killed or failed anywhere is no fault."""
    recorded = events()
    for length in range(1, len(recorded)):
        killed = assemble_trace(recorded[:length])
        end = End("0001", NOON, error="LLMError: gone")
        failed = assemble_trace([*recorded[:length], end])
        assert verify_trace(killed, sources) == () == verify_trace(failed, sources)


def citing(**changes: object) -> Callable[[Trace], Trace]:
    """A trace whose citation was changed."""
    return lambda t: replace(t, citations=(replace(t.citations[0], **changes),))  # type: ignore[arg-type]


def showing(**changes: object) -> Callable[[Trace], Trace]:
    """A trace whose shown item was changed."""
    return lambda t: replace(t, shown=(replace(t.shown[0], **changes),))


FAULTS: dict[str, tuple[str, Callable[[Trace], Trace]]] = {
    "a lost stage": ("chain", lambda t: replace(t, stages=("session", "selection", "answer"))),
    "stages out of order": (
        "chain",
        lambda t: replace(t, stages=("session", "selection", "retrieval", "answer", "end")),
    ),
    "an edge without a chunk": (
        "edges",
        lambda t: replace(t, candidates=(*t.candidates, replace(t.candidates[0], chunk_ids=()))),
    ),
    "a selected edge that was not found": ("edges", lambda t: replace(t, candidates=())),
    "a selected chunk that was not found": (
        "edges",
        lambda t: replace(t, selected_chunks=("c",)),
    ),
    "an edge shown that was not found": ("shown", showing(id="ffffffff")),
    "an item without a chunk": ("shown", showing(chunk_ids=())),
    "a number that was not in the prompt": ("shown", showing(number=2)),
    "a citation of nothing shown": ("citations", citing(number=7)),
    "a citation of another kind": ("citations", citing(kind="chunk")),
    "a citation of another chunk": ("citations", citing(chunk_id="other")),
    "a citation beyond its chunk": ("citations", citing(start=-5)),
    "a citation of another page": ("citations", citing(page=2)),
    "a misquotation": ("citations", citing(text="Marie Curie discovered barium.")),
    "a shown number reported as invented": ("citations", lambda t: replace(t, invented=(1,))),
    "a lost answer": ("chain", lambda t: replace(t, answer="")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, trace: Trace, sources: Sources) -> None:
    """Each fault is found by its own check."""
    check, plant = FAULTS[fault]

    assert check in {problem.check for problem in verify_trace(plant(trace), sources)}


def test_a_passage_shown_beyond_its_chunk_is_found(trace: Trace, sources: Sources) -> None:
    """What was shown of a chunk lies inside it."""
    first, *_ = sources.chunks
    passage = showing(kind="chunk", id=first, chunk_ids=(first,), start=0, end=30)(trace)
    sound = replace(passage, citations=())
    beyond = showing(end=31)(sound)

    assert verify_trace(sound, sources) == ()
    assert [problem.check for problem in verify_trace(beyond, sources)] == ["shown"]


def test_faults_of_the_stored_texts_are_found(trace: Trace, sources: Sources) -> None:
    """A chunk that is not its slice of its page, or whose page is lost, or that was rewritten
    together with its page, is a fault.
    """
    first, _ = sources.chunks.values()
    rewritten = replace(first, text=first.text.replace("radium", "barium"))
    other_page = Page("d1", 1, rewritten.text)

    def checks(chunk: object, pages: dict[int, Page]) -> list[str]:
        changed = replace(sources, chunks={first.id: chunk}, pages={"d1": pages})
        return [problem.check for problem in verify_trace(replace(trace, citations=()), changed)]

    assert checks(first, {1: sources.pages["d1"][1]}) == []
    assert checks(first, {1: other_page}) == ["offsets"]
    assert checks(first, {}) == ["offsets"]
    assert checks(rewritten, {1: other_page}) == ["offsets"]


def test_a_problem_says_where(trace: Trace, sources: Sources) -> None:
    """In words: which trace, which check, what is wrong."""
    broken = replace(trace, answer="")

    assert [str(problem) for problem in verify_trace(broken, sources)] == [
        "0001: chain: the text of the answer is not stored"
    ]
