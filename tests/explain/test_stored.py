"""What is stored for explanations: sound after every change and every crash; planted faults are found."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, QueryParam
from lightrag_jsonl.errors import CorruptError, NotFoundError
from lightrag_jsonl.storage.database import FILE_NAME
from lightrag_jsonl.types import Mode
from tests.processes import run_python

from .curie import ENGLISH, filled, opened

MODES: tuple[Mode, ...] = ("naive", "hybrid", "mix")


def test_traces_stay_sound_through_every_change(tmp_path: Path) -> None:
    """Inserts, an update, deletions, a merge, retention: `verify` has nothing to say."""
    with opened(tmp_path, ENGLISH) as rag:

        def ask_and_check() -> None:
            for mode in MODES:
                rag.query(ENGLISH.question, mode=mode, explain=True)
            assert rag.verify() == ()

        ask_and_check()
        rag.insert_records(ENGLISH.document(), ENGLISH.records)
        ask_and_check()
        rag.insert_records(ENGLISH.document("d2"), ENGLISH.records)
        ask_and_check()
        shorter = f"An introduction. {ENGLISH.pages[0]}"
        rag.insert_records(ENGLISH.document("d2", shorter), ENGLISH.records_of(0, *ENGLISH.found))
        ask_and_check()
        rag.merge_entities(["Marie Curie", "radium"], into="Marie Curie")
        ask_and_check()
        rag.delete("d1")
        ask_and_check()
        rag.delete("d2")
        ask_and_check()
        assert len(rag.traces()) == 21
        assert rag.forget_traces(keep=4) == 17
        assert [one.id for one in rag.traces()] == ["0021", "0020", "0019", "0018"]
        assert rag.verify() == ()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.explain.curie import ENGLISH, filled, step
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
    """Killed between selection and answer, what was told is stored, and it is sound."""
    assert run_python(KILLED, tmp_path, at).returncode == -signal.SIGKILL

    with opened(tmp_path, ENGLISH) as rag:
        trace, problems = rag.trace("0001"), rag.verify()
        page = rag.trace_html("0001")
        text = rag.export_trace("0001")

    assert (trace.status, trace.stages, problems) == ("incomplete", reached, ())
    assert "did not finish" in page
    assert len(text.splitlines()) == (14 if at == "answer" else 8)


# ── planted faults ──────────────────────────────────────────────────────────────

Plant = Callable[[sqlite3.Connection], object]


def event(stage: str, old: str, new: str) -> Plant:
    """Replace a part of the events of one stage."""
    return lambda connection: connection.execute(
        "UPDATE trace_events SET event = replace(event, ?, ?) WHERE event LIKE ? "
        "AND instr(event, ?)",
        (old, new, f'{{"stage":"{stage}"%', old),
    )


def sql(statement: str) -> Plant:
    """Run a statement."""
    return lambda connection: connection.execute(statement)


def lost(stage: str) -> Plant:
    """Delete the event of a stage."""
    return sql(f'DELETE FROM trace_events WHERE event LIKE \'{{"stage":"{stage}"%\'')


def without_chunks(connection: sqlite3.Connection) -> None:
    """Take the chunks from the second candidate."""
    ((text,),) = connection.execute(
        'SELECT event FROM trace_events WHERE event LIKE \'{"stage":"retrieval"%\''
    ).fetchall()
    changed = json.loads(text)
    changed["event"]["edges"][1]["chunk_ids"] = []
    plain = json.dumps(changed, ensure_ascii=False, separators=(",", ":"))
    connection.execute("UPDATE trace_events SET event = ? WHERE event = ?", (plain, text))


FAULTS: dict[str, tuple[str, Plant]] = {
    "a chunk moved": ("offsets", sql("UPDATE chunks SET start = start + 1 WHERE position = 0")),
    "a chunk's end moved": ("offsets", sql("UPDATE chunks SET stop = stop - 1 WHERE position = 1")),
    "a chunk rewritten": ("offsets", sql("UPDATE chunks SET text = 'She found gold.'")),
    "a chunk on another page": ("offsets", sql("UPDATE chunks SET page = 2 WHERE position = 0")),
    "a page rewritten": ("offsets", sql("UPDATE pages SET text = 'x' || text WHERE number = 2")),
    "page and chunk rewritten alike": (
        "offsets",
        lambda connection: connection.executescript(
            "UPDATE pages SET text = replace(text, 'radium', 'barium');"
            "UPDATE chunks SET text = replace(text, 'radium', 'barium');"
        ),
    ),
    "a page lost": ("offsets", sql("DELETE FROM pages WHERE number = 2")),
    "pages renumbered": ("offsets", sql("UPDATE pages SET number = number + 1 WHERE number = 2")),
    "the pages lost": ("offsets", sql("DELETE FROM pages")),
    "the answer's event lost": ("events", lost("answer")),
    "the answer emptied": ("answer", event("answer", ENGLISH.answer, "")),
    "the selection lost": ("events", lost("selection")),
    "the retrieval lost": ("events", lost("retrieval")),
    "the session lost": ("events", lost("session")),
    "the end lost": ("events", lost("end")),
    "all events lost": ("events", sql("DELETE FROM trace_events")),
    "the trace lost, its events kept": ("events", sql("DELETE FROM traces")),
    "another status": ("events", sql("UPDATE traces SET status = 'failed'")),
    "another question": ("events", sql("UPDATE traces SET question = 'Why?'")),
    "an event cut off": ("events", sql("UPDATE trace_events SET event = substr(event, 1, 40)")),
    "an event that is none": ("events", sql("UPDATE trace_events SET event = '{}'")),
    "stages swapped": (
        "chain",
        lambda connection: connection.executescript(
            "UPDATE trace_events SET position = 99 WHERE position = 2;"
            "UPDATE trace_events SET position = 2 WHERE position = 3;"
            "UPDATE trace_events SET position = 3 WHERE position = 99;"
        ),
    ),
    "an edge without a chunk": ("edges", without_chunks),
    "an edge renamed": ("edges", event("retrieval", "Warsaw", "Paris")),
    "an edge that was no candidate": (
        "edges",
        event("selection", '"target":"radium"', '"target":"gold"'),
    ),
    "an edge shown that was no candidate": (
        "shown",
        event(
            "selection", '"kind":"relation","id":"66bd5bed"', '"kind":"relation","id":"ffffffff"'
        ),
    ),
    "a number shown twice": ("shown", event("selection", '"number":2', '"number":1')),
    "a passage shown beyond its chunk": ("shown", event("selection", '"end":30', '"end":99')),
    "a citation of nothing shown": ("citations", event("answer", '"number":1', '"number":7')),
    "a citation of another kind": (
        "citations",
        event("answer", '"kind":"chunk"', '"kind":"entity"'),
    ),
    "a citation of another place": ("citations", event("answer", '"start":0', '"start":3')),
    "a misquotation": (
        "citations",
        event(
            "answer",
            '"text":"Marie Curie discovered radium."',
            '"text":"Marie Curie discovered barium."',
        ),
    ),
    "a shown number called invented": (
        "citations",
        event("answer", '"invented":[9]', '"invented":[1]'),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(asked: Path, tmp_path: Path, fault: str) -> None:
    """Each fault, made by hand in the database, is found by the check that is meant for it."""
    check, plant = FAULTS[fault]
    copy(asked, tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        before = connection.total_changes
        plant(connection)
        connection.commit()
        assert connection.total_changes > before, "the fault was not planted"

    with LightRAG(tmp_path) as rag:
        problems = rag.verify()

    assert check in {problem.check for problem in problems}, problems


def test_a_sound_index_has_no_problem(asked: Path, tmp_path: Path) -> None:
    """What the faults are planted in is sound."""
    copy(asked, tmp_path)
    with LightRAG(tmp_path) as rag:
        assert rag.verify() == ()
        assert rag.verify("0001") == ()
        with pytest.raises(NotFoundError):
            rag.verify("0002")


def test_an_unreadable_trace_says_so(asked: Path, tmp_path: Path) -> None:
    """Looking at a damaged trace, or for those that chose an edge, is an error that names it."""
    copy(asked, tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute("UPDATE trace_events SET event = replace(event, '\"reasoning\":', '5,')")
        connection.commit()

    with LightRAG(tmp_path) as rag:
        with pytest.raises(CorruptError, match="0001"):
            rag.trace("0001")
        with pytest.raises(CorruptError, match="0001"):
            rag.edge_origins("Marie Curie", "discovered", "radium")


def test_a_short_id_will_do_while_it_is_the_only_one(tmp_path: Path) -> None:
    """An id may be shortened; an ambiguous or an unknown one is refused; a whole one always counts."""
    ids = iter(["abc", "abcd", "b"])
    with LightRAG(tmp_path, new_id=lambda: next(ids)) as rag:
        rag.insert(Document("Marie Curie discovered radium.", id="d"))
        for _ in range(3):
            rag.query(ENGLISH.question, QueryParam(mode="naive"))
        assert rag.trace("abc").id == "abc" and rag.trace("abcd").id == "abcd"
        for wrong in ("ab", "c", ""):
            with pytest.raises(NotFoundError):
                rag.trace(wrong)


def test_what_is_behind_a_trace_can_be_written_as_json(asked: Path, tmp_path: Path) -> None:
    """By the standard library, as plain values: each page under its document and number."""
    copy(asked, tmp_path)
    with LightRAG(tmp_path) as rag:
        trace = rag.trace(rag.traces()[0].id)
        sources = rag.sources(trace)
    written = json.loads(json.dumps(asdict(sources), default=str))
    (document,) = sources.documents
    for chunk in written["chunks"].values():
        page = written["pages"][document][str(chunk["page"])]
        assert page["text"][chunk["start"] : chunk["end"]] == chunk["text"]
        assert page["text"] == sources.pages[document][chunk["page"]].text
    assert written["chunks"]


# ── helpers ─────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index in which the example's question was asked, closed."""
    folder = tmp_path_factory.mktemp("asked")
    with filled(folder, ENGLISH) as rag:
        rag.query(ENGLISH.question, mode="hybrid", explain=True)
    return folder


def copy(folder: Path, target: Path) -> None:
    with (
        closing(sqlite3.connect(folder / FILE_NAME)) as source,
        closing(sqlite3.connect(target / FILE_NAME)) as other,
    ):
        source.backup(other)
