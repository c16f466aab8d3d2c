"""Snapshots: what people see of them; that a rollback is exact is a law (`tests/laws/test_rollback.py`)."""

from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, NotFoundError
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from tests.indexing.test_purge import WORDS, left_in
from tests.kit import index, problems, read_names, view

SECRET = Document("Ann met Quixotry in Bern. 镭的秘密🙂 belongs to Quixotry.", id="secret")


async def test_names_of_snapshots_are_checked(tmp_path: Path) -> None:
    """An empty name, one that is taken, or an unknown one is an error that says what to do."""
    async with index(tmp_path) as rag:
        await rag.admin.snapshot("之前 １")
        with pytest.raises(ConfigError, match="empty"):
            await rag.admin.snapshot("  ")
        with pytest.raises(ConfigError, match="'之前 １' already"):
            await rag.admin.snapshot("之前 １")
        for act in (rag.admin.rollback, rag.admin.delete_snapshot, rag.admin.diff):
            with pytest.raises(NotFoundError, match="no such snapshot: nix; there are: 之前 １"):
                await act("nix")
        assert [snapshot.name for snapshot in await rag.admin.snapshots()] == ["之前 １"]


async def test_a_rollback_asks_no_model_and_pays_nothing_twice(tmp_path: Path) -> None:
    """Neither the model nor the embedder is asked, and forward again is as free as back."""
    llm = ScriptedLLM(read_names)
    embedder = HashEmbedder(dim=64)
    async with index(tmp_path, llm, embedder=embedder) as rag:
        await rag.insert(Document("Ann wrote to Bob.", id="a"))
        await rag.admin.snapshot("before")
        before = view(tmp_path, times=True)
        await rag.insert([Document("Ann wrote to Cid.", id="a"), Document("Dan met Bob.", id="d")])
        await rag.entities.merge(["Dan"], into="Bob")
        await rag.admin.snapshot("after")
        after = view(tmp_path, times=True)
        calls = len(llm.requests)
        await rag.admin.rollback("before")
        assert view(tmp_path, times=True) == before
        await rag.admin.rollback("after")
        assert view(tmp_path, times=True) == after
        assert len(llm.requests) == calls and problems(tmp_path) == []


async def test_an_index_with_snapshots_opens_again(tmp_path: Path) -> None:
    """The tables belong to the format, and a rollback needs nothing of the process that saved."""
    async with index(tmp_path) as rag:
        await rag.insert("Ann wrote to Bob.")
        await rag.admin.snapshot("a")
        before = view(tmp_path, times=True)
        await rag.insert("Ann wrote to Cid.")
    async with index(tmp_path) as rag:
        await rag.admin.rollback("a")
        assert view(tmp_path, times=True) == before


@pytest.mark.slow
async def test_a_purge_leaves_no_word_in_snapshots(tmp_path: Path) -> None:
    """Snapshots before and after, with the document and with an older version of it, lose it and stay
    what they were otherwise.
    """
    llm = ScriptedLLM(read_names)
    older = Document("Quixotry met Cid. 镭的秘密.", id="secret")
    async with index(tmp_path / "kb", llm) as rag:
        await rag.insert(Document("Ann wrote to Bob in Bern.", id="a"))
        await rag.admin.snapshot("first")
        first = view(tmp_path / "kb", times=True)
        await rag.insert(older)
        await rag.admin.snapshot("second")
        await rag.insert([SECRET, Document("Bob wrote to Dan.", id="b")])
        await rag.admin.snapshot("third")
        await rag.delete("secret")
        assert left_in(tmp_path / "kb", *WORDS)
        await rag.delete("secret", purge=True)
        assert left_in(tmp_path / "kb", *WORDS) == []
        assert await rag.admin.check(full=True) == []
        await rag.admin.rollback("third")
        assert {document.id for document in await rag.documents()} == {"a", "b"}
        assert problems(tmp_path / "kb") == []
        for name in ("second", "first"):
            await rag.admin.rollback(name)
            assert view(tmp_path / "kb", times=True) == first
            assert problems(tmp_path / "kb") == []


async def test_a_purge_without_ids_purges_snapshots_of_all_that_is_gone(tmp_path: Path) -> None:
    """What was deleted before and only a snapshot holds goes; what is there stays in the snapshot."""
    async with index(tmp_path / "kb", ScriptedLLM(read_names)) as rag:
        await rag.insert([SECRET, Document("Ann wrote to Bob in Bern.", id="a")])
        await rag.admin.snapshot("before")
        await rag.delete("secret")
        there = view(tmp_path / "kb", times=True)
        await rag.delete(purge=True)
        assert left_in(tmp_path / "kb", *WORDS) == []
        await rag.admin.rollback("before")
        assert view(tmp_path / "kb", times=True) == there


async def test_damaged_rows_of_a_snapshot_are_found(tmp_path: Path) -> None:
    """A full check restores each snapshot in a copy, and says what is wrong with which."""
    async with index(tmp_path) as rag:
        await rag.insert(Document("Ann wrote to Bob.", id="a"))
        await rag.admin.snapshot("before")
        await rag.delete("a")
        assert await rag.admin.check(full=True) == []
        with rag.engine.store.transaction() as transaction:
            transaction.dialect.execute(
                "UPDATE saved_rows SET content = ? WHERE name = 'entities'", b"oops"
            )
        assert "the snapshot 'before' cannot be read" in (await rag.admin.check(full=True))[0]


async def test_another_embedder_needs_snapshots_deleted(tmp_path: Path) -> None:
    """Vectors of two embedders never stand in one index."""
    embedder = HashEmbedder(dim=32)
    embedder.name = "other"
    async with index(tmp_path) as rag:
        await rag.insert("Ann wrote to Bob.")
        await rag.admin.snapshot("before")
        with pytest.raises(ConfigError, match="before hold vectors"):
            await rag.admin.reembed(embedder)
        await rag.admin.delete_snapshot("before")
        await rag.admin.reembed(embedder)
