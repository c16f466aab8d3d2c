"""Row ids in order: sorting them fast, and pairs of them found by either end."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

_DIGIT: Final = 1 << 16
_HALF: Final = np.int64(32)  # bits of a column that one end of a pair takes
_LIMIT: Final = 1 << 31  # row ids are below it
_NONE: Final = np.empty(0, np.int64)


def ordered(*keys: Ids) -> Ids:
    """The places that sort by whole numbers from 0 on, by the last key first; equals keep their order.

    numpy counts digits of 16 bits where it compares longer numbers: ten times as fast.
    """
    digits: list[Ids | npt.NDArray[np.uint16]] = []
    for key in keys:
        most = int(key.max(initial=0))
        if most >= _DIGIT * _DIGIT:
            digits.append(key)
            continue
        digits.append(key.astype(np.uint16))
        if most >= _DIGIT:
            digits.append((key >> 16).astype(np.uint16))
    return np.lexsort(digits)


def distinct(values: Ids) -> Ids:
    """Each value once, ascending; they are whole numbers from 0 on."""
    values = values[ordered(values)]
    return values[firsts(values)]


def grouped(values: Ids) -> tuple[Ids, Ids, Ids]:
    """Each value once, ascending; which of these each was; and how many there were of each."""
    order = ordered(values)
    in_order = values[order]
    starts = firsts(in_order)
    counts = np.diff(starts, append=len(values))
    group = np.empty(len(values), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), counts)
    return in_order[starts], group, counts


def firsts(values: Ids) -> Ids:
    """Where each value of an ascending column stands first."""
    new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return np.flatnonzero(new)


def places(column: Ids, wanted: Ids) -> Ids:
    """Where each wanted value stands in an ascending column; -1 for one that is not there."""
    found = np.searchsorted(column, wanted)
    if not len(column):
        return np.full(found.shape, -1, np.int64)
    there = column[np.minimum(found, len(column) - 1)] == wanted
    return np.where(there, found, -1)


def among(values: Ids, column: Ids) -> npt.NDArray[np.bool_]:
    """Which values stand in an ascending column."""
    found: npt.NDArray[np.bool_] = places(column, values) >= 0
    return found


class Pairs:
    """Pairs of row ids, each once, found by the first of the pair; read-only once made.

    They are one ascending column of whole numbers, so that a change copies it and no more.
    """

    def __init__(self, owners: Ids = _NONE, members: Ids = _NONE) -> None:
        self._column = np.sort(_joined(owners, members))
        self._column = self._column[firsts(self._column)]

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
        shift = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        members = self._column[shift + np.arange(len(shift))] & (_LIMIT - 1)
        return np.repeat(np.arange(len(owners)), lengths), members

    def changed(self, gone: tuple[Ids, Ids], new: tuple[Ids, Ids]) -> Pairs:
        """Without the pairs in `gone`, and with those in `new`; each is two columns."""
        where = places(self._column, _joined(*gone))
        kept = np.delete(self._column, where[where >= 0])
        added = np.unique(_joined(*new))
        added = added[places(kept, added) < 0]
        made = Pairs()
        made._column = np.insert(kept, np.searchsorted(kept, added), added)
        return made

    def _ranges(self, owners: Ids) -> tuple[Ids, Ids]:
        return (
            np.searchsorted(self._column, owners << _HALF),
            np.searchsorted(self._column, (owners + 1) << _HALF),
        )


# ── helpers ─────────────────────────────────────────────────────────────────────


def _joined(owners: Ids, members: Ids) -> Ids:
    for ids in (owners, members):
        if len(ids) and not 0 <= ids.min() <= ids.max() < _LIMIT:
            raise ValueError(f"row ids must be between 0 and {_LIMIT - 1}")
    return (owners << _HALF) | members


def _split(column: Ids) -> tuple[Ids, Ids]:
    return column >> _HALF, column & (_LIMIT - 1)
