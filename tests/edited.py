"""An index with edits of each kind, to be carried from store to store and from format to format."""

from pathlib import Path

from lightrag_jsonl import Document
from tests.kit import entity, index, relation

TEXT = "Ann met Bob. Bob knows Cid. Dan saw 安娜."
RECORDS = [
    *[entity(name) for name in ("Ann", "Bob", "Cid", "Dan", "安娜")],
    relation("Ann", "Bob"),
    relation("Bob", "Cid"),
    relation("Dan", "安娜"),
]


async def insert_text(place: Path | str) -> None:
    """An index without edits."""
    async with index(place, clock=lambda: 5.0) as rag:
        await rag.insert_records(Document(TEXT, id="d1"), RECORDS)


async def make_edits(place: Path | str) -> None:
    """Edits of each kind; of entities also under a merged name."""
    async with index(place, clock=lambda: 5.0) as rag:
        await rag.entities.merge(["安娜"], into="Ann")
        await rag.entities.edit("bob", type="dog", description="A dog.", by="Eve", reason="I saw")
        await rag.entities.edit("安娜", description="安娜１２。", by="Eve 🙂")
        await rag.entities.edit_relation("Cid", "Bob", keywords=["feeds"], weight=2.5, by="Eve")
        await rag.entities.delete("Dan", by="Eve", reason="no such man")
        await rag.entities.create("Fay", type="person", description="By hand.", by="Eve")
        await rag.entities.create_relation("Fay", "Ann", description="Wed.", by="Eve")
        await rag.entities.delete_relation("Ann", "Bob", by="Eve")


async def undo_edits(place: Path | str) -> None:
    """Delete every edit, and undo the merge."""
    async with index(place) as rag:
        edits = [document.id for document in await rag.documents() if document.id != "d1"]
        assert len(edits) == 7
        await rag.delete(*edits)
        await rag.entities.unmerge("Ann")
