"""The full text of chunks: BM25 over the terms of `text.terms`.

A long chunk is several parts, and the best part counts most: one sentence on the question is not
lost in a page on something else.
"""

import math
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.terms import search_terms, stem

PART_WORDS = 200  # the words of a part
# The words that a bigram of a script without spaces counts as: 200 English words are 330 Chinese
# characters. On 346 questions over Chinese passages of 277 characters, recall@5 of BM25 is 59 % if a
# bigram counts as 1, and 68 % with 0.6; of 1,135 characters, 94 and 96 %.
WORDS_PER_BIGRAM = 0.6
PARTS = 1_024  # the most parts of a chunk; longer chunks have longer parts
OTHER_PARTS = 0.2  # the share of each part's score beside the best one's 1
JOINT_SCORE = f"{1 - OTHER_PARTS} * max(score) + {OTHER_PARTS} * sum(score)"
ANY_END = "*"  # after a term: all terms that begin with it
# Letters; "gas" and "his" keep their endings. Recall@5 of BM25 without stems, with these, with those of
# Porter: 69.6, 71.7, 70.5 % on dragonball-en-multi-a (300 questions), 77.5, 77.0, 77.5 % on hotpotqa-train
# (100), 49.6, 46.9, 46.5 % on musique-a (40).
LONGEST_UNSTEMMED = 3

ChunkTexts: TypeAlias = Iterable[tuple[int, str]]  # row ids of chunks, and their texts


class FullText(ABC):
    """The full text of an index, in the words of one database.

    English words are stored without their endings. The terms to search for and to count are as they are
    stored (`stemmed`), each once.
    """

    @abstractmethod
    def add(self, chunks: ChunkTexts) -> None:
        """Add the terms of new chunks."""

    @abstractmethod
    def remove(self, chunks: ChunkTexts) -> None:
        """Remove the terms of chunks, given the same texts as when they were added."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all terms."""

    @abstractmethod
    def holds(self, chunk: int, text: str) -> bool:
        """Whether a chunk is there with all terms of the text."""

    @abstractmethod
    def search(
        self, stems: Sequence[str], limit: int, allowed: Collection[int] | None
    ) -> list[tuple[int, float]]:
        """The best chunks, only those in `allowed`, as (row id, score); ties by row id."""

    @abstractmethod
    def chunks_with_all(self, stems: Sequence[str], limit: int) -> list[int]:
        """The first chunks with a part that holds all terms, at least one, as row ids, ascending."""

    @abstractmethod
    def counts(self, stems: Collection[str]) -> tuple[int, dict[str, int]]:
        """The number of parts of all chunks, and in how many of them each term occurs."""


@lru_cache(maxsize=2**16)
def stemmed(term: str) -> str:
    """A term as it is stored."""
    return term if len(term) <= LONGEST_UNSTEMMED else stem(term)


def term_parts(chunks: ChunkTexts) -> Iterator[tuple[int, list[str]]]:
    """The terms of chunks, cut into parts of about the same length: (id of the part, terms).

    The id of a part, divided by `PARTS`, is the row id of the chunk. A change of the parts needs a new
    `FORMAT`: terms are removed by the parts that they were stored in.
    """
    for chunk, text in chunks:
        terms = list(map(stemmed, search_terms(text, endings=True)))
        count = min(max(math.ceil(_length_in_words(terms) / PART_WORDS), 1), PARTS)
        for number in range(count):
            start = number * len(terms) // count
            end = (number + 1) * len(terms) // count
            yield chunk * PARTS + number, terms[start:end]


def _length_in_words(terms: Sequence[str]) -> float:
    """The length of a text in English words."""
    if "".join(terms).isascii():
        return len(terms)
    bigrams = sum(map(is_cjk, [term[0] for term in terms]))
    return len(terms) - (1 - WORDS_PER_BIGRAM) * bigrams


# ── a table of postings ───────────────────────────────────────────────────────

LONGEST_TERM = 200  # characters; of longer ones the beginning counts, so that an index takes them
LAST_CHARACTER = chr(0x10FFFF)
ACCENTS = pattern_of("([A-Za-z])[\u0300-\u036f]+")


def term_ranges(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first and the last of the stored terms that each term stands for."""
    first_terms = []
    last_terms = []
    for term in terms:
        first = stored_term(term.removesuffix(ANY_END))
        has_any_end = term.endswith(ANY_END) and len(term) > 1
        first_terms.append(first)
        last_terms.append(first + LAST_CHARACTER if has_any_end else first)
    return first_terms, last_terms


def stored_term(term: str) -> str:
    """A term without the accents of Latin letters, and not too long."""
    if not term.isascii():
        letters = ACCENTS.sub(r"\1", unicodedata.normalize("NFD", term))
        term = unicodedata.normalize("NFC", letters)
    return term[:LONGEST_TERM]


def counted_parts(chunks: ChunkTexts) -> Iterator[tuple[int, Counter[str]]]:
    """The parts of chunks, and how often each of their terms occurs."""
    for part, terms in term_parts(chunks):
        yield part, Counter(map(stored_term, terms))
