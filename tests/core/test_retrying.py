"""One loop repeats requests: it is counted how many reach a server, for each kind of request."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from lightrag_jsonl import EmbeddingError, LLMError, Message, OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.core import retrying
from lightrag_jsonl.core.retrying import LONGEST_PAUSE, with_retries
from lightrag_jsonl.core.user_code import embed_texts
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.providers.connection import pause_asked_for
from tests.kit import prompts
from tests.llm.test_client import MemoryCache
from tests.servers import (
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
