"""Servers that cannot do as many calls at a time, or a minute, as would be sent."""

import threading
from pathlib import Path

from lightrag_jsonl import Document, IndexOptions, OpenAILLM
from tests.kit import entity, index, jsonl
from tests.servers import Reply, Request, ScriptedServer, chat_reply, error_reply

RECORDS = jsonl(entity("Ada"), {"type": "done", "entities": 1, "relationships": 0})
TEXTS = [f"Ada wrote letter {number}." for number in range(20)]


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
