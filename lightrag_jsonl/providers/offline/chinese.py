"""The Chinese rules: find names by the segmenter's tags, and content words, sentence by sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from lightrag_jsonl.core.text import has_cjk, sentence_spans
from lightrag_jsonl.providers.offline.phrases import (
    Phrase,
    Sentence,
    find_title,
    to_sentences,
    without_overlap,
    without_tags,
)
from lightrag_jsonl.providers.offline.words import STOP_WORDS, SURNAMES

if TYPE_CHECKING:
    from rjieba import Jieba


class _Word(NamedTuple):
    """A word of the segmenter with its offset and part of speech; `known` if a dictionary has it."""

    start: int
    text: str
    tag: str
    known: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def chinese_sentences(text: str, *, question: bool = False) -> list[Sentence]:
    """The sentences of a Chinese text with their phrases and content words.

    In a question, nouns of one character are content words, too; a longer text has too many.
    """
    plain = without_tags(text)
    words = list(_words(plain))
    spans = sentence_spans(text)
    written = [*find_title(plain, spans), *_written_names(plain)]
    names = without_overlap([*written, *_tagged_names(words)])
    content = [word for word in words if _is_content(word, question=question)]
    phrases = without_overlap([*names, *_repeated_nouns(content, len(text))])
    return to_sentences(text, spans, phrases, [(word.start, word.text) for word in content])


@cache
def _segmenter() -> Jieba:
    """A segmenter of our own, loaded once (0.1 s): other code may add words to the shared one."""
    from rjieba import Jieba

    return Jieba()


def _words(text: str) -> Iterator[_Word]:
    """The words of a text; guessed ones and people's names without what was joined to them (煤是)."""
    segmenter = _segmenter()
    at = 0
    for whole, tag in segmenter.tag(text):
        at = text.index(whole, at)
        known = segmenter.has_word(whole)
        word = _JOINED.sub("", whole) if tag == "nr" or not known else whole
        if word != whole:
            tag, known = segmenter.tag(word)[0][1], segmenter.has_word(word)
        yield _Word(text.index(word, at), word, tag, known)
        at += len(whole)


_JOINED = re.compile("^[由与对被把令使](?=.)|(?<=.)[是曰笑道]$")


def _is_content(word: _Word, *, question: bool) -> bool:
    """Whether a word (verb or noun) says what a relation or a question is about."""
    if not word.known or not has_cjk(word.text) or _is_common(word.text):
        return False
    if len(word.text) == 1:
        return question and word.tag.startswith(("n", "j", "zg"))
    return word.tag in ("n", "v", "vn", "l")


def _is_common(text: str) -> bool:
    return text in STOP_WORDS or text[0] in "一二三四五六七八九十两几各每某此其"


# ── names ───────────────────────────────────────────────────────────────────────

_WORK = re.compile(r"《([^《》\n]{1,40})》")
_LATIN = re.compile(
    r"(?<![A-Za-z0-9])[a-z]*[A-Z][A-Za-z0-9.+&'’-]*(?:/[A-Z]{1,3}(?= ?\d)[\d.-]*)?"  # GB/T 19001
    r"(?: (?:of |the |and )*[A-Z0-9][A-Za-z0-9.+&'’-]*){0,5}"
)
_TYPES = {"nr": "person", "ns": "place", "nt": "organization", "nz": "concept"}  # by kind of tag


def _written_names(text: str) -> Iterator[Phrase]:
    """Works in 《》 and names in Latin script."""
    for found in _WORK.finditer(text):
        yield Phrase(*found.span(1), found[1], "work")
    for found in _LATIN.finditer(text):
        if len(name := found[0].rstrip(".-'’")) > 1:
            yield Phrase(*found.span(), name, "concept", sure=False)


def _tagged_names(words: Sequence[_Word]) -> Iterator[Phrase]:
    """People, places, organizations and other names, by their tags.

    Too many words are tagged as people: only those count that begin with a surname, or are repeated.
    """
    counts = Counter(word.text for word in words)
    for word in words:
        type = _TYPES.get(word.tag[:2])
        if not type or len(word.text) < 2 or not has_cjk(word.text) or _is_common(word.text):
            continue
        if word.tag != "nr" or word.text[0] in SURNAMES or counts[word.text] > 1:
            yield Phrase(word.start, word.end, word.text, type, sure=type != "concept")


# ── common nouns ────────────────────────────────────────────────────────────────

_CHARACTERS_A_NOUN = 80


def _repeated_nouns(words: Sequence[_Word], length: int) -> Iterator[Phrase]:
    """The nouns that a text repeats most: one for every 80 characters of it, but at least three."""
    nouns = [word for word in words if word.tag != "v" and len(word.text) > 1]
    counts = Counter(word.text for word in nouns)
    repeated = [text for text, count in counts.items() if count > 1]
    ranked = sorted(repeated, key=lambda text: (-counts[text] * len(text), text))
    best = set(ranked[: max(3, length // _CHARACTERS_A_NOUN)])
    for word in nouns:
        if word.text in best:
            yield Phrase(word.start, word.end, word.text, "concept", sure=False)
