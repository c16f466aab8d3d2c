"""Vectors: each text is embedded once, what is paid for is kept, and a broken embedder costs no answer."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from lightrag_jsonl import Document, EmbeddingError, IndexOptions, SettingsError
from lightrag_jsonl.indexing.embedding import BATCHES_AT_ONCE
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from tests.kit import Vectors, entity, index, problems, read_names, reading, relation, view


class Counting(HashEmbedder):
    """Counts its texts, and fails from some call on until it is well."""

    def __init__(
        self, fails_from: int = 1_000, *, remote: bool = False, name: str = "", dim: int = 64
    ) -> None:
        super().__init__(dim=dim)
        self.remote = remote
        self.texts: Counter[str] = Counter()
        self.calls = 0
        self.fails_from = fails_from
        self.name = name or self.name

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        self.calls += 1
        if self.calls > self.fails_from:
            raise EmbeddingError("it failed")
        self.texts.update(texts)
        return await super().embed(texts, kind=kind)


async def test_the_same_text_in_many_documents_is_embedded_once(tmp_path: Path) -> None:
    """Where they are committed together; every row has its vector."""
    embedder = Counting()
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder) as rag:
        await rag.insert([Document("Ann met Bob.", id=f"d{n}") for n in range(9)])
    assert embedder.texts["Ann met Bob."] == 1 == max(embedder.texts.values())
    with reading(tmp_path) as reader:
        rows = list(reader.chunks(documents=[f"d{n}" for n in range(9)]))
        assert len(reader.vectors("chunk", rows)) == 9
        assert len(reader.vectors("relation", list(reader.relation_rows()))) == 1


async def test_an_embedder_gets_a_limited_number_of_requests_at_a_time(tmp_path: Path) -> None:
    """However many texts a commit has; and after a failure no further ones."""
    in_flight = 0
    most_in_flight = 0

    class Slow(Counting):
        async def embed(
            self, texts: Sequence[str], *, kind: Literal["query", "passage"]
        ) -> Vectors:
            nonlocal in_flight, most_in_flight
            in_flight += 1
            most_in_flight = max(most_in_flight, in_flight)
            await asyncio.sleep(0)
            try:
                return await super().embed(texts, kind=kind)
            finally:
                in_flight -= 1

    records = [entity(f"Person{n} 🙂", f"Person{n} 🙂 walks.") for n in range(2 * BATCHES_AT_ONCE)]
    options = IndexOptions(embed_batch_size=1)
    async with index(tmp_path / "a", embedder=Slow(), options=options) as rag:
        await rag.insert_records(Document("All walk.", id="x"), records)
    assert 1 < most_in_flight <= BATCHES_AT_ONCE

    broken = Slow(fails_from=0)
    async with index(tmp_path / "b", embedder=broken, options=options) as rag:
        with pytest.raises(EmbeddingError):
            await rag.insert_records(Document("All walk.", id="x"), records)
    assert broken.texts.total() == 0
    assert broken.calls <= 2 * BATCHES_AT_ONCE  # each is followed by a look whether it is well


async def test_only_what_changed_is_embedded_again(tmp_path: Path) -> None:
    """Not the chunks that an edit leaves alone, nor entities that are described as before."""
    parts = [f"Person{n} walked along the river and saw a boat. " * 4 for n in range(4)]
    edited = [*parts[:3], parts[3].replace("boat", "bird", 1)]
    embedder = Counting()
    options = IndexOptions(chunk_tokens=60, chunk_overlap=0, max_gleanings=0)
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder, options=options) as rag:
        await rag.insert(Document("\n\n".join(parts), id="x"))
        embedder.texts.clear()
        await rag.insert(Document("\n\n".join(edited), id="x"))
    assert len(embedder.texts) == 1 and "bird" in next(iter(embedder.texts))


@pytest.mark.parametrize(("ann", "verb"), [("Ann", "admires"), ("曹操", "敬重")])
async def test_what_later_chunks_add_to_a_description_is_not_embedded(
    tmp_path: Path, ann: str, verb: str
) -> None:
    """Only the first description counts: in the order of mentions, whatever comes in which order."""
    texts = []
    for folder, numbers in (("a", range(9)), ("b", reversed(range(9)))):
        embedder = Counting()
        async with index(tmp_path / folder, embedder=embedder) as rag:
            for number in numbers:
                told = f"{ann} {verb} Bob, １{number} 🙂."
                records = [entity(ann, told), relation(ann, "Bob", told, keywords=[verb])]
                await rag.insert_records(Document(told, id=f"d{number}"), records)
        for start in (f"{ann}\n", f"{ann} — {verb} — Bob: "):
            texts.append([text for text in embedder.texts if text.startswith(start)])
    assert max(map(len, texts)) < 9 and {text.count("１") for some in texts for text in some} == {1}
    assert texts[0][-1] == texts[2][-1] and texts[1][-1] == texts[3][-1]


async def test_without_relation_vectors_none_are_made(tmp_path: Path) -> None:
    """`IndexOptions.relation_vectors` spares them."""
    embedder, options = Counting(), IndexOptions(relation_vectors=False)
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder, options=options) as rag:
        await rag.insert("Ann met Bob.")
        assert not [text for text in embedder.texts if " — " in text]
        await rag.retrieve("Ann", mode="hybrid")


async def test_batches_of_a_remote_embedder_are_not_paid_for_twice(tmp_path: Path) -> None:
    """What came before the insert broke is kept until the next one uses it; so is the sample, which tells
    this embedder from another one of its name.
    """
    embedder = Counting(fails_from=3, remote=True)
    options = IndexOptions(embed_batch_size=2)
    records = [entity(f"Name{n}") for n in range(9)]
    async with index(tmp_path, embedder=embedder, options=options) as rag:
        with pytest.raises(EmbeddingError, match="it failed"):
            await rag.insert_records(Document("Names.", id="x"), records)
        assert sum(embedder.texts.values()) == 5
        embedder.fails_from = 1_000
        assert (await rag.resume()).documents == ("x",)
        assert max(embedder.texts.values()) == 1 and len(embedder.texts) == 11
        assert await rag.admin.clear_cache() == 0
    assert problems(tmp_path) == []


@pytest.mark.slow
async def test_an_embedder_that_fails_costs_no_answers(tmp_path: Path) -> None:
    """The error is raised with what was paid; the documents wait, and no answer is paid for again."""
    embedder, llm = Counting(fails_from=0), ScriptedLLM(read_names, seconds=0.001)
    documents = [Document(f"Ann met Person{n}.", id=f"d{n}") for n in range(40)]
    async with index(tmp_path, llm, embedder=embedder) as rag:
        with pytest.raises(EmbeddingError, match="it failed") as caught:
            await rag.insert(documents)
        paid = len(llm.requests)
        assert caught.value.usage.calls == paid and caught.value.usage.output_tokens > 0
        embedder.fails_from = 1_000
        report = await rag.insert(documents)
    assert len(report.documents) == 40 == len(llm.requests) and report.usage.calls == 40 - paid
    assert problems(tmp_path) == []


class Broken(HashEmbedder):
    """Gives no numbers until it is well."""

    factor = np.nan

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        return self.factor * await super().embed(texts, kind=kind)


async def test_an_embedder_that_breaks_its_promise_is_named(tmp_path: Path) -> None:
    """Nothing of it is stored; once it is well the same insert succeeds."""
    embedder, llm = Broken(dim=64), ScriptedLLM(read_names)
    async with index(tmp_path, llm, embedder=embedder) as rag:
        with pytest.raises(EmbeddingError, match="embedder"):
            await rag.insert(Document("Ann met Bob.", id="x"))
        assert [d.state for d in await rag.documents()] == ["pending"]
        embedder.factor = 1.0
        assert (await rag.resume()).documents == ("x",)
        assert len(llm.requests) <= 2
    assert problems(tmp_path) == []


async def test_an_index_moves_to_another_embedder(tmp_path: Path) -> None:
    """As if it had been built with it; an interrupted move goes on where it stopped."""
    texts = [Document(f"Ann met Bob{n} in Bern.", id=f"d{n}") for n in range(5)]
    options = IndexOptions(embed_batch_size=2)
    other = Counting(fails_from=3, name="other")
    async with index(tmp_path / "moved", ScriptedLLM(read_names), options=options) as rag:
        await rag.insert(texts)
        with pytest.raises(EmbeddingError):
            await rag.admin.reembed(other)
        assert (await rag.retrieve("Bern", mode="naive")).chunks
        other.fails_from = 1_000
        count = await rag.admin.reembed(other)
        assert count == len(other.texts) and max(other.texts.values()) == 1
        assert (await rag.retrieve("Bern", mode="naive")).chunks
    fresh = Counting(name="other")
    async with index(tmp_path / "fresh", ScriptedLLM(read_names), embedder=fresh) as rag:
        await rag.insert(texts)
    assert view(tmp_path / "moved") == view(tmp_path / "fresh")


class Turned(HashEmbedder):
    """Another model at a server: its vectors are those of `HashEmbedder`, the other way round."""

    remote = True

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        return -await super().embed(texts, kind=kind)


@pytest.mark.parametrize("other", [Counting(dim=32, name="e"), Turned(dim=64)])
async def test_another_embedder_under_the_same_name_is_noticed(
    tmp_path: Path, other: HashEmbedder
) -> None:
    """By the length of its vectors, or by its vector for a known text: neither a question nor an insert mixes
    them. The message says what to do, and `reembed` moves the index, also to the same name.
    """
    other.name = "e"
    built_with = Counting(remote=True, name="e")
    async with index(tmp_path, ScriptedLLM(read_names), embedder=built_with) as rag:
        await rag.insert(Document("Ann met Bob.", id="x"))
        assert (await rag.retrieve("Bob", mode="naive")).chunks
    async with index(tmp_path, ScriptedLLM(read_names), embedder=other) as rag:
        with pytest.raises(SettingsError, match="reembed"):
            await rag.retrieve("Bob", mode="naive")
        with pytest.raises(SettingsError, match="reembed"):
            await rag.insert(Document("Ann met Cid.", id="y"))
    async with index(tmp_path, ScriptedLLM(read_names), embedder=built_with) as rag:
        await rag.admin.reembed(other)
    async with index(tmp_path, ScriptedLLM(read_names), embedder=other) as rag:
        await rag.resume()
        await rag.insert(Document("Dan met Eve.", id="z"))
        assert (await rag.retrieve("Dan met Eve.", mode="naive")).chunks[0].document_id == "z"
    assert problems(tmp_path) == []
    assert problems(tmp_path / "moved") == []
