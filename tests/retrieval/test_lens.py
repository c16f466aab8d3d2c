"""A lens is one class and one row: here, the shelf marks of the cited documents."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from lightrag_jsonl import Context, Document, LightRAG
from lightrag_jsonl.lenses import index_lenses
from lightrag_jsonl.rag import engine_opening
from lightrag_jsonl.retrieval.lens import Lens, Section
from lightrag_jsonl.retrieval.task import SearchResult, SearchTask

MARKS = "shelf_marks"


class ShelfMarks(Lens):
    """Where the documents stand in a library, by the metadata `shelf`; a lens of the package has its words in
    both languages.
    """

    def find(self, task: SearchTask, result: SearchResult) -> SearchResult | None:
        """The result with the marks of the documents found, if they have some."""
        context = result.context
        documents = task.snapshot.documents({chunk.document_id for chunk in context.chunks})
        marks = {
            document.id: document.metadata["shelf"]
            for document in documents
            if "shelf" in document.metadata
        }
        if not marks:
            return None
        return structs.replace(
            result, context=replace(context, findings={**context.findings, MARKS: marks})
        )

    def section(self, context: Context) -> Section | None:
        """The marks in the prompt."""
        marks = context.findings[MARKS]
        return Section("Shelf marks:", [f"- {id}: {mark}" for id, mark in marks.items()])

    def appended(self, context: Context, text: str, cited: Collection[int]) -> str:
        """A line for each cited document."""
        numbered = enumerate(context.chunks, start=1)
        ids = [chunk.document_id for number, chunk in numbered if number in cited]
        marks = context.findings[MARKS]
        lines = [f"Shelf {marks[id]}: {id}" for id in dict.fromkeys(ids) if id in marks]
        return "\n\n" + "\n".join(lines) if lines else ""


def test_a_lens_needs_a_class_and_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it finds is in the context, in the prompt and behind the answer, and nowhere where it finds nothing."""
    monkeypatch.setattr(
        engine_opening, "index_lenses", lambda *known: (*index_lenses(*known), ShelfMarks())
    )
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(Document("The Halcyon sails to Lund.", id="ship", metadata={"shelf": "VM 15"}))
        rag.insert(Document("Radium glows in the dark.", id="radium"))
        ship = rag.query("Where does the Halcyon sail?")
        radium = rag.query("What glows in the dark?")

    assert ship.context.findings == {MARKS: {"ship": "VM 15"}}
    assert ship.context.prompt.endswith("Shelf marks:\n- ship: VM 15")
    assert ship.text.endswith("\n\nShelf VM 15: ship")
    assert radium.citations and not radium.context.findings and "helf" not in radium.context.prompt
