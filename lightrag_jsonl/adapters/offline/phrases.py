"""What a language reader finds in a text: sentences, their phrases and content words."""

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
TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>")  # markup, which is not part of what a text says


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of the text that names something: a proper name, or a common noun phrase.

    `name` is a spelling from the text, not always of this place ("Lester Smith" for a later
    "Smith"). `sure` is False if `sort` is only the default, and not shown by the text.
    """

    start: int
    end: int
    name: str
    sort: Sort
    proper: bool = True
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its span, its phrases in order, its content words with their offsets.

    `topic` is the name that a pronoun at its beginning stands for, or "".
    """

    start: int
    end: int
    phrases: tuple[Phrase, ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    topic: str = ""
