"""Nearest-neighbour search over unit vectors of float16 in memory or in a mapped file: exact, by FAISS."""

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core.errors import required_packages
from lightrag_jsonl.core.protocols import Vectors

Ids = npt.NDArray[np.int64]
Halves = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float64]

NO_VECTOR: Vectors = np.zeros(1, np.float32)  # stored for a text that the embedder refused
HALF = "<f2"  # float16, little endian
TIES = 16  # further neighbours, so that of equal vectors at the end the lowest ids remain
FLOATS = np.arange(2**16, dtype="<u2").view(HALF).astype(np.float32)  # by the bits of a float16
# A tail of so many rows, or of this share of the base, is joined with the base.
LONGEST_TAIL = 1_000
LARGEST_TAIL_SHARE = 1 / 8
SCORED_AT_ONCE = 256  # rows whose float32 numbers stay in a processor's cache


class VectorSearch(Protocol):
    """Search for the vectors of one kind, in memory or in a database."""

    def search(
        self, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The nearest vectors of each query, only those in `allowed` (ascending): ids and inner products,
        both of shape (queries, n <= limit), best first, ties by id.
        """

    def scores(self, queries: Vectors, ids: Ids) -> Floats:
        """Inner products, shape (queries, ids); NaN where an id has no vector."""

    def matrix(self, ids: Ids) -> Vectors:
        """The vectors of these ids, shape (ids, dim); zeros where an id has no vector."""


class VectorBlock:
    """Vectors of float16 with their row ids, ascending; never changed.

    `index` holds the vectors of shape (ids, dim), in memory or in a mapped file: a
    `faiss.IndexScalarQuantizer`.
    """

    def __init__(self, ids: Ids, index: Any) -> None:
        self.ids = ids
        self.index = index

    @classmethod
    def of(cls, ids: Ids, halves: Halves) -> "VectorBlock":
        """The vectors, shape (ids, dim), in the order of their ids."""
        index = _empty_index(halves.shape[1])
        if len(ids):
            order = np.argsort(ids, kind="stable")
            index.codes.resize(halves.nbytes)
            index.ntotal = len(ids)
            ids = ids[order]
            np.take(halves, order, axis=0, out=_halves_in(index), mode="clip")
        return cls(ids, index)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def halves(self) -> Halves:
        """The vectors, shape (ids, dim): a view of those in the index."""
        return _halves_in(self.index)

    def positions(self, ids: Ids) -> Ids:
        """The position of each id; -1 where an id is missing."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int64)
        positions = np.searchsorted(self.ids, ids)
        is_present = self.ids.take(positions, mode="clip") == ids
        return np.where(is_present, positions, -1)

    def search(self, queries: Vectors, limit: int, selector: Any = None) -> tuple[Ids, Floats]:
        """The nearest vectors of each query, in any order: ids and scores, shape (queries, n).

        `selector` chooses among positions. The id is -1 where there are too few.
        """
        import faiss

        count = min(limit, len(self.ids))
        if not count:
            return np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0))
        faiss.omp_set_num_threads(1)  # of this thread; for few queries, others mostly wait
        params: Any = None
        if selector is not None:
            params = faiss.SearchParameters()
            params.sel = selector
        scores, positions = self.index.search(
            np.ascontiguousarray(queries, np.float32), count, params=params
        )
        return np.where(positions < 0, -1, self.ids[positions]), scores.astype(np.float64)


class VectorIndex:
    """Vectors of length `dim` by row id (positive integers), searched by inner product.

    Most vectors are in the `base`, perhaps a file shared by processes. The `tail` holds later vectors;
    `replaced` are positions in the base without effect. An index never changes: `updated` makes a
    new index.
    """

    def __init__(self, base: VectorBlock, tail: VectorBlock, replaced: Ids) -> None:
        self.dim = int(base.index.d)
        self.base = base
        self._tail = tail
        self._replaced = replaced  # ascending

    @classmethod
    def of(cls, base: VectorBlock) -> "VectorIndex":
        """An index of all vectors in a block."""
        return cls(base, _empty_block(base), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.base) - len(self._replaced) + len(self._tail)

    def updated(self, touched: Ids, ids: Ids, halves: Halves) -> "VectorIndex":
        """An index in which the vectors of the `touched` ids are replaced.

        `ids` are the touched ids with a vector now, in `halves`, shape (ids, dim).
        """
        touched = np.union1d(touched, ids)
        in_base = self.base.positions(touched)
        replaced = np.union1d(self._replaced, in_base[in_base >= 0])
        is_kept = ~np.isin(self._tail.ids, touched)
        tail = VectorBlock.of(
            np.append(self._tail.ids[is_kept], ids),
            np.append(self._tail.halves[is_kept], halves, axis=0),
        )
        index = VectorIndex(self.base, tail, replaced)
        changes = len(tail) + len(replaced)
        if changes > max(LONGEST_TAIL, LARGEST_TAIL_SHARE * len(self.base)):
            return VectorIndex.of(index.joined())
        return index

    def joined(self) -> VectorBlock:
        """All vectors in one block."""
        if not len(self._replaced) and not len(self._tail):
            return self.base
        is_valid = np.ones(len(self.base), np.bool_)
        is_valid[self._replaced] = False
        return VectorBlock.of(
            np.append(self.base.ids[is_valid], self._tail.ids),
            np.append(self.base.halves[is_valid], self._tail.halves, axis=0),
        )

    def search(
        self, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The nearest vectors of each query: ids and scores, both of shape (queries, n <= limit).

        Best first, ties by id; only ids in `allowed` (distinct), if given.
        """
        limit = max(limit, 0)
        if allowed is None:
            total = len(self)
            base_hits = self.base.search(queries, limit + TIES, self._valid_positions)
            tail_hits = self._tail.search(queries, limit + TIES)
            ids = np.append(base_hits[0], tail_hits[0], axis=1)
            scores = np.append(base_hits[1], tail_hits[1], axis=1)
        else:
            positions = self._positions(allowed)
            has_vector = (positions >= 0).any(axis=0)
            total = int(has_vector.sum())
            block = VectorBlock.of(allowed[has_vector], self._halves(positions[:, has_vector]))
            ids, scores = block.search(queries, limit + TIES)
        order = np.lexsort((ids, -scores, ids < 0))[:, : min(limit, total)]
        return np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)

    def scores(self, queries: Vectors, ids: Ids) -> Floats:
        """Inner products, shape (queries, ids); NaN where an id has no vector."""
        scores = np.full((len(queries), len(ids)), np.nan)
        queries = np.asarray(queries, np.float32)
        positions = self._positions(ids)
        has_vector = np.flatnonzero((positions >= 0).any(axis=0))
        for start in range(0, len(has_vector), SCORED_AT_ONCE):
            columns = has_vector[start : start + SCORED_AT_ONCE]
            rows = _widened(self._halves(positions[:, columns]))
            scores[:, columns] = np.einsum("ij,kj->ik", queries, rows)
        return scores

    def matrix(self, ids: Ids) -> Vectors:
        """The vectors of these ids, shape (ids, dim); zeros where an id has no vector."""
        return _widened(self._halves(self._positions(ids)))

    def _positions(self, ids: Ids) -> Ids:
        """The position of each id in the base and in the tail, shape (2, ids); -1 where it is not there."""
        in_base = self.base.positions(ids)
        if len(self._replaced):
            in_base[np.isin(in_base, self._replaced)] = -1
        return np.stack([in_base, self._tail.positions(ids)])

    def _halves(self, positions: Ids) -> Halves:
        """The vectors at positions in the base, or else in the tail, shape (ids, dim)."""
        in_base, in_tail = positions
        if (in_base >= 0).all():
            halves: Halves = self.base.halves[in_base]
            return halves
        halves = np.zeros((len(in_base), self.dim), HALF)
        halves[in_base >= 0] = self.base.halves[in_base[in_base >= 0]]
        halves[in_tail >= 0] = self._tail.halves[in_tail[in_tail >= 0]]
        return halves

    @cached_property
    def _valid_positions(self) -> Any:
        """The choice of valid positions in the base; None for all."""
        import faiss

        if not len(self._replaced):
            return None
        return faiss.IDSelectorNot(faiss.IDSelectorBatch(self._replaced))


def _widened(halves: Halves) -> Vectors:
    """Float16 as float32, in less than half the time of `astype`."""
    numbers = halves.view("<u2")
    widened: Vectors = FLOATS.take(numbers, mode="clip")  # none is outside the table
    return widened


def _empty_index(dim: int) -> Any:
    with required_packages():
        import faiss

    return faiss.IndexScalarQuantizer(
        dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )


def _empty_block(block: VectorBlock) -> VectorBlock:
    return VectorBlock(np.zeros(0, np.int64), _empty_index(block.index.d))


def _halves_in(index: Any) -> Halves:
    import faiss

    shape = (index.ntotal, index.d)
    if not index.ntotal:
        return np.zeros(shape, HALF)
    codes = faiss.rev_swig_ptr(index.codes.data(), 2 * index.ntotal * index.d)
    halves: Halves = codes.view(HALF).reshape(shape)
    return halves
