"""What is noted of a passage when it is stored, so that no question has to read it for that."""

import re
from dataclasses import dataclass
from itertools import pairwise

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.front_matter import is_front_matter
from lightrag_jsonl.core.text import digest

ALIKE = 0.95  # share of words that near copies have in common, and of their lengths; not tuned

_NUMERAL = re.compile(r"[\d〇零一二三四五六七八九十百千万亿两]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Whether a passage is front matter, and by what its copies are known.

    Copies have the same `text_digest`; only passages with the same `numeral_digest` can be near copies.
    """

    is_front_matter: bool
    text_digest: str
    numeral_digest: str

    @classmethod
    def of(cls, text: str) -> "Fingerprint":
        """The fingerprint of a text; a change of its rules needs a new `FORMAT` of the storage."""
        return cls(
            is_front_matter=is_front_matter(text),
            text_digest=digest(folded_passage(text)),
            numeral_digest=digest("".join(_NUMERAL.findall(text))),
        )


def folded_passage(text: str) -> str:
    """The text as it is compared: without differences of white space and of case."""
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class FoldedWords:
    """A folded text for comparisons: its length, and its words or, in Chinese, pairs of characters."""

    length: int
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "FoldedWords":
        """The words of a text."""
        folded = folded_passage(text)
        if has_cjk(folded):
            characters = "".join(filter(str.isalnum, folded))
            return cls(len(folded), frozenset(map("".join, pairwise(characters))))
        return cls(len(folded), frozenset(folded.split()))

    def is_like(self, other: "FoldedWords") -> bool:
        """Whether two texts have nearly the same words."""
        shorter, longer = sorted((self.length, other.length))
        if shorter < ALIKE * longer:
            return False
        return len(self.words & other.words) >= ALIKE * len(self.words | other.words)
