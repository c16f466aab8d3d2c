"""Events, and the trace assembled from them."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lightrag_jsonl import Document, Keywords, LightRAG, Trace, Usage
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.tracing.events import (
    Answered,
    End,
    KeywordsFound,
    event_from_json,
    event_to_json,
)
from lightrag_jsonl.tracing.export import trace_triples
from lightrag_jsonl.tracing.trace import assemble_trace

from .conftest import NOON, Events
from .curie import ENGLISH

KEYS = "error response end_of_stream explain_id explain_collection message_type end_of_session"


def test_messages_have_the_keys_of_the_specification(events: Events) -> None:
    """Every event gives the same seven keys; explaining ones carry their URI, the last one ends."""
    messages = [event.to_message() for event in events]

    assert all(" ".join(message) == KEYS for message in messages)
    kinds = [*["explain"] * 4, "chunk", "chunk", "explain", "chunk"]
    assert [message["message_type"] for message in messages] == kinds
    assert [message["explain_id"] for message in messages if message["explain_id"]] == [
        "urn:trustgraph:session:0001",
        "urn:trustgraph:prov:keywords:0001",
        "urn:trustgraph:prov:retrieval:0001",
        "urn:trustgraph:prov:selection:0001",
        "urn:trustgraph:prov:answer:0001",
    ]
    assert [message["end_of_session"] for message in messages] == [*[False] * 7, True]
    assert [message["end_of_stream"] for message in messages] == [*[False] * 5, True, False, False]
    assert messages[-1]["response"] == "d1.txt"
    assert {message["explain_collection"] for message in messages} == {"explainability"}
    mine = events[0].to_message(explain_collection="mine")
    assert mine == {**messages[0], "explain_collection": "mine"}


def test_the_events_triples_are_the_traces(events: Events, trace: Trace) -> None:
    """What the events state one by one is what the whole trace exports; keywords are stated once."""
    for wrong in (events[1:], ()):
        with pytest.raises(ValueError, match="session"):
            assemble_trace(wrong)
    others = [event for event in events if not isinstance(event, KeywordsFound)]
    stated = [triple for event in others for triple in event.triples]
    assert stated == list(trace_triples(trace))
    assert [chosen.reasoning for chosen in trace.selected] == [ENGLISH.reason]

    words = KeywordsFound("1", Keywords(("discovery",), ("Marie Curie", "discovery")))
    concepts = [value for _, name, value in words.triples if name.endswith("concept>")]
    assert concepts == ['"discovery"', '"Marie Curie"']


awkward = st.text(st.characters(codec=None, exclude_characters="\0"), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(error=awkward)
def test_any_event_comes_back_from_json(events: Events, error: str) -> None:
    """Whatever its texts; what UTF-8 cannot hold is replaced. An event of another version loads:
    what it lacks is empty, what it adds is ignored.
    """
    for event in (*events, KeywordsFound("1", Keywords(("话题",), ("名",)))):
        assert event_from_json(event_to_json(event)) == event
    end = End("1", NOON, error=error, usage=Usage(1, 2, 3, 4))
    assert event_from_json(event_to_json(end)) == msgspec.structs.replace(
        end, error=sanitize(error)
    )
    assert event_from_json('{"stage":"answer","trace_id":"1","answer":"Ra","new":1}') == Answered(
        "1", "Ra"
    )


def test_a_text_that_nobody_named_is_shown_by_its_first_words(tmp_path: Path) -> None:
    """In citations and traces, also if its id is a digest; another id that the caller gave stays."""
    text = "Marie Curie discovered polonium and radium. She was born in Warsaw."
    for folder, one, name in (
        ("a", text, "Marie Curie discovered polonium and…"),
        ("c", Document(text, id="doc-" + "0a" * 16), "Marie Curie discovered polonium and…"),
        ("b", Document(text, id="doc-1"), "doc-1"),
    ):
        with LightRAG(tmp_path / folder) as rag:
            rag.insert(one)
            answer = rag.query("What did Marie Curie discover?", explain=True)
            assert answer.trace_id is not None
            [found] = rag.traces.sources(rag.traces.get(answer.trace_id)).documents.values()
            assert (answer.citations[0].document, found.name) == (name, name)
            assert answer.citations[0].document_id == found.id
