"""Events, and the trace assembled from them."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.types import Keywords
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.tracing.events import (
    AnswerChunk,
    Answered,
    End,
    Event,
    KeywordsFound,
    Session,
    event_from_json,
    event_to_json,
)
from lightrag_jsonl.tracing.export import trace_triples
from lightrag_jsonl.tracing.trace import Trace, assemble_trace

from .conftest import NOON, REASON, Events

KEYS = {
    "error",
    "response",
    "end_of_stream",
    "explain_id",
    "explain_collection",
    "message_type",
    "end_of_session",
}


def test_messages_have_the_keys_of_the_specification(events: Events) -> None:
    """Every event gives the same seven keys; explaining ones carry their URI, the last one ends."""
    messages = [event.to_message() for event in events()]

    assert all(set(message) == KEYS for message in messages)
    kinds = ["explain", "explain", "explain", "chunk", "chunk", "explain", "chunk"]
    assert [message["message_type"] for message in messages] == kinds
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


def test_the_events_triples_are_the_traces(events: Events, trace: Trace) -> None:
    """What the events state one by one is what the whole trace exports; keywords are stated once."""
    stated = [triple for event in events() for triple in event.triples]
    assert stated == list(trace_triples(trace))

    words = KeywordsFound("1", Keywords(("discovery",), ("Marie Curie", "discovery")))
    concepts = [value for _, name, value in words.triples if name.endswith("concept>")]
    assert concepts == ['"discovery"', '"Marie Curie"']


def test_a_killed_query_leaves_an_incomplete_trace(events: Events) -> None:
    """Whatever prefix of its events was stored becomes a trace that shows how far it came."""
    recorded = events()
    for length in range(1, len(recorded)):
        trace = assemble_trace(recorded[:length])
        assert trace.status == "incomplete"
        assert (trace.answer is None) == (length < 6)


def test_a_failure_is_on_record(events: Events) -> None:
    """An end with an error makes the trace failed, and its message carries the error."""
    end = End("0001", NOON, error="LLMError: no route", usage=Usage(calls=1))

    trace = assemble_trace([*events()[:3], end])

    assert (trace.status, trace.error, trace.usage.calls) == ("failed", "LLMError: no route", 1)
    assert end.to_message()["error"] == "LLMError: no route"


def test_a_trace_begins_with_its_session(events: Events) -> None:
    """Events without it are no trace."""
    for wrong in (events()[1:], ()):
        with pytest.raises(ValueError, match="session"):
            assemble_trace(wrong)


awkward = st.text(st.characters(codec="utf-8"), max_size=12)


@given(question=awkward, piece=awkward, reason=awkward, error=st.none() | awkward)
def test_json_round_trip(question: str, piece: str, reason: str, error: str | None) -> None:
    """Events come back from JSON as they were, whatever their texts."""
    events: list[Event] = [
        Session("1", question, "naive", NOON),
        KeywordsFound("1", Keywords((piece,), (reason,))),
        AnswerChunk("1", piece),
        Answered("1", piece, invented=(3,)),
        End("1", NOON, (reason,), error, Usage(1, 2, 3, 4)),
    ]

    assert [event_from_json(event_to_json(event)) for event in events] == events


def test_the_whole_example_survives_json(trace: Trace, events: Events) -> None:
    """Edges with their reasons, shown items and citations come back as the same values."""
    assert assemble_trace(event_from_json(event_to_json(event)) for event in events()) == trace
    assert json.loads(json.dumps(asdict(trace), default=str))["shown"][0]["number"] == 1
    assert [chosen.reasoning for chosen in trace.selected] == [REASON]
    assert [citation.text for citation in trace.citations] == ["Marie Curie discovered radium."]


def test_what_utf8_cannot_hold_is_replaced() -> None:
    """Half an emoji in an error message does not cost the trace."""
    end = event_from_json(event_to_json(End("1", NOON, error="no \ud83e here")))

    assert end == End("1", NOON, error="no \ufffd here")


def test_unknown_and_missing_fields_do_not_stop_reading() -> None:
    """An event of another version loads: what it lacks is empty, what it adds is ignored."""
    text = '{"stage":"answer","trace_id":"1","answer":"Radium.","new":1}'

    assert event_from_json(text) == Answered("1", "Radium.")


@pytest.mark.parametrize(
    "text",
    [
        '{"stage":"encore","trace_id":"1"}',
        '{"stage":"answer","trace_id":"1","answer":5}',
        '{"stage":"answer","trace_id":"1","answer":"a","invented":["<script>"]}',
        '{"stage":"end","trace_id":"1","ended_at":"noon"}',
        '{"stage":"end","trace_id":"1"',
        "{}",
    ],
)
def test_an_event_holds_what_its_types_say(text: str) -> None:
    """Text that holds anything else is refused, so nothing hides behind a number."""
    with pytest.raises(ValueError):
        event_from_json(text)
