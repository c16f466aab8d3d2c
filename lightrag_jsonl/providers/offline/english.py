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
    find_title,
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
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_IS_A = regex.compile(
    r"['\"”’]?\s*(?:\([^()]{0,160}\))?,?\s*(?:is|was|are|were)\s+(?:an?|the|one\s+of\s+the)\s+"
    r"([^.,;:()]{1,80})"
)


def english_sentences(text: str) -> list[Sentence]:
    """The sentences of an English text with their names and content words."""
    plain = without_tags(text)
    spans = sentence_spans(text)
    names = without_overlap([*find_title(plain, spans), *_names(plain, spans)])
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
    first = (_LETTER.search(text, start, end) for start, end in spans)
    openings = {found.start() for found in first if found}
    capitals: Counter[str] = Counter()  # how often more a word has a capital than not, elsewhere
    for found in _WORD.finditer(text):
        if found.start() not in openings:
            capitals[found[0].casefold()] += 1 if found[0][0].isupper() else -1
    for start, end in spans:
        for run in _NAME.finditer(text, start, end):
            words = [part.span() for part in regex.finditer(r"\S+", text, 0, *run.span())]
            if name := _name(text, words, run.start() in openings, capitals):
                yield name


def _name(
    text: str, words: Sequence[tuple[int, int]], opening: bool, capitals: Counter[str]
) -> Phrase | None:
    """The name in a run of words, without articles and titles; None if nothing is left of it."""
    titled = False
    while words:
        word = text[slice(*words[0])]
        low = word.replace("’", "'").casefold()
        common = opening and capitals[low] < (1 if len(words) == 1 else 0)
        if low in tables.TITLES:
            titled = True
        elif word[0].isupper() and low.partition("'")[0] not in tables.STOP_WORDS and not common:
            break
        words, opening = words[1:], False
    name = " ".join(text[start:end] for start, end in words).rstrip(".")
    if len(name) < 2 or name.casefold() in tables.CALENDAR:
        return None
    start, end = words[0][0], words[-1][1]
    type = "person" if titled else _shown_type(text, name, start, end)
    return Phrase(start, end, name, type or _likely_type(name), sure=type is not None)


def _shown_type(text: str, name: str, start: int, end: int) -> str | None:
    """The type that the text shows: by "X is a …", by the last word of the name, or before it."""
    described = _IS_A.match(text, end)
    words = described[1].split() if described else []
    noun_phrase = list(takewhile(lambda word: word not in tables.STOP_WORDS, words))
    head = name.casefold().partition(" of ")[0].split()[-1]
    for word in (*reversed(noun_phrase), head):
        if word in tables.TYPES:
            return tables.TYPES[word]
    if text.endswith(("said ", "asked ", "cried "), 0, start):
        return "person"
    return "place" if text.endswith((" in ", " near "), 0, start) else None


def _likely_type(name: str) -> str:
    """Two or three words that are no common nouns mostly name a person."""
    words = name.split()
    if words[0].casefold() in tables.CALENDAR:
        return "date"
    plain = all(word[1:].islower() for word in words)
    return "person" if plain and len(words) in (2, 3) else "concept"
