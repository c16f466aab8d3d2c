"""Equal questions at once are one, and a client that leaves ends the model's call."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from tests.server.running import PacedLLM, Running, parse_events, serving_model, wait_for
from tests.server.test_connections import connected, post

ASK = {"question": "Where was Marie Curie born?", "mode": "naive"}


@pytest.fixture
def llm() -> PacedLLM:
    return PacedLLM()


@pytest.fixture
def paced(kb: Path, llm: PacedLLM) -> Iterator[Running]:
    with serving_model(kb, llm) as server:
        yield server


def until(parts: Iterator[str], word: str) -> str:
    """What a stream sends until a word; who still holds `parts` has not left."""
    text = ""
    for part in parts:
        text += part
        if word in text:
            return text
    raise AssertionError(f"no {word} in {text}")


def test_equal_questions_share_a_call_and_both_get_the_first_word(
    paced: Running, llm: PacedLLM
) -> None:
    """The second client joins while the first is being answered, and misses nothing."""
    found: list[str] = []
    with paced.client.stream("POST", "/indexes/kb/stream", json=ASK) as first:
        parts = first.iter_text()
        llm.turns.release()
        text = until(parts, "one")
        second = threading.Thread(
            target=lambda: found.append(paced.client.post("/indexes/kb/stream", json=ASK).text)
        )
        second.start()
        shared = 'lightrag_questions_shared_total{index="kb"} 1'
        wait_for(lambda: shared in paced.client.get("/metrics").text)
        llm.turns.release(2)
        text += "".join(parts)
        second.join()

    assert parse_events(text) == parse_events(found[0]) and len(llm.calls) == 1
    pieces = [value["text"] for name, value in parse_events(text) if name == "piece"]
    assert "".join(pieces).strip() == "one two three"


@pytest.mark.parametrize("path", ["/indexes/kb/stream", "/v1/chat/completions", "/api/chat"])
def test_client_that_leaves_a_stream_cancels_the_call(
    paced: Running, llm: PacedLLM, path: str
) -> None:
    """Nobody pays for what nobody reads; the question stays on record as incomplete."""
    turns = [{"role": "user", "content": ASK["question"]}]
    chat = {"model": "kb:naive", "messages": turns, "stream": True}
    llm.turns.release()
    with paced.client.stream("POST", path, json=ASK if "indexes" in path else chat) as response:
        until(response.iter_text(), "one")

    wait_for(lambda: llm.cancelled)
    assert paced.get("/indexes/kb/traces")[0]["status"] == "incomplete"
    idle = "lightrag_questions_in_flight 0.0"
    wait_for(lambda: idle in paced.client.get("/metrics").text)


def test_client_that_leaves_before_the_first_word_cancels_the_call(
    paced: Running, llm: PacedLLM
) -> None:
    """Also where nothing was sent yet: a request without a stream is watched, too."""
    with connected(paced.url, 1) as (client,):
        client.sendall(post("/indexes/kb/query", ASK))
        wait_for(lambda: llm.calls)
    wait_for(lambda: llm.cancelled)


def test_call_goes_on_for_the_client_that_stays(paced: Running, llm: PacedLLM) -> None:
    """One of two clients leaves: the other gets its answer, and the model was asked once."""
    found: list[str] = []
    with paced.client.stream("POST", "/indexes/kb/stream", json=ASK) as leaving:
        llm.turns.release()
        parts = leaving.iter_text()
        until(parts, "one")
        stays = threading.Thread(
            target=lambda: found.append(paced.post("/indexes/kb/query", ASK)["text"])
        )
        stays.start()
        shared = 'lightrag_questions_shared_total{index="kb"} 1'
        wait_for(lambda: shared in paced.client.get("/metrics").text)
    wait_for(lambda: "in_flight 1.0" in paced.client.get("/metrics").text)
    llm.turns.release(2)
    stays.join()

    assert found == ["one two three"] and len(llm.calls) == 1 and llm.cancelled == 0
