"""Dify's protocol of external knowledge, and the messages of the explainability specification."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl.testing import ScriptedLLM
from tests.server.running import Running, serving, serving_model

ASKED = {"knowledge_id": "kb", "query": "What did Marie Curie discover?"}


def condition(name: str, operator: str, value: Any = None) -> dict[str, Any]:
    return {"name": [name], "comparison_operator": operator, "value": value}


def test_passages_are_found_in_the_form_of_dify(server: Running) -> None:
    """With title, score from 0 to 1 and the metadata of the document, the best first."""
    setting = {"top_k": 2, "score_threshold": 0.0}
    records = server.post("/retrieval", {**ASKED, "retrieval_setting": setting})["records"]
    assert 1 <= len(records) <= 2 and records[0]["score"] == 1.0
    assert "radium" in records[0]["content"] and records[0]["title"] == "Curie"
    assert records[0]["metadata"]["year"] == 1934
    assert records[0]["metadata"]["document_id"] == "curie"
    chinese = {"knowledge_id": "kb:naive", "query": "张骞出使西域"}
    assert server.post("/retrieval", chinese)["records"][0]["title"] == "张骞传"


@pytest.mark.parametrize(
    ("conditions", "titles"),
    [
        ([condition("year", ">", "1000")], {"Curie"}),
        ([condition("year", "≤", 100)], {"张骞传"}),
        ([condition("document_name", "is", "张骞传")], {"张骞传"}),
        ([condition("year", "empty")], set()),
        ([condition("date", "after", "1900"), condition("date", "before", "2000")], {"Curie"}),
        ([condition("date", "≥", "1934")], {"Curie"}),
        ([condition("year", "in", [100, 5])], {"张骞传"}),
        ([condition("document_name", "contains", "骞")], {"张骞传"}),
        ([condition("document_name", "not contains", "骞")], {"Curie"}),
        (
            [condition("date", "start with", "1934-"), condition("date", "end with", "04")],
            {"Curie"},
        ),
    ],
)
def test_conditions_on_metadata_are_filters(
    server: Running, conditions: list[dict[str, Any]], titles: set[str]
) -> None:
    """Numbers as texts, ranges, names of documents, and fields that are not there."""
    asked = {**ASKED, "metadata_condition": {"logical_operator": "and", "conditions": conditions}}
    records = server.post("/retrieval", asked)["records"]
    assert {record["title"] for record in records} == titles


def test_other_conditions_are_refused_in_words(server: Running) -> None:
    """Rather than ignored: a filter that does not hold would show what nobody may see."""
    for conditions, operator, words in (
        ([condition("a", "sounds like", "b")], "and", "sounds like"),
        ([condition("a", ">", "many")], "and", "no number"),
        ([condition("a", "is", value) for value in "bc"], "and", "cannot be joined"),
        ([condition(name, "is", "x") for name in "ab"], "or", '"or" of several'),
    ):
        refused = {"logical_operator": operator, "conditions": conditions}
        reply = server.post("/retrieval", {**ASKED, "metadata_condition": refused}, 400)
        assert words in reply["error_msg"]


def test_errors_have_the_codes_of_dify(kb: Path) -> None:
    """Of a missing index and of a wrong key."""
    with serving(kb, token="a-token-for-this-test") as server:
        error = server.post("/retrieval", {**ASKED, "knowledge_id": "other"}, 404)
        assert error["error_code"] == 2001 and "other" in error["error_msg"]
        wrong = server.client.post("/retrieval", json=ASKED, headers={"X-API-Key": "wrong"})
        assert wrong.status_code == 401 and wrong.json()["error_code"] == 1002


def messages(server: Running, question: str) -> list[dict[str, Any]]:
    asked = {"question": question}
    text = server.client.post("/indexes/kb/stream?form=messages", json=asked).text
    return [json.loads(block.removeprefix("data: ")) for block in text.split("\n\n") if block]


def test_a_stream_of_messages_explains_the_answer(server: Running) -> None:
    """Records with their URIs, then the text, and exactly one end of the session, with the sources."""
    received = messages(server, "Where was Marie Curie born?")
    explaining = [message for message in received if message["message_type"] == "explain"]
    stages = [message["explain_id"].split(":")[-2] for message in explaining]
    assert stages[0] == "session" and {"retrieval", "selection", "answer"} <= {*stages}
    text = "".join(m["response"] for m in received[:-1] if m["message_type"] == "chunk")
    assert "Warsaw" in text
    assert [message["end_of_session"] for message in received].count(True) == 1
    assert received[-1]["end_of_session"] and "Curie" in received[-1]["response"]


def test_a_failed_stream_of_messages_ends_with_the_error(kb: Path) -> None:
    """Once, in the last message, without a folder of this machine."""

    def fail(request: object) -> str:
        raise RuntimeError(f"no model at {kb}/x")

    with serving_model(kb, ScriptedLLM(fail)) as server:
        received = messages(server, "Where was Marie Curie born?")
    assert [message["end_of_session"] for message in received].count(True) == 1
    assert received[-1]["end_of_session"] and "no model at kb/x" in received[-1]["error"]
