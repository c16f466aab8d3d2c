"""What the reader of a chunk needs from around it: divided sentences, and the header of a table."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.stop_words import GRAMMAR_WORDS
from lightrag_jsonl.core.types import Chunk, Page

LONGEST_SENTENCE_PART = 400  # characters of a sentence on the other page
LONGEST_HEADER = 600  # characters of a table's header
NEAR_BORDER = 800  # characters of a page in which its first and last sentence are looked for
LONGEST_ENDING = 20  # characters: a full stop, closing quotes and brackets
FEWEST_SENTENCE_WORDS = (
    6  # of an unfinished sentence before a capital letter; captions and titles have less
)
FEWEST_SENTENCE_CHARACTERS = 10  # characters of an unfinished sentence

_TABLE = re.compile(r"(?:^[ \t]*\|.*(?:\n|\Z)){2,}", re.MULTILINE)
_RULE = re.compile(r"[ \t]*\|[\s|:-]*-[\s|:-]*")  # the line below the header in Markdown
_NO_PROSE = re.compile(
    r"\s*(?:[#>|*•·●▪-]|\d{1,3}[.)、]|[（(]?[一二三四五六七八九十]+[)）、]|\[\^)"
)
_ENDED = re.compile(r"[.!?…:;。！？：；｡][\s\"'”’」』）)\]】〕》»*_]*$")
_GOING_ON = re.compile(r"[,，、（(—–-]$")
_LAST_WORD = re.compile(r"\w+$")


class _TableHeader(NamedTuple):
    """The header of a table in a page, and where the rows below it are, in characters."""

    text: str
    rows_start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What the chunks of one page need: the parts of its first and last sentence on other pages, where
    its visible text begins and ends, and the headers of its tables.
    """

    preface: str
    continuation: str
    start: int
    end: int
    tables: tuple[_TableHeader, ...]

    def complete(self, chunk: Chunk) -> Chunk:
        """The chunk with `preface` and `continuation`."""
        is_first = chunk.start <= self.start
        return replace(
            chunk,
            preface=self.preface if is_first else _header_above(chunk.start, self.tables),
            continuation=self.continuation if chunk.end >= self.end else "",
        )


def with_surroundings(chunks: Iterable[Chunk], pages: Iterable[Page]) -> tuple[Chunk, ...]:
    """The chunks of a document with `preface` and `continuation`.

    A sentence that crosses the border of two pages is whole for the reader of either chunk, and the
    rows of a table have its header, while the text of a chunk stays a slice of its page.
    """
    surroundings = _surroundings_by_page([page for page in pages if page.text.strip()])
    return tuple(
        surroundings[chunk.page].complete(chunk) if chunk.page in surroundings else chunk
        for chunk in chunks
    )


def _surroundings_by_page(pages: Sequence[Page]) -> dict[int, _Surroundings]:
    """The surroundings by the number of the page; the pages are those with visible text."""
    borders = [divided_sentence(page.text, following.text) for page, following in pairwise(pages)]
    prefaces = ["", *(preface for preface, _ in borders)]
    continuations = [*(continuation for _, continuation in borders), ""]
    return {
        page.number: _Surroundings(
            preface=preface,
            continuation=continuation,
            start=len(page.text) - len(page.text.lstrip()),
            end=len(page.text.rstrip()),
            tables=tuple(_table_headers(page.text)),
        )
        for page, preface, continuation in zip(pages, prefaces, continuations, strict=False)
    }


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
    if _NO_PROSE.match(beginning) or _NO_PROSE.match(ending) or not _goes_on(beginning, ending):
        return "", ""
    is_unspaced = is_cjk(beginning[-1]) or is_cjk(ending[0])
    gap = "" if is_unspaced else "\n"
    return _last_part(beginning) + gap, gap + _first_part(ending)


def _goes_on(beginning: str, ending: str) -> bool:
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


def _table_headers(text: str) -> Iterable[_TableHeader]:
    """The headers of a page's tables in Markdown: the first row, and the rule below it."""
    for match in _TABLE.finditer(text):
        header, _, rows = match[0].partition("\n")
        rule = _RULE.fullmatch(rows.partition("\n")[0])
        lines = [header] if rule is None else [header, rule[0]]
        header_text = "".join(f"{line}\n" for line in lines)
        if len(header_text) <= LONGEST_HEADER:
            yield _TableHeader(header_text, match.start() + len(header_text), match.end())


def _header_above(start: int, headers: Sequence[_TableHeader]) -> str:
    """The header of the table that a position is in, below its header; or nothing."""
    index = bisect_right(headers, start, key=lambda header: header.rows_start) - 1
    if index < 0 or start >= headers[index].end:
        return ""
    return headers[index].text
