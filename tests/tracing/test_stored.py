"""What is stored for explanations: a killed process leaves it sound; planted faults are found."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.errors import CorruptError, NotFoundError
from tests.processes import run_python

from .curie import ENGLISH, filled, opened

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tracing.curie import ENGLISH, filled, step
from lightrag_jsonl.testing import ScriptedLLM

plain = ENGLISH.script({})

def script(request):
    if step(request) == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(request)

with filled(Path(sys.argv[1]), ENGLISH, ScriptedLLM(script)) as rag:
    rag.query(ENGLISH.question, mode="hybrid", explain=True, listener=lambda event: None)
"""


@pytest.mark.parametrize(
    ("at", "reached"),
    [
        ("selection", ("session", "keywords", "retrieval")),
        ("answer", ("session", "keywords", "retrieval", "selection")),
    ],
)
def test_a_killed_process_leaves_an_incomplete_trace(
    tmp_path: Path, at: str, reached: tuple[str, ...]
) -> None:
    """What a listener had heard is stored, and it is sound."""
    assert run_python(KILLED, tmp_path, at).returncode == -signal.SIGKILL

    with opened(tmp_path, ENGLISH) as rag:
        trace = rag.traces.get("0001")
        page, text = rag.traces.page("0001"), rag.traces.export("0001")
        assert rag.traces.verify() == ()

    assert (trace.status, trace.stages) == ("incomplete", reached)
    assert "did not finish" in page
    assert len(text.splitlines()) == (14 if at == "answer" else 8)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Path]:
    """An index in which the example's question was asked, closed."""
    with filled(tmp_path, ENGLISH) as rag:
        rag.query(ENGLISH.question, mode="hybrid", explain=True)
    yield tmp_path


def plant(folder: Path, statement: str) -> None:
    """Change the database behind the index's back."""
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        before = connection.total_changes
        connection.execute(statement)
        connection.commit()
        assert connection.total_changes > before, "the fault was not planted"


def deleted(stage: str) -> str:
    return f"DELETE FROM trace_events WHERE event ->> 'stage' = '{stage}'"


FAULTS = {
    "a chunk rewritten": ("offsets", "UPDATE chunks SET text = 'She found gold.'"),
    "a page lost": ("offsets", "DELETE FROM pages WHERE number = 2"),
    "the answer lost": ("chain", deleted("answer")),
    "the session lost": ("events", deleted("session")),
    "the end lost": ("events", deleted("end")),
    "another status": ("events", "UPDATE traces SET status = 'failed'"),
    "an event that is none": ("events", "UPDATE trace_events SET event = '{}'"),
    "a misquotation": (
        "citations",
        "UPDATE trace_events SET event = replace(event, 'discovered radium.', 'discovered iron.') "
        "WHERE event ->> 'stage' = 'answer'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(index: Path, fault: str) -> None:
    """Each fault, made by hand in the database, is found by the check that is meant for it."""
    check, statement = FAULTS[fault]
    plant(index, statement)

    with LightRAG(index) as rag:
        problems = rag.traces.verify()

    assert check in {problem.check for problem in problems}, problems


def test_an_unreadable_trace_is_named(index: Path) -> None:
    """Loading a damaged trace, or looking for those that chose an edge, is an error that names it;
    an unknown one is not found.
    """
    plant(index, "UPDATE trace_events SET event = replace(event, '\"reasoning\":', '\"score\":')")

    with LightRAG(index) as rag:
        with pytest.raises(CorruptError, match="0001"):
            rag.traces.get("0001")
        with pytest.raises(CorruptError, match="0001"):
            rag.traces.edge_provenance("Marie Curie", "discovered", "radium")
        with pytest.raises(NotFoundError):
            rag.traces.verify("0002")
