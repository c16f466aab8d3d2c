"""What a language reader finds: sentences, the phrases that name things, and content words."""

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
TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>")  # markup, which is not part of the content


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of the text that names something: a proper name, or a common noun phrase.

    `name` is a spelling that occurs in the text (a later "Smith" may have "Lester Smith"). `sure`
    means that the text shows the sort; otherwise it is only the default.
    """

    start: int
    end: int
    name: str
    sort: Sort
    proper: bool = True
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its span, its phrases in order, and its content words with their positions.

    `topic` is the name that a pronoun at its beginning refers to, if there is one.
    """

    start: int
    end: int
    phrases: tuple[Phrase, ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    topic: str = ""
