"""The ways a vector index stores its rows in FAISS: as 32-bit floats, 16-bit floats, or bytes in lists.

A layout numbers its rows from 0, never deletes one, and proposes candidates for a query.
`vectors.py` knows which rows are alive, and decides the order of results. For many rows of floats,
a sketch of four bits a value is scanned in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.sketch import Floats, Ids, Rotation, Sketch, faiss

Mask = npt.NDArray[np.bool_]
LayoutKind = Literal["flat", "fp16", "ivf-sq8"]

_AT_ONCE: Final = 256  # rows decoded at a time; they fit into the processor's cache
_POOL: Final = 8  # times k: the rows taken from a sketch, to be scored exactly
_LEAST_POOL: Final = 100
_WORTH: Final = 4  # times that: with fewer rows, a sketch is not used
_FAR: Final = np.float32(-1e6)  # a guess below all scores
_ALL: Final = 10_000  # up to so many rows, a scan saves nothing over scoring all of them
_SPARE: Final = 8  # candidates beyond k, to include equals of the last one
_HALF_BITS: Final = np.uint32(0x8FFFE000).astype(
    np.int32
)  # keeps sign, exponent and mantissa of a shifted 16-bit float


class Source(Protocol):
    """The vectors a layout is made from."""

    def __len__(self) -> int: ...
    def sample(self, count: int) -> Floats: ...


class Likely(NamedTuple):
    """The rows that are probably nearest, a line for each query, the likeliest first.

    `guesses` are estimated scores, descending; the estimate of any other row is at most the last
    one. `error` is their standard error. Dead rows come last, with a guess below all scores;
    `living` counts the others.
    """

    rows: Ids
    guesses: Floats
    error: float
    living: Ids


class Layout(Protocol):
    """What `VectorIndex` needs from a layout.

    `scores` gives the inner products of each query with the same rows, or with the rows of its own
    line; a product does not depend on which others are computed with it. `likely` estimates, if
    that saves time, or returns None. Otherwise `candidates` certainly include the nearest rows;
    `scan` does so without any shortcut.
    """

    kind: LayoutKind

    def train(self, source: Source) -> None: ...
    def outgrown(self, count: int) -> bool: ...
    def add(self, rows: Floats) -> None: ...
    def decode(self, rows: Ids) -> Floats: ...
    def scores(self, queries: Floats, rows: Ids) -> Floats: ...
    def scan(self, queries: Floats, fetch: int, mask: Mask | None) -> list[Ids]: ...
    def likely(
        self, queries: Floats, k: int, mask: Mask | None, available: int
    ) -> Likely | None: ...
    def candidates(
        self, queries: Floats, k: int, mask: Mask | None, available: int
    ) -> list[Ids]: ...


class Flat:
    """32-bit floats, scanned; if there are many, a sketch proposes the rows to score."""

    kind: LayoutKind = "flat"

    def __init__(self, dim: int) -> None:
        self._index: Any = faiss().IndexFlatIP(dim)
        self._sketch = Sketch(dim)

    def train(self, source: Source) -> None:
        """Do nothing: a row's code depends on that row alone."""

    def outgrown(self, count: int) -> bool:
        """Whether `count` rows are too many for what was trained."""
        return False

    def add(self, rows: Floats) -> None:
        """Append rows."""
        self._index.add(rows)

    def decode(self, rows: Ids) -> Floats:
        """The vectors of these rows."""
        if not len(rows):
            return np.empty((0, self._index.d), dtype=np.float32)
        return np.asarray(self._index.reconstruct_batch(rows), dtype=np.float32)

    def scores(self, queries: Floats, rows: Ids) -> Floats:
        """The inner products of each query with these rows, or with those in its line of `rows`."""
        labels = np.repeat(rows[None], len(queries), axis=0) if rows.ndim == 1 else rows.copy()
        found = np.empty(labels.shape, dtype=np.float32)
        if found.size:
            query, into, wanted = map(faiss().swig_ptr, (queries, found, labels))
            count, each = labels.shape
            self._index.compute_distance_subset(count, query, each, into, wanted)
        return found

    def scan(self, queries: Floats, fetch: int, mask: Mask | None) -> list[Ids]:
        """The `fetch` best rows of each query among those that `mask` allows."""
        found = self._index.search(queries, fetch, params=self._parameters(mask))[1]
        return [row[row >= 0] for row in found]

    def likely(self, queries: Floats, k: int, mask: Mask | None, available: int) -> Likely | None:
        """Rows that probably include the `k` best; `available` is the number that `mask` allows.

        None if reading a sketch does not pay, or not yet.
        """
        total, wanted = self._index.ntotal, max(_POOL * k, _LEAST_POOL)
        pool = wanted * total // available + 1
        if _WORTH * pool > total or not self._sketch.follow(self.decode, total, len(queries)):
            return None
        rows, guesses = self._sketch.search(queries, pool)
        living = np.full(len(rows), pool)
        if mask is not None:
            dead = ~mask[rows]
            guesses[dead] = _FAR
            order = np.argsort(dead, axis=1, kind="stable")
            rows = np.take_along_axis(rows, order, axis=1)
            guesses = np.take_along_axis(guesses, order, axis=1)
            living -= np.count_nonzero(dead, axis=1)
        return Likely(rows, guesses, self._sketch.error, living)

    def candidates(self, queries: Floats, k: int, mask: Mask | None, available: int) -> list[Ids]:
        """Rows that include the `k` best; if there are few rows, all of them."""
        total = self._index.ntotal
        if total <= _ALL:
            rows = np.arange(total) if mask is None else np.flatnonzero(mask)
            return [rows] * len(queries)
        return self.scan(queries, min(k + _SPARE, available), mask)

    def _parameters(self, mask: Mask | None) -> Any:
        return None if mask is None else faiss().SearchParameters(sel=_selector(mask))


class Half(Flat):
    """16-bit floats."""

    kind: LayoutKind = "fp16"

    def __init__(self, dim: int) -> None:
        quantizer, metric = faiss().ScalarQuantizer.QT_fp16, faiss().METRIC_INNER_PRODUCT
        self._index = faiss().IndexScalarQuantizer(dim, quantizer, metric)
        self._sketch = Sketch(dim)

    def decode(self, rows: Ids) -> Floats:
        """The vectors of these rows."""
        return self._decoder(len(rows))(rows)

    def scores(self, queries: Floats, rows: Ids) -> Floats:
        return _products(self._decoder(min(rows.shape[-1], _AT_ONCE)), queries, rows)

    def _decoder(self, most: int) -> Callable[[Ids], Floats]:
        """A function that decodes up to `most` rows; each call overwrites the result of the last one.

        It gives the result of FAISS's own decoder several times as fast, by shifting the bits and
        scaling.
        """
        codes = faiss().rev_swig_ptr(self._index.codes.data(), self._index.codes.size())
        halves = codes.view(np.int16).reshape(-1, self._index.d)
        read = np.empty((most, self._index.d), np.int16)
        wide = np.empty((most, self._index.d), np.int32)

        def decode(rows: Ids) -> Floats:
            bits = wide[: len(rows)]
            bits[:] = halves.take(rows, axis=0, out=read[: len(rows)], mode="clip")
            bits <<= 13
            bits &= _HALF_BITS
            values: Floats = bits.view(np.float32)
            values *= np.float32(2.0**112)
            return values

        return decode


class Lists(Flat):
    """Bytes in inverted lists, half of which are searched; retrained when there are four times as many rows.

    The bytes hold the rotated difference from the list's centre, with the same scale for all
    coordinates, so that vectors unlike those in training are stored well, too. Four further bits
    hold the rounding error; they are read for candidates only.
    """

    kind: LayoutKind = "ivf-sq8"
    _REACH: Final = 4.0  # half the range of the bytes, in standard deviations of a coordinate

    def __init__(self, dim: int) -> None:
        self._rotation = Rotation(dim)
        self._trained_for = 0

    def train(self, source: Source) -> None:
        self._trained_for = len(source)
        count = max(1, min(4096, round(len(source) ** 0.5), len(source) // 40))
        width, metric = self._rotation.width, faiss().METRIC_INNER_PRODUCT
        quantizer = faiss().ScalarQuantizer.QT_8bit
        self._coarse: Any = faiss().IndexFlatIP(width)
        self._index = faiss().IndexIVFScalarQuantizer(self._coarse, width, count, quantizer, metric)
        self._index.cp.spherical = True
        self._index.cp.niter = 8
        self._index.cp.min_points_per_centroid = 1
        sample = self._rotation(source.sample(count * 40))
        self._index.train(sample)
        nearest = self._coarse.search(sample, 1)[0]
        distance = np.sqrt(np.quantile(np.maximum(2 - 2 * nearest, 1e-4), 0.99))
        reach = float(self._REACH * distance / width**0.5)
        _scale(self._index.sq, width, reach)
        self._lost: Any = faiss().IndexScalarQuantizer(
            width, faiss().ScalarQuantizer.QT_4bit, metric
        )
        _scale(self._lost.sq, width, reach / 255)
        self._lost.is_trained = True
        self._index.set_direct_map_type(faiss().DirectMap.Array)
        self._index.nprobe = max(count // 2, min(count, 16))

    def outgrown(self, count: int) -> bool:
        return count > 4 * self._trained_for

    def add(self, rows: Floats) -> None:
        start, rotated = self._index.ntotal, self._rotation(rows)
        self._index.add(rotated)
        kept = super().decode(np.arange(start, start + len(rows)))
        self._lost.add(rotated - kept)

    def decode(self, rows: Ids) -> Floats:
        return self._rotation.back(self._stored(rows))

    def scores(self, queries: Floats, rows: Ids) -> Floats:
        """Computed in the rotated space; each query is rotated alone, so that sums do not depend on
        others.
        """
        turned = [self._rotation(query) for query in queries]
        return _products(self._stored, np.concatenate(turned or [queries]), rows)

    def _stored(self, rows: Ids) -> Floats:
        if not len(rows):
            return np.empty((0, self._rotation.width), dtype=np.float32)
        lost = np.asarray(self._lost.reconstruct_batch(rows), dtype=np.float32)
        return super().decode(rows) + lost

    def likely(self, queries: Floats, k: int, mask: Mask | None, available: int) -> Likely | None:
        """None: lists are not sketched."""
        return None

    def candidates(self, queries: Floats, k: int, mask: Mask | None, available: int) -> list[Ids]:
        fetch, most = min(2 * k + 2 * _SPARE, available), available * 2 > self._index.ntotal
        probes = self._index.nprobe if most else self._index.nlist
        return self._probed(queries, fetch, mask, probes)

    def scan(self, queries: Floats, fetch: int, mask: Mask | None) -> list[Ids]:
        return self._probed(queries, fetch, mask, self._index.nlist)

    def _probed(self, queries: Floats, fetch: int, mask: Mask | None, probes: int) -> list[Ids]:
        selector = None if mask is None else _selector(mask)
        parameters = faiss().SearchParametersIVF(sel=selector, nprobe=probes)
        found = self._index.search(self._rotation(queries), fetch, params=parameters)[1]
        return [row[row >= 0] for row in found]


LAYOUTS: Final[dict[LayoutKind, type[Flat]]] = {"flat": Flat, "fp16": Half, "ivf-sq8": Lists}


def _scale(quantizer: Any, width: int, reach: float) -> None:
    """Make a uniform quantizer cover -reach to reach in every coordinate."""
    lowest, span = np.full(width, -reach, np.float32), np.full(width, 2 * reach, np.float32)
    faiss().copy_array_to_vector(np.concatenate([lowest, span]), quantizer.trained)


def _products(decode: Callable[[Ids], Floats], queries: Floats, rows: Ids) -> Floats:
    """Inner products that do not depend on what is computed with them, unlike in a matrix product.

    FAISS sums vectors of fewer than 16 values in groups in another order than alone.
    """
    if rows.ndim == 2:
        pairs = zip(queries, rows, strict=True)
        return np.concatenate([_products(decode, query[None], own) for query, own in pairs])
    found = np.empty((len(queries), len(rows)), dtype=np.float32)
    pointer = faiss().swig_ptr
    for start in range(0, len(rows), _AT_ONCE):
        stored = np.ascontiguousarray(decode(rows[start : start + _AT_ONCE]))
        count, dim = stored.shape
        for query, scores in zip(queries, found[:, start : start + count], strict=True):
            faiss().fvec_inner_products_ny(
                pointer(scores), pointer(query), pointer(stored), dim, count
            )
    return found


def _selector(mask: Mask) -> Any:
    return faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))
