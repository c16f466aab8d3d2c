"""Cuts documents into pages, and pages into overlapping chunks at exact character offsets."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.text import digest, is_cjk, sanitize, sentence_spans
from lightrag_jsonl.core.tokens import character_boundary
from lightrag_jsonl.core.types import Chunk, Document, Page


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a page, in characters, and the number of tokens in it."""

    start: int
    end: int
    tokens: int = 0


def document_pages(document_id: str, document: Document) -> tuple[Page, ...]:
    """The pages given with the document, or its text divided at form feeds; numbered from 1.

    Characters that cannot be stored are replaced one by one, so that offsets stay valid.
    """
    texts = document.pages or document.text.split("\f")
    return tuple(Page(document_id, number, sanitize(text)) for number, text in enumerate(texts, 1))


def chunk_pages(
    pages: Iterable[Page], *, tokenizer: Tokenizer, size: int, overlap: int
) -> tuple[Chunk, ...]:
    """Chunks of at most `size` tokens, each repeating up to `overlap` tokens of the previous one.

    A page has as many chunks as it needs, of about equal sizes: each ends at the border nearest to
    an even share, of a paragraph if one is near, or else of a sentence, or else between words,
    never inside a character. The chunks cover each page, except for runs of white space that would
    fill much of a chunk; blank pages have no chunks. A chunk exceeds `size` only if a single
    character has more tokens than that. `ValueError` unless 0 <= overlap < size.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap {overlap} must be at least 0 and below size {size}")
    return chunks_at(
        (page, span) for page in pages for span in _page_spans(page.text, tokenizer, size, overlap)
    )


def chunks_at(spans: Iterable[tuple[Page, Span]]) -> tuple[Chunk, ...]:
    """A document's spans, in order, as chunks numbered from 0."""
    chunks = []
    for index, (page, span) in enumerate(spans):
        text = page.text[span.start : span.end]
        id = chunk_id(page.document_id, page.number, span.start, text)
        chunks.append(
            Chunk(id, page.document_id, index, page.number, span.start, span.end, text, span.tokens)
        )
    return tuple(chunks)


def chunk_id(document_id: str, page: int, start: int, text: str) -> str:
    """The id of a chunk, derived from its position and text."""
    return "chunk-" + digest(document_id, str(page), str(start), text)


# ── cutting ─────────────────────────────────────────────────────────────────────

_SPARE = 0.06  # of a chunk: what good borders may cost before one chunk more is needed
_MOST_CHARACTERS = 8  # characters for each token of `size`; longer texts are not tried as one chunk
_PARAGRAPH, _SENTENCE, _WORD = 0.0, 0.07, 0.6  # penalties of borders, in shares of the distance
_LONG = 100  # characters; longer sentences are divided, too
_WORDS = re.compile(r"(?s).{1,60}[\s，、；：,;:]|.{60}")  # what long sentences are divided into
_VISIBLE = re.compile(r"\S")


def _page_spans(text: str, tokenizer: Tokenizer, size: int, overlap: int) -> Iterable[Span]:
    """The chunks of one page: a single one if the page fits."""
    if not text.strip():
        return ()
    if len(text) <= size * _MOST_CHARACTERS:
        tokens = tokenizer.count(text)
        if tokens <= size:
            return (Span(0, len(text), tokens),)
    return PageCutter(text, tokenizer, size, overlap).spans(Span(0, 0), until=len(text))


class PageCutter:
    """Cuts a page, or parts of it, at its borders: where paragraphs, sentences or words begin."""

    def __init__(self, text: str, tokenizer: Tokenizer, size: int, overlap: int) -> None:
        self._text = text
        self._tokenizer = tokenizer
        self._size = size
        self._overlap = overlap
        borders = list(_borders(text))
        self._borders = [position for position, _ in borders]
        self._penalties = [penalty for _, penalty in borders]
        counts = (self._count(start, end) for start, end in pairwise(self._borders))
        self._tokens_before = list(accumulate(counts, initial=0))

    def spans(self, last: Span, *, until: int) -> Iterator[Span]:
        """Spans that follow `last` and cover the text up to `until`."""
        while (fresh := self._next_visible(last.end)) < until:
            last = self._cut(self._overlap_start(last, fresh), fresh, until)
            if last.end <= fresh:  # the overlap left no room
                last = self._cut(fresh, fresh, until)
            yield last

    def _overlap_start(self, last: Span, fresh: int) -> int:
        """Where the next chunk begins: at a border in `last`, to repeat the end of it."""
        if 4 * self._count(last.end, fresh) > self._size:
            return fresh  # skip a long run of white space
        if not self._overlap:
            return last.end
        goal = self._tokens_to(last.end) - self._overlap
        low = max(bisect_left(self._tokens_before, goal), bisect_right(self._borders, last.start))
        high = bisect_left(self._borders, last.end)
        return self._best_border(low, high, goal, self._overlap) or last.end

    def _cut(self, start: int, fresh: int, until: int) -> Span:
        """A chunk from `start` that ends after `fresh`, unless the overlap leaves no room for that."""
        end = self._good_end(start, fresh, until)
        if end is None or self._count(start, end) > self._size:
            fitting = self._tokenizer.truncate(self._text[start:until], self._size)
            end = character_boundary(self._text, start + len(fitting))
            if end <= fresh == start:  # one character, even if that alone exceeds the size
                end = fresh + 1
                while character_boundary(self._text, end) < end < until:
                    end += 1
        return Span(start, end, self._count(start, end))

    def _good_end(self, start: int, fresh: int, until: int) -> int | None:
        """The border nearest to an even share of what is left; `until` if one chunk holds that."""
        begin = self._tokens_to(fresh)
        room = self._size - self._count(start, fresh)
        left = self._tokens_to(until) - begin
        if left <= room:
            return until
        chunks = max(2, math.ceil(left / (self._size - self._overlap) + _SPARE))
        share = min(left / chunks, room)
        low = bisect_right(self._borders, fresh)
        high = bisect_right(self._tokens_before, begin + room, hi=bisect_left(self._borders, until))
        return self._best_border(low, high, begin + share, share)

    def _best_border(self, low: int, high: int, goal: float, share: float) -> int | None:
        """The border, of those numbered from `low` to below `high`, that is best and near `goal`."""
        costs = (
            (abs(self._tokens_before[index] - goal) / share + self._penalties[index], index)
            for index in range(low, high)
        )
        best = min(costs, default=None)
        return None if best is None else self._borders[best[1]]

    def _tokens_to(self, position: int) -> int:
        """The number of tokens before a position, added up over borders."""
        index = bisect_right(self._borders, position) - 1
        return self._tokens_before[index] + self._count(self._borders[index], position)

    def _count(self, start: int, end: int) -> int:
        return self._tokenizer.count(self._text[start:end]) if end > start else 0

    def _next_visible(self, position: int) -> int:
        found = _VISIBLE.search(self._text, position)
        if found is None:
            return len(self._text)
        return max(position, character_boundary(self._text, found.start()))


def _borders(text: str) -> Iterator[tuple[int, float]]:
    """Where a text can be cut, with the penalty for each; its beginning and end included.

    White space belongs to the sentence before it.
    """
    begin = 0
    yield 0, _PARAGRAPH
    for (_, last), (start, _) in pairwise([*sentence_spans(text), (len(text), len(text))]):
        for words in _WORDS.finditer(text, begin, start if start - begin > _LONG else begin):
            if words.end() < start and character_boundary(text, words.end()) == words.end():
                yield words.end(), _WORD
        if character_boundary(text, start) == start:
            breaks = text.count("\n", last, start)
            wide = is_cjk(text[start : start + 1]) or not text[last - 1].isascii()
            yield start, _PARAGRAPH if breaks > 1 or (breaks and wide) else _SENTENCE
        begin = start
