"""VectorIndex finds exactly what a look at every vector finds, after any sequence of changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.storage import vector_index
from lightrag_jsonl.storage.vector_index import HALF, Ids, VectorBlock, VectorIndex

DIM = 4
ids_ = st.lists(st.integers(1, 30), unique=True, max_size=12)
changes = st.lists(st.tuples(st.sampled_from(["update", "remove"]), ids_, st.integers(0, 5)))
tail_lengths = st.sampled_from([0, 6, 1_000])


def vectors(count: int, *, seed: int = 0, dim: int = DIM) -> np.ndarray:
    """Unit vectors with the digits of float16; every third one equals an earlier one."""
    rows = np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)
    rows[2::3] = rows[: len(rows[2::3])]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(HALF).astype(np.float32)


def ids(*numbers: int) -> Ids:
    """A column of ids."""
    return np.array(numbers, np.int64)


def filled(stored: dict[int, np.ndarray]) -> VectorIndex:
    """An index of these vectors, made at once."""
    matrix = np.array(list(stored.values()), HALF).reshape(-1, DIM)
    return VectorIndex.of(VectorBlock.of(ids(*stored), matrix))


def after(steps: list[tuple[str, list[int], int]]) -> tuple[VectorIndex, dict[int, np.ndarray]]:
    """An index that went through changes, and the vectors that it should hold."""
    stored: dict[int, np.ndarray] = {}
    index = filled(stored)
    for kind, touched, seed in steps:
        if kind == "update":
            new = vectors(len(touched), seed=seed)
            index = index.updated(ids(*touched), ids(*touched), new.astype(HALF))
            stored |= dict(zip(touched, new, strict=True))
        else:
            index = index.updated(ids(*touched), ids(), np.zeros((0, DIM), HALF))
            stored = {id: row for id, row in stored.items() if id not in touched}
    return index, stored


def nearest(stored: dict[int, np.ndarray], query: np.ndarray, limit: int) -> list[int]:
    """The ids of the nearest vectors by a look at each; equal vectors by id."""
    return sorted(stored, key=lambda id: (-round(float(stored[id] @ query), 5), id))[:limit]


@pytest.mark.slow
@given(changes, ids_, st.integers(0, 12), tail_lengths)
def test_it_agrees_with_a_look_at_every_vector(
    steps: list[tuple[str, list[int], int]], allowed: list[int], limit: int, longest_tail: int
) -> None:
    """Best first, ties by id, whatever was replaced, removed or added in its stead, and however long
    the tail may be; the same among allowed ids, with the very scores of an index that was filled at
    once.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_index, "LONGEST_TAIL", longest_tail)
        index, stored = after(steps)
    fresh = filled(dict(sorted(stored.items())))
    assert len(index) == len(stored)
    queries = vectors(2, seed=99)
    inside = {id: row for id, row in stored.items() if id in allowed}
    for choice, among in ((None, stored), (ids(*sorted(allowed)), inside)):
        nearest_ids, scores = index.search(queries, limit, choice)
        assert scores.tolist() == fresh.search(queries, limit, choice)[1].tolist()
        assert nearest_ids.shape == scores.shape == (2, min(limit, len(among)))
        assert nearest_ids.tolist() == [nearest(among, query, limit) for query in queries]
        for query, row, line in zip(queries, nearest_ids.tolist(), scores, strict=True):
            assert np.allclose(line, [stored[id] @ query for id in row], atol=1e-5)


@given(changes, ids_)
def test_scores_and_vectors_of_chosen_ids(
    steps: list[tuple[str, list[int], int]], chosen: list[int]
) -> None:
    """A score or a vector for each id row_ids for; NaN and zeros for one that has none."""
    index, stored = after(steps)
    queries, row_ids = vectors(2, seed=98), ids(*chosen, 10**6)
    scores, matrix = index.scores(queries, row_ids), index.matrix(row_ids)
    assert scores.shape == (2, len(row_ids)) and matrix.shape == (len(row_ids), DIM)
    for column, id in enumerate(row_ids.tolist()):
        expected = stored.get(id, np.full(DIM, np.nan))
        assert np.allclose(scores[:, column], queries @ expected, atol=1e-5, equal_nan=True)
        assert matrix[column].tolist() == np.nan_to_num(expected).tolist()


def test_queries_do_not_depend_on_their_company() -> None:
    """A question gets the same scores alone and among others."""
    block = VectorBlock.of(np.arange(1, 3_001), vectors(3_000, dim=96).astype(HALF))
    index = VectorIndex.of(block)
    queries = vectors(9, seed=5, dim=96)
    together = index.search(queries, 40)
    alone = [index.search(query[None], 40) for query in queries]
    assert [row.tolist() for row in together[0]] == [hits[0][0].tolist() for hits in alone]
    for row, (_, scores) in zip(together[1], alone, strict=True):
        assert np.allclose(row, scores[0], atol=1e-6)
