"""Recording a query: what is stored when, and that nothing of it costs the answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, IndexOptions, LightRAG, StorageError
from tests.kit import store_at

from .conftest import trace_of
from .curie import ENGLISH, filled, settings

STAGES = ["session", "keywords", "retrieval", "selection", "chunk", "chunk", "answer", "end"]


def ask(rag: LightRAG, listener: Callable[[Any], Any] | None = None) -> str | None:
    """Ask the example's question; the id of its trace."""
    return rag.query(ENGLISH.question, mode="hybrid", explain=True, listener=listener).trace_id


def test_only_the_newest_queries_are_kept(tmp_path: Path) -> None:
    """Each question removes what is beyond the limit; with 0 none is recorded."""
    given = settings(ENGLISH, None)
    with LightRAG(tmp_path, options=IndexOptions(keep_traces=3), **given) as rag:
        for _ in range(5):
            ask(rag)
        assert [one.id for one in rag.traces.list()] == ["0005", "0004", "0003"]
    with LightRAG(tmp_path, options=IndexOptions(keep_traces=0), **given) as rag:
        assert ask(rag) is None and len(rag.traces.list()) == 3


def test_each_event_is_stored_before_the_listener_gets_it(tmp_path: Path) -> None:
    """A listener may be a coroutine; pieces of the answer are passed on and not stored."""
    heard: list[Any] = []

    async def listen(event: Any) -> None:
        if event.stage != "chunk":
            async with AsyncLightRAG(tmp_path) as reader:
                assert event.stage in (await reader.traces.get(event.trace_id)).stages
        heard.append(event)

    with filled(tmp_path, ENGLISH) as rag:
        trace = rag.traces.get(ask(rag, listen))
    assert [event.stage for event in heard] == STAGES
    assert trace_of(heard) == trace


def test_a_failing_listener_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It gets no further events, which is logged once; the trace is complete."""
    heard: list[Any] = []

    def listen(event: Any) -> None:
        heard.append(event)
        raise ZeroDivisionError

    with filled(tmp_path, ENGLISH) as rag:
        trace = rag.traces.get(ask(rag, listen))
    assert len(heard) == 1 and trace.status == "complete"
    assert caplog.messages == ["a listener of trace 0001 failed and gets no more"]


@pytest.mark.parametrize("listening", [True, False])
def test_what_cannot_be_stored_costs_no_answer(
    tmp_path: Path,
    listening: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The listener still gets every event; that the trace is not stored is logged once."""
    heard: list[Any] = []

    def full(*given: object, **more: object) -> None:
        raise StorageError("the disk is full")

    with LightRAG(tmp_path) as rag:
        rag.insert(ENGLISH.document())
        monkeypatch.setattr(type(rag.engine.store), "transaction", full)
        assert ask(rag, heard.append if listening else None) is None
    stages = dict.fromkeys(
        [event.stage for event in heard]
    )  # the answer may come in several pieces
    assert list(stages) == (list(dict.fromkeys(STAGES)) if listening else [])
    assert len(caplog.records) == 1 and "not stored" in caplog.text


def test_a_query_deleted_while_it_runs_leaves_nothing(tmp_path: Path) -> None:
    """Its further events are not stored under an id that nobody lists."""
    other = store_at(tmp_path)

    def delete(event: Any) -> None:
        if event.stage == "retrieval":
            with other.transaction() as transaction:
                assert transaction.delete_traces(keep=0) == 1

    with filled(tmp_path, ENGLISH) as rag:
        ask(rag, delete)
        assert rag.traces.list() == ()
    other.close()


def test_ids_may_be_shortened(tmp_path: Path) -> None:
    """To a beginning that only one trace has; a whole id always counts."""
    ids = ["abc", "abcd", "b"]
    with LightRAG(tmp_path, **{**settings(ENGLISH, None), "new_id": iter(ids).__next__}) as rag:
        assert [ask(rag) for _ in ids] == ids == [rag.traces.get(id).id for id in ids]
        for wrong in ("ab", "c", ""):
            with pytest.raises(KeyError, match="begins with"):
                rag.traces.get(wrong)
        assert [one.id for one in rag.traces.list(limit=2)] == ["b", "abcd"]
