"""Checking traces again: sound ones pass, each planted fault is found by the check meant for it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from lightrag_jsonl import CorruptError, LightRAG, NotFoundError, Trace
from lightrag_jsonl.tracing.trace import Sources, verify_trace

from .conftest import Events, trace_of
from .curie import ENGLISH, filled


def test_a_sound_trace_has_no_problems(trace: Trace, sources: Sources) -> None:
    """The example passes, also with an empty answer, and after its sources were deleted."""
    assert verify_trace(trace, sources) == ()
    assert verify_trace(replace(trace, answer="", citations=(), invented=()), sources) == ()
    assert verify_trace(trace, Sources()) == ()


def test_every_prefix_of_a_query_is_sound(events: Events, sources: Sources) -> None:
    """A query that was killed or failed anywhere is no fault; its trace shows how far it came."""
    end = structs.replace(events[-1], error="gone")
    for length in range(1, len(events)):
        killed = trace_of(events[:length])
        failed = trace_of([*events[:length], end])
        assert (killed.status, failed.status, failed.error) == ("incomplete", "failed", "gone")
        assert (killed.answer is None) == (length < 7)
        assert verify_trace(killed, sources) == () == verify_trace(failed, sources)


def citing(**changes: object) -> Callable[[Trace], Trace]:
    return lambda t: replace(t, citations=(replace(t.citations[0], **changes),))  # type: ignore[arg-type]


BROKEN: dict[str, tuple[str, Callable[[Trace], Trace]]] = {
    "a lost stage": ("chain", lambda t: replace(t, stages=("session", "selection", "answer"))),
    "an edge without a chunk": (
        "edges",
        lambda t: replace(t, candidates=(*t.candidates, replace(t.candidates[0], chunk_ids=()))),
    ),
    "a selected edge that was not found": ("edges", lambda t: replace(t, candidates=())),
    "a citation of nothing shown": ("citations", citing(number=7)),
    "a citation of another kind": ("citations", citing(kind="relation")),
    "a citation of another chunk": ("citations", citing(chunk_id="other")),
    "a citation beyond its chunk": ("citations", citing(start=-5)),
    "a citation of another page": ("citations", citing(page=2)),
    "a misquotation": ("citations", citing(text="Marie Curie discovered barium.")),
    "a lost answer": ("chain", lambda t: replace(t, answer="")),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_trace_is_found(fault: str, trace: Trace, sources: Sources) -> None:
    """What is recorded of a query does not fit together: the problem names the trace and check."""
    check, breaking = BROKEN[fault]
    problems = verify_trace(breaking(trace), sources)
    assert any(str(problem).startswith(f"0001: {check}: ") for problem in problems)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index in which the example's question was asked, closed."""
    with filled(tmp_path, ENGLISH) as rag:
        rag.query(ENGLISH.question, mode="hybrid", explain=True)
    return tmp_path


def plant(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        before = connection.total_changes
        connection.execute(statement)
        connection.commit()
        assert connection.total_changes > before, "the fault was not planted"


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        ("offsets", "UPDATE chunks SET text = 'She found gold.'"),
        ("offsets", "DELETE FROM pages WHERE number = 2"),
        ("events", "DELETE FROM trace_events WHERE event ->> 'stage' = 'session'"),
        ("events", "DELETE FROM trace_events WHERE event ->> 'stage' = 'end'"),
        ("events", "UPDATE traces SET status = 'failed'"),
        ("events", "UPDATE trace_events SET event = '{}'"),
    ],
)
def test_a_planted_fault_is_found(index: Path, check: str, fault: str) -> None:
    """Each fault, made by hand in the database, is found by the check that is meant for it."""
    plant(index, fault)

    with LightRAG(index) as rag:
        problems = rag.traces.verify()

    assert check in {problem.check for problem in problems}, problems


def test_an_unreadable_trace_is_named(index: Path) -> None:
    """Loading a damaged trace is an error that names it; an unknown one is not found."""
    plant(index, "UPDATE trace_events SET event = replace(event, '\"question\":', '\"q\":')")

    with LightRAG(index) as rag:
        with pytest.raises(CorruptError, match="0001"):
            rag.traces.get("0001")
        with pytest.raises(NotFoundError):
            rag.traces.verify("0002")
