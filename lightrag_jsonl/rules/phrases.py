"""Phrases: the names in a text, and the title of a text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.text.patterns import pattern_of

Spans: TypeAlias = Sequence[tuple[int, int]]

WORD_GAP = r"(?:[^\S\n]{1,2}|[^\S\n]?\n[^\S\n]?)"  # in a pattern: between words of one paragraph


class Phrase(Struct, frozen=True):
    """A name in the text; `sure` if the type is known."""

    start: int
    end: int
    name: str
    type: str
    sure: bool = True


class ContentWord(NamedTuple):
    """A content word, at a position in the text."""

    start: int
    text: str


class PhrasesAndWords(NamedTuple):
    """The findings of the rules of a language in a text, in order."""

    phrases: list[Phrase]
    words: list[ContentWord]


def without_overlap(phrases: Iterable[Phrase]) -> list[Phrase]:
    """The phrases in order; of overlapping phrases the longest, of equally long phrases the first."""
    result: list[Phrase] = []
    for phrase in sorted(phrases, key=lambda phrase: phrase.start):
        if not result or phrase.start >= result[-1].end:
            result.append(phrase)
        elif phrase.end - phrase.start > result[-1].end - result[-1].start:
            result[-1] = phrase
    return result


def without_name_lines(text: str, spans: Spans, name: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The sentences in parts: each line before the last that holds a name and nothing else or is the row of a
    table, and the rest.

    So a name goes on in the next line, but not from a line of nothing else: a heading, or a list. The end of a line
    behind another sentence is no such line.
    """
    for start, end in spans:
        part_start = line_start = start
        while (line_end := text.find("\n", line_start, end)) >= 0:
            line = text[line_start:line_end].strip()
            match = name.match(line)
            before = text[text.rfind("\n", 0, line_start) + 1 : line_start]
            is_only_name = match is not None and match.end() == len(line) and not before.strip()
            if "|" in line or is_only_name:
                if part_start < line_start:
                    yield part_start, line_start
                yield line_start, line_end
                part_start = line_end + 1
            line_start = line_end + 1
        if part_start < end:
            yield part_start, end


def title_phrases(text: str, spans: Spans) -> Iterator[Phrase]:
    """The title of a text, if the first line is a title, without a "(disambiguation)"."""
    title = _TITLE.fullmatch(text, spans[0][0], spans[0][1]) if len(spans) > 1 else None
    if title is None or "\n" not in text[spans[0][1] : spans[1][0]]:
        return
    words = title[1].split()
    if len(words) <= _TITLE_WORDS and not words[0][0].islower():
        yield Phrase(
            start=title.start(1),
            end=title.end(1),
            name=" ".join(words).removeprefix("The "),
            type=UNKNOWN_TYPE,
            sure=False,
        )


_TITLE = pattern_of(
    r"(?:\d{1,3}[.)、．）]\s*)?(?=\d*[^\W\d_])"  # a number before the title, and nothing but numbers, are no title
    r"([^\W_][^()\n。！？，；;：《》=]{0,60}?[^\s.!?…:,;。！？])(?<![.!?]['\"’”])\s*(?:\([^()\n]{1,40}\))?"
)
_TITLE_WORDS = 8
