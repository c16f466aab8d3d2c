"""One clock of silence for all calls to a server."""

import asyncio
import threading
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG, LLMError, Message, OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.providers.silence import ServerSilence
from tests.servers import Reply, Request, ScriptedServer, chat_reply

SILENCE = 0.6  # seconds
HELLO = [Message("user", "镭?")]


async def test_a_call_waits_while_the_server_works_on_others() -> None:
    """A server that reads one call after another is silent to the last one for longer than the timeout; all
    are answered, each once.
    """
    lock = asyncio.Lock()
    silence = ServerSilence()
    answered: list[int] = []

    async def call(number: int) -> None:
        async with silence.limit(SILENCE):
            async with lock:
                await asyncio.sleep(SILENCE / 2)
            answered.append(number)
        silence.heard(is_end=True)

    await asyncio.gather(*map(call, range(5)))
    assert answered == [0, 1, 2, 3, 4]


async def test_the_call_sent_first_may_be_the_last_to_be_answered() -> None:
    """A server with one slot that takes the newest call next, as threads at a lock may."""
    silence = ServerSilence()
    waiting: list[asyncio.Event] = []

    async def call() -> None:
        turn = asyncio.Event()
        waiting.append(turn)
        async with silence.limit(SILENCE):
            await turn.wait()
        silence.heard(is_end=True)

    calls = asyncio.gather(*(call() for _ in range(5)))
    await asyncio.sleep(0)
    while waiting:
        await asyncio.sleep(SILENCE / 2)
        waiting.pop().set()
    await calls


async def test_a_lost_call_does_not_wait_forever() -> None:
    """Twice as many answers as were expected before it came without it."""
    silence = ServerSilence()

    async def busy() -> None:
        while True:
            async with silence.limit(SILENCE):
                await asyncio.sleep(SILENCE / 10)
            silence.heard(is_end=True)

    others = asyncio.create_task(busy())
    await asyncio.sleep(0)
    async with asyncio.timeout(100 * SILENCE):
        with pytest.raises(TimeoutError):
            async with silence.limit(SILENCE):
                await asyncio.Event().wait()
    others.cancel()


async def test_a_silent_server_ends_a_call_and_a_stream_with_advice() -> None:
    """Before an answer, and in the middle of a stream."""
    pieces = [{"choices": [{"index": 0, "delta": {"content": "镭"}}]}]

    def respond(request: Request) -> Reply:
        reply = Reply(events=pieces) if request.json.get("stream") else chat_reply("镭")
        return Reply(reply.body, events=reply.events, delay=2.0)

    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, timeout=0.2)
        with pytest.raises(LLMError, match="timed out; raise the timeout") as caught:
            await llm.complete(HELLO)
        assert caught.value.timed_out and caught.value.cost.calls == 1
        with pytest.raises(LLMError, match="timed out"):
            [piece async for piece in llm.stream(HELLO)]


async def test_a_server_with_one_slot_answers_calls_that_were_sent_together() -> None:
    """Over HTTP: calls of a sixth of the timeout each, one after the other, which take longer together."""
    slot = threading.Lock()
    pause = threading.Event()
    timeout = 8 * SILENCE  # much longer than a busy machine keeps this process waiting

    def respond(request: Request) -> Reply:
        with slot:
            pause.wait(timeout / 6)
        return chat_reply("镭")

    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, timeout=timeout)
        answers = await asyncio.gather(*(llm.complete(HELLO) for _ in range(8)))
    assert [answer.text for answer in answers] == ["镭"] * 8 and len(server.requests) == 8


def test_the_models_of_an_index_at_one_server_share_the_clock(tmp_path: Path) -> None:
    """A model and an embedder at the same Ollama wait for each other; one at another server has its own."""
    server = "http://127.0.0.1:11434/v1"
    llm = OpenAILLM("a", base_url=server)
    judge = OpenAILLM("b", base_url="http://127.0.0.1:8000/v1")
    embedder = OpenAIEmbedder("e", base_url=server, dim=8)
    with LightRAG(tmp_path, llm=llm, models={"judge": judge}, embedder=embedder):
        clocks = [part._connection._silence for part in (llm, embedder, judge)]
    assert clocks[0] is clocks[1] is not clocks[2]
