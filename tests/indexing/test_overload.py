"""Servers that cannot do as many calls at a time, or a minute, as would be sent."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl import Document, IndexOptions, OpenAIEmbedder, OpenAILLM
from tests.kit import entity, index, jsonl, reading
from tests.servers import (
    Reply,
    Request,
    ScriptedServer,
    chat_reply,
    embedding_reply,
    error_reply,
)

RECORDS = jsonl(entity("Ada"), {"type": "done", "entities": 1, "relationships": 0})
TEXTS = [f"Ada wrote letter {number}." for number in range(20)]


def equal_vectors(request: Request) -> Reply:
    """A vector for each text, all the same."""
    return embedding_reply([[1.0] * 8 for _ in request.json["input"]])


async def embed_forty_names(
    folder: Path, respond: Callable[[Request], Reply], *, batch_size: int
) -> None:
    """Insert forty entities with vectors from a server, each of which must come within a second."""
    records = [entity(f"Person{number}") for number in range(40)]
    options = IndexOptions(embed_batch_size=batch_size)
    with ScriptedServer(respond=respond) as server:
        embedder = OpenAIEmbedder("m", dim=8, base_url=server.base_url, timeout=1.0)
        async with index(folder, embedder=embedder, options=options) as rag:
            await rag.insert_records(Document("All walk.", id="x"), records)
    with reading(folder) as reader:
        assert len(reader.vectors("entity", list(reader.entity_rows()))) == len(records)


class OneSlot:
    """Answers one request at a time, after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.answered = 0
        self._seconds = seconds
        self._slot = threading.Lock()
        self._pause = threading.Event()

    def respond(self, request: Request) -> Reply:
        with self._slot:
            self._pause.wait(self._seconds)
            self.answered += 1
        return chat_reply(RECORDS)


@pytest.mark.slow
async def test_a_server_with_one_slot_finishes_all(tmp_path: Path) -> None:
    """Sixteen calls at a time would wait behind each other until they time out. However slow the
    machine of this test is, no document fails for it.
    """
    server_model = OneSlot(0.02)
    with ScriptedServer(respond=server_model.respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, timeout=0.2)
        async with index(tmp_path, llm, options=IndexOptions(max_gleanings=0)) as rag:
            documents = [Document(text, id=text) for text in TEXTS]
            report = await rag.insert(documents, progress=False)
            for _ in range(3):  # a busy machine may let a call alone time out
                if report.failures:
                    report = await rag.retry(progress=False)
            states = {document.state for document in await rag.documents()}
    assert states == {"done"}
    assert server_model.answered < 2 * len(TEXTS)


@pytest.mark.slow
async def test_an_embedding_server_with_one_slot_embeds_everything(tmp_path: Path) -> None:
    """All batches at a time would wait behind each other until they time out."""
    slot = threading.Lock()
    pause = threading.Event()

    def respond(request: Request) -> Reply:
        with slot:
            pause.wait(0.05)
        return equal_vectors(request)

    await embed_forty_names(tmp_path, respond, batch_size=1)


@pytest.mark.slow
async def test_a_batch_that_takes_too_long_is_halved(tmp_path: Path) -> None:
    """A slow machine embeds four texts in time, not sixteen; a single text is never given up for that."""
    never = threading.Event()
    sizes: list[int] = []

    def respond(request: Request) -> Reply:
        sizes.append(len(request.json["input"]))
        if sizes[-1] > 4:
            never.wait(2.0)
        return equal_vectors(request)

    await embed_forty_names(tmp_path, respond, batch_size=16)
    assert max(sizes[-5:]) <= 4


async def test_a_waited_out_rate_limit_is_no_call(tmp_path: Path) -> None:
    """`max_calls` counts the calls that were answered; a refused one was neither made nor paid for."""
    limited = error_reply(429, "slow down", retry_after="0.001")
    replies = [limited, chat_reply(RECORDS), limited, limited, chat_reply(RECORDS)]
    options = IndexOptions(max_calls=2, max_gleanings=0, max_concurrent_calls=1)
    with ScriptedServer(replies) as server:
        llm = OpenAILLM("m", base_url=server.base_url)
        async with index(tmp_path, llm, options=options) as rag:
            report = await rag.insert(TEXTS[:2], progress=False)
    assert not report.stopped and len(report.documents) == 2 and report.usage.calls == 2
    assert len(server.requests) == 5
