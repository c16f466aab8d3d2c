"""Divides documents into pages, and pages into overlapping chunks at exact character offsets.

Chunks are of about equal sizes, and end at borders of paragraphs and sentences. Sentences that cross
the border of two pages are made whole for the readers of chunks.
"""

import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.headings import Outline
from lightrag_jsonl.core.protocols import Chunker, Tokenizer
from lightrag_jsonl.core.tokens import character_boundary
from lightrag_jsonl.core.types import Chunk, Document, Page, chunk_id
from lightrag_jsonl.core.user_code import chunk_spans
from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import BULLETS, sentence_spans
from lightrag_jsonl.text.strings import sanitize
from lightrag_jsonl.text.terms import GRAMMAR_WORDS

LONGEST_SENTENCE_PART = 400  # characters of a sentence on the other page
NEAR_BORDER = 800  # characters of a page in which its first and last sentence are looked for
LONGEST_ENDING = 20  # characters: a full stop, closing quotes and brackets
FEWEST_SENTENCE_WORDS = 6  # before a capital letter; captions and titles have less
FEWEST_SENTENCE_CHARACTERS = 10  # characters of an unfinished sentence

_NO_PROSE = pattern_of(
    rf"\s*(?:[#>|*·{BULLETS}-]|\d{{1,3}}[.)、]|[（(]?[一二三四五六七八九十]+[)）、]|\[\^)"
)
_ENDED = pattern_of(r"[.!?…:;。！？：；｡][\s\"'”’」』）)\]】〕》»*_]*$")
_GOING_ON = pattern_of(r"[,，、（(—–-]$")
_LAST_WORD = pattern_of(r"(?<!\w)\w+$")


def with_whole_sentences(chunks: Iterable[Chunk], pages: Iterable[Page]) -> tuple[Chunk, ...]:
    """The chunks of a document with `preface` and `continuation`.

    A sentence that crosses the border of two pages is whole for the reader of either chunk, while the
    text of a chunk stays a slice of its page.
    """
    written_pages = [page for page in pages if page.text.strip()]
    if len(written_pages) <= 1:
        return tuple(chunks)
    ends = {page.number: _visible_ends(page.text) for page in written_pages}
    prefaces: dict[int, str] = {}
    continuations: dict[int, str] = {}
    for page, following in pairwise(written_pages):
        beginning, ending = divided_sentence(page.text, following.text)
        prefaces[following.number] = beginning
        continuations[page.number] = ending
    complete: list[Chunk] = []
    for chunk in chunks:
        start, end = ends.get(chunk.page, (0, 0))
        is_first = chunk.start <= start
        is_last = chunk.end >= end
        preface = prefaces.get(chunk.page, "") if is_first else ""
        continuation = continuations.get(chunk.page, "") if is_last else ""
        complete.append(replace(chunk, preface=preface, continuation=continuation))
    return tuple(complete)


def _visible_ends(text: str) -> tuple[int, int]:
    """Where the text without white space at both ends begins and ends."""
    return len(text) - len(text.lstrip()), len(text.rstrip())


def divided_sentence(text: str, next_text: str) -> tuple[str, str]:
    """The two parts of a sentence that crosses the border of two texts, as what stands before the
    second text and what follows the first; ("", "") if no sentence does.
    """
    tail = text.rstrip()[-NEAR_BORDER:]
    head = next_text.lstrip()[:NEAR_BORDER]
    if _ENDED.search(tail[-LONGEST_ENDING:]):
        return "", ""
    start, _ = sentence_spans(tail)[-1]
    beginning = tail[start:]
    spans = sentence_spans(head)
    ending = head[: spans[0][1]]
    if (
        _NO_PROSE.match(beginning)
        or _NO_PROSE.match(ending)
        or not _is_unfinished(beginning, ending)
    ):
        return "", ""
    is_unspaced = is_cjk(beginning[-1]) or is_cjk(ending[0])
    gap = "" if is_unspaced else "\n"
    return _last_part(beginning) + gap, gap + _first_part(ending)


def _is_unfinished(beginning: str, ending: str) -> bool:
    """Whether a text without a full stop is an unfinished sentence, not only a title or a caption."""
    if is_cjk(ending[0]) and is_cjk(beginning[-1]):
        return sum(map(is_cjk, beginning)) >= FEWEST_SENTENCE_CHARACTERS
    if ending[0].islower() or _GOING_ON.search(beginning):
        return True
    last_word = _LAST_WORD.search(beginning)
    if last_word is not None and last_word[0] in GRAMMAR_WORDS:
        return True
    return len(beginning.split()) >= FEWEST_SENTENCE_WORDS


def _last_part(text: str) -> str:
    """The end of a text, cut between words if it is too long."""
    if len(text) <= LONGEST_SENTENCE_PART:
        return text
    end = text[-LONGEST_SENTENCE_PART:]
    return end if is_cjk(end[0]) else end.partition(" ")[2] or end


def _first_part(text: str) -> str:
    """The beginning of a text, cut between words if it is too long."""
    if len(text) <= LONGEST_SENTENCE_PART:
        return text
    start = text[:LONGEST_SENTENCE_PART]
    return start if is_cjk(start[-1]) else start.rpartition(" ")[0] or start


# ── chunks ────────────────────────────────────────────────────────────────────

MOST_CHARACTERS = 8  # for each token of `size`; longer pages are not tried as a single chunk
NO_PAGE = Page("", 0, "")
SPARE = 0.06  # of a chunk: the share that good borders may cost before one chunk more is needed
PARAGRAPH_PENALTY = 0.0  # of a border, in shares of the distance between borders
SENTENCE_PENALTY = 0.07
WORD_PENALTY = 0.6
LONG_SENTENCE = 100  # characters; longer sentences are divided, too
WORD_GROUPS = pattern_of(r"(?s).{1,60}[\s，、；：,;:]|.{5}")  # the parts of a long sentence
UNCUT_ADDRESS = pattern_of(
    r"(?<![A-Za-z])[A-Za-z][A-Za-z0-9+.-]{1,15}://[!-~]{1,2000}|(?<=\]\()[^()\s]{1,2000}"
)  # is cut only where no other border fits
VISIBLE = pattern_of(r"\S")


class TextSpan(NamedTuple):
    """A stretch of a page, in characters, and the number of tokens."""

    start: int
    end: int
    tokens: int = 0


def document_pages(document_id: str, document: Document) -> tuple[Page, ...]:
    """The pages given with the document, or the text divided at form feeds; numbered from 1.

    Characters that cannot be stored are replaced by single characters, so that offsets stay valid.
    """
    texts = map(sanitize, document.pages or document.text.split("\f"))
    return tuple([Page(document_id, number, text) for number, text in enumerate(texts, 1)])


def chunk_pages(
    pages: Sequence[Page],
    old_pages: Sequence[Page] = (),
    old_chunks: Sequence[Chunk] = (),
    *,
    tokenizer: Tokenizer,
    size: int,
    overlap: int,
) -> tuple[Chunk, ...]:
    """Chunks of at most `size` tokens, each repeating up to `overlap` tokens of the previous chunk.

    A page has as many chunks as the text needs, of about equal sizes: each ends at the border nearest
    to an even share, of a paragraph if one is near, or else of a sentence, or else between words,
    never inside a character. The chunks cover each page, except for runs of white space that would
    fill much of a chunk; blank pages have no chunks. A chunk exceeds `size` only if a single
    character has more tokens than `size`. `ValueError` unless 0 <= overlap < size.

    Of an edited document, given the old pages and chunks, the chunks before the first and after the
    last change of a page stay as before. A page is compared with the old page of the same text, or
    else of the same number. An id depends on the place of the chunk: a moved chunk gets a new id.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap {overlap} must be at least 0 and below size {size}")
    old_pages_by_text = {page.text: page for page in reversed(old_pages)}
    old_pages_by_number = {page.number: page for page in old_pages}
    spans: list[tuple[Page, TextSpan]] = []
    for page in pages:
        same_text = old_pages_by_text.get(page.text)
        old_page = same_text or old_pages_by_number.get(page.number) or NO_PAGE
        chunks = [chunk for chunk in old_chunks if chunk.page == old_page.number]
        page_spans: list[TextSpan] = []
        if chunks:
            page_spans = unchanged_spans(page.text, old_page.text, chunks, size=size)
        if page.text != old_page.text or len(page_spans) < len(chunks):
            page_spans = _cut_around(
                page_spans, page.text, tokenizer=tokenizer, size=size, overlap=overlap
            )
        spans += [(page, span) for span in page_spans]
    return _chunks(spans, pages)


def provided_chunks(
    pages: Sequence[Page], pieces: Sequence[str], tokenizer: Tokenizer
) -> tuple[Chunk, ...]:
    """The pieces as chunks; each is searched in the pages after the start of the previous piece.

    `ConfigError` names a piece that does not occur.
    """
    spans: list[tuple[Page, TextSpan]] = []
    page_index = 0
    start = -1  # of the previous piece
    for number, piece in enumerate(map(sanitize, pieces)):
        start = pages[page_index].text.find(piece, start + 1)
        while start < 0 and page_index + 1 < len(pages):
            page_index += 1
            start = pages[page_index].text.find(piece)
        if start < 0 or not piece:
            raise ConfigError(f"chunks[{number}] does not occur in the document, in this order")
        span = TextSpan(start, start + len(piece), tokenizer.count(piece))
        spans.append((pages[page_index], span))
    return _chunks(spans, pages)


def chunks_by(
    chunker: Chunker, pages: Sequence[Page], *, tokenizer: Tokenizer
) -> tuple[Chunk, ...]:
    """The chunks of a user's chunker; `ConfigError` unless they cover each page in order."""
    spans: list[tuple[Page, TextSpan]] = []
    for page in pages:
        if not page.text.strip():
            continue
        for start, end in chunk_spans(chunker, page.text):
            span = TextSpan(start, end, tokenizer.count(page.text[start:end]))
            spans.append((page, span))
    return _chunks(spans, pages)


def _cut_around(
    spans: Sequence[TextSpan], text: str, *, tokenizer: Tokenizer, size: int, overlap: int
) -> list[TextSpan]:
    """All spans of a page: unchanged ones, and new ones between and around them."""
    if not spans and text.strip() and len(text) <= size * MOST_CHARACTERS:
        tokens = tokenizer.count(text)
        if 0 < tokens <= size:
            return [TextSpan(0, len(text), tokens)]
    cutter = PageCutter(text, tokenizer, size=size, overlap=overlap)
    all_spans: list[TextSpan] = []
    previous = TextSpan(0, 0)
    for span in spans:
        all_spans += cutter.spans(previous, until=span.start)
        all_spans.append(span)
        previous = span
    all_spans += cutter.spans(previous, until=len(text))
    return all_spans


def _chunks(spans: Iterable[tuple[Page, TextSpan]], pages: Sequence[Page]) -> tuple[Chunk, ...]:
    """A document's spans, in order, as chunks numbered from 0, with headings and whole sentences."""
    outline = Outline(pages)
    chunks: list[Chunk] = []
    for index, (page, span) in enumerate(spans):
        text = page.text[span.start : span.end]
        first_visible = span.end - len(text.lstrip())
        chunk = Chunk(
            id=chunk_id(page.document_id, page.number, span.start, text),
            document_id=page.document_id,
            index=index,
            page=page.number,
            start=span.start,
            end=span.end,
            text=text,
            tokens=span.tokens,
            heading=outline.path_at(page.number, first_visible),
        )
        chunks.append(chunk)
    if len(pages) == 1:
        return tuple(chunks)
    return with_whole_sentences(chunks, pages)


def unchanged_spans(
    text: str, old_text: str, chunks: Sequence[Chunk], *, size: int
) -> list[TextSpan]:
    """The places in the new text of old chunks before the first change and after the last change."""
    prefix = len(os.path.commonprefix([text, old_text]))  # noqa: RUF071
    endings = [text[prefix:][::-1], old_text[prefix:][::-1]]
    suffix = len(os.path.commonprefix(endings))  # noqa: RUF071
    spans: list[TextSpan] = []
    for chunk in chunks:
        is_before = chunk.end <= prefix
        is_after = chunk.start >= len(old_text) - suffix
        shift = 0 if is_before else len(text) - len(old_text)
        span = TextSpan(chunk.start + shift, chunk.end + shift, chunk.tokens)
        fits = (is_before or is_after) and span.tokens <= size
        if fits and _can_cut(text, span.start) and _can_cut(text, span.end):
            spans.append(span)
    if spans and _should_grow(spans[-1], text, size=size):
        spans.pop()
    return spans


def _should_grow(last: TextSpan, text: str, *, size: int) -> bool:
    """Whether the last span is short, and text follows."""
    has_successor = bool(text[last.end :].strip())
    return has_successor and 2 * last.tokens < size


def _can_cut(text: str, position: int) -> bool:
    """Whether a position is inside neither a character nor a word between spaces."""
    if character_boundary(text, position) != position:
        return False
    neighbors = text[max(position - 1, 0) : position + 1]
    if len(neighbors) < 2 or any(map(is_cjk, neighbors)):
        return True
    return not neighbors.isalnum()


# ── borders ─────────────────────────────────────────────────────────────────────


class PageCutter:
    """Cuts a page, or parts of a page, at borders: the beginnings of paragraphs, sentences or words."""

    def __init__(self, text: str, tokenizer: Tokenizer, *, size: int, overlap: int) -> None:
        self._text = text
        self._tokenizer = tokenizer
        self._size = size
        self._overlap = overlap
        self._borders: list[int] = []
        self._penalties: list[float] = []
        for position, penalty in _borders(text):
            self._borders.append(position)
            self._penalties.append(penalty)
        counts = (self._count(start, end) for start, end in pairwise(self._borders))
        self._tokens_before = list(accumulate(counts, initial=0))

    def spans(self, previous: TextSpan, *, until: int) -> Iterator[TextSpan]:
        """Spans that follow `previous` and cover the text up to `until`."""
        while (fresh := self._next_visible(previous.end)) < until:
            start = self._overlap_start(previous, fresh)
            span = self._cut(start, fresh, until)
            if span.end <= fresh:  # the overlap left no room
                span = self._cut(fresh, fresh, until)
            yield span
            previous = span

    def _overlap_start(self, previous: TextSpan, fresh: int) -> int:
        """The start of the next span: a border in `previous`, so that the end is repeated."""
        blank_tokens = self._count(previous.end, fresh)
        if 4 * blank_tokens > self._size:
            return fresh  # skip a long run of white space
        if not self._overlap:
            return previous.end
        goal = self._tokens_to(previous.end) - self._overlap
        first_near_goal = bisect_left(self._tokens_before, goal)
        first_in_previous = bisect_right(self._borders, previous.start)
        low = max(first_near_goal, first_in_previous)
        high = bisect_left(self._borders, previous.end)
        border = self._best_border(low, high, goal=goal, share=self._overlap)
        return border or previous.end

    def _cut(self, start: int, fresh: int, until: int) -> TextSpan:
        """A span from `start` with an end after `fresh`, unless the overlap leaves no room."""
        good_end = self._good_end(start, fresh, until)
        if good_end is not None:
            tokens = self._count(start, good_end)
            if tokens <= self._size:
                return TextSpan(start, good_end, tokens)
        fitting = self._tokenizer.truncate(self._text[start:until], self._size)
        end = character_boundary(self._text, start + len(fitting))
        if end <= fresh == start:  # a single character, even if larger than the size
            end = self._character_end(fresh, until)
        return TextSpan(start, end, self._count(start, end))

    def _character_end(self, start: int, until: int) -> int:
        end = start + 1
        while character_boundary(self._text, end) < end < until:
            end += 1
        return end

    def _good_end(self, start: int, fresh: int, until: int) -> int | None:
        """The border nearest to an even share of the rest; `until` if the rest fits into one span."""
        begin = self._tokens_to(fresh)
        room = self._size - self._count(start, fresh)
        remaining = self._tokens_to(until) - begin
        if remaining <= room:
            return until
        fresh_tokens = self._size - self._overlap
        spans = max(2, math.ceil(remaining / fresh_tokens + SPARE))
        share = min(remaining / spans, room)
        low = bisect_right(self._borders, fresh)
        border_limit = bisect_left(self._borders, until)
        high = bisect_right(self._tokens_before, begin + room, hi=border_limit)
        return self._best_border(low, high, goal=begin + share, share=share)

    def _best_border(self, low: int, high: int, *, goal: float, share: float) -> int | None:
        """The best border near `goal`, in tokens, of those numbered from `low` to below `high`."""
        if low >= high:
            return None

        def cost(index: int) -> float:
            distance = abs(self._tokens_before[index] - goal)
            return distance / share + self._penalties[index]

        return self._borders[min(range(low, high), key=cost)]

    def _tokens_to(self, position: int) -> int:
        """The number of tokens before a position, added up over borders."""
        index = bisect_right(self._borders, position) - 1
        return self._tokens_before[index] + self._count(self._borders[index], position)

    def _count(self, start: int, end: int) -> int:
        return self._tokenizer.count(self._text[start:end]) if end > start else 0

    def _next_visible(self, position: int) -> int:
        match = VISIBLE.search(self._text, position)
        boundary = len(self._text)
        if match:
            boundary = character_boundary(self._text, match.start())
        return max(position, boundary)


def _borders(text: str) -> Iterator[tuple[int, float]]:
    """The places where a text can be cut, beginning and end included, and the penalty for each.

    White space belongs to the sentence before it.
    """
    inside_addresses = {
        position
        for address in UNCUT_ADDRESS.finditer(text)
        for position in range(address.start() + 1, address.end())
    }
    yield 0, PARAGRAPH_PENALTY
    begin = 0
    sentences = [*sentence_spans(text), (len(text), len(text))]
    for (_, sentence_end), (start, _) in pairwise(sentences):
        if start - begin > LONG_SENTENCE:
            for words in WORD_GROUPS.finditer(text, begin, start):
                end = words.end()
                is_border = end < start and end not in inside_addresses
                if is_border and character_boundary(text, end) == end:
                    yield end, WORD_PENALTY
        if character_boundary(text, start) == start:
            yield start, _sentence_penalty(text, sentence_end, start)
        begin = start


def _sentence_penalty(text: str, sentence_end: int, start: int) -> float:
    """The penalty of a border between two sentences: of a paragraph if they stand apart.

    Chinese paragraphs follow each other without a blank line.
    """
    breaks = text.count("\n", sentence_end, start)
    ends_in_ascii = text[sentence_end - 1].isascii()
    is_chinese = is_cjk(text[start : start + 1]) or not ends_in_ascii
    is_paragraph = breaks > 1 or (breaks > 0 and is_chinese)
    return PARAGRAPH_PENALTY if is_paragraph else SENTENCE_PENALTY
