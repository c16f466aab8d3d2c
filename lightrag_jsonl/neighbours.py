"""The nearest neighbours of every vector of an index, at bounded cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.vectors import VectorIndex

EXACT_LIMIT = 10_000  # vectors; above this, only the nearest inverted lists are searched
LISTS_READ = 8
TRAINED_ON = 64  # training vectors for each list

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def nearest_neighbours(index: VectorIndex, count: int) -> tuple[Ids, Ids, Floats]:
    """All ids of an index, and for each id the `count` nearest ids, best first, with their cosines.

    Each id is among its own neighbours. Both tables have the shape (ids, count); -1 where there are
    fewer.
    """
    ids = index.ids
    count = min(count, len(ids))
    if not count:
        return ids, np.empty((0, 0), np.int64), np.empty((0, 0), np.float32)
    import faiss

    vectors = index.vectors(ids)
    finder: Any = faiss.IndexFlatIP(index.dim)
    if len(ids) > EXACT_LIMIT:
        lists = int(len(ids) ** 0.5)
        finder = faiss.IndexIVFFlat(finder, index.dim, lists, faiss.METRIC_INNER_PRODUCT)
        finder.train(vectors[:: max(1, len(ids) // (lists * TRAINED_ON))])
        finder.nprobe = LISTS_READ
    finder.add(vectors)
    cosines, places = finder.search(vectors, count)
    return ids, np.where(places < 0, -1, ids[places]), np.asarray(cosines, np.float32)
