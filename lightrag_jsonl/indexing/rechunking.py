"""Cuts an edited document so that as many of its old chunks as possible stay the same."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from lightrag_jsonl.indexing.chunking import Cutter
from lightrag_jsonl.indexing.spans import Span, chunks_at
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.text import is_cjk
from lightrag_jsonl.tokens import character_boundary
from lightrag_jsonl.types import Chunk, Page

WINDOW = 65_536  # a chunk is looked for within so many characters of its old place


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

    A page is compared with the old page of the same text, if there is one, or else with the old
    page after the last one matched. Old chunks keep their text and order; only the text between
    them is cut anew. An id depends on where a chunk stands, so a chunk that moved gets a new id.
    """
    by_page: dict[int, list[Chunk]] = defaultdict(list)
    for chunk in old_chunks:
        by_page[chunk.page].append(chunk)
    cut: list[tuple[Page, Span]] = []
    for page, old in _paired(pages, old_pages):
        there = [] if old is None else by_page[old.number]
        kept = [] if old is None else _kept(page.text, old.text, there, size)
        if old is None or page.text != old.text or len(kept) < len(there):
            kept = _with_gaps_filled(page.text, kept, tokenizer, size, overlap)
        cut += ((page, span) for span in kept)
    return chunks_at(cut)


def _paired(pages: Sequence[Page], old_pages: Sequence[Page]) -> Iterator[tuple[Page, Page | None]]:
    """Each page with the old page to compare it with."""
    same = {page.text: index for index, page in reversed(list(enumerate(old_pages)))}
    present = {page.text for page in pages}
    following = 0
    for page in pages:
        index = same.get(page.text, following)
        old = old_pages[index] if index < len(old_pages) else None
        if old is not None and old.text != page.text and old.text in present:
            old = None
        if old is not None:
            following = index + 1
        yield page, old


def _kept(text: str, old: str, chunks: Sequence[Chunk], size: int) -> list[Span]:
    """Where the old chunks that still occur stand in the new text, in order."""
    prefix = _common_prefix(text, old)
    suffix = _common_suffix(text, old, min(len(text), len(old)) - prefix)
    shift = 0
    old_end = 0
    kept: list[Span] = []
    for chunk in chunks:
        end = kept[-1].end if kept else 0
        floor = end - max(old_end - chunk.start, 0)
        if chunk.end <= prefix:
            start = chunk.start
        elif chunk.start >= len(old) - suffix:
            start = chunk.start + len(text) - len(old)
        else:
            near = chunk.start + shift
            low, high = max(floor, near - WINDOW), near + WINDOW + len(chunk.text)
            start = text.find(chunk.text, low, high)
        span = Span(start, start + len(chunk.text), chunk.tokens)
        if start >= max(floor, 0) and span.end > end and _fits(text, span, old, chunk, size):
            kept.append(span)
            shift, old_end = start - chunk.start, chunk.end
    return kept


def _fits(text: str, span: Span, old: str, chunk: Chunk, size: int) -> bool:
    """Whether an old chunk is still a well-cut chunk in the new text."""
    if chunk.tokens > size:
        return False
    if not old[chunk.end :].strip() and text[span.end :].strip() and 2 * chunk.tokens < size:
        return False  # text was appended after a short last chunk: it should grow
    for new, was in ((span.start, chunk.start), (span.end, chunk.end)):
        if character_boundary(text, new) != new:
            return False
        if _inside_word(text, new) and not _inside_word(old, was):
            return False
    return True


def _inside_word(text: str, position: int) -> bool:
    """Whether a position is inside a word, in scripts that write spaces."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    return before.isalnum() and after.isalnum() and not (is_cjk(before) or is_cjk(after))


def _with_gaps_filled(
    text: str, kept: Sequence[Span], tokenizer: Tokenizer, size: int, overlap: int
) -> list[Span]:
    """The kept spans, with new spans for the text between them."""
    if not text.strip():
        return []
    cutter = Cutter(text, tokenizer, size, overlap)
    spans: list[Span] = []
    last = Span(0, 0)
    for span in kept:
        shared = tokenizer.truncate(text[span.start : span.end], overlap)
        index = bisect_right(cutter.sentences, span.start + len(shared)) - 1
        reach = cutter.sentences[index]
        limit = reach if span.start < reach < span.end else span.start
        spans += cutter.fill(last, until=span.start, limit=limit)
        spans.append(span)
        last = span
    return [*spans, *cutter.fill(last, until=len(text))]


def _common_prefix(first: str, second: str) -> int:
    """How many characters two texts share at their beginning."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first.startswith(second[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(first: str, second: str, limit: int) -> int:
    """How many characters, at most `limit`, two texts share at their end."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        piece = second[len(second) - middle : len(second) - low]
        if first.startswith(piece, len(first) - middle):
            low = middle
        else:
            high = middle - 1
    return low
