"""Merging ranked lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.hits import Hit

ranked = st.lists(st.integers(0, 30), unique=True, max_size=12).map(
    lambda rows: [Hit(row, 1.0, f"why {row}") for row in rows]
)


def test_what_both_lists_rank_high_comes_first() -> None:
    """A row that two lists hold beats the first of either list; ties go by id."""
    fused = fuse([[Hit(1, 9.0), Hit(2, 8.0)], [Hit(3, 0.1), Hit(2, 0.1)]])
    assert [hit.id for hit in fused] == [2, 1, 3]


def test_round_robin_takes_turns() -> None:
    """The first of each list, then the second of each, every row once."""
    lists = [[Hit(5, 1.0), Hit(1, 1.0)], [Hit(5, 1.0), Hit(7, 1.0), Hit(8, 1.0)]]
    assert [hit.id for hit in fuse(lists, how="round_robin")] == [5, 1, 7, 8]


def test_every_reason_is_kept() -> None:
    """A row found in two ways says both."""
    (hit,) = fuse([[Hit(1, 1.0, "named")], [Hit(1, 1.0, "near")]])
    assert hit.why == "named; near"


@given(st.lists(ranked, max_size=4), st.sampled_from(["rrf", "round_robin"]))
def test_nothing_is_lost_or_repeated_and_scores_fall(lists: list[list[Hit]], how: str) -> None:
    """Fusion is a ranking of the union of its lists."""
    fused = fuse(lists, how=how)  # type: ignore[arg-type]
    rows = [hit.id for hit in fused]
    assert sorted(rows) == sorted({hit.id for one in lists for hit in one})
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
