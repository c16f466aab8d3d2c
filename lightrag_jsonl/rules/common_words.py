"""Ordinary words and given names, by lists in text files, to tell names from other words."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.text.strings import words as word_set
from lightrag_jsonl.text.terms import STOP_WORDS

_NO_VERBS = word_set("of and or for in on at from with as the a an to")
_BEGINS_NO_NAME = "*"  # mark in the English list
_LEAST_STEM = 3  # characters
_REGULAR_ENDINGS = (  # of regular forms, and what the word itself has in their place
    *(("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e")),
    *(("ing", ""), ("ing", "e"), ("ly", "")),
)


def is_ordinary_chinese(word: str) -> bool:
    """Whether a word in simplified characters is in the list."""
    return word in _marks_by_word("zh")


def is_ordinary(word: str) -> bool:
    """Whether an English word in lower case, or a base form, is in the list."""
    marks = _marks_by_word("en")
    return any(form in marks for form in _base_forms(word))


def begins_no_name(word: str) -> bool:
    """Whether an English word in lower case, or a base form, is mostly a verb or an adverb."""
    marks = _marks_by_word("en")
    return next((marks[form] for form in _base_forms(word) if form in marks), False)


def may_be_verb(word: str) -> bool:
    """Whether an English word in lower case that follows a name may be the verb of the name."""
    is_grammatical = word in STOP_WORDS and word not in _NO_VERBS
    return is_grammatical or word.endswith("ed") or begins_no_name(word)


def is_given_name(word: str) -> bool:
    """Whether an English word in lower case is a given name, and mostly nothing else."""
    return word in _given_names()


def _base_forms(word: str) -> Iterator[str]:
    """A word, and the possible base forms of the word."""
    yield word
    for ending, own_ending in _REGULAR_ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < _LEAST_STEM:
            continue
        yield stem + own_ending
        if not own_ending and stem[-1] == stem[-2]:  # stopped
            yield stem[:-1]


@cache
def _given_names() -> frozenset[str]:
    return frozenset(" ".join(_lines_of("given_names")).split())


@cache
def _marks_by_word(language: Language) -> Mapping[str, bool]:
    """The words of a list, read once, and whether each is marked."""
    lines = _lines_of(f"common_words_{language}")
    return {line.rstrip(_BEGINS_NO_NAME): line.endswith(_BEGINS_NO_NAME) for line in lines}


def _lines_of(name: str) -> list[str]:
    """The lines of a text file beside this module, without comments."""
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]
