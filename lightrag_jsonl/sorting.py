"""Row ids in order: sorting them fast, and pairs of them found by either end."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

_DIGIT: Final = 1 << 16
_HALF: Final = np.int64(32)  # bits of a column that one end of a pair takes
_LIMIT: Final = 1 << 31  # row ids are below it
_NONE: Final = np.empty(0, np.int64)
_FEW: Final = 300  # values up to which comparing them takes less than counting digits
_SPARSE: Final = 4  # possible values for each that is there, up to which a table of all is kept
_SPREAD: Final = 8  # the same, up to which counting in a table of all takes less than sorting


def ordered(values: Ids) -> Ids:
    """The places that sort whole numbers from 0 on; equals keep their order.

    numpy counts digits of 16 bits where it compares longer numbers: of many, ten times as fast.
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
    """Each value once, ascending."""
    values = np.sort(values)
    return values[_is_new(values)]


def grouped(values: Ids) -> tuple[Ids, Ids, Ids]:
    """Each value once, ascending; which of these each was; and how many there were of each.

    They are whole numbers from 0 on.
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
    """Where each value of an ascending column stands first."""
    return _true(_is_new(values))


def each_first(values: Ids) -> Ids:
    """Where each value, of whole numbers from 0 on, comes first, in the order they come."""
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
    """The places of the `limit` highest scores, ascending; of equal ones the first."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    least = np.partition(scores, -limit)[-limit]
    places = _true(scores >= least)
    if len(places) > limit:
        equal = _true(scores.take(places) == least)
        places = np.delete(places, equal[limit - len(places) :])
    return places


def among(values: Ids, column: Ids) -> npt.NDArray[np.bool_]:
    """Which values stand in an ascending column."""
    if not len(column):
        return np.zeros(len(values), np.bool_)
    found = column.searchsorted(values)
    there: npt.NDArray[np.bool_] = column[np.minimum(found, len(column) - 1)] == values
    return there


class Column:
    """Row ids, each once, ascending, and where each of them stands; read-only once made."""

    def __init__(self, values: Ids = _NONE) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def places(self, wanted: Ids) -> Ids:
        """Where each wanted value stands; -1 for one that is not there."""
        if not len(self.values):
            return np.full(wanted.shape, -1, np.int64)
        if self._table is not None:
            known: Ids = self._table.take(wanted - (self.values[0] - 1), mode="clip")
            return known
        found = np.minimum(self.values.searchsorted(wanted), len(self.values) - 1)
        return np.where(self.values[found] == wanted, found, -1)

    def with_values(self, new: Ids) -> Column:
        """With new values, ascending, none of which is there yet."""
        return Column(np.insert(self.values, np.searchsorted(self.values, new), new))

    def without(self, gone: Ids) -> Column:
        """Without what stands at these places."""
        return Column(np.delete(self.values, gone))

    @cached_property
    def _table(self) -> Ids | None:
        """The place of each possible value, and of one on either side, which stands for all that
        lie beyond; None where there are too many of them.

        Looking thousands up in it takes a tenth of the time of searching for them.
        """
        first, last = int(self.values[0]), int(self.values[-1])
        if last - first + 1 > _SPARSE * len(self.values):
            return None
        table = np.full(last - first + 3, -1, np.int64)
        table[self.values - (first - 1)] = np.arange(len(self.values))
        return table


class Pairs:
    """Pairs of row ids, each once, found by the first of the pair; read-only once made.

    They are one ascending column of whole numbers, so that a change copies it and no more.
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
        """How many pairs each of these has."""
        starts, stops = self._ranges(owners)
        return stops - starts

    def of(self, owners: Ids) -> tuple[Ids, Ids]:
        """The members of these, in their order, and before each the place of its owner among them."""
        starts, stops = self._ranges(owners)
        lengths = stops - starts
        shift = (starts - lengths.cumsum() + lengths).repeat(lengths)
        members = self._column.take(shift + np.arange(len(shift))) & (_LIMIT - 1)
        return np.arange(len(owners)).repeat(lengths), members

    def changed(self, gone: tuple[Ids, Ids], new: tuple[Ids, Ids]) -> Pairs:
        """Without the pairs in `gone`, and with those in `new`; each is two columns."""
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
        place = column.places(owners)  # -1, where there is none, is the empty range at the end
        return starts[place], np.where(place < 0, starts[-1], starts[place + 1])

    @cached_property
    def _owners(self) -> tuple[Column, Ids]:
        """Who has any, and where the pairs of each begin; at last, where they end."""
        owners = self._column >> _HALF
        starts = firsts(owners)
        return Column(owners[starts]), np.append(starts, len(owners))


# ── helpers ─────────────────────────────────────────────────────────────────────


def _possible(values: Ids) -> int:
    """How many whole numbers there are from 0 to the greatest of these."""
    return int(values.max(initial=-1)) + 1


def _true(flags: npt.NDArray[np.bool_]) -> Ids:
    """Where a flag is set."""
    found: Ids = flags.nonzero()[0]
    return found


def _is_new(values: Ids) -> npt.NDArray[np.bool_]:
    """Whether each value of an ascending column is another than the one before."""
    new = np.empty(len(values), np.bool_)
    new[:1] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new


def _joined(owners: Ids, members: Ids) -> Ids:
    """Pairs as one ascending column, each once."""
    for ids in (owners, members):
        if len(ids) and not 0 <= ids.min() <= ids.max() < _LIMIT:
            raise ValueError(f"row ids must be between 0 and {_LIMIT - 1}")
    column = np.sort((owners << _HALF) | members)
    return column[firsts(column)]


def _split(column: Ids) -> tuple[Ids, Ids]:
    return column >> _HALF, column & (_LIMIT - 1)
