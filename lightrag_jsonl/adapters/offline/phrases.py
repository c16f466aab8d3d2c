"""What a language reader finds in a text: sentences, the phrases that name things, their words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

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
HEADING = re.compile(r"#{1,6}\s")  # of Markdown, at the beginning of a sentence
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
