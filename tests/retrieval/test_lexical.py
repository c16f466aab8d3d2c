"""Which terms of a question the full text is searched for."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace

import pytest

from lightrag_jsonl.retrieval import lexical


class Counted:
    """A snapshot of so many chunks that knows in how many of them each term occurs."""

    def __init__(self, chunks: int, counts: dict[str, int]) -> None:
        self.graph = SimpleNamespace(chunks=range(chunks))
        self.counts = counts
        self.asked: list[str] = []

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        self.asked = list(terms)
        return {term: self.counts.get(term, 0) for term in terms}


def terms_of(chunks: int, counts: dict[str, int], question: str, *keywords: str) -> list[str]:
    """The terms that are searched for."""
    return lexical.distinctive_terms(Counted(chunks, counts), question, keywords)  # type: ignore[arg-type]


def test_rare_terms_come_first_and_frequent_ones_not_at_all() -> None:
    """What is in more than half of the chunks tells nothing, what is in none is not searched for."""
    counts = {"scrooge": 6, "partner": 2, "who": 5}
    assert terms_of(10, counts, "Who was Scrooge's partner?") == ["partner", "who"]
    assert terms_of(10, {"scrooge": 9}, "Scrooge and Marley") == ["scrooge"]
    assert terms_of(10, {}, "Scrooge?") == terms_of(10, {}, "?") == []


def test_only_so_many_chunks_are_scored() -> None:
    """Of a large index the rarest terms are taken, and function words are not even counted."""
    snapshot = Counted(20_000, {"partner": 2_000, "scrooge": 1_000, "the": 9_000})
    terms = lexical.distinctive_terms(snapshot, "the partner Scrooge", ())  # type: ignore[arg-type]
    assert terms == ["scrooge"] and snapshot.asked == ["partner", "scrooge"]
    assert terms_of(20_000, {"partner": 9_000}, "the partner") == ["partner"]
    assert terms_of(20_000, {"who": 3_000}, "who is the") == ["is", "the", "who"][2:]


@pytest.mark.parametrize(
    ("question", "keywords", "expected"),
    [
        ("什么是镭？", ["镭"], ["镭*", "什么"]),
        ("镭", [], ["镭*"]),
        ("什么是镭？", ["居里夫人"], ["什么"]),
    ],
)
def test_a_lone_character_stands_for_all_terms_that_begin_with_it(
    question: str, keywords: list[str], expected: list[str]
) -> None:
    """If it is a keyword, or the whole question: bigrams of the question rarely have it."""
    counts = {"镭*": 1, "什么": 2}
    assert terms_of(10, counts, question, *keywords) == expected
