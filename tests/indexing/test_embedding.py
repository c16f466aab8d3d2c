"""Each text is embedded once, whoever else wants it at the same time."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from lightrag_jsonl import IndexOptions
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


async def test_an_embedder_that_fails_costs_no_answers(tmp_path: Path) -> None:
    """The calls in flight come to their end and are kept, none is begun; then its error is raised."""
    embedder, llm = Counting(failures=1), ScriptedLLM(read_names, seconds=0.02)
    documents = [Document(f"Ann met Person{n}.", id=f"d{n}") for n in range(9)]
    options = IndexOptions(max_concurrent_calls=3)
    async with index(tmp_path, llm, embedder=embedder, options=options) as rag:
        with pytest.raises(EmbeddingError, match="it failed") as caught:
            await rag.insert([*documents, Document("Ann met nobody.", id="d0")])
        assert caught.value.usage.calls == len(llm.requests) == 3
        assert caught.value.usage.output_tokens > 0
        report = await rag.insert(documents)
    assert len(report.documents) == 9 == len(llm.requests) and report.usage.calls == 6
    assert problems(tmp_path) == []


async def test_an_embedder_that_fails_at_a_commit_costs_no_answers_either(tmp_path: Path) -> None:
    """What was read waits for the next insert, also a document whose first version was read."""

    class Narrow(Counting):
        """Fails at what is no passage."""

        well = False

        async def embed(self, texts: Sequence[str], *, kind: EmbeddingKind) -> Vectors:
            if not self.well and any("met" not in text for text in texts):
                raise EmbeddingError("it failed")
            return await super().embed(texts, kind=kind)

    embedder, llm = Narrow(), ScriptedLLM(read_names, seconds=0.02)
    options = IndexOptions(max_concurrent_calls=2)
    texts = [f"Ann met Person{n}." for n in range(9)]
    async with index(tmp_path, llm, embedder=embedder, options=options) as rag:
        with pytest.raises(EmbeddingError, match="it failed") as caught:
            await rag.insert([Document(text, id=f"d{n // 2}") for n, text in enumerate(texts)])
        assert caught.value.usage.calls == len(llm.requests) > 0
        embedder.well = True
        await rag.insert(texts)
    assert len(llm.requests) == 9 and problems(tmp_path) == []
    assert max(embedder.texts.values()) == 1
