"""A process that indexes and can be killed, again and again: see `tests.forking`.

An order is {"folder", "log"}. Every model call is noted in the log when it begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lightrag_jsonl.ask import request_key
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.types import Completion, Document, Message, ResponseType
from tests.forking import serve
from tests.indexing.kit import index, prompts, read_names

SLOTS = 4
SECONDS = 0.004
OPTIONS = IndexOptions(
    chunk_tokens=70, chunk_overlap=0, max_concurrent_calls=SLOTS, glean_min_tokens=1
)


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


DOCUMENTS = [Document(text(number), id=f"d{number}") for number in range(6)]
EDITED = Document(text(0).replace("a cold day", "a warm day", 1), id="d0")


class Noting(ScriptedLLM):
    """A slow model that notes every call in a file before it answers."""

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
        key = request_key(self.name, messages, response_type, max_tokens)
        with self._log.open("a", encoding="utf-8") as file:
            file.write(key.hex() + "\n")
        return await super().complete(messages, response_type=response_type, max_tokens=max_tokens)


async def work(folder: Path, log: Path) -> None:
    """Insert six documents, change one, delete one."""
    async with index(folder, Noting(log), options=OPTIONS) as rag:
        await rag.insert(DOCUMENTS)
        await rag.insert(EDITED)
        await rag.delete("d1")


def begin(order: dict[str, str]) -> None:
    """The work, in the folder and with the log that were asked for."""
    asyncio.run(work(Path(order["folder"]), Path(order["log"])))


if __name__ == "__main__":
    prompts()
    serve(begin)
