"""OpenAILLM against a server that plays a script."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import TypeVar

import openai
import pytest

from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.protocols import ConstrainedLLM, StreamingLLM
from lightrag_jsonl.core.types import Completion, Message
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.providers import OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.providers.openai import read_completion
from tests.processes import run_python
from tests.servers import (
    Reply,
    ScriptedServer,
    Step,
    chat_reply,
    embedding_reply,
    error_reply,
    stream_reply,
)

Value = TypeVar("Value")
KEY = "sk-test-0123456789abcdef"
QUESTION = (Message("system", "Be brief."), Message("user", "谁是乔峰？🌍"))
SCHEMA = {
    "type": "object",
    "properties": {"type": {"const": "entity"}, "name": {"type": "string"}},
    "required": ["type", "name"],
}


def model(server: ScriptedServer, **options: object) -> OpenAILLM:
    settings = {"base_url": server.base_url, "api_key": KEY, "max_retries": 0, **options}
    return OpenAILLM("m", **settings)  # type: ignore[arg-type]


def run(coroutine: Awaitable[Value]) -> Value:
    async def main() -> Value:
        return await coroutine

    return asyncio.run(main())


def fails(*replies: Step, **options: object) -> LLMError:
    """The error that one question ends in."""
    with ScriptedServer(replies) as server, pytest.raises(LLMError) as caught:
        run(model(server, **options).complete(QUESTION))
    return caught.value


async def collect(llm: OpenAILLM, **options: int) -> list[str]:
    return [piece async for piece in llm.stream(QUESTION, **options)]


# ── answers ─────────────────────────────────────────────────────────────────────


def test_it_is_every_kind_of_model_port() -> None:
    """The provider can stream and can be constrained."""
    llm = OpenAILLM("m")

    assert isinstance(llm, StreamingLLM) and isinstance(llm, ConstrainedLLM)
    assert llm.name == "m" and OpenAILLM("m", name="mine").name == "mine"


def test_the_answer_keeps_text_finish_and_usage() -> None:
    """Text, finish reason and all token counts reach the caller as the server gave them."""
    reply = chat_reply("乔峰。🌍", prompt_tokens=30, completion_tokens=4, cached_tokens=20)
    with ScriptedServer([reply]) as server:
        answer = run(model(server, extra_body={"seed": 1}).complete(QUESTION, max_tokens=9))

    assert answer == Completion("乔峰。🌍", "stop", Usage(30, 4, 20, calls=1))
    (body,) = server.bodies
    assert body.pop("stream", False) is False
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "谁是乔峰？🌍"},
        ],
        "temperature": 0.0,
        "max_tokens": 9,
        "seed": 1,
    }
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_cut_answer_says_so() -> None:
    """An answer that met the token limit finishes with "length", even if nothing but thought came."""
    replies = [chat_reply("half", finish="length"), chat_reply(None, finish="length")]
    with ScriptedServer(replies) as server:
        llm = model(server)

        assert run(llm.complete(QUESTION)) == Completion("half", "length", Usage(7, 5, 0, 1))
        assert run(llm.complete(QUESTION)).text == ""


def test_usage_in_other_words_or_absent() -> None:
    """DeepSeek's name for cached tokens is understood; a server that counts nothing is fine."""
    choices = [{"message": {"content": [{"type": "text", "text": "a"}]}, "finish_reason": "stop"}]
    counted = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}
    replies = [Reply({"choices": choices, "usage": counted}), Reply({"choices": choices})]
    with ScriptedServer(replies) as server:
        llm = model(server)

        assert run(llm.complete(QUESTION)) == Completion("a", usage=Usage(9, 1, 8, 1))
        assert run(llm.complete(QUESTION)) == Completion("a", usage=Usage(calls=1))


@pytest.mark.parametrize("count", ["NaN", "1e999", "-5", "9" * 400, '"7"', "[7]", "null"])
def test_a_senseless_count_does_not_cost_the_answer(count: str) -> None:
    """What a server says of tokens may be anything: the answer that was paid for is kept."""
    body = '{"choices":[{"message":{"content":"a"},"finish_reason":[]}],"usage":{"prompt_tokens":'
    reply = Reply(f"{body}{count}" + "}}", headers={"Content-Type": "application/json"})
    with ScriptedServer([reply]) as server:
        assert run(model(server).complete(QUESTION)) == Completion("a", usage=Usage(calls=1))


def test_half_a_surrogate_pair_is_replaced() -> None:
    """In a prompt, since UTF-8 cannot hold it, and in an answer that was cut off in an emoji."""
    body = r'{"choices":[{"message":{"content":"\ud83c乔峰"},"finish_reason":"stop"}]}'
    with ScriptedServer([Reply(body, headers={"Content-Type": "application/json"})]) as server:
        answer = run(model(server).complete([Message("user", "a\ud800b")]))

    assert answer.text == "\ufffd乔峰"
    assert server.bodies[0]["messages"][0]["content"] == "a\ufffdb"


def test_what_would_be_sent_can_be_sent_in_another_way() -> None:
    """A batch file gets the same body, and its answers are read alike."""
    with ScriptedServer([chat_reply("乔峰")]) as server:
        llm = model(server)
        whole = run(llm.complete(QUESTION, max_tokens=3))

    assert llm.request_body(QUESTION, max_tokens=3).items() <= server.bodies[0].items()
    assert read_completion(chat_reply("乔峰").body) == whole


# ── retries and refusals ────────────────────────────────────────────────────────


def test_what_fails_in_passing_is_asked_again() -> None:
    """By the SDK, up to `max_retries` times, after the wait that the server asks for."""
    busy = error_reply(429, "slow down", retry_after="0.015")
    with ScriptedServer([busy, busy, chat_reply("ok")]) as server:
        assert run(model(server, max_retries=2).complete(QUESTION)).text == "ok"

    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7.0), ("nan", None), ("inf", None), ("-1", None), ("soon", None)]
)
def test_a_rate_limit_that_stays_is_transient(asked: str, seconds: float | None) -> None:
    """When retries are used up, the caller learns that, and how long to wait if that is known."""
    error = fails(error_reply(429, "slow down", retry_after=asked))

    assert error.transient and error.retry_after == seconds
    assert "429" in str(error) and "slow down" in str(error)


@pytest.mark.parametrize(
    ("reply", "flags", "words"),
    [
        (error_reply(400, "nope"), "", ["400", "nope"]),
        (error_reply(400, "x", code="context_length_exceeded"), "", ["too long", "chunks"]),
        (error_reply(401, "bad key"), "permanent", ["401", "api_key="]),
        (error_reply(402, "pay"), "permanent", ["no credit"]),
        (error_reply(403, "no access"), "", ["403", "may not use"]),
        (error_reply(404, "no such model"), "permanent", ["model's name", "base URL", "no such"]),
        (error_reply(429, "quota", code="insufficient_quota"), "permanent", ["no credit"]),
        (error_reply(500, "oops"), "transient", ["500", "oops"]),
        (Reply("<html>Bad gateway</html>", status=502), "transient", ["502", "HTML"]),
        (Reply({"detail": [{"loc": "body"}]}, status=422), "", ["422", "loc"]),
        (Reply({"error": "x"}, status=410), "", ["410", "refused the request"]),
        (Reply("<!DOCTYPE html><p>hi"), "", ["HTML", "base URL"]),
        (Reply("hello", headers={"Content-Type": "application/json"}), "", ["no JSON"]),
        (Reply(b""), "", ["no JSON"]),
        (Reply([1]), "", ["no JSON"]),
        (Reply({"id": "x"}), "transient", ["no choices"]),
        (Reply({"choices": []}), "transient", ["no choices"]),
        (Reply({"choices": None, "error": {"message": "upstream"}}), "transient", ["upstream"]),
        (chat_reply(None), "", ["no text"]),
        (chat_reply(None, finish="content_filter"), "", ["content_filter"]),
        (Reply({"choices": [{"message": {"refusal": "I will not"}}]}), "", ["I will not"]),
        (Reply({"a": 1}, cut_after=4), "", ["connection broke before"]),
        (Reply({}, delay=30), "", ["raise the timeout"]),
    ],
)
def test_failures_say_where_and_what_to_do(reply: Reply, flags: str, words: list[str]) -> None:
    """Each way to fail is an LLMError that names the host and says what to do."""
    error = fails(reply, timeout=0.5)

    assert str(error).startswith("127.0.0.1:")
    assert error.transient is ("transient" in flags)
    assert error.permanent is ("permanent" in flags)
    assert all(word in str(error) for word in words), str(error)


def test_nobody_listens() -> None:
    """A server that is not there is a transient error that says so, and costs nothing."""
    with ScriptedServer() as server:
        address = server.base_url
    with pytest.raises(LLMError, match="is the server running") as caught:
        run(OpenAILLM("m", base_url=address, max_retries=0).complete(QUESTION))

    assert caught.value.transient and caught.value.cost == Usage()


def test_a_server_without_tls_is_no_secure_one() -> None:
    """The advice is about certificates and the URL, not about retries."""
    with ScriptedServer() as server:
        address = server.base_url.replace("http:", "https:")
        with pytest.raises(LLMError, match=r"^127\.0\.0\.1:.*no secure connection") as caught:
            run(OpenAILLM("m", base_url=address, max_retries=0).complete(QUESTION))
    assert not caught.value.transient


@pytest.mark.parametrize(
    ("reply", "cost"),
    [
        (Reply({}, delay=30), Usage(calls=1)),
        (Reply({"a": 1}, cut_after=4), Usage(calls=1)),
        (error_reply(504, "the upstream took too long"), Usage(calls=1)),
        (error_reply(500, "oops"), Usage()),
        (error_reply(429, "slow down"), Usage()),
        (Reply({"choices": [], "usage": {"prompt_tokens": 7}}), Usage(7, calls=1)),
        (chat_reply(None, finish="content_filter"), Usage(7, 5, calls=1)),
        (Reply({"error": {"message": "overloaded"}}), Usage()),
    ],
)
def test_a_failed_call_costs_what_it_may_have_cost(reply: Reply, cost: Usage) -> None:
    """One call if the answer came too late or not whole; its tokens, if they are known; a refusal
    costs nothing.
    """
    assert fails(reply, timeout=0.3).cost == cost


def test_a_reasoning_model_is_met_halfway() -> None:
    """A refusal of max_tokens or temperature is answered once, and remembered."""

    def picky(request: object) -> Reply:
        body = server.bodies[-1]
        if "max_tokens" in body:
            return error_reply(400, "Unsupported 'max_tokens': use 'max_completion_tokens'.")
        if "temperature" in body:
            return error_reply(400, "'temperature' does not support 0.0 with this model.")
        return chat_reply("ok")

    with ScriptedServer(respond=picky) as server:
        llm = model(server)
        assert run(llm.complete(QUESTION, max_tokens=5)).text == "ok"
        assert len(server.bodies) == 3
        assert run(llm.complete(QUESTION, max_tokens=6)).text == "ok"

    assert len(server.bodies) == 4
    assert server.bodies[-1]["max_completion_tokens"] == 6
    assert not {"max_tokens", "temperature"} & server.bodies[-1].keys()


# ── keys and hosts ──────────────────────────────────────────────────────────────


def test_a_key_is_never_shown(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in an error, its causes, the log or the repr, even where the server repeats it."""
    caplog.set_level(logging.DEBUG, logger="lightrag_jsonl")
    error = fails(error_reply(401, f"Incorrect API key provided: {KEY}"))
    other = fails(error_reply(400, f"who is {KEY} or sk-proj-***abcdef?"))
    plain = fails(error_reply(400, "I know 0123456789"), api_key="0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "abcdefgh")
    environment = fails(error_reply(400, "I know abcdefgh"))

    assert error.__cause__ is None and error.__suppress_context__
    shown = f"{error}{other}{plain}{environment}{caplog.text}{OpenAILLM('m', api_key=KEY)!r}"
    assert not any(secret in shown for secret in ("sk-", "0123456789", "abcdefgh"))


def test_without_a_key_it_says_what_to_do() -> None:
    """The constructor needs no key and reads no environment; the first call says what is missing."""
    with pytest.raises(ConfigError, match=r"api\.openai\.com.*OPENAI_API_KEY"):
        run(OpenAILLM("gpt-4o-mini").complete(QUESTION))


@pytest.mark.parametrize("url", ["http://[::1/v1", "http://h:99999", "http://h:x", "http://", "h"])
def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    """The constructor says so, before anything is sent anywhere."""
    with pytest.raises(ConfigError, match="no URL such as http"):
        OpenAILLM("m", base_url=url)


@pytest.mark.parametrize("named", [False, True])
def test_the_environments_key_is_for_the_server_it_names(
    named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of one's own gets the key only if OPENAI_BASE_URL names it, and says so otherwise."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    refusal = Reply({"error": {"message": "Incorrect API key provided: no-key"}}, status=401)
    with ScriptedServer(respond=lambda request: refusal) as server:
        if named:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.base_url}/")
        for address in (server.base_url, None)[: 1 + named]:
            with pytest.raises(LLMError, match=r"127\.0\.0\.1:\d+: ") as caught:
                run(OpenAILLM("m", base_url=address, max_retries=0).complete(QUESTION))
            assert ("OPENAI_BASE_URL" in str(caught.value)) is not named
            assert "Incorrect API key provided" in str(caught.value)
    assert all((KEY in str(request.headers)) is named for request in server.requests)


def test_a_server_that_the_environment_names_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_BASE_URL alone is enough for a server of one's own; errors name that host."""
    with ScriptedServer([chat_reply("ok"), error_reply(500, "oops")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        llm = OpenAILLM("m", max_retries=0)
        assert run(llm.complete(QUESTION)).text == "ok"
        with pytest.raises(LLMError, match=r"^127\.0\.0\.1:"):
            run(llm.complete(QUESTION))


def test_no_redirect_is_followed() -> None:
    """A prompt and a key go to the server that was named, and to no other."""
    with ScriptedServer([chat_reply("Yes."), embedding_reply([[3.0, 4.0]])]) as other:
        elsewhere = Reply(status=307, headers={"Location": f"{other.url}/elsewhere"})
        error = fails(elsewhere)
        with ScriptedServer([elsewhere]) as server, pytest.raises(Exception, match="HTTP 307"):
            _ = OpenAIEmbedder("e", base_url=server.base_url, max_retries=0).dim
    assert "check the base URL, from which it leads elsewhere" in str(error)
    assert not other.requests


async def test_a_client_of_ones_own_has_its_own_headers() -> None:
    """Its URL, key and headers count, and errors name its host."""
    with ScriptedServer([chat_reply("ok"), error_reply(500, f"oops {KEY}")]) as server:
        headers = {"X-Team": "a-b-c"}
        async with openai.AsyncOpenAI(
            api_key=KEY, base_url=server.base_url, default_headers=headers, max_retries=0
        ) as client:
            llm = OpenAILLM("m", client=client)
            assert (await llm.complete(QUESTION)).text == "ok"
            with pytest.raises(LLMError, match=r"^127\.0\.0\.1:.*oops \*\*\*"):
                await llm.complete(QUESTION)
    assert server.requests[0].headers["x-team"] == "a-b-c"


# ── streaming ───────────────────────────────────────────────────────────────────


def test_a_stream_gives_pieces_as_they_came() -> None:
    """Pieces are not joined, cut or lost."""
    pieces = ["乔", "峰 is ", "", "🌍"]
    with ScriptedServer([stream_reply(pieces)]) as server:
        got = run(collect(model(server), max_tokens=3))

    assert got == ["乔", "峰 is ", "🌍"]
    assert server.bodies[0]["stream"] is True and server.bodies[0]["max_tokens"] == 3


@pytest.mark.parametrize("end", ["cut", "over", "error"])
@pytest.mark.parametrize("pieces", [["seven", "ty"], [""]])
def test_a_broken_stream_is_an_error_that_counts(end: str, pieces: list[str]) -> None:
    """A stream that is cut off, ends without a finish reason, or reports an error, is never taken
    for an answer; the model was paid for it.
    """
    events = [*(stream_reply(pieces, finish=None).events or ())]
    events += [{"error": {"message": "overloaded"}}] if end == "error" else []
    broken = Reply(events=events, cut_after=len(pieces) if end == "cut" else None)
    with ScriptedServer([broken]) as server, pytest.raises(LLMError) as caught:
        run(collect(model(server)))

    assert f"after {len(''.join(pieces))} characters" in str(caught.value)
    assert ("overloaded" in str(caught.value)) is (end == "error")
    assert caught.value.cost == Usage(calls=1)


def test_what_was_written_to_its_end_is_an_answer() -> None:
    """A connection that breaks once the model has said why it stopped."""
    whole = stream_reply(["乔", "峰"], finish="length")

    async def ask() -> tuple[str, str]:
        pieces = model(server).stream(QUESTION)
        return "".join([piece async for piece in pieces]), pieces.finish

    with ScriptedServer([Reply(events=whole.events, cut_after=3)]) as server:
        assert run(ask()) == ("乔峰", "length")


@pytest.mark.parametrize("refused", [False, True])
def test_a_stream_reports_what_it_cost(refused: bool) -> None:
    """Where the server takes the wish to know; where it does not, it is asked without, once."""
    refusal = error_reply(400, "Unrecognized request argument supplied: stream_options")
    usage = None if refused else {"prompt_tokens": 9, "completion_tokens": 2}

    async def ask() -> Usage:
        pieces = llm.stream(QUESTION)
        assert [piece async for piece in pieces] == ["o", "k"]
        return pieces.usage

    with ScriptedServer(
        [refusal] * refused, respond=lambda _: stream_reply("ok", usage=usage)
    ) as server:
        llm = model(server)
        expected = Usage(calls=1) if refused else Usage(9, 2, calls=1)
        assert [run(ask()), run(ask())] == [expected] * 2
    wishes = ["stream_options" in body for body in server.bodies]
    assert wishes == ([True, False, False] if refused else [True, True])


def test_a_stream_can_be_left() -> None:
    """A reader that stops early leaves the model usable."""

    async def leave() -> str:
        pieces = llm.stream(QUESTION)
        first = await anext(pieces)
        await pieces.aclose()
        return first + (await llm.complete(QUESTION)).text

    with ScriptedServer([stream_reply(["a"] * 50), chat_reply("b")]) as server:
        llm = model(server)
        assert run(leave()) == "ab"


LOOPS = """
import asyncio, gc, sys
from lightrag_jsonl.core.types import Message
from lightrag_jsonl.providers import OpenAILLM
llm = OpenAILLM("m", base_url=sys.argv[1])
async def ask():
    return await asyncio.gather(*(llm.complete([Message("user", "hi")]) for _ in range(3)))
for _ in range(3):
    asyncio.run(ask())
del llm
gc.collect()
"""


def test_one_loop_after_another_makes_no_noise() -> None:
    """No "Event loop is closed", no unraisable exception: each loop has connections of its own."""
    with ScriptedServer(respond=lambda _: chat_reply("ok")) as server:
        done = run_python(LOOPS, server.base_url)

    assert (done.returncode, done.stderr) == (0, "")


# ── constraints ─────────────────────────────────────────────────────────────────


def records(llm: OpenAILLM, **options: object) -> Completion:
    return run(llm.complete_records(QUESTION, schema=SCHEMA, **options))  # type: ignore[arg-type]


def test_off_is_the_prompt_alone() -> None:
    """By default nothing is added to a request."""
    with ScriptedServer([chat_reply('{"a":1}')]) as server:
        assert records(model(server)).text == '{"a":1}'

    assert "response_format" not in server.bodies[0]


def test_records_come_in_one_object_and_are_handed_on_as_lines() -> None:
    """A half one at the end, too."""
    one, two = '{"type":"entity","name":"乔峰"}', '{"type":"entity","name":"阿朱"}'
    whole = f'{{"records": [\n {one},\n {two}]}}'
    cut = f'{{"records":[{one}, {two[:20]}'
    with ScriptedServer([chat_reply(whole), chat_reply(cut, finish="length")]) as server:
        llm = model(server, constrain="auto")

        assert records(llm).text == f"{one}\n{two}"
        assert records(llm) == Completion(f"{one}\n{two[:20]}", "length", Usage(7, 5, 0, 1))
    assert server.bodies[0]["response_format"]["type"] == "json_schema"


def test_names_count_only_when_grounded() -> None:
    """`constrain="grounded"` holds entity names to the list."""
    with ScriptedServer(respond=lambda _: chat_reply("{}")) as server:
        records(model(server, constrain="auto"), names=["乔峰"])
        records(model(server, constrain="grounded"), names=["乔峰", 'O"Neil'])

    free, grounded = (json.dumps(body, ensure_ascii=False) for body in server.bodies)
    assert "乔峰" not in free.replace("谁是乔峰", "")
    assert '["乔峰", "O\\"Neil"]' in grounded


def test_a_refused_constraint_is_dropped_for_good() -> None:
    """A server that takes none is asked without, and not bothered again."""
    replies = [error_reply(400, "response_format is unavailable"), *[chat_reply("{}")] * 2]
    with ScriptedServer(replies) as server:
        llm = model(server, constrain="auto")
        records(llm)
        records(llm)

    assert [("response_format" in body) for body in server.bodies] == [True, False, False]


def test_an_unknown_constraint_is_refused_at_once() -> None:
    """A misspelt option is an error when it is given."""
    with pytest.raises(ConfigError, match="'auto', 'off' or 'grounded'"):
        OpenAILLM("m", constrain="always")  # type: ignore[arg-type]
