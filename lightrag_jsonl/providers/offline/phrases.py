"""What the rules find in a text: sentences, the phrases that name things, and content words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.text import is_cjk
from lightrag_jsonl.core.types import Language

HEADING = re.compile(r"#{1,6}\s")  # of Markdown, at the beginning of a sentence
TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>")  # markup, which is not part of the content


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of the text that names something; `sure` means that the text shows its English type."""

    start: int
    end: int
    name: str
    type: str
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its span, its phrases in order, and its content words with their positions.

    `topic` is the first name of its paragraph, or of an earlier one: what most sentences are about.
    """

    start: int
    end: int
    phrases: tuple[Phrase, ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    topic: str = ""


def written_in(text: str, default: Language) -> Language:
    """Chinese if at least a fifth of the letters are CJK, else English; the default without letters."""
    letters = [char for char in text if char.isalpha()]
    if not letters:
        return default
    return "zh" if sum(map(is_cjk, letters)) * 5 >= len(letters) else "en"


def without_tags(text: str) -> str:
    """The text with markup replaced by spaces, so that offsets stay valid."""
    return TAG.sub(lambda tag: " " * len(tag[0]), text)


def to_sentences(
    text: str,
    spans: Sequence[tuple[int, int]],
    phrases: Iterable[Phrase],
    words: Iterable[tuple[int, str]],
) -> list[Sentence]:
    """The sentences of a text with their phrases and content words, both given in order."""
    starts = [start for start, _ in spans]
    named: list[list[Phrase]] = [[] for _ in spans]
    content: list[list[tuple[int, str]]] = [[] for _ in spans]
    for phrase in phrases:
        named[bisect_right(starts, phrase.start) - 1].append(phrase)
    for word in words:
        content[bisect_right(starts, word[0]) - 1].append(word)
    sentences: list[Sentence] = []
    topic = ""
    before = 0
    for (start, end), own, others in zip(spans, named, content, strict=True):
        first = own[0].name if own else ""
        if first and _NEW_PARAGRAPH.search(text, before, start):
            topic = ""
        sentences.append(Sentence(start, end, tuple(own), tuple(others), topic))
        topic, before = topic or first, end
    return sentences


_NEW_PARAGRAPH = re.compile(r"\n\s*\n|\n\u3000")


def without_overlap(phrases: Iterable[Phrase]) -> list[Phrase]:
    """The phrases in order; of two that overlap the longer, of equal ones the first."""
    kept: list[Phrase] = []
    for phrase in sorted(phrases, key=lambda phrase: phrase.start):
        if not kept or phrase.start >= kept[-1].end:
            kept.append(phrase)
        elif phrase.end - phrase.start > kept[-1].end - kept[-1].start:
            kept[-1] = phrase
    return kept


def find_title(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Phrase]:
    """The title of a text, if its first line is one, without a "(disambiguation)"."""
    title = _TITLE.fullmatch(text, *spans[0]) if len(spans) > 1 else None
    if title is None or "\n" not in text[spans[0][1] : spans[1][0]]:
        return
    words = title[1].split()
    if len(words) <= _TITLE_WORDS and not words[0][0].islower():
        name = " ".join(words).removeprefix("The ")
        yield Phrase(title.start(1), title.end(1), name, "concept", sure=False)


_TITLE = re.compile(r"([^\W_][^()\n。！？，；：《》=]{0,60}?[^\s.!?…:,;])\s*(?:\([^()\n]{1,40}\))?")
_TITLE_WORDS = 8
