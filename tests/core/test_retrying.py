"""One loop repeats requests: it is counted how many reach a server, for each kind of request."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import httpx2
import pytest

from lightrag_jsonl import EmbeddingError, LightRAG, LLMError, Message, OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.core import retrying
from lightrag_jsonl.core.retrying import LONGEST_PAUSE, with_retries
from lightrag_jsonl.core.user_code import embed_texts
from lightrag_jsonl.llm import scheduler
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.providers.pauses import pause_asked_for, pause_in_body, pause_named
from tests.kit import prompts
from tests.llm.test_client import MemoryCache
from tests.servers import (
    Reply,
    Request,
    ScriptedServer,
    chat_reply,
    embedding_reply,
    error_reply,
    stream_reply,
)

BROKEN = error_reply(500, "out of memory 内存不足")
QUESTION = (Message("user", "What did Marie Curie discover?"),)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits before another attempt."""
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.0)


def client_of(server: ScriptedServer, **options: object) -> ModelClient:
    """A client of a model behind the server, as an index has one."""
    llm = OpenAILLM("m", base_url=server.base_url, api_key="k", **options)  # type: ignore[arg-type]
    return ModelClient(llm, prompts(), MemoryCache(), max_concurrent_calls=4)


def embedder_of(server: ScriptedServer, **options: object) -> OpenAIEmbedder:
    """An embedder behind the server; the length of its vectors is not known."""
    return OpenAIEmbedder("e", base_url=server.base_url, api_key="k", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("retries", [None, 0, 4])
async def test_a_chat_an_embedding_and_a_stream_that_fail_are_each_repeated_by_one_loop(
    retries: int | None,
) -> None:
    """Two repetitions by default, or as many as the model and the embedder were given: the retries
    of the SDK and of the package do not multiply.
    """
    options = {} if retries is None else {"max_retries": retries}
    requests = 1 + (2 if retries is None else retries)
    pieces: list[str] = []

    async def put(piece: str) -> None:
        pieces.append(piece)

    with ScriptedServer(respond=lambda request: BROKEN) as server:
        with pytest.raises(LLMError, match="内存不足"):
            await client_of(server, **options).text("extract-graph", {"text": "Radium."})
        chat_bodies = list(server.bodies)
        server.requests.clear()
        with pytest.raises(LLMError, match="内存不足"):
            await client_of(server, **options).chat(QUESTION, on_piece=put)
        stream_bodies = list(server.bodies)
        server.requests.clear()
        with pytest.raises(EmbeddingError, match="内存不足"):
            await embed_texts(embedder_of(server, **options), ["Radium."], "passage")
        embedding_bodies = list(server.bodies)

    assert [len(chat_bodies), len(stream_bodies), len(embedding_bodies)] == [requests] * 3
    assert all(body["stream"] for body in stream_bodies) and not pieces


async def test_the_second_attempt_counts() -> None:
    """A server that fails once, and names a pause, answers a chat, a stream and an embedding."""
    loading = error_reply(503, "loading", retry_after="0.001")
    vectors = embedding_reply([[1.0, 0.0]])
    pieces: list[str] = []

    async def put(piece: str) -> None:
        pieces.append(piece)

    script = [loading, chat_reply("镭"), loading, stream_reply(["ra", "dium"]), loading, vectors]
    with ScriptedServer(script) as server:
        client = client_of(server)
        assert (await client.text("extract-graph", {"text": "Radium."})).text == "镭"
        assert (await client.chat(QUESTION, on_piece=put)).text == "radium"
        rows = await embed_texts(embedder_of(server, dim=2), ["Radium."], "query")

    assert pieces == ["ra", "dium"] and rows.tolist() == [[1.0, 0.0]]


def test_the_length_of_vectors_is_asked_for_again() -> None:
    """A server that is still starting costs no index its embedder."""
    with ScriptedServer([BROKEN, BROKEN, embedding_reply([[1.0, 0.0, 0.0]])]) as server:
        assert embedder_of(server).dim == 3


async def test_a_longer_pause_than_the_longest_is_left_to_the_caller() -> None:
    """It is neither waited for nor cut short, which would only be refused again."""
    attempts = []

    async def refuse() -> None:
        attempts.append(1)
        raise LLMError("come back later", transient=True, retry_after=LONGEST_PAUSE + 1)

    with pytest.raises(LLMError, match="later"):
        await with_retries(refuse, retries=5)
    assert len(attempts) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Limit 6000, Used 5034. Please try again in 7.5s.", 7.5),
        ("Try again in 1m30.5s", 90.5),
        ("please retry after 12 seconds", 12.0),
        ("retry in 250ms", 0.25),
        ("Try again in 2 minutes and 3 seconds.", 123.0),
        ('[{"error":{"details":[{"@type":"RetryInfo","retryDelay": "31.2s"}]}}]', 31.2),
        ("try again in a moment", None),
        ("try again in 7 tokens", None),
        ("请稍后再试", None),
        ("", None),
    ],
)
def test_a_pause_is_read_from_the_body(text: str, seconds: float | None) -> None:
    """From Gemini's RetryInfo and from the sentences of OpenAI, Azure and Groq."""
    assert pause_in_body(text) == seconds


def limited(times: int, retry_after: float | None) -> Callable[[], Awaitable[str]]:
    """An attempt that a rate limit refuses so many times."""
    refusals = iter(range(times))

    async def attempt() -> str:
        if next(refusals, None) is not None:
            raise LLMError("429", transient=True, rate_limited=True, retry_after=retry_after)
        return "镭"

    return attempt


@pytest.mark.parametrize("retry_after", [0.0, None])
async def test_rate_limits_are_waited_for(retry_after: float | None) -> None:
    """However many, with a pause or without: they do not count as attempts, unless no attempt was to be
    repeated.
    """
    assert await with_retries(limited(40, retry_after), retries=1) == "镭"
    with pytest.raises(LLMError, match="429"):
        await with_retries(limited(1, retry_after), retries=0)


async def test_the_pauses_of_a_busy_server_grow_to_minutes_and_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a number of the server's, the pauses double up to two minutes; who waits is told."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.5)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(LLMError, match="429"):
        await with_retries(limited(1_000, None), retries=1, patience=500.0)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 64, *[LONGEST_PAUSE] * 3]
    assert [record.args[0] for record in caplog.records if record.args] == pauses[3:]
    assert "Ctrl-C" in caplog.text


def busy(code: int, message: str, **fields: str) -> Reply:
    """A refusal in the form of OpenAI's protocol, with further fields of the error."""
    return Reply({"error": {"message": message, **fields}}, status=code)


@pytest.mark.parametrize(
    "refusal",
    [
        busy(503, "the queue is full, try once more", type="api_error"),
        busy(503, "The model is overloaded. Please try again later.", status="UNAVAILABLE"),
        busy(503, "Loading model", type="unavailable_error"),
        busy(529, "Overloaded", type="overloaded_error"),
        busy(500, "That model is currently overloaded with other requests."),
        busy(502, "upstream server is busy"),
        Reply({"code": 20015, "message": "TPM limit reached. Upgrade your plan."}, status=403),
        Reply(
            {"code": "1302", "message": "您当前使用该API的并发数过高，已触发频率限制"}, status=403
        ),
        Reply({"code": 50603, "message": "Request was rejected"}, status=429),
        Reply("Service Unavailable", status=503),
    ],
)
async def test_a_busy_server_is_waited_for(refusal: Reply) -> None:
    """More refusals than retries cost neither a chat nor an embedding, whatever words say so."""
    refusals = [refusal] * 5
    script = [*refusals, chat_reply("镭"), *refusals, embedding_reply([[1.0, 0.0]])]
    with ScriptedServer(script) as server:
        reply = await client_of(server).text("extract-graph", {"text": "Radium."})
        rows = await embed_texts(embedder_of(server, dim=2), ["Radium."], "passage")
    assert reply.text == "镭" and len(rows) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"X-RateLimit-Reset-Tokens": "6m0s"}, LONGEST_PAUSE),
        ({"x-ratelimit-reset-requests": "1m3.5s", "x-ratelimit-reset-tokens": "2s"}, 63.5),
        (
            {
                "x-ratelimit-remaining-requests": "99",
                "x-ratelimit-reset-requests": "1m",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "7.66s",
            },
            7.66,
        ),
        ({"ratelimit-reset": "17"}, 17.0),
        ({"retry-after": "3", "x-ratelimit-reset-requests": "1m"}, 3.0),
        ({"retry-after": "1m30s"}, 90.0),
        ({"x-ratelimit-reset-requests": "soon"}, None),
        ({"x-request-id": "17"}, None),
    ],
)
def test_a_reset_of_limits_is_a_pause(headers: dict[str, str], seconds: float | None) -> None:
    """The limit that is used up counts, and never longer than the longest pause: a budget fills
    gradually. `Retry-After` counts more.
    """
    pause = pause_named(httpx2.Headers(headers), "")
    assert pause == (seconds if seconds is None else pytest.approx(seconds))


def test_a_reset_may_be_a_moment() -> None:
    """In seconds or milliseconds since 1970, or as a date, as OpenRouter and Anthropic send it."""
    moment = datetime.now(UTC) + timedelta(seconds=50)
    for value in (
        f"{moment.timestamp():.0f}",
        f"{1_000 * moment.timestamp():.0f}",
        moment.isoformat(),
    ):
        assert 40 < (pause_named({"anthropic-ratelimit-requests-reset": value}, "") or 0) <= 51


async def test_the_pauses_of_rate_limits_have_an_end() -> None:
    """The next pause would go beyond the patience, so the error is raised without it."""
    with pytest.raises(LLMError, match="429"):
        await with_retries(limited(1, 100.0), retries=9, patience=99.0)


async def test_a_limited_server_answers_in_the_end() -> None:
    """A chat and an embedding, by the pause that the message or the details of a refusal name."""
    sentence = error_reply(429, "Rate limit reached. Please try again in 1ms.")
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.001s"}]
    gemini = Reply([{"error": {"code": 429, "message": "quota", "details": details}}], status=429)
    vectors = embedding_reply([[1.0, 0.0]])
    script = [sentence, gemini] * 3 + [chat_reply("镭")] + [gemini, sentence] * 3 + [vectors]
    with ScriptedServer(script) as server:
        reply = await client_of(server).text("extract-graph", {"text": "Radium."})
        rows = await embed_texts(embedder_of(server, dim=2), ["Radium."], "query")
    assert reply.text == "镭" and rows.tolist() == [[1.0, 0.0]]


def test_a_rate_limit_is_no_failure_of_a_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not pass ends the insert; what was not read is read by the next `resume`."""
    monkeypatch.setattr(
        scheduler, "LONGEST_PAUSE", 0.01
    )  # how long the next call waits for the server
    refusal = error_reply(429, "Please try again in 5000 seconds.")
    record = (
        '{"type":"entity","name":"Radium","entity_type":"concept","description":"Radium glows."}'
    )
    answer = record + '\n{"type":"done","entities":1,"relationships":0}'
    is_limited = True

    def respond(request: Request) -> Reply:
        return refusal if is_limited else chat_reply(answer)

    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, api_key="k")
        with LightRAG(tmp_path, llm=llm) as rag:
            with pytest.raises(LLMError, match="5000 seconds"):
                rag.insert("Radium glows.")
            is_limited = False
            report = rag.resume()
            assert not report.failures and "Radium" in rag.graph


def test_a_pause_is_read_in_each_of_its_forms() -> None:
    """Seconds, milliseconds or a date; anything else asks for nothing."""
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)

    assert pause_asked_for({"retry-after": "2.5"}) == 2.5
    assert pause_asked_for({"retry-after": "9", "retry-after-ms": "300"}) == 0.3
    assert 3_000 < (pause_asked_for({"retry-after": later}) or 0) <= 3_600
    assert pause_asked_for({"retry-after": past}) == 0.0
    for nothing in ("", "soon", "nan", "-1", "１２"):
        assert pause_asked_for({"retry-after": nothing}) is None
