"""Cuts documents into pages, and pages into overlapping chunks at exact character offsets."""

import math
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.tokens import character_boundary
from lightrag_jsonl.core.types import HEADING_SEPARATOR, Chunk, Document, Page, chunk_id


class Span(NamedTuple):
    """A stretch of a page, in characters, and the number of tokens in it."""

    start: int
    end: int
    tokens: int = 0


def document_pages(document_id: str, document: Document) -> tuple[Page, ...]:
    """The pages given with the document, or its text divided at form feeds; numbered from 1.

    Characters that cannot be stored are replaced one by one, so that offsets stay valid.
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
    """Chunks of at most `size` tokens, each repeating up to `overlap` tokens of the previous one.

    A page has as many chunks as it needs, of about equal sizes: each ends at the border nearest to
    an even share, of a paragraph if one is near, or else of a sentence, or else between words,
    never inside a character. The chunks cover each page, except for runs of white space that would
    fill much of a chunk; blank pages have no chunks. A chunk exceeds `size` only if a single
    character has more tokens than that. `ValueError` unless 0 <= overlap < size.

    Of an edited document, given its old pages and chunks, the chunks before the first and after the
    last change of a page stay as they were. A page is compared with the old page of the same text,
    or else of the same number. An id depends on where a chunk stands: one that moved gets a new id.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap {overlap} must be at least 0 and below size {size}")
    by_text = {page.text: page for page in reversed(old_pages)}
    by_number = {page.number: page for page in old_pages}
    spans: list[tuple[Page, Span]] = []
    for page in pages:
        old = by_text.get(page.text) or by_number.get(page.number) or Page("", 0, "")
        chunks = [chunk for chunk in old_chunks if chunk.page == old.number]
        found = _kept_spans(page.text, old.text, chunks, size)
        if page.text != old.text or len(found) < len(chunks):
            found = _filled(page.text, found, tokenizer, size, overlap)
        spans += ((page, span) for span in found)
    return _chunks(spans, pages)


def provided_chunks(
    pages: Sequence[Page], pieces: Sequence[str], tokenizer: Tokenizer
) -> tuple[Chunk, ...]:
    """The pieces as chunks; each is searched in the pages from where the previous one began.

    `ConfigError` names a piece that does not occur.
    """
    spans: list[tuple[Page, Span]] = []
    index, start = 0, -1  # the page and the position of the previous piece
    for number, piece in enumerate(map(sanitize, pieces)):
        start = pages[index].text.find(piece, start + 1)
        while start < 0 and index + 1 < len(pages):
            index += 1
            start = pages[index].text.find(piece)
        if start < 0 or not piece:
            raise ConfigError(f"chunks[{number}] does not occur in the document, in this order")
        spans.append((pages[index], Span(start, start + len(piece), tokenizer.count(piece))))
    return _chunks(spans, pages)


def _chunks(spans: Iterable[tuple[Page, Span]], pages: Iterable[Page]) -> tuple[Chunk, ...]:
    """A document's spans, in order, as chunks numbered from 0, with the headings above them."""
    places, paths = _outline(pages)
    chunks = []
    for index, (page, span) in enumerate(spans):
        id, number, start, end = page.document_id, page.number, span.start, span.end
        text = page.text[start:end]
        key = chunk_id(id, number, start, text)
        visible = number, end - len(text.lstrip())
        heading = paths[bisect_right(places, visible) - 1]
        chunks.append(Chunk(key, id, index, number, start, end, text, span.tokens, heading=heading))
    return tuple(chunks)


# ── headings ────────────────────────────────────────────────────────────────────

_LONGEST_HEADING = 80  # characters of a line that begins a chapter, and kept of any heading
_BARE = 20  # characters; a Chinese title may follow its number without a space in so short a line
_LEVELS = {  # below those of Markdown
    **dict.fromkeys(("book", "part", "volume", *"卷部篇集编編"), 7),
    **dict.fromkeys(("chapter", "stave", "canto", "act", *"章回幕"), 8),
    **dict.fromkeys(("section", "scene", *"节節"), 9),
}
_MARK = re.compile(
    r"""^[^\S\n]*(?:
        (?P<fence>`{3,}|~{3,}).*
      | (?P<marks>\#{1,6})[^\S\n]+(?P<title>\S.*?)(?:[^\S\n]\#+)?\s*
      | (?P<english>(?i:book|part|volume|chapter|stave|canto|act|section|scene))[^\S\n]+
            (?:\d+|(?:[Tt]he[ ])?[A-Za-z]+(?:-[A-Za-z]+)?)\b(?P<after>.*)
      | 第[〇○零一二三四五六七八九十百千两\d]+(?P<unit>[卷部篇集编編章回幕节節])(?P<rest>.*)
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_NO_TITLE = re.compile(  # a sentence, or a line in a list of chapters, with its page
    r"[。！？；!?]$|[，,。].*[，,。]|[a-z]\.$|(?:\s{2,}|[.…·]{2,}\s*)\d+$"
)


class Heading(NamedTuple):
    """A heading that begins at `start`, in characters; those with a lower `level` stand above it."""

    start: int
    level: int
    title: str


def _outline(pages: Iterable[Page]) -> tuple[list[tuple[int, int]], list[str]]:
    """Where headings stand (page, start), and those in force from there, as "Report › Costs"."""
    places, paths = [(0, 0)], [""]
    above: dict[int, str] = {}
    for page in pages:
        for start, level, title in find_headings(page.text):
            above = {n: text for n, text in above.items() if n < level} | {level: title}
            places.append((page.number, start))
            paths.append(HEADING_SEPARATOR.join(above.values()))
    return places, paths


def find_headings(text: str) -> Iterator[Heading]:
    """Headings in order: `# …` outside code fences, "CHAPTER I", "Stave One", 第一回, 第三章 …"""
    fence = ""
    for found in _MARK.finditer(text):
        line, mark = found[0].strip(), found["fence"]
        start = found.start() + len(found[0]) - len(found[0].lstrip())
        if mark:
            fence = mark if not fence else "" if mark.startswith(fence) else fence
        elif not fence and found["marks"]:
            yield Heading(start, len(found["marks"]), found["title"][:_LONGEST_HEADING])
        elif not fence and _begins_chapter(found, text, line):
            level = _LEVELS[(found["unit"] or found["english"]).casefold()]
            yield Heading(start, level, " ".join(line.split()))


def _begins_chapter(found: re.Match[str], text: str, line: str) -> bool:
    """Whether a number, and perhaps a title, stand apart; English ones after a blank line."""
    if len(line) > _LONGEST_HEADING or _NO_TITLE.search(line):
        return False
    if found["unit"]:
        rest, is_bare = found["rest"].rstrip(), found["unit"] in "章篇编編" and len(line) <= _BARE
        return not rest or is_bare or rest[0] in ":：、.．" or rest[0].isspace()
    after, end = found["after"].strip(), max(found.start() - 1, 0)
    is_apart = not after or after[0] in ".:：—–-" or line.isupper()
    is_first = not text[text.rfind("\n", 0, end) + 1 : found.start()].strip()
    return is_apart and line[0].isupper() and is_first


# ── cutting ─────────────────────────────────────────────────────────────────────

_SPARE = 0.06  # of a chunk: what good borders may cost before one chunk more is needed
_MOST_CHARACTERS = 8  # characters for each token of `size`; longer texts are not tried as one chunk
_PARAGRAPH, _SENTENCE, _WORD = 0.0, 0.07, 0.6  # penalties of borders, in shares of the distance
_LONG = 100  # characters; longer sentences are divided, too
_WORDS = re.compile(r"(?s).{1,60}[\s，、；：,;:]|.{60}")  # what long sentences are divided into
_VISIBLE = re.compile(r"\S")


def _kept_spans(text: str, old: str, chunks: Sequence[Chunk], size: int) -> list[Span]:
    """Where the old chunks before the first change and after the last one stand in the new text."""
    prefix = len(os.path.commonprefix([text, old]))  # noqa: RUF071
    suffix = len(os.path.commonprefix([text[prefix:][::-1], old[prefix:][::-1]]))  # noqa: RUF071
    kept: list[Span] = []
    for chunk in chunks:
        moved = 0 if chunk.end <= prefix else len(text) - len(old)
        span = Span(chunk.start + moved, chunk.end + moved, chunk.tokens)
        is_same = chunk.end <= prefix or chunk.start >= len(old) - suffix
        fits = is_same and span.tokens <= size
        if fits and _is_border(text, span.start) and _is_border(text, span.end):
            kept.append(span)
    if kept and text[kept[-1].end :].strip() and 2 * kept[-1].tokens < size:
        kept.pop()  # a short last chunk should grow
    return kept


def _filled(
    text: str, kept: Sequence[Span], tokenizer: Tokenizer, size: int, overlap: int
) -> list[Span]:
    """The spans that are kept of a page, with new ones between and around them."""
    if not kept and text.strip() and len(text) <= size * _MOST_CHARACTERS:
        tokens = tokenizer.count(text)
        if 0 < tokens <= size:
            return [Span(0, len(text), tokens)]
    cutter, last, spans = PageCutter(text, tokenizer, size, overlap), Span(0, 0), []
    for span in kept:
        spans += [*cutter.spans(last, until=span.start), span]
        last = span
    return [*spans, *cutter.spans(last, until=len(text))]


def _is_border(text: str, position: int) -> bool:
    """Whether a position is inside neither a character nor a word that spaces end."""
    around = text[max(position - 1, 0) : position + 1]
    in_word = len(around) == 2 and around.isalnum() and not any(map(is_cjk, around))
    return not in_word and character_boundary(text, position) == position


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
        boundary = character_boundary(self._text, found.start()) if found else len(self._text)
        return max(position, boundary)


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
