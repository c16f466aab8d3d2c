"""What a language reader finds in a text: sentences, the phrases that name things, their words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lightrag_jsonl.options import ENTITY_TYPES
from lightrag_jsonl.text import is_cjk
from lightrag_jsonl.types import Language

Sort: TypeAlias = Literal[
    "person",
    "organization",
    "place",
    "event",
    "work",
    "product",
    "concept",
    "method",
    "creature",
    "date",
    "quantity",
]
TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>")  # of markup, which is not what a text says


@dataclass(frozen=True, slots=True)
class Phrase:
    """A stretch of the text that names something: a proper name, or a common noun phrase.

    `name` is a spelling that occurs in the text (a later "Smith" may carry "Lester Smith").
    `sure` tells a sort that the text shows from one that is only the default.
    """

    start: int
    end: int
    name: str
    sort: Sort
    proper: bool = True
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its span, its phrases in order, its content words with their positions.

    `topic` is the name that a pronoun at its beginning stands for, if any.
    """

    start: int
    end: int
    phrases: tuple[Phrase, ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    topic: str = ""


def written_in(text: str, default: Language) -> Language:
    """The language a text is read in: Chinese from a fifth of CJK letters on, none: the default."""
    letters = [char for char in text if char.isalpha()]
    if not letters:
        return default
    wide = sum(map(is_cjk, letters))
    return "zh" if wide * 5 >= len(letters) else "en"


def read(text: str, language: Language, *, quick: bool = False) -> tuple[Sentence, ...]:
    """The sentences of a text in the language it is written in; `quick` for a question."""
    if written_in(text, language) == "zh":
        from lightrag_jsonl.adapters.offline.chinese import read_chinese

        return read_chinese(text, quick=quick)
    from lightrag_jsonl.adapters.offline.english import read_english

    return read_english(text, quick=quick)


def type_name(sort: Sort, language: Language) -> str:
    """The name of a sort among the language's entity types."""
    return ENTITY_TYPES[language][ENTITY_TYPES["en"].index(sort)]
