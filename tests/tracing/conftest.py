"""The Marie Curie example of specification 2, section 8, built by hand: no database, no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lightrag_jsonl.core.types import Chunk, Context, Page, Relation
from lightrag_jsonl.indexing.chunking import chunk_id
from lightrag_jsonl.retrieval.edge_selection import SelectedEdge, candidate_edges
from lightrag_jsonl.tracing import events as e
from lightrag_jsonl.tracing.citations import resolve_citations
from lightrag_jsonl.tracing.trace import SourceDocument, Sources, Trace, assemble_trace

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
QUESTION = "What did Marie Curie discover?"
REASON = "Names the discovered element"
LABEL = "Marie Curie — discovered → radium"

Events = Callable[..., tuple[e.Event, ...]]


def stored(chunks: Mapping[str, Chunk]) -> Any:
    """A reader of an index that holds these chunks."""
    return SimpleNamespace(chunks=lambda ids: {id: chunks[id] for id in ids if id in chunks})


def sources_of(*texts: str) -> Sources:
    """A stored document `d1` with one chunk on each page."""
    pages = {("d1", number): Page("d1", number, text) for number, text in enumerate(texts, 1)}
    chunks = [
        Chunk(chunk_id("d1", page, 0, text), "d1", page - 1, page, 0, len(text), text)
        for page, text in enumerate(texts, 1)
    ]
    by_id = {chunk.id: chunk for chunk in chunks}
    return Sources(by_id, pages, {"d1": SourceDocument("d1", title="d1.txt")})


@pytest.fixture
def sources() -> Sources:
    return sources_of("Marie Curie discovered radium.", "Marie Curie was born in Warsaw.")


@pytest.fixture
def events(sources: Sources) -> Events:
    def example(*, sources: Sources = sources, answer: str = "Radium [1].") -> tuple[e.Event, ...]:
        first, second = sources.chunks
        curie = "Marie Curie"
        relations = (
            Relation(curie, "radium", ("discovered",), "She found it.", chunk_ids=(first,)),
            Relation(curie, "Warsaw", ("born in",), "Her birthplace.", chunk_ids=(second,)),
        )
        edges = candidate_edges(relations)
        chosen = SelectedEdge(edges[0], reasoning=REASON)
        shown = e.Shown(1, "relation", edges[0].id, LABEL, (first,), "She found it.")
        context = Context(relations=relations[:1])
        cited = resolve_citations(stored(sources.chunks), answer, context, (1,))
        return (
            e.Session("0001", QUESTION, "hybrid", NOON),
            e.Retrieval("0001", "hybrid", edges),
            e.Selection("0001", "llm", (chosen,), shown=(shown,)),
            e.AnswerChunk("0001", answer),
            e.AnswerChunk("0001", "", end_of_stream=True),
            e.Answered("0001", answer, *cited, prompt_numbers=(1,)),
            e.End("0001", NOON, sources=("d1.txt",)),
        )

    return example


@pytest.fixture
def trace(events: Events) -> Trace:
    return assemble_trace(events())
