"""The work of a process that is killed, again and again: see `test_commit`."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

from lightrag_jsonl import Completion, Document, IndexOptions, Message, ResponseType
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import index, prompts, read_names

SLOTS = 4
SECONDS = 0.004
OPTIONS = IndexOptions(
    chunk_tokens=70, chunk_overlap=0, max_concurrent_calls=SLOTS, glean_min_tokens=1
)

prompts()  # once, before the processes are forked


def text(number: int) -> str:
    """A text of three chunks."""
    parts = []
    for part in range(3):
        who = f"Person{number}{part}"
        parts.append(
            f"{who} met Ann on a cold day in the town of Bern and they walked for hours by the "
            f"river. Later {who} wrote a long letter about the walk, which nobody but Ann ever "
            f"saw, and gave it to Cid{part}, a friend of many years who could keep a secret well."
        )
    return "\n\n".join(parts)


DOCUMENTS = [Document(text(number), id=f"d{number}") for number in range(10)]
EDITED = Document(text(0).replace("a cold day", "a warm day", 1), id="d0")


class LoggingLLM(ScriptedLLM):
    """A slow model that writes a line to a file when a call begins."""

    def __init__(self, log: Path) -> None:
        super().__init__(read_names, seconds=SECONDS)
        self._log = log

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        key = hashlib.sha256(repr((messages, response_type, max_tokens)).encode()).hexdigest()
        with self._log.open("a", encoding="utf-8") as file:
            file.write(key + "\n")
        return await super().complete(messages, response_type=response_type, max_tokens=max_tokens)


async def work(kb: Path | str, log: Path) -> None:
    """Insert documents, change one, delete one."""
    async with index(kb, LoggingLLM(log), options=OPTIONS) as rag:
        await rag.insert(DOCUMENTS)
        await rag.insert(EDITED)
        await rag.delete("d1")


def run(kb: Path | str, log: Path) -> None:
    """The whole work."""
    asyncio.run(work(kb, log))


QUESTIONS = [f"Who met Ann in Bern, and what did Person{number}1 write?" for number in range(6)]


async def ask_work(kb: Path | str, log: Path) -> None:
    """Insert documents that are read when they are asked, ask, and have the rest read."""
    model = LoggingLLM(log)
    async with index(kb, options=OPTIONS, models={"extract": model}) as rag:
        await rag.insert(DOCUMENTS, read="asked")
        for question in QUESTIONS:
            await rag.query(question, read_chunks=4)
        await rag.delete("d1")
        await rag.retry(upgrade=True)


def run_questions(kb: Path | str, log: Path) -> None:
    """The whole work with questions."""
    asyncio.run(ask_work(kb, log))
