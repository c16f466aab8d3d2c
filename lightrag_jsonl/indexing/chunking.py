"""Cutting documents into pages and pages into overlapping chunks at exact character offsets."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.text import digest, is_cjk, sanitize, sentence_spans
from lightrag_jsonl.tokens import character_boundary
from lightrag_jsonl.types import Chunk, Document, Page


def document_pages(document_id: str, document: Document) -> tuple[Page, ...]:
    """The pages given with the document, or its text divided at form feeds; numbered from 1.

    Characters that cannot be stored are replaced, offsets staying what they were.
    """
    texts = document.pages or document.text.split("\f")
    return tuple(Page(document_id, number, sanitize(text)) for number, text in enumerate(texts, 1))


def chunk_pages(
    pages: Iterable[Page], *, tokenizer: Tokenizer, size: int, overlap: int
) -> tuple[Chunk, ...]:
    """Chunks of at most `size` tokens that repeat up to `overlap` tokens of the one before.

    A chunk ends with a paragraph where one ends in its last quarter, else with a sentence, else
    between words, never inside a character. Together they cover each page but for white space
    that would fill a chunk alone; a page of white space has none. Only a single character of
    more than `size` tokens makes a longer chunk.
    """
    return _number(
        (page, span)
        for page in pages
        if page.text.strip()
        for span in _spans(page.text, tokenizer, size, overlap)
    )


def rechunk(
    pages: Sequence[Page],
    old_pages: Sequence[Page],
    old_chunks: Sequence[Chunk],
    *,
    tokenizer: Tokenizer,
    size: int,
    overlap: int,
) -> tuple[Chunk, ...]:
    """The chunks of an edited document, with as many of the old version's texts as still occur.

    A page is compared with the old page of the same text, or else with the one that follows the
    last page found. Old chunks keep their text and order there; only what lies between them is
    chunked anew. Chunk ids follow from where a chunk now stands, so a kept text may have a new one.
    """
    by_page: dict[int, list[Chunk]] = defaultdict(list)
    for chunk in old_chunks:
        by_page[chunk.page].append(chunk)
    cut: list[tuple[Page, _Span]] = []
    for page, old in _paired(pages, old_pages):
        there = [] if old is None else by_page[old.number]
        kept = [] if old is None else _kept(page.text, old.text, there, size)
        if old is None or page.text != old.text or len(kept) < len(there):
            kept = _with_gaps_filled(page.text, kept, tokenizer, size, overlap)
        cut += ((page, span) for span in kept)
    return _number(cut)


# ── spans ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Span:
    """A chunk to be: characters of its page, and how many tokens they have."""

    start: int
    end: int
    tokens: int = 0


def _number(spans: Iterable[tuple[Page, _Span]]) -> tuple[Chunk, ...]:
    return tuple(_chunk(index, page, span) for index, (page, span) in enumerate(spans))


def _chunk(index: int, page: Page, span: _Span) -> Chunk:
    text = page.text[span.start : span.end]
    return Chunk(
        id="chunk-" + digest(page.document_id, str(page.number), str(span.start), text),
        document_id=page.document_id,
        index=index,
        page=page.number,
        start=span.start,
        end=span.end,
        text=text,
        tokens=span.tokens,
    )


# ── cutting ─────────────────────────────────────────────────────────────────────

# How full a chunk must be to end with a paragraph or a sentence rather than later.
_PARAGRAPH_FILL = 0.75
_SENTENCE_FILL = 0.5
_MOST_CHARACTERS = 8  # a token: a text of more than so many for each allowed token is cut
_WORD_REACH = 40  # characters within which the end of a word is looked for
_VISIBLE = re.compile(r"\S")
_AFTER_WORD = re.compile(r"[\s，、；：,;:]+")


def _spans(text: str, tokenizer: Tokenizer, size: int, overlap: int) -> Iterable[_Span]:
    """The chunks of one page: the whole of it where it fits."""
    if overlap < size and len(text) <= size * _MOST_CHARACTERS:
        tokens = tokenizer.count(text)
        if tokens <= size:
            return [_Span(0, len(text), tokens)]
    return _Cutter(text, tokenizer, size, overlap).fill(_Span(0, 0), until=len(text))


@dataclass(slots=True)
class _Cutter:
    """A page divided into segments (sentences, or pieces of long ones) whose tokens are counted.

    `starts` are where segments begin, then the end of the text; `before[i]` is the number of
    tokens before `starts[i]`. `sentences` and `paragraphs` are those of them that begin one.
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

    def fill(self, last: _Span, *, until: int, limit: int | None = None) -> Iterator[_Span]:
        """Spans that go on after `last` and cover the text `until` there, none beyond `limit`."""
        limit = until if limit is None else limit
        while (fresh := self._visible(last.end)) < until:
            start = self._start(last, fresh)
            span = self._cut(start, fresh, limit)
            last = span if span.end > fresh else self._cut(fresh, fresh, limit)
            yield last

    def _start(self, last: _Span, fresh: int) -> int:
        """Where the chunk after `last` begins: with a sentence or a word before its end."""
        if 4 * self._count(last.end, fresh) > self.size:
            return fresh  # so much white space is not worth a model's attention
        if not self.overlap or last.end == last.start:
            return last.end
        goal = self._before(last.end) - self.overlap
        index = bisect_left(self.before, goal)
        if last.start < self.starts[index] < last.end and self._is_neat(index, goal):
            return self.starts[index]
        return self._word_start(max(last.start + 1, self.starts[max(index - 1, 0)]), last.end)

    def _is_neat(self, index: int, goal: int) -> bool:
        """Whether starting at a segment loses less than half of the overlap."""
        return 2 * (self.before[index] - goal) <= self.overlap

    def _cut(self, start: int, fresh: int, limit: int) -> _Span:
        """A chunk from `start` that ends beyond `fresh`, unless the overlap leaves no room."""
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
        return _Span(start, end, tokens)

    def _neat_end(self, fresh: int, furthest: int, room: int) -> int:
        """The best end up to the furthest: of a paragraph, of a sentence, of a segment."""
        for starts, share in ((self.paragraphs, _PARAGRAPH_FILL), (self.sentences, _SENTENCE_FILL)):
            end = starts[bisect_right(starts, furthest) - 1]
            if end > fresh and self._before(end) - self._before(fresh) >= share * room:
                return end
        return furthest

    def _forced_end(self, start: int, fresh: int, limit: int) -> int:
        """An end by the tokenizer's own measure; one character where not even that one fits."""
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
        """The first start of a word from which at most `overlap` tokens lead to `end`."""
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
        """The number of tokens before a position, as the sum of its segments'."""
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
    """Where sentences and where paragraphs begin; the white space after them is theirs."""
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
    """The sentence starts, with those of pieces of sentences that may exceed `size` tokens."""
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


# ── keeping what an edit left alone ─────────────────────────────────────────────

_WINDOW = 65_536  # characters around its old place in which a chunk is looked for


def _paired(pages: Sequence[Page], old_pages: Sequence[Page]) -> Iterator[tuple[Page, Page | None]]:
    """Each page with the old page it is compared with."""
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


def _kept(text: str, old: str, chunks: Sequence[Chunk], size: int) -> list[_Span]:
    """Where the old chunks stand in the new text, in order, those that still occur."""
    prefix = _common_prefix(text, old)
    suffix = _common_suffix(text, old, min(len(text), len(old)) - prefix)
    shift = 0
    old_end = 0
    kept: list[_Span] = []
    for chunk in chunks:
        end = kept[-1].end if kept else 0
        floor = end - max(old_end - chunk.start, 0)
        if chunk.end <= prefix:
            start = chunk.start
        elif chunk.start >= len(old) - suffix:
            start = chunk.start + len(text) - len(old)
        else:
            near = chunk.start + shift
            low, high = max(floor, near - _WINDOW), near + _WINDOW + len(chunk.text)
            start = text.find(chunk.text, low, high)
        span = _Span(start, start + len(chunk.text), chunk.tokens)
        if start >= max(floor, 0) and span.end > end and _fits(text, span, old, chunk, size):
            kept.append(span)
            shift, old_end = start - chunk.start, chunk.end
    return kept


def _fits(text: str, span: _Span, old: str, chunk: Chunk, size: int) -> bool:
    """Whether a kept chunk is as good a chunk of the new text as it was of the old one."""
    if chunk.tokens > size:
        return False
    if not old[chunk.end :].strip() and text[span.end :].strip() and 2 * chunk.tokens < size:
        return False  # a short last chunk grows with what was appended
    for new, was in ((span.start, chunk.start), (span.end, chunk.end)):
        if character_boundary(text, new) != new:
            return False
        if _inside_word(text, new) and not _inside_word(old, was):
            return False
    return True


def _inside_word(text: str, position: int) -> bool:
    """Whether a place parts a word of a script that writes spaces."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    return before.isalnum() and after.isalnum() and not (is_cjk(before) or is_cjk(after))


def _with_gaps_filled(
    text: str, kept: Sequence[_Span], tokenizer: Tokenizer, size: int, overlap: int
) -> list[_Span]:
    """The kept spans and new ones for the text that none of them covers."""
    if not text.strip():
        return []
    cutter = _Cutter(text, tokenizer, size, overlap)
    spans: list[_Span] = []
    last = _Span(0, 0)
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
