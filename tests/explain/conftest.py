"""The Marie Curie example of specification 2, section 8, built by hand: no database, no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from lightrag_jsonl.candidates import SelectedEdge, candidate_edges
from lightrag_jsonl.explain.citations import Citable, resolve_citations
from lightrag_jsonl.explain.events import (
    AnswerChunk,
    Answered,
    End,
    Event,
    Retrieval,
    Selection,
    Session,
    Shown,
)
from lightrag_jsonl.explain.sources import SourceDocument, Sources, look_up
from lightrag_jsonl.explain.trace import Trace, fold
from lightrag_jsonl.types import Chunk, Page, Relation

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
QUESTION = "What did Marie Curie discover?"
REASON = "Names the discovered element"


@dataclass(frozen=True)
class Shelf:
    """A library in memory: what is stored today."""

    chunks: dict[str, Chunk] = field(default_factory=dict)
    pages: dict[tuple[str, int], Page] = field(default_factory=dict)
    documents: dict[str, SourceDocument] = field(default_factory=dict)

    def add(self, document_id: str, *texts: str) -> tuple[str, ...]:
        """Store a document, one chunk a page; returns the ids of its chunks."""
        self.documents[document_id] = SourceDocument(document_id, title=f"{document_id}.txt")
        names = []
        for index, text in enumerate(texts):
            chunk = Chunk(
                f"{document_id}-{index}", document_id, index, index + 1, 0, len(text), text
            )
            self.chunks[chunk.id] = chunk
            self.pages[document_id, index + 1] = Page(document_id, index + 1, text)
            names.append(chunk.id)
        return tuple(names)

    def remove(self, document_id: str) -> None:
        """Delete a document with all its parts."""
        del self.documents[document_id]
        for name in [
            name for name, chunk in self.chunks.items() if chunk.document_id == document_id
        ]:
            del self.chunks[name]
        for place in [place for place in self.pages if place[0] == document_id]:
            del self.pages[place]

    def chunk(self, chunk_id: str) -> Chunk | None:
        return self.chunks.get(chunk_id)

    def page(self, document_id: str, number: int) -> Page | None:
        return self.pages.get((document_id, number))

    def document(self, document_id: str) -> SourceDocument | None:
        return self.documents.get(document_id)

    def sources(self) -> Sources:
        return look_up(self.chunks, self)


@pytest.fixture
def shelf() -> Shelf:
    """The two pages of the example."""
    shelf = Shelf()
    shelf.add("d1", "Marie Curie discovered radium.", "Marie Curie was born in Warsaw.")
    return shelf


@pytest.fixture
def told(shelf: Shelf) -> Callable[..., tuple[Event, ...]]:
    """Tells the events of the example's query, with a fixed clock and id."""

    def events(
        *,
        trace_id: str = "0001",
        chunk_ids: tuple[str, ...] = ("d1-0",),
        answer: str = "Radium [1].",
    ) -> tuple[Event, ...]:
        relations = (
            Relation(
                "Marie Curie", "radium", ("discovered",), "She found it.", chunk_ids=chunk_ids
            ),
            Relation("Marie Curie", "Warsaw", ("born in",), "Her birthplace.", chunk_ids=("d1-1",)),
        )
        edges = candidate_edges(relations)
        chosen = SelectedEdge(edges[0], reasoning=REASON)
        label = "Marie Curie — discovered → radium"
        shown = Shown(1, "relation", edges[0].id, label, chunk_ids, "She found it.")
        chunks = tuple(shelf.chunks[name] for name in chunk_ids if name in shelf.chunks)
        cited = resolve_citations(answer, {1: Citable("relation", label, chunks)})
        return (
            Session(trace_id, QUESTION, "hybrid", NOON),
            Retrieval(trace_id, "hybrid", edges),
            Selection(trace_id, "llm", (chosen,), shown=(shown,)),
            AnswerChunk(trace_id, answer),
            AnswerChunk(trace_id, "", end_of_stream=True),
            Answered(trace_id, answer, cited.citations, cited.invented),
            End(trace_id, NOON, sources=("d1.txt",)),
        )

    return events


@pytest.fixture
def trace(told: Callable[..., tuple[Event, ...]]) -> Trace:
    """The example's trace."""
    return fold(told())
