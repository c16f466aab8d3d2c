"""Servers, proxies and certificates that are not as they should be: told, and never waited for without end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from lightrag_jsonl.adapters import OpenAIEmbedder, OpenAILLM, endpoint
from lightrag_jsonl.errors import ConfigError, LLMError
from lightrag_jsonl.types import Message, Usage
from tests.servers import Reply, ScriptedServer, chat_reply, stream_reply

Value = TypeVar("Value")
QUESTION = (Message("user", "谁是乔峰？"),)


def model(server: ScriptedServer, **options: float) -> OpenAILLM:
    settings = {"max_retries": 0, **options}
    return OpenAILLM("m", base_url=server.base_url, **settings)  # type: ignore[arg-type]


def run(coroutine: Awaitable[Value]) -> Value:
    async def main() -> Value:
        return await coroutine

    return asyncio.run(main())


def events_reply(pieces: list[str], kind: str = "text/event-stream") -> Reply:
    """A stream whose JSON is ASCII, called what you like."""
    events = stream_reply(pieces).events or ()
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Reply(body, headers={"Content-Type": kind})


async def told(llm: OpenAILLM) -> tuple[str, Usage]:
    """What a stream says, and what it cost."""
    pieces = llm.stream(QUESTION)
    return "".join([piece async for piece in pieces]), pieces.usage


# ── answers ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_trickles_for_ever_comes_to_an_end(
    streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte, or a comment, in time each time: no slot is held for ever."""
    monkeypatch.setattr(endpoint, "TRICKLE", 1)
    reply = Reply(b": wait\n\n" * 1_000, headers={"Content-Type": "text/event-stream"}, pause=0.02)
    with ScriptedServer([reply]) as server:
        llm = model(server, timeout=1.5)
        with pytest.raises(LLMError, match="trickles and comes to no end"):
            run(told(llm)) if streamed else run(llm.complete(QUESTION))


def test_who_does_not_stream_tells_it_all_at_once() -> None:
    """Some servers pass over the wish for a stream: the answer is paid for, and told."""
    with ScriptedServer([chat_reply("乔峰是大侠。")]) as server:
        assert run(told(model(server))) == ("乔峰是大侠。", Usage(7, 5, calls=1))


def test_events_that_are_called_json_are_events() -> None:
    """As some servers have it."""
    reply = events_reply(["乔", "峰"], "application/json; charset=utf-8")
    with ScriptedServer([reply]) as server:
        assert run(told(model(server)))[0] == "乔峰"


def test_a_page_in_place_of_a_stream_is_told_as_one() -> None:
    """What is wrong is the base URL, as without a stream."""
    with (
        ScriptedServer([Reply("<!DOCTYPE html><p>hi")]) as server,
        pytest.raises(LLMError, match="HTML page; check the base URL") as caught,
    ):
        run(told(model(server)))
    assert not caught.value.transient


def test_what_was_told_to_its_end_is_an_answer() -> None:
    """A connection that breaks, or falls silent, once the model has said why it stopped."""
    whole = stream_reply(["乔", "峰"])
    for reply in (Reply(events=whole.events, cut_after=3), Reply(events=whole.events, done=False)):
        with ScriptedServer([reply]) as server:
            assert run(told(model(server)))[0] == "乔峰"


def test_halves_of_an_emoji_are_put_together() -> None:
    """Some servers cut between them; half of one at the end is told as it is."""
    pieces = ["a\ud83c", "\udf0db", "\ud83c", "", "c\ud83c"]
    with ScriptedServer([events_reply(pieces)]) as server:
        assert run(told(model(server)))[0] == "a🌍b\ud83cc\ud83c"


@pytest.mark.parametrize(
    ("status", "words"), [(302, "check the base URL"), (410, "the server refused the request")]
)
def test_other_refusals_are_no_failures_of_the_server(status: int, words: str) -> None:
    """Nothing was tried again, and nothing is to be tried later."""
    with (
        ScriptedServer([Reply({"error": "x"}, status=status)]) as server,
        pytest.raises(LLMError, match=f"HTTP {status}: {words}"),
    ):
        run(model(server).complete(QUESTION))


# ── the environment ─────────────────────────────────────────────────────────────


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "ftp://proxy"),
        ("HTTP_PROXY", "http://[::x"),
        ("SSL_CERT_FILE", __file__),
    ],
)
def test_an_environment_that_cannot_be_used_is_told(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks, and before anything is sent: it concerns every call alike."""
    monkeypatch.setenv(name, value)
    with ScriptedServer() as server:
        with pytest.raises(ConfigError, match=rf"127\.0\.0\.1.*{name}"):
            run(model(server).complete(QUESTION))
        with pytest.raises(ConfigError, match=rf"127\.0\.0\.1.*{name}"):
            _ = OpenAIEmbedder("e", base_url=server.base_url).dim
    assert not server.requests


@pytest.mark.parametrize("excepted", ["", "127.0.0.1", "*"])
def test_a_proxy_that_cannot_be_reached_is_named(
    excepted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may well be running: it is not asked itself; its address and key stay untold."""
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", excepted)
    with ScriptedServer() as server:
        address = server.base_url
    with pytest.raises(LLMError, match="no connection") as caught:
        run(OpenAILLM("m", base_url=address, max_retries=0).complete(QUESTION))
    assert ("NO_PROXY" in str(caught.value)) == (not excepted)
    assert "secret" not in str(caught.value)
