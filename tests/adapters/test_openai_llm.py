"""OpenAILLM against a server that plays a script."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

import pytest

from lightrag_jsonl.adapters import OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.errors import ConfigError, LLMError
from lightrag_jsonl.protocols import ConstrainedLLM, StreamingLLM
from lightrag_jsonl.types import Completion, Message, Usage
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
    """The adapter can stream and can be constrained."""
    llm = OpenAILLM("m")

    assert isinstance(llm, StreamingLLM) and isinstance(llm, ConstrainedLLM)
    assert llm.name == "m" and OpenAILLM("m", name="mine").name == "mine"


def test_the_answer_keeps_text_finish_and_usage() -> None:
    """Text, finish reason and all token counts reach the caller as the server gave them."""
    reply = chat_reply("乔峰。🌍", prompt_tokens=30, completion_tokens=4, cached_tokens=20)
    with ScriptedServer([reply]) as server:
        answer = run(model(server, extra_body={"seed": 1}).complete(QUESTION, max_tokens=9))

    assert answer == Completion("乔峰。🌍", "stop", Usage(30, 4, 20, calls=1))
    assert server.bodies == [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "谁是乔峰？🌍"},
            ],
            "temperature": 0.0,
            "max_tokens": 9,
            "seed": 1,
        }
    ]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_cut_answer_says_so() -> None:
    """An answer that met the token limit finishes with "length", even if nothing but thought came."""
    with ScriptedServer(
        [chat_reply("half", finish="length"), chat_reply(None, finish="length")]
    ) as server:
        llm = model(server)

        assert run(llm.complete(QUESTION)) == Completion("half", "length", Usage(7, 5, 0, 1))
        assert run(llm.complete(QUESTION)).text == ""


def test_usage_in_other_words_or_absent() -> None:
    """DeepSeek's name for cached tokens is understood; a server that counts nothing is fine."""
    choices = [{"message": {"content": [{"type": "text", "text": "a"}]}, "finish_reason": "stop"}]
    counted = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}
    with ScriptedServer(
        [Reply({"choices": choices, "usage": counted}), Reply({"choices": choices})]
    ) as server:
        llm = model(server)

        assert run(llm.complete(QUESTION)) == Completion("a", usage=Usage(9, 1, 8, 1))
        assert run(llm.complete(QUESTION)) == Completion("a", usage=Usage(calls=1))


@pytest.mark.parametrize("count", ["NaN", "1e999", "-5", "9" * 400, '"7"', "[7]", "null"])
def test_a_senseless_count_does_not_cost_the_answer(count: str) -> None:
    """What a server says of tokens may be anything: the answer that was paid for is kept."""
    body = '{"choices":[{"message":{"content":"a"},"finish_reason":[]}],"usage":{"prompt_tokens":'
    with ScriptedServer([Reply(f"{body}{count}" + "}}")]) as server:
        assert run(model(server).complete(QUESTION)) == Completion("a", usage=Usage(calls=1))


@pytest.mark.parametrize("json_mode", [False, True])
def test_json_mode_is_for_json_only_and_only_if_asked(json_mode: bool) -> None:
    """A JSONL prompt never runs in json_object mode, which would allow one object only."""
    with ScriptedServer(respond=lambda _: chat_reply("{}")) as server:
        llm = model(server, json_mode=json_mode)
        for kind in ("text", "jsonl", "json"):
            run(llm.complete(QUESTION, response_type=kind))  # type: ignore[arg-type]

    formats = [body.get("response_format") for body in server.bodies]
    assert formats == [None, None, {"type": "json_object"} if json_mode else None]


def test_half_a_surrogate_pair_in_an_answer_is_replaced() -> None:
    """A model may be cut off inside an emoji: the answer can still be stored and shown."""
    body = r'{"choices":[{"message":{"content":"\ud83c乔峰"},"finish_reason":"stop"}]}'
    with ScriptedServer([Reply(body)]) as server:
        assert run(model(server).complete(QUESTION)).text == "\ufffd乔峰"


def test_half_a_surrogate_pair_in_a_prompt_is_no_trouble() -> None:
    """Text that UTF-8 cannot hold is replaced, not a crash."""
    with ScriptedServer([chat_reply("ok")]) as server:
        run(model(server).complete([Message("user", "a\ud800b")]))

    assert server.bodies[0]["messages"][0]["content"] == "a\ufffdb"


def test_credentials_stay_with_the_server_that_was_named() -> None:
    """A redirect elsewhere takes no key along, in whatever header it stands; one within does."""
    headers = {"api-key": "azure-0123456789", "X-Team": "a-b-c"}
    with ScriptedServer([chat_reply("Yes."), embedding_reply([[3.0, 4.0]])]) as other:
        elsewhere = Reply(status=307, headers={"Location": f"{other.url}/elsewhere"})
        within = Reply(status=307, headers={"Location": "/within"})
        with ScriptedServer([within, elsewhere, elsewhere]) as server:
            run(model(server, extra_headers=headers).complete(QUESTION))
            url = server.base_url
            assert OpenAIEmbedder("e", base_url=url, api_key=KEY, extra_headers=headers).dim == 2
    assert [request.path for request in server.requests][:2] == ["/v1/chat/completions", "/within"]
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["api-key"] == headers["api-key"]
        assert request.headers["x-team"] == headers["X-Team"]
    assert len(other.requests) == 2
    for request in other.requests:
        assert not {"authorization", "api-key", "x-team"} & set(request.headers)


# ── retries and refusals ────────────────────────────────────────────────────────


def test_retry_after_is_honoured(caplog: pytest.LogCaptureFixture) -> None:
    """After a 429 the wait is the server's own, and the next answer counts."""
    caplog.set_level(logging.DEBUG, logger="lightrag_jsonl")
    busy = error_reply(429, "slow down", retry_after="0.015")
    with ScriptedServer([busy, busy, chat_reply("ok")]) as server:
        assert run(model(server, max_retries=2).complete(QUESTION)).text == "ok"

    assert len(server.bodies) == 3
    assert caplog.text.count("0.015") == 2


@pytest.mark.parametrize("asked", ["nan", "inf", "-1", "soon"])
def test_a_senseless_wait_is_not_waited_for(asked: str) -> None:
    """Whoever calls again gets a number of seconds that can be waited for, or none."""
    error = fails(error_reply(429, "slow down", retry_after=asked), max_retries=0)

    assert error.transient and error.retry_after is None


def test_a_rate_limit_that_stays_is_transient() -> None:
    """When retries are used up, the caller learns that and for how long to wait."""
    error = fails(error_reply(429, "slow down", retry_after="7"))

    assert error.transient and error.retry_after == 7.0
    assert "429" in str(error) and "slow down" in str(error)


def test_an_empty_purse_is_not_transient() -> None:
    """OpenAI says 429 for a used-up quota too; waiting does not help there."""
    error = fails(error_reply(429, "quota", code="insufficient_quota"))

    assert not error.transient and "no credit" in str(error)


@pytest.mark.parametrize(
    ("reply", "transient", "words"),
    [
        (error_reply(400, "context too long"), False, ["400", "context too long"]),
        (error_reply(401, "bad key"), False, ["401", "api_key="]),
        (error_reply(403, "no access"), False, ["403", "may not use"]),
        (
            error_reply(404, "no such model"),
            False,
            ["404", "model's name", "base URL", "no such model"],
        ),
        (error_reply(500, "oops"), True, ["500", "oops"]),
        (Reply("<html>Bad gateway</html>", status=502), True, ["502", "HTML"]),
        (Reply({"detail": [{"loc": "body"}]}, status=422), False, ["422", "loc"]),
        (Reply("<!DOCTYPE html><p>hi"), False, ["HTML", "base URL"]),
        (Reply("hello", headers={"Content-Type": "application/json"}), False, ["no JSON"]),
        (Reply(b'{"choices":[{"message":{"content":"\xe4\xb8"}}]}'), True, ["no UTF-8"]),
        (Reply(b""), True, ["empty body"]),
        (Reply([1]), False, ["no object"]),
        (Reply({"id": "x"}), True, ["no choices"]),
        (Reply({"choices": []}), True, ["no choices"]),
        (Reply({"choices": None, "error": {"message": "upstream"}}), True, ["upstream"]),
        (chat_reply(None), False, ["no text"]),
        (chat_reply(None, finish="content_filter"), False, ["content_filter"]),
        (
            Reply({"choices": [{"message": {"content": None, "refusal": "I will not"}}]}),
            False,
            ["I will not"],
        ),
        (Reply({"a": 1}, cut_after=4), True, ["connection broke before"]),
    ],
)
def test_failures_say_where_and_what_to_do(reply: Reply, transient: bool, words: list[str]) -> None:
    """Each way to fail is an LLMError that names the host and tells what to do."""
    error = fails(reply)

    assert str(error).startswith("127.0.0.1:")
    assert error.transient is transient
    assert all(word in str(error) for word in words), str(error)


def test_nobody_listens() -> None:
    """A server that is not there is a transient error that says so."""
    with ScriptedServer() as server:
        address = server.base_url
    with pytest.raises(LLMError, match="is the server running") as caught:
        run(OpenAILLM("m", base_url=address, max_retries=0).complete(QUESTION))

    assert caught.value.transient and not caught.value.unheard


@pytest.mark.parametrize(
    ("reply", "unheard"),
    [
        (Reply({}, delay=30), True),
        (Reply({"a": 1}, cut_after=4), True),
        (error_reply(504, "the upstream took too long"), True),
        (error_reply(408, "litellm.Timeout"), True),
        (error_reply(520, "the origin's answer is unknown"), True),
        (error_reply(500, "oops"), False),
        (error_reply(429, "slow down"), False),
        (error_reply(400, "context too long"), False),
    ],
)
def test_an_answer_that_may_have_been_paid_and_got_lost(reply: Reply, unheard: bool) -> None:
    """Said of what the model may have worked on; a refusal costs nothing."""
    error = fails(reply, timeout=0.3)

    assert error.unheard is unheard and error.cost == Usage(calls=int(unheard))


def test_each_request_that_got_lost_is_counted() -> None:
    """The model may have worked on every one of them; those that were refused are none."""
    lost, refused = Reply({"a": 1}, cut_after=4), error_reply(503, "busy", retry_after="0.001")
    with ScriptedServer([lost, refused, lost, chat_reply("ok", completion_tokens=2)]) as server:
        done = run(model(server, max_retries=3).complete(QUESTION))
    assert (done.usage.calls, done.usage.output_tokens) == (3, 2)
    assert fails(lost, error_reply(504, "late"), max_retries=1).cost == Usage(calls=2)
    assert fails(lost, error_reply(400, "too long"), max_retries=1).cost == Usage(calls=1)


@pytest.mark.parametrize(
    ("reply", "cost"),
    [
        (Reply({"choices": [], "usage": {"prompt_tokens": 7}}), Usage(7, calls=1)),
        (chat_reply(None, finish="content_filter"), Usage(7, 5, calls=1)),
        (Reply('{"choices": [{"mess'), Usage(calls=1)),
        (Reply(b'{"choices":[{"message":{"content":"\xe4\xb8"}}]}'), Usage(calls=1)),
        (Reply(b""), Usage(calls=1)),
        (Reply("<!doctype html><p>Welcome"), Usage()),
        (Reply({"error": {"message": "overloaded"}}), Usage()),
    ],
)
def test_an_answer_that_cannot_be_used_costs_what_it_costs(reply: Reply, cost: Usage) -> None:
    """Its tokens, where they are told; a page or an error was no model's answer."""
    assert fails(reply).cost == cost


@pytest.mark.parametrize(
    ("headers", "again"),
    [
        ({"Retry-After-Ms": "1"}, True),
        ({"Retry-After": "Thu, 01 Jan 2015 00:00:00 GMT", "x-should-retry": "true"}, True),
        ({"Retry-After": "0.001", "x-should-retry": "false"}, False),
        ({"Retry-After": "121"}, False),
        ({"Retry-After": "Fri, 01 Jan 2999 00:00:00 GMT"}, False),
    ],
)
def test_a_server_says_whether_and_when_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], again: bool
) -> None:
    """In seconds, milliseconds or by a date; not at all where that is too far away."""
    monkeypatch.setattr("lightrag_jsonl.adapters.faults.FIRST_PAUSE", 0.0)
    busy = replace(error_reply(503, "busy"), headers=headers)
    with ScriptedServer([busy, chat_reply("ok")]) as server:
        asked = model(server, max_retries=2).complete(QUESTION)
        if again:
            assert run(asked).text == "ok"
        else:
            with pytest.raises(LLMError, match="busy"):
                run(asked)
    assert len(server.bodies) == 1 + again


def test_a_silent_server_times_out() -> None:
    """`timeout` ends a wait."""
    error = fails(Reply({}, delay=30), timeout=0.05)

    assert error.transient and "timeout" in str(error)


def test_a_reasoning_model_is_met_halfway() -> None:
    """A refusal of max_tokens or temperature is answered once, and remembered."""

    def picky(request: object) -> Reply:
        body = server.bodies[-1]
        if "max_tokens" in body:
            return error_reply(
                400, "Unsupported 'max_tokens': use 'max_completion_tokens' instead."
            )
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


def test_another_refusal_is_not_asked_again() -> None:
    """A 400 for any other reason costs one request."""
    with ScriptedServer([error_reply(400, "too long")]) as server, pytest.raises(LLMError):
        run(model(server).complete(QUESTION, max_tokens=5))

    assert len(server.bodies) == 1


# ── keys ────────────────────────────────────────────────────────────────────────


def test_a_key_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Not in an error, its causes, the log or the repr, even where the server repeats it."""
    caplog.set_level(logging.DEBUG, logger="lightrag_jsonl")
    error = fails(error_reply(401, f"Incorrect API key provided: {KEY}"))
    other = fails(error_reply(400, f"who is {KEY} or sk-proj-***abcdef?"))

    assert error.__cause__ is None and error.__suppress_context__
    assert "sk-" not in f"{error}{other}{caplog.text}{OpenAILLM('m', api_key=KEY)!r}"


def test_without_a_key_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constructor needs no key and reads no environment; the first call says what is missing."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    llm = OpenAILLM("gpt-4o-mini")

    with pytest.raises(ConfigError, match=r"api\.openai\.com.*OPENAI_API_KEY"):
        run(llm.complete(QUESTION))


@pytest.mark.parametrize("url", ["http://[::1/v1", "http://h:99999", "http://h:x", "http://", "h"])
def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    """The constructor says so, before anything is sent anywhere."""
    with pytest.raises(ConfigError, match="no URL such as http"):
        OpenAILLM("m", base_url=url)


def test_the_environments_key_stays_out_of_ones_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on this machine needs no key, and does not get OpenAI's."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedServer([chat_reply("ok")]) as server:
        run(OpenAILLM("m", base_url=server.base_url).complete(QUESTION))

    assert KEY not in str(server.requests[0].headers)


# ── streaming ───────────────────────────────────────────────────────────────────


def test_a_stream_gives_pieces_as_they_came() -> None:
    """Pieces are not joined, cut or lost."""
    pieces = ["乔", "峰 is ", "", "🌍"]
    with ScriptedServer([stream_reply(pieces)]) as server:
        got = run(collect(model(server), max_tokens=3))

    assert got == ["乔", "峰 is ", "🌍"]
    assert server.bodies[0]["stream"] is True and server.bodies[0]["max_tokens"] == 3


@pytest.mark.parametrize("cut", [True, False])
def test_a_broken_stream_is_an_error_that_counts(cut: bool) -> None:
    """A stream cut off, or ended without a finish reason, is never taken for an answer."""
    reply = stream_reply(["seven", "ty"], finish=None)
    broken = Reply(events=reply.events, cut_after=2) if cut else reply
    with ScriptedServer([broken]) as server, pytest.raises(LLMError) as caught:
        run(collect(model(server)))

    assert "after 7 characters" in str(caught.value) and caught.value.transient


@pytest.mark.parametrize("told", [b"", b'data: {"choices":[{"delta":{"content":"so"}}]}\n\n'])
def test_half_a_character_in_a_stream(told: bytes) -> None:
    """Some servers cut characters of several bytes: the stream breaks off there, in passing."""
    half = b'data: {"choices":[{"delta":{"content":"\xe4\xb8"}}]}\n\n'
    reply = Reply(told + half, headers={"Content-Type": "text/event-stream"})
    with ScriptedServer([reply]) as server, pytest.raises(LLMError, match="no UTF-8") as caught:
        run(collect(model(server)))

    assert caught.value.transient
    assert ("after 2 characters" in str(caught.value)) == bool(told)


@pytest.mark.parametrize("told", ["<think>Hm,", "", None])
@pytest.mark.parametrize("end", ["cut", "over", "error"])
def test_a_stream_that_breaks_off_in_a_thought_is_lost(told: str | None, end: str) -> None:
    """Nothing was said yet; the model has begun to write and is paid for it."""
    delta = {"reasoning_content": "Hm,"} if told is None else {"content": told}
    events: list[object] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}]
    if end == "error":
        events.append({"error": {"message": "overloaded"}})
    reply = Reply(events=[*events, {}], cut_after=1 if end == "cut" else None)
    with ScriptedServer([reply]) as server, pytest.raises(LLMError) as caught:
        run(collect(model(server)))
    assert caught.value.unheard and caught.value.cost == Usage(calls=1)


def test_an_error_inside_a_stream() -> None:
    """What a server reports in the middle reaches the caller."""
    events = [
        *(stream_reply(["a"], finish=None).events or ()),
        {"error": {"message": "overloaded"}},
    ]
    with (
        ScriptedServer([Reply(events=events)]) as server,
        pytest.raises(LLMError, match="overloaded"),
    ):
        run(collect(model(server)))


def test_a_stream_meets_a_picky_model_halfway_too() -> None:
    """The refusal of a field is handled before the first piece."""
    refusal = error_reply(400, "use max_completion_tokens")
    with ScriptedServer([refusal, stream_reply(["ok"])]) as server:
        assert run(collect(model(server), max_tokens=5)) == ["ok"]

    assert server.bodies[1]["max_completion_tokens"] == 5


@pytest.mark.parametrize("refused", [False, True])
def test_a_stream_tells_what_it_cost(refused: bool) -> None:
    """Where the server takes the wish to know; where it does not, it is asked without, once."""
    refusal = error_reply(400, "Unrecognized request argument supplied: stream_options")
    told = None if refused else {"prompt_tokens": 9, "completion_tokens": 2}

    async def ask() -> Usage:
        pieces = llm.stream(QUESTION)
        assert [piece async for piece in pieces] == ["o", "k"]
        return pieces.usage

    with ScriptedServer(
        [refusal] * refused, respond=lambda _: stream_reply("ok", usage=told)
    ) as server:
        llm = model(server)
        expected = Usage(calls=1) if refused else Usage(9, 2, calls=1)
        assert [run(ask()), run(ask())] == [expected] * 2
    wishes = ["stream_options" in body for body in server.bodies]
    assert wishes == ([True, False, False] if refused else [True, True])


def test_a_stream_can_be_left() -> None:
    """A reader that stops early leaves the model usable."""

    async def leave() -> str:
        async for piece in llm.stream(QUESTION):
            first = piece
            break
        return first + (await llm.complete(QUESTION)).text

    with ScriptedServer([stream_reply(["a"] * 50), chat_reply("b")]) as server:
        llm = model(server)
        assert run(leave()) == "ab"


# ── event loops ─────────────────────────────────────────────────────────────────


def test_one_instance_serves_many_loops() -> None:
    """Loops one after another and loops of other threads share an instance; ended ones are let go."""
    with ScriptedServer(respond=lambda _: chat_reply("ok")) as server:
        llm = model(server)
        answers = [run(llm.complete(QUESTION)).text for _ in range(3)]
        threads = [
            threading.Thread(target=lambda: answers.append(run(llm.complete(QUESTION)).text))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers.append(run(llm.complete(QUESTION)).text)

    assert answers == ["ok"] * 8
    assert len(llm._endpoint._sessions) == 1


LOOPS = """
import asyncio, gc, sys
from lightrag_jsonl.adapters import OpenAILLM
from lightrag_jsonl.types import Message
llm = OpenAILLM("m", base_url=sys.argv[1])
async def ask():
    return await asyncio.gather(*(llm.complete([Message("user", "hi")]) for _ in range(3)))
for _ in range(3):
    asyncio.run(ask())
loop = asyncio.new_event_loop()
loop.run_until_complete(ask())
loop.close()  # in a hurry: its generators are not shut down
asyncio.run(ask())
del llm
gc.collect()
"""


def test_ended_loops_make_no_noise() -> None:
    """No "Event loop is closed", no unraisable exception, whichever way a loop ends."""
    with ScriptedServer(respond=lambda _: chat_reply("ok")) as server:
        done = run_python(LOOPS, server.base_url)

    assert (done.returncode, done.stderr) == (0, "")


# ── constraints ─────────────────────────────────────────────────────────────────


def records(llm: OpenAILLM, **options: object) -> Completion:
    return run(llm.complete_records(QUESTION, schema=SCHEMA, **options))  # type: ignore[arg-type]


def test_off_is_the_prompt_alone() -> None:
    """By default nothing is probed and nothing is added."""
    with ScriptedServer([chat_reply('{"a":1}')], owner="llamacpp") as server:
        assert records(model(server)).text == '{"a":1}'

    assert [request.method for request in server.requests] == ["POST"]
    assert server.bodies[0].keys() == {"model", "messages", "temperature"}


@pytest.mark.parametrize("owner", ["llamacpp", "vllm"])
def test_servers_with_grammars_get_one(owner: str) -> None:
    """llama.cpp and vLLM are recognised by one question, and each gets a grammar in its own way."""
    with ScriptedServer(respond=lambda _: chat_reply("{}"), owner=owner) as server:
        llm = model(server, constrain="auto")
        records(llm, names=["乔峰"])
        records(llm)

    assert [request.method for request in server.requests] == ["GET", "POST", "POST"]
    body = server.bodies[0]
    grammar = body["grammar"] if owner == "llamacpp" else body["structured_outputs"]["grammar"]
    assert grammar.startswith("root ::= ") and "乔峰" not in grammar


def test_names_count_only_when_grounded() -> None:
    """`constrain="grounded"` holds entity names to the list."""
    with ScriptedServer([chat_reply("{}")], owner="llamacpp") as server:
        records(model(server, constrain="grounded"), names=["乔峰", 'O"Neil'])

    assert '''"\\"乔峰\\"" | "\\"O\\\\\\"Neil\\""''' in server.bodies[0]["grammar"]


def test_other_servers_get_a_json_schema() -> None:
    """The records come in one object there, and are handed on as lines, a half one too."""
    one, two = '{"type":"entity","name":"乔峰"}', '{"type":"entity","name":"阿朱"}'
    whole = f'{{"records": [\n {one},\n {two}]}}'
    cut = f'{{"records":[{one}, {two[:20]}'
    with ScriptedServer(
        [chat_reply(whole), chat_reply(cut, finish="length")], owner="me"
    ) as server:
        llm = model(server, constrain="auto")

        assert records(llm).text == f"{one}\n{two}"
        assert records(llm) == Completion(f"{one}\n{two[:20]}", "length", Usage(7, 5, 0, 1))
    assert server.bodies[0]["response_format"]["type"] == "json_schema"


def test_a_refused_constraint_is_dropped_for_good() -> None:
    """A server that takes none is asked without, and not bothered again."""
    replies = [error_reply(400, "response_format is unavailable"), *[chat_reply("{}")] * 2]
    with ScriptedServer(replies) as server:
        llm = model(server, constrain="auto")
        records(llm)
        records(llm)

    assert [("response_format" in body) for body in server.bodies] == [True, False, False]


def test_a_schema_without_a_grammar_is_left_to_the_prompt(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and costs nothing else."""
    schema = {"type": "string", "pattern": "a+"}
    with ScriptedServer([chat_reply("{}")], owner="vllm") as server:
        run(model(server, constrain="auto").complete_records(QUESTION, schema=schema))

    assert "structured_outputs" not in server.bodies[0] and "pattern" in caplog.text


def test_an_unknown_constraint_is_refused_at_once() -> None:
    """A misspelt option is an error when it is given."""
    with pytest.raises(ConfigError, match="'auto', 'off' or 'grounded'"):
        OpenAILLM("m", constrain="always")  # type: ignore[arg-type]


def test_a_server_of_ones_own_that_wants_a_key_got_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that is set was not sent there; how it would be is told, and the server's words kept."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    refusal = Reply({"error": {"message": "Incorrect API key provided: no-key"}}, status=401)
    with ScriptedServer(respond=lambda request: refusal) as server:
        with pytest.raises(LLMError) as told:
            run(OpenAILLM("m", base_url=server.base_url, max_retries=0).complete(QUESTION))
        assert "OPENAI_BASE_URL" in str(told.value)
        assert "Incorrect API key provided" in str(told.value)
        assert "sk-of" not in str([request.headers for request in server.requests])
