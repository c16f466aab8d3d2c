"""A sketch of many vectors, four bits a value, that estimates which are nearest; and its rotation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

_BLOCK: Final = 16_384  # rows copied at a time, to save memory
_FEW_ROWS: Final = 2_000  # so many new rows are sketched at once; more wait for _FEW_QUERIES
_FEW_QUERIES: Final = 16


def blocks(rows: Ids) -> Iterator[Ids]:
    """The row numbers in pieces."""
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]


@cache
def faiss() -> Any:
    """FAISS, imported when it is first needed."""
    import faiss as module

    return module


class Sketch:
    """Rotated unit vectors with four bits for each coordinate, scanned in one pass.

    A random rotation makes the coordinates of every unit vector similarly distributed. So the
    sketch has fixed levels, sixteen at equal distances: nothing is trained, and its quality hardly
    depends on the order or the clusters of the vectors. The levels cover nearly all coordinates; a
    coordinate beyond them would make near vectors seem further away. FAISS adds up the columns in
    16 bits, on a scale set by the widest column; two additional columns, which add nothing to the
    sum, keep that scale wide enough.
    """

    _STEP: Final = 0.42  # the distance of levels, in standard deviations of a coordinate
    _LOST: Final = 0.018  # variance of an estimate for each coordinate, for vectors near the query
    _COLUMNS: Final = 240.0  # columns that may hold the largest 8-bit value before 16 bits overflow

    def __init__(self, dim: int) -> None:
        self._rotation = Rotation(dim)
        width = self._rotation.width
        self._again = Rotation(width)
        self._places = np.random.default_rng(width).permutation(width)
        self._index = self._packed(np.empty((0, width // 2), np.uint8))
        self.error = float((self._LOST / width) ** 0.5)
        self._asked = 0

    def follow(self, decode: Callable[[Ids], Floats], total: int, asked: int) -> bool:
        """Sketch new rows; many of them wait until enough queries were asked. False if some still wait."""
        start = self._index.ntotal
        self._asked += asked
        if total - start > _FEW_ROWS and self._asked < _FEW_QUERIES:
            return False
        for rows in blocks(np.arange(start, total)):
            codes = self._codes(self._turned(decode(rows)))
            self._index.merge_from(self._packed(codes))
        self._asked = 0
        return True

    def search(self, queries: Floats, pool: int) -> tuple[Ids, Floats]:
        """The `pool` likeliest of at least as many rows, for each query, and their estimated scores."""
        asked = np.zeros((len(queries), self._rotation.width + 2), np.float32)
        asked[:, :-2] = self._turned(queries)
        asked[:, -2] = np.abs(asked).sum(axis=1) / np.float32(self._COLUMNS)
        scores, rows = self._index.search(asked, pool)
        return rows, scores

    def _turned(self, vectors: Floats) -> Floats:
        """The vectors, rotated twice: one rotation does not mix vectors of a few large coordinates enough."""
        return self._again(self._rotation(vectors)[:, self._places])

    def _codes(self, rotated: Floats) -> npt.NDArray[np.uint8]:
        """The codes, two coordinates a byte (FAISS's own encoder takes ten times as long)."""
        scaled = rotated * np.float32(self._rotation.width**0.5 / self._STEP)
        scaled += 8
        levels = np.clip(scaled, 0, 15, out=scaled).astype(np.uint8)
        return np.asarray(levels[:, 0::2] | levels[:, 1::2] << 4, np.uint8)

    def _packed(self, codes: npt.NDArray[np.uint8]) -> Any:
        """An index of these codes, in the order that FAISS's fast scan needs."""
        columns = self._rotation.width + 2
        plain: Any = faiss().IndexPQ(columns, columns, 4, faiss().METRIC_INNER_PRODUCT)
        step = self._STEP / self._rotation.width**0.5
        levels = np.tile((np.arange(16) - 7.5) * step, (columns, 1))
        levels[-2:] = np.arange(16) * step
        faiss().copy_array_to_vector(levels.astype(np.float32).ravel(), plain.pq.centroids)
        plain.is_trained = True
        plain.add_sa_codes(np.pad(codes, ((0, 0), (0, 1))))
        return faiss().IndexPQFastScan(plain)


class Rotation:
    """A fixed random rotation, composed of two small ones over the rows and columns of a grid."""

    def __init__(self, dim: int) -> None:
        random = np.random.default_rng(20_240_613)
        self.dim, self._rows, self._columns = dim, -(-dim // 32), 32
        self.width = self._rows * self._columns
        self._outer, self._inner = (
            np.linalg.qr(random.standard_normal((size, size)))[0].astype(np.float32)
            for size in (self._rows, self._columns)
        )

    def __call__(self, vectors: Floats) -> Floats:
        """Rotate vectors, padded to `width`."""
        missing = self.width - self.dim
        padded = np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors
        rows = padded.reshape(-1, self._columns) @ self._inner
        grid = rows.reshape(-1, self._rows, self._columns).swapaxes(1, 2)
        rotated = grid.reshape(-1, self._rows) @ self._outer
        return np.asarray(rotated.reshape(-1, self.width), dtype=np.float32)

    def back(self, rotated: Floats) -> Floats:
        """Undo the rotation."""
        columns = rotated.reshape(-1, self._rows) @ self._outer.T
        grid = columns.reshape(-1, self._columns, self._rows).swapaxes(1, 2)
        back = grid.reshape(-1, self._columns) @ self._inner.T
        return np.asarray(back.reshape(-1, self.width)[:, : self.dim], dtype=np.float32)
