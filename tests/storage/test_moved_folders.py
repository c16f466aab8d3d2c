"""Folders that are linked, left, deleted or replaced while an index is open."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.testing import ScriptedLLM
from tests.indexing.kit import index, problems, read_names


def ids(rag: LightRAG) -> set[str]:
    """The documents of an index."""
    return {document.id for document in rag.documents()}


def test_another_current_folder_is_not_another_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path means where it led when the index was opened."""
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        with LightRAG(tmp_path / place / "kb") as rag:
            rag.insert(Document("Ann met Bob.", id=place))
    monkeypatch.chdir(tmp_path / "one")
    with LightRAG("kb") as rag:
        monkeypatch.chdir(tmp_path / "two")
        rag.insert(Document("Cid met Dan.", id="new"))
        assert ids(rag) == {"one", "new"}
    with LightRAG(tmp_path / "two" / "kb") as rag:
        assert ids(rag) == {"two"}


def test_a_link_that_is_turned_elsewhere_leaves_readers_where_they_are(tmp_path: Path) -> None:
    """As where a new version of an index is put in place while questions are asked."""
    for place in ("old", "new"):
        with LightRAG(tmp_path / place) as rag:
            rag.insert(Document("Ann met Bob.", id=place))
    link = tmp_path / "live"
    link.symlink_to("old")
    with LightRAG(link) as rag:
        link.unlink()
        link.symlink_to("new")
        assert ids(rag) == {"old"}
        rag.insert(Document("Cid met Dan.", id="more"))
        assert {chunk.document_id for chunk in rag.retrieve("Cid").chunks} <= {"old", "more"}
    with LightRAG(link) as rag:
        assert ids(rag) == {"new"}


async def test_the_database_may_be_a_link(tmp_path: Path) -> None:
    """Its log lies beside the file itself: what a model answered is flushed there."""
    async with index(tmp_path / "disk") as rag:
        await rag.insert(Document("Ann met Bob.", id="a"))
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "index.sqlite").symlink_to(tmp_path / "disk" / "index.sqlite")
    async with index(tmp_path / "kb", ScriptedLLM(read_names)) as rag:
        for number in range(3):
            await rag.insert(Document(f"Cid met Dan {number}.", id=f"{number}"))
            await asyncio.sleep(0.6)  # what was not flushed is, by then
    async with index(tmp_path / "disk") as rag:
        assert len(await rag.documents()) == 4
    assert problems(tmp_path / "disk") == []


def test_a_folder_that_was_replaced_takes_no_insert(tmp_path: Path) -> None:
    """It would go into a file that nobody finds."""
    kb = tmp_path / "kb"
    with LightRAG(kb) as rag:
        rag.insert(Document("Ann met Bob.", id="a"))
        shutil.rmtree(kb)
        with LightRAG(kb) as other:
            other.insert(Document("Cid met Dan.", id="z"))
        with pytest.raises(StorageError, match="deleted or replaced"):
            rag.insert(Document("Eve met Fay.", id="b"))
    with LightRAG(kb) as rag:
        assert ids(rag) == {"z"}
    assert problems(kb) == []


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize(
    "call",
    [
        lambda rag: rag.query("Who met Bob?"),
        lambda rag: list(rag.stream("Who met Bob?")),
        lambda rag: list(rag.events("Who met Bob?")),
        lambda rag: rag.retrieve("Who met Bob?"),
        lambda rag: rag.extract("extract-graph", "Ann met Bob."),
        lambda rag: rag.status(),
        lambda rag: rag.documents(),
    ],
    ids=["query", "stream", "events", "retrieve", "extract", "status", "documents"],
)
def test_nobody_asks_a_folder_that_is_gone(
    call: Callable[[LightRAG], object], replaced: bool, tmp_path: Path
) -> None:
    """No model is paid for an answer from what is no longer so, kept where nobody finds it."""
    kb, llm = tmp_path / "kb", ScriptedLLM(read_names)
    with LightRAG(kb, llm=llm) as rag:
        rag.insert(Document("Ann met Bob.", id="a"))
        asked = len(llm.requests)
        shutil.rmtree(kb)
        if replaced:
            LightRAG(kb).close()
        with pytest.raises(StorageError, match="deleted or replaced"):
            call(rag)
        assert len(llm.requests) == asked
