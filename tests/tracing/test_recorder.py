"""Recording a query: what is stored when, and that nothing of it costs the answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lightrag_jsonl.core.types import Answer, Chunk, Context, Keywords, Relation
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.retrieval.edge_selection import EdgeSelection
from lightrag_jsonl.storage.sqlite.database import SQLiteStore
from lightrag_jsonl.tracing.events import AnswerChunk, Event, Session
from lightrag_jsonl.tracing.recorder import Listener, Recorder
from lightrag_jsonl.tracing.trace import Trace, assemble_trace, load_trace

from .conftest import NOON, QUESTION, REASON

CHUNK = Chunk("c1", "d1", 0, 1, 0, 30, "Marie Curie discovered radium.")
RELATION = Relation(
    "Marie Curie", "radium", ("discovered",), "She found it.", chunk_ids=("c1",), score=0.5
)
FOUND = {"keywords": Keywords(("discovery",)), "documents": {"d1": "d1.txt"}}
CONTEXT = Context(QUESTION, "mix", (), (RELATION,), (CHUNK,), **FOUND)  # type: ignore[arg-type]
ANSWER = Answer("Radium [1].", context=CONTEXT, usage=Usage(calls=2))
STAGES = ["session", "keywords", "retrieval", "selection", "chunk", "chunk", "answer", "end"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    opened = SQLiteStore(tmp_path)
    yield opened
    opened.close()


def recorder(store: Any, listener: Listener | None = None, id: str = "0001") -> Recorder:
    meter: Any = SimpleNamespace(spent=Usage(calls=1))
    session = Session(id, QUESTION, "mix", NOON, 3)
    return Recorder(store, session, meter, listener=listener, clock=lambda: NOON, keep=9)


async def answer_question(recorder: Recorder) -> None:
    """What the pipeline reports of one question, from its beginning to its answer."""
    await recorder.begin()
    await recorder.keywords_found(CONTEXT.keywords)
    await recorder.retrieved((RELATION,), (CHUNK,))
    reasons = {(RELATION.source, RELATION.target): REASON}
    await recorder.selected(EdgeSelection("llm", (RELATION,), reasons), CONTEXT)
    await recorder.piece(ANSWER.text)
    await recorder.answered(ANSWER)


async def test_only_the_newest_queries_are_kept(store: SQLiteStore) -> None:
    """Each question removes what is beyond the limit; with 0 none is recorded."""
    for number in range(12):
        await answer_question(recorder(store, id=f"{number:04}"))
    with store.reader() as reader:
        kept = [trace.id for trace in reader.traces()]
        assert kept == [f"{number:04}" for number in range(11, 2, -1)]
    off = recorder(store, id="none")
    off.keep = 0
    await answer_question(off)
    with store.reader() as reader:
        assert off.stored_trace_id is None and [one.id for one in reader.traces()] == kept


def stored(store: SQLiteStore, id: str = "0001") -> Trace:
    with store.reader() as reader:
        return load_trace(reader, id)


async def test_each_event_is_stored_before_the_listener_gets_it(store: SQLiteStore) -> None:
    """A listener may be a coroutine; pieces of the answer are passed on and not stored."""
    heard: list[Event] = []

    async def listen(event: Event) -> None:
        heard.append(event)
        if not isinstance(event, AnswerChunk):
            assert event.stage in stored(store).stages

    await answer_question(recorder(store, listen))

    assert [event.stage for event in heard] == STAGES
    assert assemble_trace(heard) == stored(store)


async def test_a_failing_listener_changes_nothing(
    store: SQLiteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It gets no further events, which is logged once; the trace is complete."""
    heard: list[Event] = []

    def listen(event: Event) -> None:
        heard.append(event)
        raise ZeroDivisionError

    await answer_question(recorder(store, listen))

    assert len(heard) == 1 and stored(store).status == "complete"
    (record,) = caplog.records
    assert record.message == "a listener of trace 0001 failed and gets no more"


@pytest.mark.parametrize("listening", [True, False])
async def test_what_cannot_be_stored_costs_no_answer(
    store: SQLiteStore, listening: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The listener still gets every event; that the trace is not stored is logged once."""
    heard: list[Event] = []
    store.close()
    recording = recorder(store, heard.append if listening else None)

    await answer_question(recording)

    assert recording.stored_trace_id is None
    assert [event.stage for event in heard] == (STAGES if listening else [])
    assert len(caplog.records) == 1 and "not stored" in caplog.text


async def test_a_query_deleted_while_it_runs_leaves_nothing(store: SQLiteStore) -> None:
    """Its further events are not stored under an id that nobody lists."""
    recording = recorder(store)
    await recording.begin()
    with store.transaction() as transaction:
        assert transaction.delete_traces(keep=0) == 1
    await recording.answered(ANSWER)

    with store.reader() as reader:
        assert reader.traces() == []


async def test_ids_may_be_shortened(store: SQLiteStore) -> None:
    """To a beginning that only one trace has; a whole id always counts."""
    for id in ("abc", "abcd", "b"):
        await answer_question(recorder(store, id=id))

    assert [stored(store, id).id for id in ("abc", "abcd", "b")] == ["abc", "abcd", "b"]
    for wrong in ("ab", "c", ""):
        with pytest.raises(KeyError, match="begins with"):
            stored(store, wrong)
    with store.reader() as reader:
        assert [one.id for one in reader.traces()] == ["b", "abcd", "abc"]
        (newest,) = reader.traces(limit=1)
    assert datetime.fromtimestamp(newest.started_at, NOON.tzinfo) == NOON
