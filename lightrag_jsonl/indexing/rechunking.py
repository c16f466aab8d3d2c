"""Cuts an edited document so that as many of its old chunks as possible stay the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.text import is_cjk
from lightrag_jsonl.core.tokens import character_boundary
from lightrag_jsonl.core.types import Chunk, Page
from lightrag_jsonl.indexing.chunking import PageCutter, Span, chunks_at


def rechunk(
    pages: Sequence[Page],
    old_pages: Sequence[Page],
    old_chunks: Sequence[Chunk],
    *,
    tokenizer: Tokenizer,
    size: int,
    overlap: int,
) -> tuple[Chunk, ...]:
    """The chunks of an edited document, with as many of the old version's chunk texts as still occur.

    A page is compared with the old page of the same text, if there is one, or else of the same
    number. Old chunks keep their text and order; only the text between them is cut anew. An id
    depends on where a chunk stands, so a chunk that moved gets a new id.
    """
    by_page: dict[int, list[Chunk]] = defaultdict(list)
    for chunk in old_chunks:
        by_page[chunk.page].append(chunk)
    by_text = {page.text: page for page in reversed(old_pages)}
    by_number = {page.number: page for page in old_pages}
    spans: list[tuple[Page, Span]] = []
    for page in pages:
        old = by_text.get(page.text) or by_number.get(page.number)
        chunks = by_page[old.number] if old else []
        kept = _kept_spans(page.text, old.text, chunks, size) if old else []
        if old is None or page.text != old.text or len(kept) < len(chunks):
            kept = _fill_gaps(page.text, kept, tokenizer, size, overlap)
        spans += ((page, span) for span in kept)
    return chunks_at(spans)


def _kept_spans(text: str, old: str, chunks: Sequence[Chunk], size: int) -> list[Span]:
    """Where the old chunks that still occur stand in the new text, in order."""
    prefix = _common_prefix(text, old)
    suffix = _common_prefix(text[prefix:][::-1], old[prefix:][::-1])
    old_end = 0
    kept: list[Span] = []
    for chunk in chunks:
        end = kept[-1].end if kept else 0
        floor = max(0, end - max(old_end - chunk.start, 0))
        if chunk.end <= prefix:
            start = chunk.start
        elif chunk.start >= len(old) - suffix:
            start = chunk.start + len(text) - len(old)
        else:
            start = text.find(chunk.text, floor, len(text) - suffix + len(chunk.text))
        span = Span(start, start + len(chunk.text), chunk.tokens)
        fits = start >= floor and span.end > end and span.tokens <= size
        if fits and _is_border(text, span.start) and _is_border(text, span.end):
            kept.append(span)
            old_end = chunk.end
    is_appended = bool(kept) and old_end == chunks[-1].end and text[kept[-1].end :].strip()
    if is_appended and 2 * kept[-1].tokens < size:
        kept.pop()  # a short last chunk should grow
    return kept


def _common_prefix(first: str, second: str) -> int:
    """How many characters two texts share at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))


def _is_border(text: str, position: int) -> bool:
    """Whether a position is inside neither a character nor a word that spaces end."""
    around = text[max(position - 1, 0) : position + 1]
    in_word = len(around) == 2 and around.isalnum() and not any(map(is_cjk, around))
    return not in_word and character_boundary(text, position) == position


def _fill_gaps(
    text: str, kept: Sequence[Span], tokenizer: Tokenizer, size: int, overlap: int
) -> list[Span]:
    """The kept spans, with new spans for the text between them."""
    cutter = PageCutter(text, tokenizer, size, overlap)
    spans = [Span(0, 0)]
    for span in kept:
        spans += [*cutter.spans(spans[-1], until=span.start), span]
    return [*spans, *cutter.spans(spans[-1], until=len(text))][1:]
