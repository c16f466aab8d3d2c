"""Texts that the embedder refuses: each costs itself alone, is named, and is tried again by a retry."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from lightrag_jsonl import Document, EmbeddingError, IndexOptions
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from tests.kit import Vectors, entity, index, problems, read_names, reading, view

BAD = "Quagmire"  # the word that makes a text unbearable
OPTIONS = IndexOptions(max_gleanings=0, embed_batch_size=16)


class Picky(HashEmbedder):
    """Refuses batches by a rule until it is well; counts what it was asked."""

    def __init__(self, refuse: Callable[[Sequence[str]], str], *, remote: bool = False) -> None:
        super().__init__(dim=64)
        self.refuse = refuse
        self.remote = remote
        self.well = False
        self.batches: list[int] = []

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        self.batches.append(len(texts))
        if not self.well and (reason := self.refuse(texts)):
            raise EmbeddingError(reason)
        return await super().embed(texts, kind=kind)


def bad_word(texts: Sequence[str]) -> str:
    return "HTTP 500: unsupported value: NaN 🙂" if any(BAD in text for text in texts) else ""


def documents(bad: str = BAD) -> list[Document]:
    good = [Document(f"Nora{n} rows with Emil{n}.", id=f"d{n}") for n in range(20)]
    return [*good[:10], Document(f"{bad} lies in 云南, says Nora3.", id="bad"), *good[10:]]


@pytest.mark.slow
@pytest.mark.parametrize("remote", [False, True])
async def test_one_bad_text_costs_itself_alone(tmp_path: Path, remote: bool) -> None:
    """All others are done; its chunk and its entity are named with the reason, found by words and by
    the graph, and embedded by a retry once the embedder is well: then all is as if it always was."""
    embedder = Picky(bad_word, remote=remote)
    llm = ScriptedLLM(read_names)
    async with index(tmp_path / "fresh", ScriptedLLM(read_names), options=OPTIONS) as rag:
        await rag.insert(documents())
    async with index(tmp_path / "kb", llm, embedder=embedder, options=OPTIONS) as rag:
        report = await rag.insert(documents())
        states = {one.id: one.state for one in await rag.documents()}
        assert states.pop("bad") == "partial" and set(states.values()) == {"done"}
        assert (await rag.status()).documents == {"done": 20, "partial": 1}
        assert {one.document_id for one in report.failures} == {"bad"}
        reasons = " ".join(one.reason for one in report.failures)
        assert "unsupported value" in reasons and f"entity {BAD!r}" in reasons
        (status,) = [one for one in await rag.documents() if one.id == "bad"]
        assert {one.chunk_id for one in status.failures} == {
            one.chunk_id for one in report.failures
        }

        found = await rag.retrieve(f"Where does {BAD} lie?", mode="mix")
        assert found.chunks[0].document_id == "bad"
        assert BAD in {one.name for one in found.entities} and BAD in rag.graph
        assert problems(tmp_path / "kb") == []

        asked = len(llm.requests)
        assert (await rag.insert(documents())).documents == ()
        before = view(tmp_path / "kb")
        still = await rag.retry()
        assert {one.document_id for one in still.failures} == {"bad"}
        assert view(tmp_path / "kb") == before
        embedder.well = True
        assert (await rag.retry()).failures == () and len(llm.requests) == asked
        assert (await rag.status()).documents == {"done": 21}
    with reading(tmp_path / "kb") as reader:
        assert not reader.cached_vectors()
    assert view(tmp_path / "kb") == view(tmp_path / "fresh")
    assert problems(tmp_path / "kb") == []


@pytest.mark.slow
async def test_deleting_what_was_refused_leaves_nothing(tmp_path: Path) -> None:
    """The index is the one that never had the document."""
    async with index(tmp_path / "without", ScriptedLLM(read_names), options=OPTIONS) as rag:
        await rag.insert([one for one in documents() if one.id != "bad"])
    embedder = Picky(bad_word)
    async with index(tmp_path / "kb", ScriptedLLM(read_names), embedder=embedder) as rag:
        await rag.insert(documents())
        await rag.delete("bad")
        assert {one.state for one in await rag.documents()} == {"done"}
    assert view(tmp_path / "kb") == view(tmp_path / "without")
    with reading(tmp_path / "kb") as reader:
        assert [reader.refused_rows(kind) for kind in ("chunk", "entity", "relation")] == [[]] * 3


@pytest.mark.slow
async def test_what_was_refused_stays_so_in_other_indexes(tmp_path: Path) -> None:
    """A merge takes it over as it is, and the other index's retry embeds it. An index that moves to
    another embedder is as sound."""
    async with index(tmp_path / "a", ScriptedLLM(read_names), embedder=Picky(bad_word)) as rag:
        await rag.insert(documents())
    embedder = Picky(bad_word)
    async with index(tmp_path / "b", ScriptedLLM(read_names), embedder=embedder) as rag:
        await rag.merge_from(tmp_path / "a")
        assert (await rag.status()).documents == {"done": 20, "partial": 1}
        moved = Picky(bad_word)
        moved.name = "another"
        await rag.admin.reembed(moved)
        assert (await rag.status()).documents == {"done": 20, "partial": 1}
        moved.well = True
        assert (await rag.retry()).failures == ()
        assert (await rag.status()).documents == {"done": 21}
    assert problems(tmp_path / "b") == []


def too_long(texts: Sequence[str]) -> str:
    longest = max(map(len, texts))
    return f"HTTP 413: must have less than 200 tokens. Given: {longest}" if longest > 200 else ""


async def test_a_text_that_is_too_long_is_cut(tmp_path: Path) -> None:
    """Its beginning is embedded, which the report says; nothing failed, and nothing is to be retried."""
    text = "Nora walks along 长江 to Emil. " * 12
    embedder = Picky(too_long)
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder, options=OPTIONS) as rag:
        report = await rag.insert([Document("Ida swims.", id="s"), Document(text, id="long")])
        assert report.failures == () and {one.state for one in await rag.documents()} == {"done"}
        (cut,) = report.shortened
        assert cut.document_id == "long" and "characters are embedded" in cut.reason
        assert (await rag.retrieve("Nora walks along", mode="naive")).chunks
        embedder.batches.clear()
        await rag.retry()
        assert embedder.batches == []
    assert problems(tmp_path) == []


async def test_a_batch_that_is_too_large_is_halved_once(tmp_path: Path) -> None:
    """From then on batches have the size that was accepted."""
    embedder = Picky(lambda texts: "at most 5 texts in a batch" if len(texts) > 5 else "")
    records = [entity(f"Name{n}") for n in range(40)]
    async with index(tmp_path, embedder=embedder, options=OPTIONS) as rag:
        assert (await rag.insert_records(Document("Names.", id="x"), records)).failures == ()
        embedder.batches.clear()
        more = [entity(f"Other{n}") for n in range(40)]
        assert (await rag.insert_records(Document("Others.", id="y"), more)).failures == ()
        assert max(embedder.batches) <= 5
    assert problems(tmp_path) == []


class HalfBroken(HashEmbedder):
    """Gives no numbers for one text of a batch, as a local model may."""

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        rows = await super().embed(texts, kind=kind)
        rows[[BAD in text for text in texts]] = np.nan
        return rows


async def test_a_row_without_numbers_is_the_refusal_of_its_text(tmp_path: Path) -> None:
    """The other texts of its batch keep their vectors."""
    embedder = HalfBroken(dim=64)
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder, options=OPTIONS) as rag:
        report = await rag.insert(documents())
        assert {one.document_id for one in report.failures} == {"bad"}
        assert "NaN" in report.failures[0].reason
    assert problems(tmp_path) == []


@pytest.mark.parametrize("mode", ["naive", "local", "global", "hybrid", "mix"])
async def test_a_question_that_cannot_be_embedded_is_searched_by_its_words(
    tmp_path: Path, mode: Literal["naive", "mix"], caplog: pytest.LogCaptureFixture
) -> None:
    """With a warning; also where answers of similar questions are reused."""
    embedder = Picky(bad_word)
    async with index(tmp_path, embedder=embedder, options=OPTIONS) as rag:
        await rag.insert(documents())
        question = f"Where does {BAD} lie?"
        found = await rag.query(question, mode=mode, similarity_reuse=0.9)
        assert found.context.items and "by words alone" in caplog.text


async def test_an_embedder_that_refuses_all_is_an_error(tmp_path: Path) -> None:
    """Of a harmless text, too: then nothing is written, and no text is blamed."""
    embedder = Picky(lambda texts: "HTTP 500: out of order")
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder, options=OPTIONS) as rag:
        with pytest.raises(EmbeddingError, match="out of order"):
            await rag.insert(documents())
        assert {one.state for one in await rag.documents()} == {"pending"}
        assert len(embedder.batches) <= 20
        embedder.well = True
        assert len((await rag.resume()).documents) == 21
        embedder.well = False
        with pytest.raises(EmbeddingError):
            await rag.query("Who rows?", mode="naive")
