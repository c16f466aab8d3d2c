"""The English rules: names are runs of capitalized words; all other content words are themes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

import regex

from lightrag_jsonl.core.text import sentence_spans
from lightrag_jsonl.providers.offline import words as tables
from lightrag_jsonl.providers.offline.phrases import (
    Phrase,
    Sentence,
    to_sentences,
    without_overlap,
    without_tags,
)

_CAPITALIZED = (
    r"(?:(?:\p{Lu}\p{Ll}{0,3}\.)+(?=\s?\p{Lu}|,)|\p{Lu}[\p{L}\p{N}]*)"  # St. Mr. J.R.R. or a word
    r"(?:(?:[-–&+]|['’](?![sS]\b)|\.(?=[a-z]{2,3}\b))[\p{L}\p{N}]+)*\+{0,2}"
)
_NAME = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}'’]){_CAPITALIZED}"
    rf"(?:\s{{1,2}}(?:(?:of(?:\s+the)?|for|de|del|la|le|von|van|der|bin|&)\s+)?(?:{_CAPITALIZED}|\d{{1,4}}\b))*"
)
_WORD = regex.compile(r"(?<![\p{L}\p{N}'’-])\p{L}[\p{L}\p{N}'’-]*[\p{L}\p{N}]")
_BEFORE_WORD = regex.compile(r"[\s\"'“‘(\[*_#-]*")
_PART = regex.compile(r"\S+")
_IS_A = regex.compile(
    r"['\"”’]?\s*(?:\([^()]{0,160}\))?,?\s*(?:is|was|are|were)\s+(?:an?|the|one\s+of\s+the)\s+"
    r"([^.,;:()]{1,80})"
)


def english_sentences(text: str) -> list[Sentence]:
    """The sentences of an English text with their names and content words."""
    plain = without_tags(text)
    spans = sentence_spans(text)
    names = without_overlap([*_title(plain, spans), *_names(plain, spans)])
    named = {at for name in names for at in range(name.start, name.end)}
    words = [(found.start(), found[0].casefold()) for found in _WORD.finditer(plain)]
    content = [
        (at, word)
        for at, word in words
        if at not in named and len(word) > 2 and word not in tables.STOP_WORDS
    ]
    return to_sentences(text, spans, names, content)


# ── names ───────────────────────────────────────────────────────────────────────


def _names(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Phrase]:
    """The runs of capitalized words, without those that only their position capitalizes."""
    openings = {_opening(text, start) for start, _ in spans}
    capitals: Counter[str] = Counter()  # how often more a word has a capital than not, elsewhere
    for found in _WORD.finditer(text):
        if found.start() not in openings:
            capitals[found[0].casefold()] += 1 if found[0][0].isupper() else -1
    for start, end in spans:
        for run in _NAME.finditer(text, start, end):
            words = [found.span() for found in _PART.finditer(text, *run.span())]
            if name := _name(text, words, run.start() in openings, capitals):
                yield name


def _opening(text: str, start: int) -> int:
    """Where the first word of a sentence begins, after quotes and the like."""
    found = _BEFORE_WORD.match(text, start)
    return start if found is None else found.end()


def _name(
    text: str, words: Sequence[tuple[int, int]], opening: bool, capitals: Counter[str]
) -> Phrase | None:
    """The name in a run of words, without articles and titles; None if nothing is left of it."""
    titled = False
    while words:
        word = text[slice(*words[0])]
        low = word.replace("’", "'").casefold()
        common = opening and len(words) == 1 and capitals[low] <= 0
        if low in tables.TITLES:
            titled = True
        elif word[0].isupper() and low.partition("'")[0] not in tables.STOP_WORDS and not common:
            break
        words, opening = words[1:], False
    name = " ".join(text[start:end] for start, end in words).rstrip(".")
    if len(name) < 2 or name.casefold() in tables.CALENDAR:
        return None
    start, end = words[0][0], words[-1][1]
    type = (
        "person"
        if titled
        else _shown_type(name, text[max(0, start - 9) : start], text[end : end + 200])
    )
    return Phrase(
        words[0][0], words[-1][1], name, type or _likely_type(name), sure=type is not None
    )


def _shown_type(name: str, before: str, after: str) -> str | None:
    """The type that the text shows: by "X is a …", by the last word of the name, or by "in X"."""
    if described := _IS_A.match(after):
        noun_phrase = takewhile(lambda word: word not in tables.STOP_WORDS, described[1].split())
        for word in reversed(list(noun_phrase)):
            if found := tables.TYPES.get(word) or tables.TYPES.get(word.removesuffix("s")):
                return found
    head = name.casefold().partition(" of ")[0].split()[-1]
    if " " in name and head in tables.TYPES:
        return tables.TYPES[head]
    return "place" if before.endswith((" in ", " near ")) else None


def _likely_type(name: str) -> str:
    """Two or three words that are no common nouns mostly name a person."""
    words = name.split()
    if words[0].casefold() in tables.CALENDAR:
        return "date"
    plain = all(word[1:].islower() for word in words)
    return "person" if plain and len(words) in (2, 3) else "concept"


_HEADING = regex.compile(r"([^\W_][^()\n]{1,60}?)\s*(?:\([^()\n]{1,40}\))?")


def _title(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Phrase]:
    """The title of a text, if its first line is one, without a "(disambiguation)"."""
    if len(spans) < 2:
        return
    start, end = spans[0]
    title = _HEADING.fullmatch(text, start, end)
    alone = "\n" in text[end : spans[1][0]] and text[end - 1] not in ".!?…:,;"
    if title and alone and len(title[1].split()) <= 8 and not title[1][0].islower():
        name = " ".join(title[1].split()).removeprefix("The ")
        yield Phrase(title.start(1), title.end(1), name, "concept", sure=False)
