"""The transition probabilities of a walk as a sparse matrix: a small one made quickly, or scipy's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Greatest: TypeAlias = Callable[
    [int], tuple[int, float]
]  # from a row to (column, value); column -1 for none

SMALL: Final = 20_000  # up to so many entries, unsorted products cost less than sorting first


def transitions(
    ones: Ints, others: Ints, weights: Floats, leaving: Floats
) -> tuple[SmallMatrix | LargeMatrix, Floats]:
    """The probability of each step along edges between `ones` and `others`, both ways; and the
    total weight at each node.

    A column sums to 1, less the share of what is `leaving` from its node.
    """
    size = len(leaving)
    rows, columns = np.concatenate([ones, others]), np.concatenate([others, ones])
    values = np.concatenate([weights, weights])
    total = leaving + np.bincount(columns, values, size)
    values = values / total.take(columns)
    kind = SmallMatrix if len(values) <= SMALL else LargeMatrix
    return kind(values, rows, columns, size), total


class SmallMatrix:
    """The operations of a sparse matrix that a walk needs, on unsorted entries."""

    def __init__(self, values: Floats, rows: Ints, columns: Ints, size: int) -> None:
        self._values, self._rows, self._columns = values, rows, columns
        self._size = size

    def __matmul__(self, vector: Floats) -> Floats:
        sent = self._values * vector.take(self._columns)
        sums = np.bincount(self._rows, sent, self._size)
        return sums.astype(np.float64, copy=False)  # without entries, bincount gives integers

    def row(self, number: int) -> tuple[Ints, Floats]:
        """Columns and values of a row."""
        places = (self._rows == number).nonzero()[0]
        return self._columns[places], self._values[places]

    def greatest(self, vector: Floats) -> Greatest:
        """From a row to its greatest term in the product with `vector`; computed for all rows at once."""
        sent = self._values * vector.take(self._columns)
        most = np.zeros(self._size)
        np.maximum.at(most, self._rows, sent)
        there = ((sent == most.take(self._rows)) & (sent > 0)).nonzero()[0][::-1]
        columns = np.full(self._size, -1)
        columns[self._rows[there]] = self._columns[there]
        return lambda number: (int(columns[number]), float(most[number]))


class LargeMatrix:
    """The same operations on scipy's sorted sparse matrix."""

    def __init__(self, values: Floats, rows: Ints, columns: Ints, size: int) -> None:
        from scipy import sparse

        self._matrix: Any = sparse.csr_matrix((values, (rows, columns)), shape=(size, size))
        self._matrix.sort_indices()

    def __matmul__(self, vector: Floats) -> Floats:
        product: Floats = self._matrix @ vector
        return product

    def row(self, number: int) -> tuple[Ints, Floats]:
        """Columns and values of a row."""
        places = slice(self._matrix.indptr[number], self._matrix.indptr[number + 1])
        return self._matrix.indices[places], self._matrix.data[places]

    def greatest(self, vector: Floats) -> Greatest:
        """From a row to its greatest term in the product with `vector`; computed once for each row
        asked for.
        """

        @cache
        def greatest(number: int) -> tuple[int, float]:
            columns, values = self.row(number)
            return greatest_of(columns, values * vector[columns])

        return greatest


def greatest_of(columns: Ints, values: Floats) -> tuple[int, float]:
    """The column of the greatest value, the first of equal ones, and the value; -1 if none is above 0."""
    place = int(values.argmax()) if len(values) else -1
    value = float(values[place]) if place >= 0 else 0.0
    return (int(columns[place]), value) if value > 0 else (-1, 0.0)
