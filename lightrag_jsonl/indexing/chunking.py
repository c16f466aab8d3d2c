"""Cutting documents into pages and pages into overlapping chunks at exact character offsets."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lightrag_jsonl.indexing.spans import Span, chunks_at
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.text import is_cjk, sanitize, sentence_spans
from lightrag_jsonl.tokens import character_boundary
from lightrag_jsonl.types import Chunk, Document, Page


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

    A chunk ends at the end of a paragraph, if there is one in its last quarter, or else of a
    sentence in its second half, or else between words, never inside a character. The chunks cover
    each page, except for runs of white space that would fill much of a chunk; blank pages have no
    chunks. A chunk exceeds `size` only if a single character has more tokens than that.
    """
    return chunks_at(
        (page, span)
        for page in pages
        if page.text.strip()
        for span in _spans(page.text, tokenizer, size, overlap)
    )


# ── cutting ─────────────────────────────────────────────────────────────────────

# The least fill at which a chunk ends with a paragraph, or with a sentence, instead of going on.
_PARAGRAPH_FILL = 0.75
_SENTENCE_FILL = 0.5
_MOST_CHARACTERS = 8  # characters for each token of `size`; longer texts are not tried as one chunk
_WORD_REACH = 40  # characters in which the end of a word is looked for
_VISIBLE = re.compile(r"\S")
_AFTER_WORD = re.compile(r"[\s，、；：,;:]+")


def _spans(text: str, tokenizer: Tokenizer, size: int, overlap: int) -> Iterable[Span]:
    """The chunks of one page: a single one if the page fits."""
    if overlap < size and len(text) <= size * _MOST_CHARACTERS:
        tokens = tokenizer.count(text)
        if tokens <= size:
            return [Span(0, len(text), tokens)]
    return Cutter(text, tokenizer, size, overlap).fill(Span(0, 0), until=len(text))


@dataclass(slots=True)
class Cutter:
    """A page divided into segments (sentences, or pieces of long ones) with known token counts.

    `starts` holds where each segment begins, and the end of the text; `before[i]` is the number of
    tokens before `starts[i]`. `sentences` and `paragraphs` hold where those begin, and the end of
    the text.
    """

    text: str
    tokenizer: Tokenizer
    size: int
    overlap: int
    starts: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    sentences: list[int] = field(default_factory=list)
    paragraphs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise ValueError(
                f"overlap {self.overlap} must be at least 0 and below size {self.size}"
            )
        self.sentences, self.paragraphs = _outline(self.text)
        self.starts = _segments(self.text, self.sentences, self.size)
        total = 0
        self.before = [0]
        for start, end in pairwise(self.starts):
            total += self._count(start, end)
            self.before.append(total)

    def fill(self, last: Span, *, until: int, limit: int | None = None) -> Iterator[Span]:
        """Spans that follow `last` and cover the text up to `until`; none ends after `limit`."""
        limit = until if limit is None else limit
        while (fresh := self._visible(last.end)) < until:
            start = self._start(last, fresh)
            span = self._cut(start, fresh, limit)
            last = span if span.end > fresh else self._cut(fresh, fresh, limit)
            yield last

    def _start(self, last: Span, fresh: int) -> int:
        """Where the chunk after `last` begins: within `last`, at a sentence or a word, for the overlap."""
        if 4 * self._count(last.end, fresh) > self.size:
            return fresh  # skip a long run of white space
        if not self.overlap or last.end == last.start:
            return last.end
        goal = self._before(last.end) - self.overlap
        index = bisect_left(self.before, goal)
        if last.start < self.starts[index] < last.end and self._is_neat(index, goal):
            return self.starts[index]
        return self._word_start(max(last.start + 1, self.starts[max(index - 1, 0)]), last.end)

    def _is_neat(self, index: int, goal: int) -> bool:
        """Whether a start at this segment keeps at least half of the overlap."""
        return 2 * (self.before[index] - goal) <= self.overlap

    def _cut(self, start: int, fresh: int, limit: int) -> Span:
        """A chunk from `start` that ends after `fresh`, unless the overlap leaves no room for that."""
        room = self.size - self._count(start, fresh)
        goal = self._before(fresh) + room
        end = limit
        if self._before(limit) > goal:
            fits = self.starts[bisect_right(self.before, goal) - 1]
            end = self._neat_end(fresh, min(fits, limit), room)
        tokens = self._count(start, end)
        if end <= fresh or tokens > self.size:
            following = self.starts[bisect_right(self.starts, fresh)]
            end = self._forced_end(start, fresh, min(limit, max(end, following)))
            tokens = self._count(start, end)
        return Span(start, end, tokens)

    def _neat_end(self, fresh: int, furthest: int, room: int) -> int:
        """The best end up to `furthest`: of a paragraph, or else of a sentence, or else of a segment."""
        for starts, share in ((self.paragraphs, _PARAGRAPH_FILL), (self.sentences, _SENTENCE_FILL)):
            end = starts[bisect_right(starts, furthest) - 1]
            if end > fresh and self._before(end) - self._before(fresh) >= share * room:
                return end
        return furthest

    def _forced_end(self, start: int, fresh: int, limit: int) -> int:
        """An end found with the tokenizer; at least one character, even if that alone exceeds `size`."""
        whole = start + len(self.tokenizer.truncate(self.text[start:limit], self.size))
        end = character_boundary(self.text, whole)
        if end < limit:
            word = _word_end(self.text, max(fresh, end - _WORD_REACH), end)
            if word and self._count(start, word) <= self.size:
                return word
        if end > fresh or start < fresh:
            return end
        return _next_boundary(self.text, fresh + 1)

    def _word_start(self, low: int, end: int) -> int:
        """The first start of a word that has at most `overlap` tokens between it and `end`."""
        high = end
        while low < high:
            middle = (low + high) // 2
            if self._count(middle, end) <= self.overlap:
                high = middle
            else:
                low = middle + 1
        gap = _AFTER_WORD.search(self.text, low, min(low + _WORD_REACH, end))
        start = low if gap is None or gap.end() >= end else gap.end()
        return min(_next_boundary(self.text, start), end)

    def _before(self, position: int) -> int:
        """The number of tokens before a position, added up over segments."""
        index = bisect_right(self.starts, position) - 1
        return self.before[index] + self._count(self.starts[index], position)

    def _count(self, start: int, end: int) -> int:
        return self.tokenizer.count(self.text[start:end]) if end > start else 0

    def _visible(self, position: int) -> int:
        found = _VISIBLE.search(self.text, position)
        if found is None:
            return len(self.text)
        return max(position, character_boundary(self.text, found.start()))


def _outline(text: str) -> tuple[list[int], list[int]]:
    """Where sentences and paragraphs begin, and the end of the text; white space belongs to the one
    before.
    """
    sentences, paragraphs = [0], [0]
    last = 0
    for start, end in sentence_spans(text):
        if start > 0 and last > 0 and character_boundary(text, start) == start:
            sentences.append(start)
            breaks = text.count("\n", last, start)
            if breaks > 1 or (breaks and (is_cjk(text[start]) or not text[last - 1].isascii())):
                paragraphs.append(start)
        last = end
    return [*sentences, len(text)], [*paragraphs, len(text)]


def _segments(text: str, sentences: Sequence[int], size: int) -> list[int]:
    """The starts of sentences and, in sentences that may exceed `size` tokens, of pieces of them."""
    grain = max(size // 4, _WORD_REACH)
    starts = [0]
    for start, end in pairwise(sentences):
        while end - start > max(size, grain):
            piece = _word_end(text, start + grain // 4, start + grain)
            start = piece or _next_boundary(text, start + grain)
            if start >= end:
                break
            starts.append(start)
        starts.append(end)
    return starts


def _word_end(text: str, low: int, high: int) -> int | None:
    """The last place after `low`, up to `high`, that follows white space or a comma."""
    places = (gap.end() for gap in _AFTER_WORD.finditer(text, low, high))
    return max((end for end in places if character_boundary(text, end) == end), default=None)


def _next_boundary(text: str, position: int) -> int:
    """The first place at or after `position` that is not inside a character."""
    while character_boundary(text, position) < position < len(text):
        position += 1
    return position
