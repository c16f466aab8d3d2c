"""Each text is embedded once, whoever else wants it at the same time."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from lightrag_jsonl.adapters.offline import HashEmbedder
from lightrag_jsonl.calls import EmbeddingKind
from lightrag_jsonl.errors import EmbeddingError
from lightrag_jsonl.indexing.embedding import Embeddings
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.types import Document
from tests.indexing.kit import index, problems, read_names


class Counting(HashEmbedder):
    """Takes a moment, counts its texts, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(dim=8)
        self.texts: Counter[str] = Counter()
        self._failures = failures

    async def embed(self, texts: Sequence[str], *, kind: EmbeddingKind) -> Vectors:
        self.texts.update(texts)
        await asyncio.sleep(0.001)
        if self._failures:
            self._failures -= 1
            raise EmbeddingError("it failed")
        return await super().embed(texts, kind=kind)


async def test_the_same_text_in_many_documents_is_embedded_once(tmp_path: Path) -> None:
    """Also where they are read at the same time; every passage has its vector."""
    embedder = Counting()
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder) as rag:
        await rag.insert([Document("Ann met Bob.", id=f"d{n}") for n in range(9)])
    assert embedder.texts["Ann met Bob."] == 1 == max(embedder.texts.values())
    assert problems(tmp_path) == []


@pytest.mark.parametrize("way", ["alike", "failing", "cancelled"])
async def test_who_waits_for_a_vector_gets_it(tmp_path: Path, way: str) -> None:
    """In the order of his own texts; where nothing came of it for the other, it is made for him."""
    embedder = Counting(failures=int(way == "failing"))
    with contextlib.closing(Database(tmp_path)) as database:
        embeddings = Embeddings(embedder, database, batch_size=2)
        first = asyncio.create_task(embeddings.missing(await embeddings.keyed("ab")))
        await asyncio.sleep(0)
        keyed = await embeddings.keyed("cbad")
        second = asyncio.create_task(embeddings.missing(keyed))
        await asyncio.sleep(0)
        if way == "cancelled":
            first.cancel()
        done, made = await asyncio.gather(first, second, return_exceptions=True)
    assert isinstance(made, dict) and list(made) == [key for key, _ in keyed]
    assert isinstance(done, dict) == (way == "alike")
    twice = 1 + (way != "alike")
    assert embedder.texts == {"a": twice, "b": twice, "c": 1, "d": 1}
