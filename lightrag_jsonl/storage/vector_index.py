"""Nearest-neighbour search over unit vectors in memory: FAISS searches one numpy matrix, exactly."""

from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core.protocols import Vectors

Number = TypeVar("Number", bound=np.generic)
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NO_VECTOR: Vectors = np.zeros(1, np.float32)  # stored for a text that the embedder refused
TIES = 16  # further neighbours, so that of equal vectors at the end the lowest ids remain


class VectorSearch(Protocol):
    """Search for the vectors of one kind, in memory or in a database."""

    def search(
        self, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The nearest vectors of each query: ids and scores, both of shape (queries, n <= limit)."""

    def scores(self, queries: Vectors, ids: Ids) -> Floats:
        """Inner products, shape (queries, ids); NaN where an id has no vector."""

    def matrix(self, ids: Ids) -> Vectors:
        """The vectors of these ids, shape (ids, dim); zeros where an id has no vector."""


class VectorIndex:
    """Vectors of length `dim` by row id, searched by inner product.

    Row ids are positive integers; a table as long as the greatest one leads to the matrix. Threads
    may search at the same time, but nobody while the index is being changed.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._matrix: Vectors = np.zeros((0, dim), np.float32)  # with room for more at its end
        self._ids: Ids = np.zeros(0, np.int64)  # the id of each row of the matrix; 0: unused
        self._slots: Ids = np.full(1, -1, np.int64)  # the row of each id; -1: none
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def update(self, ids: Ids, matrix: Vectors) -> None:
        """Add or replace the vectors of distinct ids; shape (ids, dim)."""
        self._slots = _grown(self._slots, int(ids.max(initial=0)) + 1, -1)
        new_ids = ids[self._slots[ids] < 0]
        end = self._used + len(new_ids)
        self._matrix = _grown(self._matrix, end, 0)
        self._ids = _grown(self._ids, end, 0)
        self._slots[new_ids] = np.arange(self._used, end)
        self._ids[self._used : end] = new_ids
        self._used = end
        self._matrix[self._slots[ids]] = matrix

    def remove(self, ids: Ids) -> None:
        """Remove the vectors of distinct ids; unknown ids are ignored. The last row fills a gap."""
        for slot in sorted(self._slots_of(ids).tolist(), reverse=True):
            if slot < 0:
                continue
            self._used -= 1
            self._slots[self._ids[slot]] = -1
            if slot < self._used:
                moved_id = self._ids[self._used]
                self._matrix[slot] = self._matrix[self._used]
                self._ids[slot] = moved_id
                self._slots[moved_id] = slot

    def search(
        self, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The nearest vectors of each query: ids and scores, both of shape (queries, n <= limit).

        Best first, ties by id; only ids in `allowed` (distinct), if given.
        """
        import faiss

        rows = self._matrix[: self._used]
        row_ids = self._ids[: self._used]
        if allowed is not None:
            slots = self._slots_of(allowed)
            slots = slots[slots >= 0]
            rows = rows[slots]
            row_ids = row_ids[slots]
        count = min(max(limit, 0), len(rows))
        if not count or not len(queries):
            return np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0))
        faiss.omp_set_num_threads(1)  # of this thread; for few queries, others mostly wait
        query_matrix = np.ascontiguousarray(queries, np.float32)
        wider = min(count + TIES, len(rows))
        scores, nearest = faiss.knn(query_matrix, rows, wider, metric=faiss.METRIC_INNER_PRODUCT)
        nearest_ids = row_ids[nearest]
        order = np.lexsort((nearest_ids, -scores))[:, :count]
        best = np.take_along_axis(scores, order, 1).astype(np.float64)
        return np.take_along_axis(nearest_ids, order, 1), best

    def scores(self, queries: Vectors, ids: Ids) -> Floats:
        """Inner products, shape (queries, ids); NaN where an id has no vector."""
        slots = self._slots_of(ids)
        scores = np.full((len(queries), len(slots)), np.nan)
        has_vector = slots >= 0
        if has_vector.any():  # without vectors, `dim` is not that of the queries
            rows = self._matrix[slots[has_vector]]
            scores[:, has_vector] = np.einsum("ij,kj->ik", np.asarray(queries, np.float32), rows)
        return scores

    def matrix(self, ids: Ids) -> Vectors:
        """The vectors of these ids, shape (ids, dim); zeros where an id has no vector."""
        slots = self._slots_of(ids)
        rows = np.zeros((len(slots), self.dim), np.float32)
        rows[slots >= 0] = self._matrix[slots[slots >= 0]]
        return rows

    def _slots_of(self, ids: Ids) -> Ids:
        """The row of each id; -1 for unknown ids."""
        return np.where(ids < len(self._slots), self._slots.take(ids, mode="clip"), -1)


def _grown(array: npt.NDArray[Number], size: int, value: int) -> npt.NDArray[Number]:
    """The array with room for `size` rows, or for more (rows of zeros take no memory)."""
    if size <= len(array):
        return array
    grown = np.zeros((size + size // 2, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    if value:
        grown[len(array) :] = value
    return grown
