"""Spans of pages, and the chunks made of them, whose ids follow from their place and text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lightrag_jsonl.text import digest
from lightrag_jsonl.types import Chunk, Page


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a page, in characters, and the tokens in it."""

    start: int
    end: int
    tokens: int = 0


def chunks_at(spans: Iterable[tuple[Page, Span]]) -> tuple[Chunk, ...]:
    """A document's spans, in order, as chunks numbered from 0."""
    return tuple(_chunk(index, page, span) for index, (page, span) in enumerate(spans))


def chunk_id(document_id: str, page: int, start: int, text: str) -> str:
    """The id of a chunk, derived from its place and text."""
    return "chunk-" + digest(document_id, str(page), str(start), text)


def _chunk(index: int, page: Page, span: Span) -> Chunk:
    text = page.text[span.start : span.end]
    return Chunk(
        id=chunk_id(page.document_id, page.number, span.start, text),
        document_id=page.document_id,
        index=index,
        page=page.number,
        start=span.start,
        end=span.end,
        text=text,
        tokens=span.tokens,
    )
