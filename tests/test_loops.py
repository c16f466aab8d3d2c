"""One object in several event loops: one after another, and at the same time in threads."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lightrag_jsonl import AsyncLightRAG, IndexOptions
from lightrag_jsonl.loops import PerLoop
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.types import Document
from tests.indexing.kit import problems, read_names

BUSY = IndexOptions(max_concurrent_calls=2, max_gleanings=0)


async def work(rag: AsyncLightRAG, name: str) -> None:
    """More inserts and questions at once than there are turns and slots for."""
    texts = [Document(f"Ann met Bob{n} in Paris{name}.", id=f"{name}-{n}") for n in range(5)]
    reports = await asyncio.gather(*(rag.insert(text) for text in texts))
    assert [report.documents for report in reports] == [(text.id,) for text in texts]
    answers = await asyncio.gather(*(rag.query(f"Who met Bob{n % 3}?") for n in range(9)))
    assert all(answer.text for answer in answers)


def test_one_loop_after_another(tmp_path: Path) -> None:
    """Whoever had to wait in the first one leaves nothing behind that binds to it."""
    llm = ScriptedLLM(read_names)
    rag = AsyncLightRAG(tmp_path, llm=llm, options=BUSY)
    for name in "abc":
        asyncio.run(work(rag, name))
    asyncio.run(rag.close())
    assert problems(tmp_path) == []


def test_loops_at_the_same_time(tmp_path: Path) -> None:
    """Writers take turns, whichever loop they are of, and nobody is woken from another thread."""
    llm = ScriptedLLM(read_names)
    rag = AsyncLightRAG(tmp_path, llm=llm, options=BUSY)

    def run(name: str) -> None:
        asyncio.run(asyncio.wait_for(work(rag, name), 60))

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(run, name) for name in "abcd"]:
            done.result()
    assert asyncio.run(rag.status()).documents["done"] == 20
    asyncio.run(rag.close())
    assert problems(tmp_path) == []


def test_what_a_loop_had_goes_with_it() -> None:
    """A service that runs a loop for each request gathers nothing."""
    made = PerLoop(list[int])

    async def same() -> bool:
        return made.here is made.here

    assert all(asyncio.run(same()) for _ in range(5))
    gc.collect()
    assert len(made._made) <= 1
