"""The chances of a walker's steps as a sparse matrix: a small one made quickly, a large one by scipy."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.sorting import ordered

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

SMALL: Final = 20_000  # entries up to which multiplying costs less than sorting them would


def transitions(
    ends: Ints, weights: Floats, leaving: npt.NDArray[np.float64]
) -> tuple[SmallMatrix | LargeMatrix, npt.NDArray[np.float64]]:
    """The chance of each step, and the weight of all that leads away from each node.

    A column sums to 1 less the share of what is `leaving` from its node.
    """
    size = len(leaving)
    rows, columns = np.concatenate([ends, ends[:, ::-1]]).T.copy()
    values = np.concatenate([weights, weights])
    total = leaving + np.bincount(columns, weights=values, minlength=size)
    values = (values / total[columns]).astype(np.float32)
    kind = SmallMatrix if len(values) <= SMALL else LargeMatrix
    return kind(values, rows, columns, size), total


class SmallMatrix:
    """As much of a sparse matrix as a walk needs: sorted only when a row is asked for."""

    def __init__(self, values: Floats, rows: Ints, columns: Ints, size: int) -> None:
        self._values, self._rows, self._columns = values, rows, columns
        self._size = size

    def __matmul__(self, vector: Floats) -> Floats:
        sent = self._values * vector[self._columns]
        return np.bincount(self._rows, sent, self._size).astype(np.float32)

    def row(self, number: int) -> tuple[Ints, Floats]:
        """Columns, ascending, and values of a row."""
        order, starts = self._sorted
        places = order[starts[number] : starts[number + 1]]
        return self._columns[places], self._values[places]

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        """The places of all entries, by row and column, and where each row's begin."""
        order = ordered(self._columns, self._rows)
        counts = np.bincount(self._rows, minlength=self._size)
        return order, np.concatenate([[0], np.cumsum(counts)])


class LargeMatrix:
    """The same, sorted, by scipy."""

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
