"""OpenAILLM against a server that plays a script."""

import gzip
import json
import logging
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import (
    Completion,
    ConfigError,
    LightRAG,
    LLMError,
    Message,
    OpenAILLM,
    StreamingLLM,
    Usage,
    parse_jsonl,
)
from lightrag_jsonl.core.protocols import ConstrainedLLM
from lightrag_jsonl.llm.thinking import is_only_thinking
from lightrag_jsonl.providers.completions import read_completion
from tests.kit import TOKENIZER
from tests.servers import (
    Reply,
    Request,
    ScriptedServer,
    chat_reply,
    error_reply,
    stream_reply,
)

KEY = "sk-test-0123456789abcdef"
QUESTION = (Message("system", "Be brief."), Message("user", "谁是乔峰？🌍"))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


def model(server: ScriptedServer, **options: object) -> OpenAILLM:
    settings = {"base_url": server.base_url, "api_key": KEY, "max_retries": 0, **options}
    return OpenAILLM("m", **settings)  # type: ignore[arg-type]


async def fails(reply: Reply, **options: object) -> LLMError:
    with ScriptedServer([reply]) as server, pytest.raises(LLMError) as caught:
        await model(server, **options).complete(QUESTION)
    return caught.value


async def test_the_answer_keeps_text_finish_and_usage() -> None:
    """Text, finish reason and all token counts reach the caller as the server gave them."""
    reply = chat_reply("乔峰。🌍", prompt_tokens=30, completion_tokens=4, cached_tokens=20)
    with ScriptedServer([reply]) as server:
        answer = await model(server, extra_body={"seed": 1}).complete(QUESTION, max_tokens=9)

    assert answer == Completion("乔峰。🌍", "stop", Usage(30, 4, 20, calls=1))
    assert read_completion(reply.body) == answer  # as a batch file's answers are read
    (body,) = server.bodies
    assert body.pop("stream", False) is False
    assert [one["content"] for one in body.pop("messages")] == ["Be brief.", "谁是乔峰？🌍"]
    assert body == {"model": "m", "temperature": 0.0, "max_tokens": 9, "seed": 1}
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert isinstance(model(server), StreamingLLM) and isinstance(model(server), ConstrainedLLM)


DEEPSEEK = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}
CHOICE = {"message": {"content": "a"}, "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (chat_reply("half", finish="length").body, Completion("half", "length", Usage(7, 5, 0, 1))),
        (chat_reply(None, finish="length").body, Completion("", "length", Usage(7, 5, 0, 1))),
        (chat_reply("a", finish="MAX_TOKENS").body, Completion("a", "length", Usage(7, 5, 0, 1))),
        (chat_reply("a", finish="STOP").body, Completion("a", "stop", Usage(7, 5, 0, 1))),
        (chat_reply("a", finish="SAFETY").body, Completion("a", "filter", Usage(7, 5, 0, 1))),
        (chat_reply("a", finish="what?").body, Completion("a", "error", Usage(7, 5, 0, 1))),
        (chat_reply("\ud83c乔").body, Completion("\ufffd乔", usage=Usage(7, 5, 0, 1))),
        ({"choices": [CHOICE], "usage": DEEPSEEK}, Completion("a", usage=Usage(9, 1, 8, 1))),
        ({"choices": [CHOICE]}, Completion("a", usage=Usage(calls=1))),
    ],
    ids=[
        "cut",
        "only thought",
        "Gemini: cut",
        "Gemini: whole",
        "filtered",
        "unknown",
        "half an emoji",
        "DeepSeek",
        "uncounted",
    ],
)
def test_answers_are_read_as_they_come(body: dict[str, object], expected: Completion) -> None:
    """An answer that met the token limit says so, even if nothing but thought came; cached tokens
    are understood in DeepSeek's words; a server that counts nothing is fine.
    """
    assert read_completion(body) == expected


THOUGHT: Any = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([THOUGHT, {"type": "text", "text": "乔"}, {"type": "text", "text": "峰"}], "乔峰"),
        (["Qiao ", {"text": "Feng"}], "Qiao Feng"),
        ({"type": "text", "text": "🌍"}, "🌍"),
        ([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text"}, 7], ""),
    ],
)
async def test_content_in_parts_is_read(content: Any, text: str) -> None:
    """The text parts are the answer, whole or in a stream; thinking and pictures are not."""
    whole = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    events = [
        {"choices": [{"index": 0, "delta": {"content": content}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    with ScriptedServer([Reply(whole), Reply(events=events)]) as server:
        llm = model(server)
        assert (await llm.complete(QUESTION)).text == text
        assert "".join([piece async for piece in llm.stream(QUESTION)]) == text


async def test_one_call_is_one_request_and_says_whether_to_ask_again() -> None:
    """The package's own loop repeats it; the caller learns how long to wait, if that is known. A
    server that forbids to ask again is obeyed.
    """
    busy = error_reply(429, "slow down", retry_after="0.015")
    with ScriptedServer([busy, busy]) as server, pytest.raises(LLMError, match="slow down"):
        await model(server, max_retries=2).complete(QUESTION)
    assert len(server.bodies) == 1
    final = Reply({"error": {"message": "broken"}}, status=500, headers={"x-should-retry": "false"})
    assert not (await fails(final)).transient
    for asked, seconds in (("7", 7.0), ("nan", None), ("soon", None)):
        error = await fails(error_reply(429, "slow down", retry_after=asked))
        assert error.transient and error.retry_after == seconds and "429" in str(error)


FREE, CALL, COUNTED = Usage(), Usage(calls=1), Usage(7, 5, calls=1)


@pytest.mark.parametrize(
    ("reply", "flags", "cost", "words"),
    [
        (error_reply(400, "x", code="context_length_exceeded"), "", FREE, ["too long", "chunks"]),
        (error_reply(401, "bad key"), "permanent", FREE, ["401", "api_key=", "OPENAI_BASE_URL"]),
        (error_reply(403, "no access"), "", FREE, ["403", "may not use"]),
        (error_reply(404, "no such model"), "permanent", FREE, ["model's name", "no such"]),
        (error_reply(429, "x", code="insufficient_quota"), "permanent", FREE, ["no credit"]),
        (error_reply(504, "the upstream took too long"), "", CALL, ["timed out"]),
        (Reply("<html>Bad gateway</html>", status=502), "transient", FREE, ["502", "HTML"]),
        (Reply({"detail": [{"loc": "body"}]}, status=422), "", FREE, ["422", "loc"]),
        (Reply(b""), "", FREE, ["not JSON"]),
        (Reply({"id": "x"}), "transient", CALL, ["no choices"]),
        (Reply({"choices": None, "error": {"message": "upstream"}}), "transient", CALL, ["upstre"]),
        (chat_reply(None, finish="content_filter"), "", COUNTED, ["content_filter"]),
        (Reply({"choices": [{"message": {"refusal": "I will not"}}]}), "", CALL, ["I will not"]),
        (Reply({"a": 1}, cut_after=4), "transient", CALL, ["connection was closed before"]),
        (Reply({}, delay=30), "", CALL, ["raise the timeout"]),
    ],
)
async def test_failures_say_what_to_do_and_count(
    reply: Reply, flags: str, cost: Usage, words: list[str]
) -> None:
    """Each way to fail is an LLMError that says what to do. It costs one call if the answer came too
    late or not whole, its tokens if they are known; a refusal costs nothing.
    """
    error = await fails(reply, timeout=0.5 if reply.delay else 240.0)

    assert (error.transient, error.permanent) == ("transient" in flags, "permanent" in flags)
    assert error.cost == cost
    assert all(word in str(error) for word in words), str(error)


async def test_nobody_listens() -> None:
    """A server that is not there, or has no TLS, is a transient error that names it; it is free."""
    with ScriptedServer() as server:
        for url in ("http://127.0.0.1:9/v1", server.base_url.replace("http:", "https:")):
            with pytest.raises(LLMError, match=r"^127\.0\.0\.1:.*is the server running") as caught:
                await OpenAILLM("m", base_url=url, max_retries=0).complete(QUESTION)
            assert caught.value.transient and caught.value.cost == Usage()


async def test_a_model_is_met_halfway() -> None:
    """A field that a model or its server refuses is left out, or renamed, and that is remembered."""
    refusals = {
        "max_tokens": "Unsupported 'max_tokens': use 'max_completion_tokens'.",
        "temperature": "'temperature' does not support 0.0 with this model.",
        "response_format": "This response_format type is unavailable now",
        "stream_options": "Unrecognized request argument supplied: stream_options",
    }

    def picky(request: Request) -> Reply:
        for field in refusals:
            if field in request.json:
                return error_reply(400, refusals[field])
        return stream_reply("ok") if request.json["stream"] else chat_reply("ok")

    with ScriptedServer(respond=picky) as server:
        llm = model(server, constrain="auto")
        for number in (5, 6):
            answer = await llm.complete_records(QUESTION, schema=SCHEMA, max_tokens=number)
            assert answer.text == "ok"
            stream = llm.stream(QUESTION)
            assert [piece async for piece in stream] == ["o", "k"] and stream.usage == CALL

    assert len(server.bodies) == 8
    assert server.bodies[-2]["max_completion_tokens"] == 6
    assert not refusals.keys() & {*server.bodies[-2], *server.bodies[-1]}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "System role not supported"),
        (400, "Only user and assistant roles are supported!"),
        (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (400, "Developer instruction is not enabled for models/gemma-3-4b-it"),
        (500, "Jinja Exception: System messages are not supported"),
        (422, "messages.0.role: value is not one of 'user', 'assistant'"),
        (400, "unexpected message role: system"),
        (400, "该模型不支持 system 角色"),
    ],
)
async def test_a_model_without_a_system_role_is_asked_without_one(status: int, words: str) -> None:
    """The system text comes first in the first user message; that is remembered, in streams, too."""

    def strict(request: Request) -> Reply:
        if request.json["messages"][0]["role"] == "system":
            return error_reply(status, words)
        return stream_reply("ok") if request.json["stream"] else chat_reply("ok")

    with ScriptedServer(respond=strict) as server:
        llm = model(server)
        follow_up = (*QUESTION, Message("assistant", "帮主"), Message("user", "And then?"))
        assert (await llm.complete(QUESTION)).text == "ok"
        assert (await llm.complete(follow_up)).text == "ok"
        assert [piece async for piece in llm.stream(QUESTION)] == ["o", "k"]

    assert len(server.bodies) == 4
    first = {"role": "user", "content": "Be brief.\n\n谁是乔峰？🌍"}
    assert server.bodies[1]["messages"] == server.bodies[3]["messages"] == [first]
    assert [turn["role"] for turn in server.bodies[2]["messages"]] == ["user", "assistant", "user"]


async def test_a_refusal_without_a_system_message_is_not_repeated() -> None:
    """What remains of a conversation is the caller's own."""
    refusal = error_reply(400, "roles must alternate")
    with (
        ScriptedServer(respond=lambda request: refusal) as server,
        pytest.raises(LLMError, match="alternate"),
    ):
        await model(server).complete(QUESTION)
    assert len(server.bodies) == 2


async def test_a_refusal_of_something_else_does_not_cost_the_system_role() -> None:
    """A text that is refused in either form, in words about a role, says nothing of the role."""
    replies = [
        *[error_reply(400, "a text about the role of X is not served")] * 2,
        chat_reply("ok"),
    ]
    with ScriptedServer(replies) as server:
        llm = model(server)
        with pytest.raises(LLMError, match="not served"):
            await llm.complete(QUESTION)
        assert (await llm.complete(QUESTION)).text == "ok"
    assert server.bodies[2]["messages"][0]["role"] == "system"


@pytest.mark.parametrize(
    ("refusal", "limit"),
    [
        ("Range of max_tokens should be [1, 8192]", 8192),
        (
            "max_tokens is too large: 9000. This model supports at most 4,096 completion tokens",
            4096,
        ),
        ("max_tokens: 9000 > 8191, which is the maximum allowed number of output tokens", 8191),
        ("`max_tokens` must be less than or equal to `2048`", 2048),
        ("max_tokens 参数非法，取值范围为 [1,4095]", 4095),
        ("max_tokens不能大于3,072", 3072),
    ],
)
async def test_a_limit_of_answers_is_kept_once_a_refusal_names_it(refusal: str, limit: int) -> None:
    """The next request asks for as much as the model can write, and so do all later ones."""

    def respond(request: Request) -> Reply:
        return (
            chat_reply("ok") if request.json["max_tokens"] <= limit else error_reply(400, refusal)
        )

    with ScriptedServer(respond=respond) as server:
        llm = model(server)
        for _ in range(2):
            assert (await llm.complete(QUESTION, max_tokens=9_000)).text == "ok"
        assert (await llm.complete(QUESTION, max_tokens=100)).text == "ok"
    assert [body["max_tokens"] for body in server.bodies] == [9_000, limit, limit, 100]


PAGE = "<!DOCTYPE html><html><body>Sign in</body></html>"


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/html; charset=utf-8"}])
async def test_a_web_page_in_place_of_an_answer_is_named(headers: dict[str, str]) -> None:
    """Every further call would get it, too; a stream notices it as well."""
    with ScriptedServer(respond=lambda _: Reply(PAGE, headers=headers)) as server:
        with pytest.raises(LLMError, match="web page") as caught:
            await model(server).complete(QUESTION)
        assert caught.value.permanent and not caught.value.refused
        with pytest.raises(LLMError, match="web page"):
            [piece async for piece in model(server).stream(QUESTION)]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Your credit balance is too low to access the API. Go to Plans & Billing."),
        (403, "账户已欠费，请充值后再调用"),
        (429, "余额不足或无可用资源包"),
        (429, "Insufficient account balance"),
        (400, "Access denied, please make sure your account is in good standing. (Arrearage)"),
    ],
)
async def test_an_empty_account_is_named(status: int, message: str) -> None:
    """It does not pass by waiting: the insert ends, as with a wrong key."""
    error = await fails(error_reply(status, message))
    assert error.permanent and not error.rate_limited and "no credit" in str(error)


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        (
            {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-min"}},
            "rate_limited",
        ),
        ({"error_code": 18, "error_msg": "Open api qps request limit reached"}, "rate_limited"),
        ({"error": {"code": 402, "message": "Insufficient credits"}}, "permanent"),
        ({"error": {"message": "the worker crashed"}}, "transient"),
    ],
)
async def test_an_error_with_status_200_is_the_same_error(body: Any, flag: str) -> None:
    """Some gateways answer so; what they say counts, not the status."""
    assert getattr(await fails(Reply(body)), flag)


THOUGHTS = "Let me see. There is a woman, Ada. " * 3
ONE_RECORD = (
    '{"type": "entity", "name": "Ada", "entity_type": "person", "description": "Ada walks."}'
)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize("in_stream", [False, True])
async def test_an_answer_of_thoughts_only_is_told_apart(field: str, in_stream: bool) -> None:
    """Marked as thinking, which no reader sees; records among the thoughts are the answer."""

    def reply(thoughts: str) -> Reply:
        message = {"content": "", field: thoughts}
        if not in_stream:
            return Reply({"choices": [{"message": message, "finish_reason": "length"}]})
        pieces = [{"choices": [{"index": 0, "delta": message}]}]
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
        return Reply(events=[*pieces, end])

    async def answer(llm: OpenAILLM) -> str:
        if in_stream:
            return "".join([piece async for piece in llm.stream(QUESTION)])
        return (await llm.complete(QUESTION)).text

    with ScriptedServer([reply(THOUGHTS), reply(f"{THOUGHTS}\n{ONE_RECORD}")]) as server:
        llm = model(server)
        thought, records = await answer(llm), await answer(llm)
    assert is_only_thinking(thought) and THOUGHTS in thought
    assert parse_jsonl(records).records[0]["name"] == "Ada"


async def test_thoughts_in_parts_are_thoughts() -> None:
    """As Mistral sends them, before the text."""
    choice = {"message": {"content": [THOUGHT]}, "finish_reason": "length"}
    with ScriptedServer([Reply({"choices": [choice]})]) as server:
        assert is_only_thinking((await model(server).complete(QUESTION)).text)


async def test_hidden_thoughts_count_as_thoughts() -> None:
    """Some servers only tell how many tokens the model thought."""
    usage = {"completion_tokens": 99, "completion_tokens_details": {"reasoning_tokens": 99}}
    choice = {"message": {"content": ""}, "finish_reason": "length"}
    with ScriptedServer([Reply({"choices": [choice], "usage": usage})]) as server:
        assert is_only_thinking((await model(server).complete(QUESTION)).text)


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions"])
@pytest.mark.parametrize(
    ("key", "header"), [("0a1b2c3d", "api-key"), ("eyJ0.e.x", "authorization")]
)
async def test_a_classic_azure_url_is_understood(ending: str, key: str, header: str) -> None:
    """Its query stays a query, the path of a request is not doubled, and the key is in the header that
    Azure reads: a key in its own, a token of Entra as Bearer.
    """
    with ScriptedServer([chat_reply("ok")]) as server:
        deployment = f"{server.url}/openai/deployments/gpt-4o-中{ending}"
        llm = OpenAILLM("m", base_url=f"{deployment}?api-version=2024-10-21&x=", api_key=key)
        assert (await llm.complete(QUESTION)).text == "ok"

    (request,) = server.requests
    path, _, query = request.path.partition("?")
    assert path.startswith("/openai/deployments/gpt-4o-") and path.endswith("/chat/completions")
    assert path.count("/chat/completions") == 1 and query == "api-version=2024-10-21&x="
    assert request.headers[header].endswith(key)
    assert len({"api-key", "authorization"} & request.headers.keys()) == 1


LONG = {
    "English": "The keeper of the lighthouse lit the lamp at dusk and wrote the weather down. "
    * 300,
    "中文": "守塔人在黄昏时点亮了灯，并记下当天的天气和过往的船只。" * 200,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_server_that_cuts_a_request_is_named_once(
    caplog: pytest.LogCaptureFixture, text: str, streamed: bool
) -> None:
    """With the tokens it read and Ollama's setting, by the server's own count."""
    whole = chat_reply("ok", prompt_tokens=2_048)
    pieces = stream_reply(["ok"], usage={"prompt_tokens": 2_048, "completion_tokens": 1})
    with ScriptedServer([pieces, pieces] if streamed else [whole, whole]) as server:
        llm = model(server)
        for _ in range(2):
            question = (Message("user", text),)
            if streamed:
                assert [piece async for piece in llm.stream(question)] == ["ok"]
            else:
                await llm.complete(question)

    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert all(word in warnings[0] for word in ("m: ", "2048 of about", "num_ctx", "8192"))


@pytest.mark.parametrize("text", [*LONG.values(), "short"], ids=[*LONG, "short"])
@pytest.mark.parametrize("share", [0.75, 1.0, 1.6])
async def test_other_tokenizers_are_no_cut(
    caplog: pytest.LogCaptureFixture, text: str, share: float
) -> None:
    """Nor are servers that count nothing, or that count cached tokens apart."""
    tokens = int(TOKENIZER.count(text) * share)
    replies = [
        chat_reply("ok", prompt_tokens=tokens),
        chat_reply("ok", prompt_tokens=0),
        chat_reply("ok", prompt_tokens=10, cached_tokens=tokens),
    ]
    with ScriptedServer(replies) as server:
        llm = model(server)
        for _ in replies:
            await llm.complete((Message("user", text),))
    assert not caplog.records


async def test_a_key_is_never_shown(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in an error, its causes, the log or the repr, even where the server repeats it."""
    caplog.set_level(logging.DEBUG, logger="lightrag_jsonl")
    error = await fails(error_reply(401, f"Incorrect API key provided: {KEY}"))
    monkeypatch.setenv("OPENAI_API_KEY", "abcdefgh")
    environment = await fails(error_reply(400, "I know abcdefgh"))

    assert error.__cause__ is None and error.__suppress_context__
    shown = f"{error}{environment}{caplog.text}{OpenAILLM('m', api_key=KEY)!r}"
    assert not any(secret in shown for secret in ("sk-", "0123456789", "abcdefgh"))


async def test_a_missing_key_and_a_wrong_url_or_option_are_explained() -> None:
    """The constructor needs no key and reads no environment; the first call says what is missing."""
    with pytest.raises(ConfigError, match=r"api\.openai\.com.*OPENAI_API_KEY"):
        await OpenAILLM("gpt-4o-mini").complete(QUESTION)
    for url in ("http://", "localhost:8000"):
        with pytest.raises(ConfigError, match="not a URL such as http"):
            OpenAILLM("m", base_url=url)
    with pytest.raises(ConfigError, match="'auto', 'off' or 'grounded'"):
        OpenAILLM("m", constrain="always")  # type: ignore[arg-type]


@pytest.mark.parametrize("named", [False, True])
async def test_the_environments_key_is_for_the_server_it_names(
    named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of one's own needs no key, and gets that of the environment only if OPENAI_BASE_URL
    names it, which is then enough to find it.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedServer(respond=lambda request: chat_reply("ok")) as server:
        if named:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.base_url}/")
        for address in (server.base_url, None)[: 1 + named]:
            assert (await OpenAILLM("m", base_url=address).complete(QUESTION)).text == "ok"
    assert all((KEY in str(request.headers)) is named for request in server.requests)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_reply_is_read_up_to_its_limit(encoding: str) -> None:
    """Also one that only unpacks to too much, and an error's page; a shorter one is an answer."""
    body = json.dumps(chat_reply("x" * 50_000_000).body).encode()
    if encoding == "gzip":
        body = gzip.compress(body, 1)
    headers = {"Content-Encoding": encoding}
    assert "longer than 4,000,000 bytes" in str(await fails(Reply(body, headers=headers)))
    assert "HTTP 500" in str(await fails(Reply(body, 500, headers)))
    tracemalloc.start()
    try:
        await fails(Reply(body, headers=headers))
        assert tracemalloc.get_traced_memory()[1] < 45_000_000
    finally:
        tracemalloc.stop()
    with ScriptedServer([chat_reply("x" * 3_000_000)]) as server:
        assert len((await model(server).complete(QUESTION)).text) == 3_000_000


async def test_an_event_of_a_stream_is_read_up_to_its_limit() -> None:
    """A stream of many small events may be longer than that."""
    with ScriptedServer([stream_reply(["x" * 3000] * 9), stream_reply(["x" * 900_000])]) as server:
        llm = model(server, max_answer_bytes=10_000)
        assert len("".join([piece async for piece in llm.stream(QUESTION)])) == 27_000
        with pytest.raises(LLMError, match="ended early"):
            await anext(llm.stream(QUESTION))


async def test_no_redirect_is_followed() -> None:
    """A prompt and a key go to the server that was named, and to no other."""
    with ScriptedServer([chat_reply("Yes.")]) as other:
        error = await fails(Reply(status=307, headers={"Location": f"{other.url}/elsewhere"}))
    assert "check the base URL, from which it leads elsewhere" in str(error)
    assert not other.requests


async def test_a_stream_gives_pieces_as_they_came_and_what_they_cost() -> None:
    """Pieces are not joined, cut or lost; a reader that stops early leaves the model usable."""
    pieces = ["乔", "峰 is ", "", "🌍"]
    counted = {"prompt_tokens": 9, "completion_tokens": 2}
    replies = [stream_reply(pieces, usage=counted), stream_reply(["a"] * 50), chat_reply("b")]
    with ScriptedServer(replies) as server:
        llm = model(server)
        stream = llm.stream(QUESTION, max_tokens=3)
        assert [piece async for piece in stream] == ["乔", "峰 is ", "🌍"]
        left = llm.stream(QUESTION)
        assert await anext(left) == "a"
        await left.aclose()
        assert (await llm.complete(QUESTION)).text == "b"

    assert (stream.usage, stream.finish) == (Usage(9, 2, calls=1), "stop")
    assert server.bodies[0]["stream"] is True and server.bodies[0]["max_tokens"] == 3


@pytest.mark.parametrize("end", ["cut", "over", "error"])
@pytest.mark.parametrize("pieces", [["seven", "ty"], [""]])
async def test_a_broken_stream_is_an_error_that_counts(end: str, pieces: list[str]) -> None:
    """A stream that is cut off, ends without a finish reason, or reports an error, is never taken
    for an answer; the model was paid for it.
    """
    events = [*(stream_reply(pieces, finish=None).events or ())]
    events += [{"error": {"message": "overloaded"}}] if end == "error" else []
    broken = Reply(events=events, cut_after=len(pieces) if end == "cut" else None)
    with ScriptedServer([broken]) as server, pytest.raises(LLMError) as caught:
        async for _ in model(server).stream(QUESTION):
            pass

    assert ("overloaded" in str(caught.value)) is (end == "error")
    assert caught.value.cost == Usage(calls=1)


async def test_what_was_written_to_its_end_is_an_answer() -> None:
    """A connection that breaks once the model has reported why it stopped."""
    whole = stream_reply(["乔", "峰"], finish="length")
    with ScriptedServer([Reply(events=whole.events, cut_after=3)]) as server:
        stream = model(server).stream(QUESTION)
        assert [piece async for piece in stream] == ["乔", "峰"] and stream.finish == "length"


async def records(llm: OpenAILLM, **options: object) -> Completion:
    return await llm.complete_records(QUESTION, schema=SCHEMA, **options)  # type: ignore[arg-type]


async def test_records_come_in_one_object_and_are_handed_on_as_lines() -> None:
    """A half one at the end, too."""
    one, two = '{"type":"entity","name":"乔峰"}', '{"type":"entity","name":"阿朱"}'
    whole = f'{{"records": [\n {one},\n {two}]}}'
    cut = f'{{"records":[{one}, {two[:20]}'
    with ScriptedServer([chat_reply(whole), chat_reply(cut, finish="length")]) as server:
        llm = model(server, constrain="auto")

        assert (await records(llm)).text == f"{one}\n{two}"
        assert await records(llm) == Completion(f"{one}\n{two[:20]}", "length", Usage(7, 5, 0, 1))
    assert server.bodies[0]["response_format"]["type"] == "json_schema"


async def test_llama_cpp_gets_a_grammar_instead_of_a_schema() -> None:
    """Once an answer has shown which server it is; if the grammar is refused, the schema comes back.
    A schema with demands beyond a grammar's stays a schema.
    """
    line = '{"type":"entity","name":"乔峰"}'
    answer = replace(chat_reply(line), headers={"Server": "llama.cpp"})
    streamed = stream_reply([line])  # from now on, so that loops can be ended
    refusal = error_reply(400, "failed to parse grammar")
    replies = [answer, streamed, streamed, refusal, streamed, streamed]
    with ScriptedServer(replies) as server:
        llm = model(server, constrain="auto")
        assert (await records(llm)).text == line
        assert (await records(llm)).text == line
        pattern: Any = {"type": "string", "pattern": "^[a-z]+$"}
        strict: dict[str, Any] = {
            "type": "object",
            "properties": {"name": pattern},
            "required": ["name"],
        }
        await llm.complete_records(QUESTION, schema=strict)
        for _ in range(2):
            assert (await records(llm)).text == line

    constraints = ["grammar", "response_format"]
    sent = [[name for name in constraints if name in body] for body in server.bodies]
    schema_only = ["response_format"]
    assert sent == [schema_only, ["grammar"], schema_only, ["grammar"], [], schema_only]


@pytest.mark.parametrize(
    ("owner", "headers"), [("llamacpp", {"Server": "llama.cpp"}), ("library", {})]
)
async def test_the_first_answer_of_a_local_model_is_stopped_too(
    owner: str, headers: dict[str, str]
) -> None:
    """A list of models tells before the first answer which program is asked."""
    models = Reply({"object": "list", "data": [{"id": "m", "owned_by": owner}]}, headers=headers)
    endless = stream_reply(["one more time, "] * 5_000)
    with ScriptedServer([endless], models=models) as server:
        looping = await model(server).complete(QUESTION)
    assert looping.finish == "length" and len(looping.text) < 20_000


@pytest.mark.parametrize(
    "body", ["no JSON", {"data": 5}, {"data": ["m"]}, {"data": [{"owned_by": "vllm"}]}, [], {}]
)
async def test_another_list_of_models_changes_nothing(body: Any) -> None:
    """Also a broken one: the first answer is asked for in one piece."""
    with ScriptedServer([chat_reply("yes")], models=Reply(body)) as server:
        assert (await model(server).complete(QUESTION)).text == "yes"
    assert "stream" not in server.bodies[0] or not server.bodies[0]["stream"]


@pytest.mark.parametrize("server_name", ["llama.cpp", "Ollama"])
async def test_a_local_model_that_repeats_itself_is_stopped(server_name: str) -> None:
    """The stream is closed, which ends the model's work; the answer counts as cut off, and costs about
    what was written.
    """
    first = chat_reply("ready")
    if server_name == "llama.cpp":
        first = replace(first, headers={"Server": "llama.cpp"})
    else:
        first.body["system_fingerprint"] = "fp_ollama"
    line = '{"type":"entity","name":"乔峰","description":"乔峰是帮主。"}\n'
    endless = stream_reply([line] * 5_000)
    with ScriptedServer(
        [first, endless, stream_reply([line], usage={"completion_tokens": 9})]
    ) as server:
        llm = model(server)
        assert (await llm.complete(QUESTION)).text == "ready"
        looping = await llm.complete(QUESTION)
        whole = await llm.complete(QUESTION)

    assert looping.finish == "length" and looping.text.startswith(line)
    assert len(looping.text) < 2_000
    assert 0 < looping.usage.output_tokens < 2_000 and looping.usage.calls == 1
    assert whole == Completion(line, "stop", Usage(0, 9, 0, 1))
    assert [body.get("stream", False) for body in server.bodies] == [False, True, True]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            400,
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "try 9 tokens",
                }
            },
        ),
        (400, {"message": "This model's maximum context length is 2048 tokens.", "code": 400}),
        (400, {"error": {"message": "The input token count (9) exceeds the maximum number"}}),
        (
            422,
            {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"},
        ),
        (400, {"error": {"message": "Range of input length should be [1, 30720]"}}),
    ],
)
async def test_a_request_beyond_the_window_is_known(status: int, body: Any) -> None:
    """In the words of llama.cpp, vLLM, Gemini, TGI and DashScope."""
    with ScriptedServer([Reply(body, status=status), error_reply(400, "a bad schema")]) as server:
        llm = model(server)
        with pytest.raises(LLMError, match="CONTEXT_TOKENS") as error:
            await llm.complete(QUESTION)
        assert error.value.too_long and not error.value.transient
        with pytest.raises(LLMError) as other_error:
            await llm.complete(QUESTION)
        assert not other_error.value.too_long


async def test_names_count_only_when_grounded(tmp_path: Path) -> None:
    """`constrain="grounded"` holds entity names to the list, of an insert to those in the text; with
    "off" nothing is added.
    """
    with ScriptedServer(respond=lambda _: chat_reply("{}")) as server:
        for constrain in ("auto", "grounded", "off"):
            llm = model(server, constrain=constrain)
            assert (await records(llm, names=["阿朱", 'O"Neil'])).text == "{}"

    free, grounded, off = (json.dumps(body, ensure_ascii=False) for body in server.bodies)
    assert "response_format" not in off and "阿朱" not in free + off
    assert '["阿朱", "O\\"Neil"]' in grounded

    with ScriptedServer(respond=lambda _: chat_reply('{"records": []}')) as server:
        with LightRAG(tmp_path, llm=model(server, constrain="grounded")) as rag:
            rag.insert("Marie Curie discovered radium.")
        assert '["Marie Curie"]' in json.dumps(server.bodies[0])


@pytest.mark.parametrize(
    "refusal",
    [
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "stream must be set to true",
        "stream=false is not supported by this model",
        "该模型仅支持流式输出",
    ],
)
async def test_a_model_that_only_streams_answers_whole_questions(refusal: str) -> None:
    """It is asked for a stream, from then on at once; text, end and cost are those of the stream."""

    def respond(request: Request) -> Reply:
        if not request.json.get("stream"):
            return error_reply(400, refusal)
        usage = {"prompt_tokens": 9, "completion_tokens": 4}
        return stream_reply(["镭", " radium"], finish="length", usage=usage)

    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("qwq", base_url=server.base_url)
        answers = [await llm.complete([Message("user", "?")], max_tokens=5) for _ in range(2)]
        records = await llm.complete_records([Message("user", "?")], schema={"type": "object"})
    for answer in (*answers, records):
        assert (answer.text, answer.finish) == ("镭 radium", "length")
        assert answer.usage == Usage(input_tokens=9, output_tokens=4, calls=1)
    assert len(server.requests) == 4
