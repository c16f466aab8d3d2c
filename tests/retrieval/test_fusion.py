"""Merging ranked lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.options import Fusion
from lightrag_jsonl.retrieval.fusion import Hits, fuse

ranked = st.lists(st.integers(0, 30), unique=True, max_size=12)


def hits(*rows: int, why: str = "") -> Hits:
    """A list in this order."""
    return Hits.of(rows, [1.0 / (1 + rank) for rank in range(len(rows))], why)


def test_what_both_lists_rank_high_comes_first() -> None:
    """A row that two lists hold beats the first of either list; ties go by id."""
    assert fuse([hits(1, 2), hits(3, 2)]).ids.tolist() == [2, 1, 3]


def test_a_rank_counts_by_its_list_s_weight() -> None:
    """Twice the weight, twice the share: weight / (60 + rank), added up."""
    fused = fuse([hits(1, 2), hits(2)], weights=[1.0, 3.0])
    assert list(fused.rows()) == [(2, 1 / 62 + 3 / 61, ""), (1, 1 / 61, "")]


def test_round_robin_takes_turns() -> None:
    """The first of each list, then the second of each, every row once."""
    assert fuse([hits(5, 1), hits(5, 7, 8)], "round_robin").ids.tolist() == [5, 1, 7, 8]


def test_every_reason_is_kept() -> None:
    """A row found in two ways says both, in the order of the lists, and one reason once."""
    lists = [hits(1, 2, why="named"), hits(2, why=""), hits(2, 1, why="near"), hits(1, why="near")]
    assert [why for _, _, why in fuse(lists).rows()] == ["named; near", "named; near"]


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
