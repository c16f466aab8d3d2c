"""Sorted row ids agree with Python's own sorting, sets and dictionaries, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.sorting import (
    Column,
    Ids,
    Pairs,
    among,
    distinct,
    firsts,
    foremost,
    grouped,
    ordered,
    topmost,
)

values = st.one_of(st.integers(0, 9), st.integers(0, 1 << 20), st.integers(0, (1 << 62)))
rows = st.one_of(st.integers(0, 9), st.integers(0, (1 << 31) - 1))
pairs = st.sets(st.tuples(rows, rows), max_size=20)


def ids(*numbers: int) -> Ids:
    """Row ids as an array."""
    return np.array(numbers, np.int64)


@given(st.one_of(st.lists(values), st.lists(st.integers(0, 60)), st.lists(rows, min_size=310)))
def test_sorting(numbers: list[int]) -> None:
    """Order, repetition and grouping of numbers of one digit of 16 bits, of two, and of more, of few
    numbers and of many, near to each other and far.
    """
    column = ids(*numbers)
    assert ordered(column).tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)
    assert distinct(column).tolist() == sorted(set(numbers))
    assert np.sort(column)[firsts(np.sort(column))].tolist() == sorted(set(numbers))
    each, group, counts = grouped(column)
    assert each[group].tolist() == numbers
    assert counts.tolist() == [numbers.count(value) for value in sorted(set(numbers))]


@given(st.lists(st.tuples(st.integers(-3, 3), rows)), st.integers(-1, 12))
def test_foremost(scored: list[tuple[int, int]], limit: int) -> None:
    """The highest scores first, equal ones by id, whether all are asked for or a few."""
    scores = np.array([score for score, _ in scored], np.float32)
    column = ids(*(row for _, row in scored))
    found = [scored[place] for place in foremost(scores, column, limit)]
    assert found == sorted(scored, key=lambda item: (-item[0], item[1]))[: max(limit, 0)]


@given(st.lists(st.integers(-3, 3)), st.integers(1, 12))
def test_topmost(scores: list[int], limit: int) -> None:
    """The highest scores, of equal ones the first, in the order they come."""
    best = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:limit]
    assert topmost(np.array(scores, np.float64), limit).tolist() == sorted(best)


@given(st.sets(values), st.lists(values))
def test_places(known: set[int], wanted: list[int]) -> None:
    """In dense columns and sparse ones, each value is found where it stands, and no other."""
    column = Column(ids(*sorted(known)))
    asked = [*wanted, *known, *(value + 1 for value in known)]
    expected = [sorted(known).index(value) if value in known else -1 for value in asked]
    assert column.places(ids(*asked)).tolist() == expected
    assert among(ids(*asked), column.values).tolist() == [value in known for value in asked]


@given(st.sets(values), st.sets(values))
def test_columns_grow_and_shrink(known: set[int], other: set[int]) -> None:
    """Adding and dropping values gives new columns, and leaves the old one as it was."""
    column = Column(ids(*sorted(known)))
    more = column.with_values(ids(*sorted(other - known)))
    less = column.without(column.places(ids(*sorted(other & known))))
    assert more.values.tolist() == sorted(known | other)
    assert less.values.tolist() == sorted(known - other)
    assert column.values.tolist() == sorted(known)


@given(pairs, pairs, pairs, st.lists(rows))
def test_pairs(
    start: set[tuple[int, int]],
    gone: set[tuple[int, int]],
    new: set[tuple[int, int]],
    wanted: list[int],
) -> None:
    """Members come owner by owner in the order asked for; a change takes out, then puts in."""
    changed = Pairs(*_columns(start)).changed(_columns(gone), _columns(new))
    expected = (start - gone) | new
    assert list(zip(*(column.tolist() for column in changed.all), strict=True)) == sorted(expected)
    asked = [*wanted, *(owner for owner, _ in expected)]
    places, members = changed.of(ids(*asked))
    found = [(asked[place], member) for place, member in zip(places, members, strict=True)]
    assert found == [pair for owner in asked for pair in sorted(expected) if pair[0] == owner]
    assert changed.counts(ids(*asked)).tolist() == [
        sum(owner == one for one, _ in expected) for owner in asked
    ]


def test_ids_that_do_not_fit_are_refused() -> None:
    """Two ids share 64 bits, so none may be negative or past 31."""
    for wrong in (-1, 1 << 31):
        with pytest.raises(ValueError, match="between 0 and"):
            Pairs(ids(wrong), ids(1))


def _columns(pairs: set[tuple[int, int]]) -> tuple[Ids, Ids]:
    table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()
