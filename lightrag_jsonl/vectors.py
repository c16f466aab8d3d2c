"""Nearest-neighbour search: a FAISS index that chooses its layout by size, and can delete vectors.

Rows are only appended. A removed or replaced vector leaves a dead row, which searches skip; when a
quarter of the rows is dead, the index is rebuilt from the living ones. A layout only proposes
candidates. Their order comes from an exact scoring of the stored vectors, ties by id, so results do
not depend on the order of changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.errors import ConfigError, EmbeddingError
from lightrag_jsonl.layouts import LAYOUTS, Flat, Layout, LayoutKind, Likely, Mask
from lightrag_jsonl.sketch import Floats, Ids, blocks, faiss
from lightrag_jsonl.sorting import Column, among, foremost

FLAT_LIMIT: Final = 50_000
HALF_LIMIT: Final = 1_000_000

_DIRECT: Final = 10_000  # up to so many allowed rows are all scored, without asking the layout
_SAMPLE: Final = 16  # further rows that are scored to measure the error of guesses
_SURE: Final = 5.0  # a row is skipped if its guess is lower by so many standard errors
_EQUAL: Final = 1e-6  # scores that differ by less may be equal
_SPARE_DEAD: Final = 1_024  # up to so many dead rows there is no rebuild

_Scalar = TypeVar("_Scalar", bound=np.generic)


class VectorIndex:
    """Unit vectors by id, searched by inner product.

    Up to `flat_limit` vectors are stored as 32-bit floats, up to `half_limit` as 16-bit floats,
    more as bytes in inverted lists. Safe to share among threads.
    """

    def __init__(
        self, dim: int, *, flat_limit: int = FLAT_LIMIT, half_limit: int = HALF_LIMIT
    ) -> None:
        if dim < 1 or not 0 <= flat_limit <= half_limit:
            raise ConfigError("a vector index needs dim >= 1 and 0 <= flat_limit <= half_limit")
        self.dim = dim
        self._limits = (flat_limit, half_limit)
        self._lock = RLock()
        self._layout: Layout | None = None
        self._known = Column()  # the living ids
        self._rows: Ids = np.empty(0, dtype=np.int64)  # the row of each of them
        self._ids: Ids = np.empty(0, dtype=np.int64)
        self._alive: Mask = np.empty(0, dtype=np.bool_)
        self._used = 0

    # ── what is in it ───────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, id_: int) -> bool:
        return bool(self.knows(np.array([id_]))[0])

    def knows(self, ids: Ids) -> Mask:
        """For each id whether it has a vector."""
        with self._lock:
            return np.asarray(self._known.places(ids) >= 0, dtype=np.bool_)

    @property
    def kind(self) -> LayoutKind:
        """The layout in use."""
        return "flat" if self._layout is None else self._layout.kind

    @property
    def ids(self) -> Ids:
        """Every id, ascending."""
        with self._lock:
            return self._known.values.copy()

    def vectors(self, ids: Sequence[int] | Ids) -> Floats:
        """The stored vectors of `ids`, as exact as the layout keeps them; `KeyError` for an unknown id."""
        with self._lock:
            return self._decode(self._rows_of(ids))

    # ── changing it ─────────────────────────────────────────────────────────────

    def update(self, ids: Sequence[int] | Ids, vectors: npt.ArrayLike) -> None:
        """Add or replace vectors; if an id is repeated, its last vector counts."""
        keys = np.asarray(ids, dtype=np.int64).reshape(-1)
        rows = self._checked(vectors, len(keys))
        _, last = np.unique(keys[::-1], return_index=True)
        if len(last) != len(keys):
            keep = np.sort(len(keys) - 1 - last)
            keys, rows = keys[keep], rows[keep]
        if len(keys):
            with self._lock:
                self._forget(keys)
                self._append(keys, rows)

    def remove(self, ids: Iterable[int] | Ids) -> int:
        """Remove vectors, ignoring unknown ids; returns how many were removed."""
        with self._lock:
            count = self._forget(np.unique(np.fromiter(ids, np.int64)))
            self._compact_if_due()
            return count

    # ── asking it ───────────────────────────────────────────────────────────────

    def search(
        self, queries: npt.ArrayLike, k: int, *, allowed: Sequence[int] | Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The `k` nearest vectors of each query, best first, ties by id.

        Both results (ids and scores) have the shape (queries, k); if there are fewer, the rest is
        -1 and -inf. With `allowed`, only these ids can be found.
        """
        rows = self._checked(queries, None)
        ids = np.full((len(rows), max(k, 0)), -1, dtype=np.int64)
        scores = np.full(ids.shape, -np.inf, dtype=np.float32)
        with self._lock:
            mask = self._mask(allowed)
            for number, found in enumerate(self._nearest(rows, k, mask)):
                ids[number, : len(found[0])], scores[number, : len(found[0])] = found
        return ids, scores

    def scores(
        self, query: npt.ArrayLike, ids: Sequence[int] | Ids, *, unknown: float | None = None
    ) -> Floats:
        """The inner products of one query, or of several, with the vectors of `ids`.

        An id without a vector scores `unknown`; without that argument it is a `KeyError`.
        """
        queries = self._checked(query, None)
        with self._lock, OneThread():
            layout = self._layout or Flat(self.dim)
            if unknown is None:
                scores = layout.scores(queries, self._rows_of(ids))
            else:
                places = self._known.places(np.asarray(ids, dtype=np.int64))
                known = places >= 0
                scores = layout.scores(queries, self._rows[places[known]])
                if not known.all():
                    found = scores
                    scores = np.full((len(queries), len(places)), unknown, dtype=np.float32)
                    scores[:, known] = found
        return scores if np.ndim(query) == 2 else scores[0]

    # ── rows ────────────────────────────────────────────────────────────────────

    def _append(self, keys: Ids, rows: Floats) -> None:
        start, self._used = self._used, self._used + len(keys)
        order = np.argsort(keys)
        where = np.searchsorted(self._known.values, keys[order])
        self._known = self._known.with_values(keys[order])
        self._rows = np.insert(self._rows, where, start + order)
        self._ids = _grown(self._ids, self._used)
        self._alive = _grown(self._alive, self._used)
        self._ids[start : self._used] = keys
        self._alive[start : self._used] = True
        layout = self._layout
        if layout is None or self._has_outgrown(layout):
            self._rebuild(rows)
        else:
            with OneThread() if len(rows) < _DIRECT else nullcontext():
                layout.add(rows)
            self._compact_if_due()

    def _forget(self, keys: Ids) -> int:
        gone = self._known.places(keys)
        gone = gone[gone >= 0]
        self._alive[self._rows[gone]] = False
        self._known, self._rows = self._known.without(gone), np.delete(self._rows, gone)
        return len(gone)

    def _compact_if_due(self) -> None:
        if self._used - len(self) > max(_SPARE_DEAD, len(self) // 4):
            self._rebuild(np.empty((0, self.dim), dtype=np.float32))

    def _has_outgrown(self, layout: Layout) -> bool:
        """Whether there are too many vectors for a layout.

        The layout for more vectors is kept until its dead rows are removed: otherwise adding and
        removing a few around a limit would rebuild the index each time.
        """
        kinds = list(LAYOUTS)
        return kinds.index(layout.kind) < kinds.index(self._wanted()) or layout.outgrown(self._used)

    def _wanted(self) -> LayoutKind:
        flat, half = self._limits
        return "flat" if len(self) <= flat else "fp16" if len(self) <= half else "ivf-sq8"

    def _rebuild(self, latest: Floats) -> None:
        """Copy the living rows into a new layout; `latest` are rows not yet in the old one."""
        source = _Living(self, latest)
        layout = LAYOUTS[self._wanted()](self.dim)
        layout.train(source)
        for block in blocks(source.rows):
            layout.add(source.take(block))
        self._layout = layout
        self._ids, self._used = self._ids[source.rows], len(source)
        self._alive = np.ones(self._used, dtype=np.bool_)
        self._rows = np.argsort(self._ids)

    def _rows_of(self, ids: Sequence[int] | Ids) -> Ids:
        keys = np.asarray(ids, dtype=np.int64).reshape(-1)
        found = self._known.places(keys)
        if len(found) and found.min() < 0:
            raise KeyError(int(keys[found < 0][0]))
        return self._rows[found]

    def _decode(self, rows: Ids) -> Floats:
        return (self._layout or Flat(self.dim)).decode(rows)

    # ── searching ───────────────────────────────────────────────────────────────

    def _mask(self, allowed: Sequence[int] | Ids | None) -> Mask | None:
        """Which rows may be found; None for all."""
        alive = self._alive[: self._used]
        if allowed is not None:
            keys = np.asarray(allowed, dtype=np.int64)
            return np.asarray(
                alive & among(self._ids[: self._used], np.unique(keys)), dtype=np.bool_
            )
        return None if len(self) == self._used else alive

    def _nearest(self, queries: Floats, k: int, mask: Mask | None) -> Iterator[tuple[Ids, Floats]]:
        available = self._used if mask is None else int(np.count_nonzero(mask))
        if k < 1 or not available or self._layout is None:
            return
        layout = self._layout
        with OneThread():
            likely = layout.likely(queries, k, mask, available) if available > k else None
            if likely is not None:
                yield from self._foremost(layout, queries, likely, k, mask, available)
            elif available <= (k if mask is None else max(k, _DIRECT)):
                rows = np.arange(self._used) if mask is None else np.flatnonzero(mask)
                for scores in layout.scores(queries, rows):
                    yield self._ranked(rows, scores, k)
            else:
                proposed = layout.candidates(queries, k, mask, available)
                for query, rows in zip(queries, proposed, strict=True):
                    yield self._settled(layout, query, rows, k, mask, available)

    def _settled(
        self, layout: Layout, query: Floats, rows: Ids, k: int, mask: Mask | None, available: int
    ) -> tuple[Ids, Floats]:
        """Rank candidates, fetching more of them while nearer rows, or equals of the last, may be missing."""
        fetch = max(len(rows), k)
        while True:
            scores = layout.scores(query[None], rows)[0]
            ids, best = self._ranked(rows, scores, k)
            sure = len(ids) == k and scores.min() < best[-1] - _EQUAL
            if sure or len(rows) >= available:
                return ids, best
            fetch = min(fetch * 4, available)
            wider = layout.scan(query[None], fetch, mask)[0]
            if len(wider) <= len(rows):  # no more can be found
                return ids, best
            rows = wider

    def _foremost(
        self,
        layout: Layout,
        queries: Floats,
        likely: Likely,
        k: int,
        mask: Mask | None,
        available: int,
    ) -> Iterator[tuple[Ids, Floats]]:
        """The best of likely rows, reading as few of them as possible; a full scan if others may be better.

        The error of the guesses is measured on the first rows: where vectors are much alike, all
        guesses may be too low. Most of the time of a search is spent fetching scattered rows from
        memory.
        """
        rows, guesses, error, living = likely
        pool = rows.shape[1]
        first = min(pool, k + k // 4 + _SAMPLE)
        scores = layout.scores(queries, rows[:, :first])
        mean, deviation = _spread(scores - guesses[:, :first])
        margin = np.maximum(mean, 0) + _SURE * np.maximum(deviation, error)
        least = np.partition(scores, -k, axis=1)[:, -k] - margin - _EQUAL
        counts = (guesses >= least[:, None]).sum(axis=1)
        sure = (counts < living) & (
            living >= first
        )  # otherwise rows beyond the guesses may be as near
        most = int(counts.max(where=sure, initial=first))
        if most > first:
            more = layout.scores(queries, rows[:, first:most])
            scores = np.concatenate([scores, more], axis=1)
        for number, count in enumerate(np.where(sure, np.maximum(counts, first), 0).tolist()):
            if count:
                yield self._ranked(rows[number, :count], scores[number, :count], k)
            else:
                query = queries[number]
                wider = layout.scan(query[None], min(4 * k, available), mask)[0]
                yield self._settled(layout, query, wider, k, mask, available)

    def _ranked(self, rows: Ids, scores: Floats, k: int) -> tuple[Ids, Floats]:
        ids = self._ids[rows]
        order = foremost(scores, ids, k)
        return ids[order], scores[order]

    def _checked(self, vectors: npt.ArrayLike, count: int | None) -> Floats:
        rows: Floats = np.ascontiguousarray(vectors, dtype=np.float32)
        if rows.size == 0 and not count:
            return np.empty((0, self.dim), dtype=np.float32)
        if rows.ndim == 1 and count in (None, 1):
            rows = rows[None]
        if rows.ndim != 2 or rows.shape[1] != self.dim or count not in (None, len(rows)):
            wanted = f"({'n' if count is None else count}, {self.dim})"
            raise EmbeddingError(f"vectors have the shape {rows.shape}, not {wanted}")
        if not math.isfinite(rows.sum()):
            raise EmbeddingError("vectors hold values that are not finite")
        return rows


# ── helpers ─────────────────────────────────────────────────────────────────────


class _Living:
    """The living vectors of an index, decoded from its layout; `latest` are those added last."""

    def __init__(self, index: VectorIndex, latest: Floats) -> None:
        self.rows: Ids = np.flatnonzero(index._alive[: index._used])
        self._index, self._latest = index, latest
        self._stored = index._used - len(latest)

    def __len__(self) -> int:
        return len(self.rows)

    def sample(self, count: int) -> Floats:
        """At most `count` vectors, evenly spaced."""
        picked = np.linspace(0, len(self) - 1, min(count, len(self))).astype(np.int64)
        return self.take(self.rows[np.unique(picked)])

    def take(self, rows: Ids) -> Floats:
        """The vectors of these rows, which must be ascending."""
        cut = int(np.searchsorted(rows, self._stored))
        fresh = self._latest[rows[cut:] - self._stored]
        return np.concatenate([self._index._decode(rows[:cut]), fresh]) if cut else fresh


class OneThread:
    """Limits FAISS to one thread: for few rows, several threads mostly wait for each other.

    OpenMP keeps this setting for each calling thread, so other threads are not affected.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = faiss().omp_get_max_threads()
        faiss().omp_set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        faiss().omp_set_num_threads(self._before)


def _spread(lines: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each line."""
    count = np.float32(lines.shape[1])
    mean: Floats = lines.sum(axis=1) / count
    rest = lines - mean[:, None]
    return mean, np.sqrt((rest * rest).sum(axis=1) / count)


def _grown(array: npt.NDArray[_Scalar], size: int) -> npt.NDArray[_Scalar]:
    """The array with room for `size` values; its length at least doubles."""
    if size <= len(array):
        return array
    grown = np.zeros(max(size, 2 * len(array)), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
