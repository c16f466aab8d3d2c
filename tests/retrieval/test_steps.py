"""The steps of a search: which keywords are names, and how ranked lists are merged."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import QueryParam
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.options import Fusion
from lightrag_jsonl.retrieval.full_text import distinctive_terms
from lightrag_jsonl.retrieval.hits import Hits, fuse
from lightrag_jsonl.retrieval.passages import Passages
from lightrag_jsonl.retrieval.ranking import fuse_with_text
from lightrag_jsonl.retrieval.task import SearchQuery, SearchTask, Seeds


def test_rare_terms_come_first_and_frequent_ones_not_at_all() -> None:
    """What is in more than half of the parts tells nothing, what is in none is not searched for; of
    a large index only so many parts are scored. A function word must be rarer.
    """
    for parts, counts, expected in (
        (20, {"scrooge": 11, "partner": 10, "his": 4, "who": 3}, ["who", "partner"]),
        (10, {"scrooge": 9}, ["scrooge"]),
        (10, {}, []),
        (90_000, {"partner": 4_000, "scrooge": 700, "his": 300}, ["his", "scrooge", "partner"]),
        (90_000, {"partner": 4_001, "scrooge": 700, "his": 300}, ["his", "scrooge"]),
    ):
        snapshot: Any = SimpleNamespace()
        snapshot.term_counts = lambda terms, total=parts, found=counts: (
            total,
            {one: found.get(one, 0) for one in terms},
        )
        assert distinctive_terms(snapshot, "Who was Scrooge's, his partner?") == expected


def test_chinese_characters_are_terms_but_for_those_without_meaning() -> None:
    """父 of 父亲, not 他 and 的; no syllable of another script, unless it stands alone."""
    counts = {"父*": 11, "亲*": 11}
    snapshot: Any = SimpleNamespace()
    snapshot.term_counts = lambda terms: (99, {term: counts.get(term, 1) for term in terms})
    found = distinctive_terms(snapshot, "他的父亲 책은 차")
    assert sorted(found) == sorted(["他的", "的父", "父亲", "亲*", "책은", "차*"])


def test_a_character_is_a_term_where_texts_write_it_otherwise() -> None:
    """Not where they write the word of the question, which would then count twice."""
    snapshot: Any = SimpleNamespace()
    for occurrences, terms in ((2, ["母亲", "母*"]), (30, ["母亲"])):
        counts = {"母亲": occurrences, "母*": 40}
        snapshot.term_counts = lambda asked, counts=counts: (
            400,
            {term: counts.get(term, 0) for term in asked},
        )
        assert distinctive_terms(snapshot, "母亲？") == terms


# ── fusion ──────────────────────────────────────────────────────────────────────

ranked = st.lists(st.integers(0, 30), unique=True, max_size=12)


def hits(*rows: int, why: str = "") -> Hits:
    """A list in this order."""
    return Hits.of(rows, [1.0 / (1 + rank) for rank in range(len(rows))], why)


def test_a_rank_counts_by_its_list_s_weight() -> None:
    """Twice the weight, twice the share: weight / (60 + rank), added up."""
    fused = fuse([hits(1, 2), hits(2)], weights=[1.0, 3.0])
    assert list(fused.rows()) == [(2, 1 / 62 + 3 / 61, ""), (1, 1 / 61, "")]


def test_only_equal_scores_share_a_rank() -> None:
    """In a list whose scores rise, as where lists took turns, each place counts; equal neighbours have the
    middle of theirs.
    """
    turns = Hits.of([1, 2, 3, 4, 5], [0.9, 0.5, 0.8, 0.4, 0.4])
    fused = fuse([turns])
    assert fused.ids.tolist() == [1, 2, 3, 4, 5]
    assert fused.scores.tolist() == [1 / 61, 1 / 62, 1 / 63, 1 / 64.5, 1 / 64.5]


def test_round_robin_takes_turns() -> None:
    """The first of each list, then the second of each, every row once."""
    assert fuse([hits(5, 1), hits(5, 7, 8)], "round_robin").ids.tolist() == [5, 1, 7, 8]


@given(
    st.lists(ranked, max_size=4),
    st.sampled_from(["rrf", "round_robin"]),
    st.one_of(st.none(), st.integers(0, 20)),
)
def test_nothing_is_lost_or_repeated_and_scores_fall(
    lists: list[list[int]], how: Fusion, limit: int | None
) -> None:
    """Fusion is a ranking of the union of its lists; a limit takes its first."""
    named = [hits(*rows, why=f"list {number}") for number, rows in enumerate(lists)]
    fused = fuse(named, how)
    assert sorted(fused.ids.tolist()) == sorted(set().union(*lists))
    assert fused.scores.tolist() == sorted(fused.scores.tolist(), reverse=True)
    for row, _, why in fused.rows():
        assert why == "; ".join(f"list {n}" for n, rows in enumerate(lists) if row in rows)
    some = fuse(named, how, limit=limit)
    assert list(some.rows()) == list(fused.rows())[:limit]


@pytest.mark.parametrize(
    ("question", "chunks"),
    [
        ("Who keeps the lighthouse that the sister of Odo Finch painted?", [1, 2]),
        (
            "Which harbour, according to the survey on silted channels published in spring, lost eleven stones"
            " of its breakwater in the storm and later refused to pay the builder's larger bill?",
            [1, 2, 3],
        ),
        ("灯塔由谁看守？", [1, 2]),
    ],
)
def test_a_question_of_many_words_is_searched_for_by_text_too(
    question: str, chunks: list[int]
) -> None:
    """A short question may lead over names that it does not say, a long one says what its passages say."""
    query = SearchQuery(question=question, vectors=np.zeros((1, 1), np.float32), lexical=True)
    snapshot: Any = None  # nothing is looked up where nothing is named
    task = SearchTask(
        snapshot=snapshot, query=query, mode=MODES["mix"], param=QueryParam(), chunk_limit=9
    )
    passages = Passages(walked=hits(1, 2), by_text=hits(3, 1), copies={})
    assert fuse_with_text(task, Seeds(), passages).ids.tolist() == chunks
