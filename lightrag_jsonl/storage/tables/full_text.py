"""The full text of chunks: BM25 over the terms of `core.text`.

A long chunk is several parts, and the best part counts most: one sentence on the question is not
lost in a page on something else.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from lightrag_jsonl.core.text import index_terms

PART_TERMS = 200  # the terms of a part
PARTS = 1_024  # the most parts of a chunk; longer chunks have longer parts
OTHER_PARTS = 0.2  # the share of each part's score beside the best one's 1
JOINT_SCORE = f"{1 - OTHER_PARTS} * max(score) + {OTHER_PARTS} * sum(score)"
ANY_END = "*"  # after a term: all terms that begin with it

ChunkTexts: TypeAlias = Iterable[tuple[int, str]]  # row ids of chunks, and their texts


class FullText(ABC):
    """The full text of an index, in the words of one database."""

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
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None
    ) -> list[tuple[int, float]]:
        """The best chunks, only those in `allowed`, as (row id, score); ties by row id."""

    @abstractmethod
    def counts(self, terms: Collection[str]) -> tuple[int, dict[str, int]]:
        """The number of parts of all chunks, and in how many of them each term occurs."""


def term_parts(chunks: ChunkTexts) -> Iterator[tuple[int, list[str]]]:
    """The terms of chunks, cut into parts of about the same length: (id of the part, terms).

    The id of a part, divided by `PARTS`, is the row id of the chunk.
    """
    for chunk, text in chunks:
        terms = index_terms(text)
        count = min(max(-(-len(terms) // PART_TERMS), 1), PARTS)
        for number in range(count):
            start = number * len(terms) // count
            end = (number + 1) * len(terms) // count
            yield chunk * PARTS + number, terms[start:end]
