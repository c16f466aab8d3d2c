"""Fast operations on columns of row ids: sorting, grouping, and pairs found by their first id."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

_DIGIT: Final = 1 << 16
_HALF: Final = np.int64(32)  # bits for each id of a pair in one number
_LIMIT: Final = 1 << 31  # row ids must be below this
_NONE: Final = np.empty(0, np.int64)
_FEW: Final = 300  # up to so many values, sorting by comparison is faster than by digits
_SPARSE: Final = 4  # the most possible values, for each existing one, of a lookup table
_SPREAD: Final = 8  # likewise, up to which counting in a table is faster than sorting


def ordered(values: Ids) -> Ids:
    """The places that sort non-negative integers; equal ones keep their order.

    numpy sorts 16-bit integers by radix, longer ones by comparison: for many values, two sorts by
    16 bits are ten times as fast.
    """
    if len(values) <= _FEW:
        return values.argsort(kind="stable")
    most = int(values.max())
    if most < _DIGIT:
        return values.astype(np.uint16).argsort(kind="stable")
    if most < _DIGIT * _DIGIT:
        return np.lexsort([values.astype(np.uint16), (values >> 16).astype(np.uint16)])
    return np.lexsort([values])


def distinct(values: Ids) -> Ids:
    """The distinct values, ascending."""
    values = np.sort(values)
    return values[_is_new(values)]


def grouped(values: Ids) -> tuple[Ids, Ids, Ids]:
    """The distinct values, ascending; for each value its place among them; and how often each occurs.

    The values must be non-negative integers.
    """
    possible = _possible(values)
    if possible <= _SPREAD * len(values):
        counts = np.bincount(values, minlength=possible)
        each = _true(counts > 0)
        place = np.empty(possible, np.int64)
        place[each] = np.arange(len(each))
        return each, place.take(values), counts.take(each)
    order = ordered(values)
    in_order = values.take(order)
    new = _is_new(in_order)
    each = in_order[new]
    group = np.empty(len(values), np.int64)
    group[order] = new.cumsum() - 1
    return each, group, np.bincount(group, minlength=len(each))


def firsts(values: Ids) -> Ids:
    """The place of each distinct value's first occurrence in an ascending column."""
    return _true(_is_new(values))


def each_first(values: Ids) -> Ids:
    """The place of each distinct value's first occurrence, ascending; for non-negative integers."""
    order = ordered(values)
    return np.sort(order[_is_new(values.take(order))])


def foremost(scores: npt.NDArray[Any], ids: Ids, limit: int) -> Ids:
    """The places of the `limit` highest scores, best first, ties by id."""
    if not 0 < limit < len(scores):
        return np.lexsort((ids, -scores))[: max(limit, 0)]
    least = np.partition(scores, -limit)[-limit]
    places = _true(scores >= least)  # sorting all would take longer than finding them
    return places[np.lexsort((ids[places], -scores[places]))][:limit]


def topmost(scores: npt.NDArray[Any], limit: int) -> Ids:
    """The places of the `limit` highest scores, ascending; of equal scores the first ones."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    least = np.partition(scores, -limit)[-limit]
    places = _true(scores >= least)
    if len(places) > limit:
        equal = _true(scores.take(places) == least)
        places = np.delete(places, equal[limit - len(places) :])
    return places


def among(values: Ids, column: Ids) -> npt.NDArray[np.bool_]:
    """For each value whether it is in an ascending column."""
    if not len(column):
        return np.zeros(len(values), np.bool_)
    found = column.searchsorted(values)
    there: npt.NDArray[np.bool_] = column[np.minimum(found, len(column) - 1)] == values
    return there


class Column:
    """Distinct row ids, ascending, with fast lookup of their places; immutable."""

    def __init__(self, values: Ids = _NONE) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def places(self, wanted: Ids) -> Ids:
        """The place of each wanted value; -1 if it is not in the column."""
        if not len(self.values):
            return np.full(wanted.shape, -1, np.int64)
        if self._table is not None:
            known: Ids = self._table.take(wanted - (self.values[0] - 1), mode="clip")
            return known
        found = np.minimum(self.values.searchsorted(wanted), len(self.values) - 1)
        return np.where(self.values[found] == wanted, found, -1)

    def with_values(self, new: Ids) -> Column:
        """A copy with new values, ascending, none of which is in the column yet."""
        return Column(np.insert(self.values, np.searchsorted(self.values, new), new))

    def without(self, gone: Ids) -> Column:
        """A copy without the values at these places."""
        return Column(np.delete(self.values, gone))

    @cached_property
    def _table(self) -> Ids | None:
        """The place of every possible value, with a -1 at either end for others; None if it would
        be too large.

        For thousands of values, a table takes a tenth of the time of a binary search.
        """
        first, last = int(self.values[0]), int(self.values[-1])
        if last - first + 1 > _SPARSE * len(self.values):
            return None
        table = np.full(last - first + 3, -1, np.int64)
        table[self.values - (first - 1)] = np.arange(len(self.values))
        return table


class Pairs:
    """Distinct pairs of row ids (owner, member), found by their owner; immutable.

    They are stored as one ascending column of numbers, so that a change only copies that.
    """

    def __init__(self, owners: Ids = _NONE, members: Ids = _NONE) -> None:
        self._column = _joined(owners, members)

    def __len__(self) -> int:
        return len(self._column)

    @property
    def all(self) -> tuple[Ids, Ids]:
        """All pairs, ascending, as two columns."""
        return _split(self._column)

    def counts(self, owners: Ids) -> Ids:
        """How many pairs each of these owners has."""
        starts, stops = self._ranges(owners)
        return stops - starts

    def of(self, owners: Ids) -> tuple[Ids, Ids]:
        """The pairs of these owners, as two columns: the index of the owner in `owners`, and the member."""
        starts, stops = self._ranges(owners)
        lengths = stops - starts
        shift = (starts - lengths.cumsum() + lengths).repeat(lengths)
        members = self._column.take(shift + np.arange(len(shift))) & (_LIMIT - 1)
        return np.arange(len(owners)).repeat(lengths), members

    def changed(self, gone: tuple[Ids, Ids], new: tuple[Ids, Ids]) -> Pairs:
        """A copy without the pairs in `gone` and with those in `new`, each given as two columns."""
        old = _joined(*gone)
        old = old[among(old, self._column)]
        kept = np.delete(self._column, np.searchsorted(self._column, old))
        added = _joined(*new)
        added = added[~among(added, kept)]
        made = Pairs()
        made._column = np.insert(kept, np.searchsorted(kept, added), added)
        return made

    def _ranges(self, owners: Ids) -> tuple[Ids, Ids]:
        column, starts = self._owners
        place = column.places(
            owners
        )  # -1, for an owner without pairs, selects the empty range at the end
        return starts[place], np.where(place < 0, starts[-1], starts[place + 1])

    @cached_property
    def _owners(self) -> tuple[Column, Ids]:
        """The owners, and where the pairs of each begin; the last entry is where all end."""
        owners = self._column >> _HALF
        starts = firsts(owners)
        return Column(owners[starts]), np.append(starts, len(owners))


# ── helpers ─────────────────────────────────────────────────────────────────────


def _possible(values: Ids) -> int:
    """The number of integers from 0 to the greatest value."""
    return int(values.max(initial=-1)) + 1


def _true(flags: npt.NDArray[np.bool_]) -> Ids:
    """The places of the flags that are set."""
    found: Ids = flags.nonzero()[0]
    return found


def _is_new(values: Ids) -> npt.NDArray[np.bool_]:
    """For each value of an ascending column whether it differs from the one before."""
    new = np.empty(len(values), np.bool_)
    new[:1] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new


def _joined(owners: Ids, members: Ids) -> Ids:
    """Distinct pairs as one ascending column of numbers."""
    for ids in (owners, members):
        if len(ids) and not 0 <= ids.min() <= ids.max() < _LIMIT:
            raise ValueError(f"row ids must be between 0 and {_LIMIT - 1}")
    column = np.sort((owners << _HALF) | members)
    return column[firsts(column)]


def _split(column: Ids) -> tuple[Ids, Ids]:
    return column >> _HALF, column & (_LIMIT - 1)
