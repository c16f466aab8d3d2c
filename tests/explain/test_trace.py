"""Events and the trace folded from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.explain.events import (
    AnswerChunk,
    Answered,
    End,
    Event,
    KeywordsFound,
    Session,
)
from lightrag_jsonl.explain.export import trace_triples
from lightrag_jsonl.explain.trace import (
    Trace,
    event_from_json,
    event_to_json,
    fold,
    trace_from_json,
    trace_to_json,
)
from lightrag_jsonl.types import Keywords, Rejection, Usage

from .conftest import NOON, REASON

Told = Callable[..., tuple[Event, ...]]
KEYS = {
    "error",
    "response",
    "end_of_stream",
    "explain_id",
    "explain_collection",
    "message_type",
    "end_of_session",
}


def test_the_example_folds_into_a_complete_trace(trace: Trace) -> None:
    """The trace has every stage, both candidates, the chosen edge with its reason, the citation."""
    assert trace.status == "complete"
    assert trace.stages == ("session", "retrieval", "selection", "answer", "end")
    assert len(trace.candidates) == 2
    assert [chosen.reasoning for chosen in trace.selected] == [REASON]
    assert [citation.text for citation in trace.citations] == ["Marie Curie discovered radium."]


def test_messages_have_the_keys_of_the_specification(told: Told) -> None:
    """Every event gives the same seven keys; explaining ones carry their URI, the last one ends."""
    messages = [event.to_message() for event in told()]

    assert all(set(message) == KEYS for message in messages)
    assert [message["message_type"] for message in messages] == [
        *["explain"] * 3,
        *["chunk"] * 2,
        "explain",
        "chunk",
    ]
    assert [message["explain_id"] for message in messages if message["explain_id"]] == [
        "urn:trustgraph:session:0001",
        "urn:trustgraph:prov:retrieval:0001",
        "urn:trustgraph:prov:selection:0001",
        "urn:trustgraph:prov:answer:0001",
    ]
    assert [message["end_of_session"] for message in messages] == [*[False] * 6, True]
    assert [message["end_of_stream"] for message in messages] == [*[False] * 4, True, False, False]
    assert messages[-1]["response"] == "d1.txt"
    assert {message["explain_collection"] for message in messages} == {"explainability"}


def test_the_events_triples_are_the_traces(told: Told, trace: Trace) -> None:
    """What the events told one by one is what the whole trace exports."""
    assert [triple for event in told() for triple in event.triples] == list(trace_triples(trace))


def test_keywords_tell_their_concepts() -> None:
    """The keywords event names every keyword once."""
    event = KeywordsFound("1", Keywords(("discovery",), ("Marie Curie", "discovery")))

    concepts = [str(t.object[0]) for t in event.triples if t.predicate.endswith("concept")]

    assert concepts == ["discovery", "Marie Curie"]


def test_a_killed_query_leaves_an_incomplete_trace(told: Told) -> None:
    """Whatever prefix of its events was committed folds into a trace that says how far it came."""
    events = told()
    for length in range(1, len(events)):
        trace = fold(events[:length])
        assert trace.status == "incomplete"
        assert (trace.answer is None) == (length < 6)


def test_a_failure_is_on_record(told: Told) -> None:
    """An end with an error makes the trace failed, and its message carries the error."""
    end = End("0001", NOON, error="LLMError: no route")

    trace = fold([*told()[:3], end])

    assert (trace.status, trace.error) == ("failed", "LLMError: no route")
    assert end.to_message()["error"] == "LLMError: no route"


def test_an_event_of_another_query_is_refused(told: Told) -> None:
    """Traces cannot mix."""
    with pytest.raises(ValueError, match="0002"):
        fold([*told(), Answered("0002", "Someone else's answer.")])


def test_a_trace_begins_with_its_session(told: Told) -> None:
    """No session, no trace."""
    with pytest.raises(ValueError, match="session"):
        fold(told()[1:])


awkward = st.text(st.characters(codec=None), max_size=12)


@given(question=awkward, piece=awkward, reason=awkward, error=st.none() | awkward)
def test_json_round_trip(question: str, piece: str, reason: str, error: str | None) -> None:
    """A trace and its events come back from JSON as they were, whatever their texts."""
    session = Session("1", question, "naive", NOON)
    events: list[Event] = [
        session,
        KeywordsFound("1", Keywords((piece,), (reason,))),
        AnswerChunk("1", piece),
        Answered("1", piece, invented=(3,), usage=Usage(1, 2, 3, 4)),
        End("1", NOON, (reason,), error),
    ]
    trace = replace(fold(events), rejections=(Rejection(1, piece, "unknown_id", reason),))

    assert trace_from_json(trace_to_json(trace)) == trace
    assert [event_from_json(event_to_json(event)) for event in events] == events


def test_the_whole_example_survives_json(trace: Trace, told: Told) -> None:
    """Edges, shown items and citations come back as the same values."""
    assert trace_from_json(trace_to_json(trace)) == trace
    assert fold(event_from_json(event_to_json(event)) for event in told()) == trace


def test_unknown_and_missing_fields_do_not_stop_reading() -> None:
    """A trace of another version loads: what it lacks is empty, what it adds is ignored."""
    text = '{"id":"1","question":"q","mode":"mix","started_at":"2026-01-02T12:00:00+00:00","new":1}'

    assert trace_from_json(text) == Trace("1", "q", "mix", NOON)


@pytest.mark.parametrize(
    "fields",
    [
        '"question":5',
        '"question":null',
        '"invented":["<script>"]',
        '"shown":[{"number":"1\\"><b>","kind":"entity","id":"e","label":"e"}]',
        '"citations":{}',
        '"sources":"abc"',
        '"status":["failed"]',
        '"started_at":7',
        '"started_at":"noon"',
        '"keywords":[]',
        '"error":' + "[" * 100_000,
    ],
)
def test_a_trace_from_elsewhere_holds_what_its_types_say(fields: str) -> None:
    """Text that says anything else of a field is refused, so nothing hides behind a number."""
    text = '{"id":"1","question":"q","mode":"mix","started_at":"2026-01-02T12:00:00+00:00",'

    with pytest.raises(ValueError):
        trace_from_json(text + fields + "}")


def test_an_event_of_no_stage_is_refused() -> None:
    """An event that no version ever wrote is a `ValueError` that names its stage."""
    with pytest.raises(ValueError, match="encore"):
        event_from_json('{"stage":"encore","event":{"trace_id":"1"}}')
