"""VectorIndex: what it finds, what it forgets, and how it changes its layout."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.adapters.offline.embedder import hash_vectors
from lightrag_jsonl.errors import ConfigError, EmbeddingError
from lightrag_jsonl.vectors import Floats, Ids, VectorIndex

DIM = 32
LAYOUTS = {
    "flat": lambda: VectorIndex(DIM),
    "fp16": lambda: VectorIndex(DIM, flat_limit=0),
    "ivf-sq8": lambda: VectorIndex(DIM, flat_limit=0, half_limit=0),
}
each_layout = pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS.keys())


def unit(rows: np.ndarray) -> Floats:
    """The rows at length one."""
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def clustered(count: int, *, dim: int = DIM, seed: int = 0) -> Floats:
    """Vectors as embedders make them: a common direction, themes, and noise."""
    random = np.random.default_rng(seed)
    themes = random.standard_normal((max(count // 50, 2), dim))
    noise = 0.7 * random.standard_normal((count, dim))
    return unit(0.5 + themes[random.integers(0, len(themes), count)] + noise)


def exact(vectors: Floats, query: Floats, k: int) -> Ids:
    """The nearest rows by brute force, ties by row."""
    return np.lexsort((np.arange(len(vectors)), -(vectors @ query)))[:k]


def recall(index: VectorIndex, vectors: Floats, queries: Floats, k: int = 10) -> float:
    """The share of the true `k` nearest that the index finds."""
    found, _ = index.search(queries, k)
    hits = [np.isin(exact(vectors, q, k), row).sum() for q, row in zip(queries, found, strict=True)]
    return float(sum(hits)) / (k * len(queries))


@each_layout
def test_finds_what_was_put_in(make: Callable[[], VectorIndex]) -> None:
    """Each vector is its own nearest neighbour, under the id the caller chose."""
    vectors, index = clustered(300), make()
    ids = np.arange(300, dtype=np.int64) * 7 + 2**40
    index.update(ids, vectors)
    found, scores = index.search(vectors[:20], 3)
    assert found[:, 0].tolist() == ids[:20].tolist()
    assert found.shape == scores.shape == (20, 3)
    assert np.all(np.diff(scores, axis=1) <= 0)
    assert scores[:, 0] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    "data", [clustered, lambda n: unit(np.random.default_rng(1).standard_normal((n, DIM)))]
)
def test_halves_recall_themes_and_noise_alike(data: Callable[[int], Floats]) -> None:
    """recall@10 of 16-bit vectors is at least 0.99, even where there is no structure at all."""
    vectors = data(6_000)
    index = VectorIndex(DIM, flat_limit=100)
    index.update(range(6_000), vectors)
    queries = unit(vectors[:50] + 0.05 * np.random.default_rng(2).standard_normal((50, DIM)))
    assert index.kind == "fp16"
    assert recall(index, vectors, queries) >= 0.99


@pytest.mark.parametrize("flat_limit", [50_000, 0], ids=["flat", "fp16"])
@pytest.mark.parametrize("dim", [DIM, 384])
def test_reading_a_sketch_loses_nothing(dim: int, flat_limit: int) -> None:
    """Of many vectors the very nearest are found, themes or none, dead rows or a choice of them."""
    noise = unit(np.random.default_rng(1).standard_normal((4_500, dim)))
    vectors = np.concatenate([clustered(4_500, dim=dim), noise])
    index = VectorIndex(dim, flat_limit=flat_limit)
    index.update(range(9_000), vectors)
    index.remove(range(0, 9_000, 7))
    queries = unit(vectors[::300] + 0.05)
    allowed = np.flatnonzero(np.arange(9_000) % 7 % 2)
    for _ in range(2):  # the first round makes the sketch
        for k, rows in ((10, np.flatnonzero(np.arange(9_000) % 7)), (40, allowed)):
            stored = index.vectors(rows)
            found, _ = index.search(queries, k, allowed=rows)
            for query, ids in zip(queries, found, strict=True):
                assert ids.tolist() == rows[exact(stored, query, k)].tolist()
    assert index.search(queries, 10)[0].tolist() == [
        ids[:10].tolist() for ids in index.search(queries, 40)[0]
    ]


def tight(count: int, dim: int) -> Floats:
    """Themes with little noise: a great many vectors are very near to any of them."""
    random = np.random.default_rng(3)
    themes = unit(random.standard_normal((20, dim)))
    noise = unit(random.standard_normal((count, dim)))
    return unit(themes[random.integers(0, 20, count)] + 0.3 * noise)


def lopsided(count: int, dim: int) -> Floats:
    """Two coordinates are great in all vectors, as with some models."""
    vectors = 0.6 * tight(count, dim)
    vectors[:, [7, dim // 3]] += 0.7, -0.3
    return unit(vectors)


def words(count: int, dim: int) -> Floats:
    """Names as the hashing embedder sees them: few values are not 0."""
    random = np.random.default_rng(4)
    syllables = np.array(
        [
            "ka",
            "lo",
            "mi",
            "ren",
            "tor",
            "sha",
            "vel",
            "dun",
            "bri",
            "gan",
            "po",
            "ser",
            "lin",
            "mar",
            "tho",
            "wick",
        ]
    )
    names = ["".join(row) for row in syllables[random.integers(0, len(syllables), (count, 4))]]
    return hash_vectors([f"{name[:5]} {name[5:]}" for name in names], dim=dim)


@pytest.mark.parametrize("limit", [50_000, 0], ids=["flat", "fp16"])
@pytest.mark.parametrize("dim", [256, 1_024, 3_072])
@pytest.mark.parametrize("data", [tight, lopsided, words])
def test_a_sketch_loses_nothing_whatever_the_vectors(
    data: Callable[[int, int], Floats], dim: int, limit: int
) -> None:
    """However long vectors are, and however unlike random ones: the nearest are found."""
    stored = data(3_000, dim)
    index = VectorIndex(dim, flat_limit=limit)
    index.update(range(3_000), stored)
    stored = index.vectors(range(3_000))
    queries = unit(stored[::150] + 0.2 * stored[1::150])
    for _ in range(2):  # the first round makes the sketch
        for query, (ids, scores) in zip(
            queries, zip(*index.search(queries, 20), strict=True), strict=True
        ):
            best = np.sort(stored @ query)[::-1][:20]
            assert scores == pytest.approx(best, abs=2e-6)
            assert scores == pytest.approx(stored[ids] @ query, abs=2e-6)


def test_lists_find_what_no_near_list_holds() -> None:
    """Where the lists next to the question hold nothing that may be found, all others are read."""
    one = unit(np.random.default_rng(0).standard_normal((1, DIM)))
    index = VectorIndex(DIM, flat_limit=0, half_limit=0)
    index.update(
        range(3_000), np.concatenate([np.tile(one, (1_800, 1)), np.tile(-one, (1_200, 1))])
    )
    found, _ = index.search(-one, 5, allowed=range(1_800))
    assert sorted(found[0].tolist()) == [0, 1, 2, 3, 4]


def test_lists_recall_themes() -> None:
    """recall@10 of inverted lists is at least 0.99 on vectors with themes."""
    vectors = clustered(8_000)
    index = VectorIndex(DIM, flat_limit=100, half_limit=1_000)
    index.update(range(8_000), vectors)
    queries = unit(vectors[:50] + 0.05 * np.random.default_rng(2).standard_normal((50, DIM)))
    assert index.kind == "ivf-sq8"
    assert recall(index, vectors, queries) >= 0.99


def test_layout_follows_size_up_and_down() -> None:
    """The layout is chosen by the number of living vectors, whichever way it changes."""
    index = VectorIndex(DIM, flat_limit=2_000, half_limit=4_000)
    vectors, kinds = clustered(6_000), []
    for start in range(0, 6_000, 1_500):
        index.update(range(start, start + 1_500), vectors[start : start + 1_500])
        kinds.append(index.kind)
    index.remove(range(100, 6_000))
    assert kinds == ["flat", "fp16", "ivf-sq8", "ivf-sq8"]
    assert index.kind == "flat"
    assert index.search(vectors[42], 1)[0].tolist() == [[42]]


def test_a_few_around_a_limit_change_no_layout() -> None:
    """Who adds and removes near a limit does not have the index built anew each time."""
    index = VectorIndex(DIM, flat_limit=2_000, half_limit=4_000)
    vectors = clustered(2_100)
    index.update(range(2_100), vectors)
    for _ in range(3):
        index.remove(range(150))
        index.update(range(10), vectors[:10])
        assert (len(index), index.kind) == (1_960, "fp16")
        index.update(range(150), vectors[:150])
        assert (len(index), index.kind) == (2_100, "fp16")
    assert index.search(vectors[42], 1)[0].tolist() == [[42]]


@each_layout
def test_update_replaces(make: Callable[[], VectorIndex]) -> None:
    """An id is there once: its old vector is not found again, and a repeated id keeps the last."""
    vectors, index = clustered(200), make()
    index.update(range(200), vectors)
    index.update([5, 6, 5], vectors[[6, 7, 8]] * np.float32(-1))
    assert len(index) == 200
    found, _ = index.search(vectors[[5]], 200)
    assert sorted(found[0].tolist()) == list(range(200))
    assert index.vectors([5])[0] == pytest.approx(-vectors[8], abs=0.02)


@each_layout
def test_removed_is_gone(make: Callable[[], VectorIndex]) -> None:
    """A removed id is neither found nor kept; unknown ids are passed over."""
    vectors, index = clustered(300), make()
    index.update(range(300), vectors)
    assert index.remove([3, 4, 3, 999]) == 2
    assert 3 not in index and 5 in index
    assert index.ids.tolist() == [n for n in range(300) if n not in (3, 4)]
    assert not {3, 4} & set(index.search(vectors[3], 300)[0][0].tolist())
    with pytest.raises(KeyError):
        index.vectors([3])


@each_layout
def test_removing_everything_leaves_nothing(make: Callable[[], VectorIndex]) -> None:
    """An emptied index answers with nothing, and can be filled again."""
    vectors, index = clustered(2_000), make()
    index.update(range(2_000), vectors)
    index.remove(np.arange(2_000))
    ids, scores = index.search(vectors[0], 2)
    assert (len(index), ids.tolist(), scores.tolist()) == (0, [[-1, -1]], [[-np.inf] * 2])
    index.update([1], vectors[:1])
    assert index.search(vectors[0], 2)[0].tolist() == [[1, -1]]


@each_layout
@pytest.mark.parametrize("share", [2, 40])
def test_allowed_finds_the_best_of_few(make: Callable[[], VectorIndex], share: int) -> None:
    """With `allowed`, the best of those ids are found, wherever the others lie."""
    vectors, index = clustered(24_000, seed=4), make()
    index.update(range(len(vectors)), vectors)
    allowed = np.argsort(vectors @ vectors[0])[: len(vectors) // share]  # all far from the query
    found, scores = index.search(vectors[0], 5, allowed=allowed)
    best = np.sort(index.scores(vectors[0], allowed))[::-1][:5]
    assert np.isin(found[0], allowed).all()
    assert scores[0] == pytest.approx(best, abs=0 if index.kind != "ivf-sq8" else 0.01)


@each_layout
def test_ties_go_to_the_smaller_id(make: Callable[[], VectorIndex]) -> None:
    """Equal vectors come by id, also where there are more of them than were asked for."""
    index, rows = make(), clustered(3_000)
    rows[500:2_500] = rows[0]
    ids = np.random.default_rng(3).permutation(3_000)
    index.update(ids, rows)
    same = sorted(ids[[0, *range(500, 2_500)]].tolist())
    assert index.search(rows[0], 20)[0][0].tolist() == same[:20]


@each_layout
def test_dead_copies_do_not_crowd_out(make: Callable[[], VectorIndex]) -> None:
    """A vector replaced a thousand times still leaves room for its neighbours."""
    vectors, index = clustered(5_000), make()
    index.update(range(5_000), vectors)
    for _ in range(1_000):
        index.update([0], vectors[:1])
    found, _ = index.search(vectors[0], 10)
    assert np.isin(exact(vectors, vectors[0], 10), found).mean() >= 0.9


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(-5, 40), min_size=1, max_size=8)), max_size=12
    ),
    st.sampled_from([(1_000, 1_000), (10, 1_000), (5, 10)]),
)
def test_history_leaves_no_trace(
    steps: list[tuple[bool, list[int]]], limits: tuple[int, int]
) -> None:
    """After any updates and removals the index holds what a dictionary would hold."""
    source = clustered(100, seed=9)
    index, held = VectorIndex(DIM, flat_limit=limits[0], half_limit=limits[1]), {}
    for number, (adds, ids) in enumerate(steps):
        if adds:
            rows = [(id_ * 7 + number) % 100 for id_ in ids]
            index.update(ids, source[rows])
            held.update(zip(ids, rows, strict=True))
        else:
            index.remove(ids)
            held = {id_: row for id_, row in held.items() if id_ not in ids}
    assert index.ids.tolist() == sorted(held)
    assert index.vectors(sorted(held)) == pytest.approx(
        source[[held[id_] for id_ in sorted(held)]], abs=0.05
    )
    found = index.search(source[0], 50)[0][0]
    assert sorted(found[found >= -5][: len(held)].tolist()) == sorted(held)


def test_result_does_not_depend_on_history() -> None:
    """Filled at once, in pieces, or with detours: the same ids and the same bytes of scores."""
    vectors = clustered(3_000)
    whole, pieces = (VectorIndex(DIM, flat_limit=500) for _ in range(2))
    whole.update(range(3_000), vectors)
    for start in range(0, 3_000, 100):
        pieces.update(range(start, start + 150), clustered(150, seed=start))
        pieces.update(range(start, start + 100), vectors[start : start + 100])
    pieces.remove(range(3_000, 4_000))
    for one, other in zip(
        whole.search(vectors[:40], 7), pieces.search(vectors[:40], 7), strict=True
    ):
        assert one.tobytes() == other.tobytes()


@each_layout
def test_scores_agree_with_search(make: Callable[[], VectorIndex]) -> None:
    """`scores` gives exactly the numbers `search` ranks by, in the order of the ids given."""
    vectors, index = clustered(600), make()
    index.update(range(600), vectors)
    found, scores = index.search(vectors[:2], 9)
    assert index.scores(vectors[0], found[0]).tobytes() == scores[0].tobytes()
    assert index.scores(vectors[:2], [1, 2, 3]).shape == (2, 3)
    assert index.scores(vectors[0], []).shape == (0,)


def test_empty_index() -> None:
    """Nothing in, nothing out; no FAISS is needed for that."""
    index = VectorIndex(3)
    assert (len(index), index.kind, index.ids.tolist()) == (0, "flat", [])
    assert index.search([1, 0, 0], 1)[0].tolist() == [[-1]]
    assert index.search(np.empty((0, 3)), 4)[0].shape == (0, 4)
    assert index.vectors([]).shape == (0, 3)
    assert index.remove([1]) == 0
    index.update([], np.empty((0, 3)))


@pytest.mark.parametrize(
    "vectors", [[1.0, 2.0], [[1.0, 2.0, 3.0]], [[np.nan] * 3] * 2, [[1.0] * 4] * 2, []]
)
def test_wrong_vectors_are_refused(vectors: list[object]) -> None:
    """Another shape, or values that are not finite, change nothing."""
    index = VectorIndex(3)
    with pytest.raises(EmbeddingError):
        index.update([1, 2], vectors)
    assert len(index) == 0


def test_wrong_settings_are_refused() -> None:
    """Dimensions and limits must make sense."""
    for wrong in ({"dim": 0}, {"dim": 3, "flat_limit": 5, "half_limit": 4}):
        with pytest.raises(ConfigError):
            VectorIndex(**wrong)


@pytest.mark.parametrize("dim", [1, 3, 31, 33, 100])
def test_any_dimension(dim: int) -> None:
    """The 16-bit layout works at dimensions its sketch must pad."""
    vectors = clustered(400, dim=dim)
    index = VectorIndex(dim, flat_limit=0)
    index.update(range(400), vectors)
    assert index.search(vectors[:5], 1)[1] == pytest.approx(1.0, abs=0.01)


def test_threads_share_an_index() -> None:
    """Searches and updates from several threads see whole states and do not crash."""
    vectors, index = clustered(3_000), VectorIndex(DIM, flat_limit=1_000)
    index.update(range(2_000), vectors[:2_000])

    def work(number: int) -> int:
        index.update([2_000 + number], vectors[[2_000 + number]])
        return int(index.search(vectors[number], 1)[0][0, 0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(100))) == list(range(100))
    assert len(index) == 2_100


def test_a_crowd_with_gaps_is_searched_without_loss() -> None:
    """More rows are as near as the guesses can tell than are looked at, and some of them are gone."""
    random = np.random.default_rng(5)
    vectors = random.standard_normal((8_000, 64)).astype(np.float32)
    vectors[::2] = vectors[0] + 0.02 * random.standard_normal((4_000, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = VectorIndex(64)
    index.update(range(8_000), vectors)
    gone = np.arange(0, 8_000, 10)
    index.remove(gone)
    left = np.setdiff1d(np.arange(8_000), gone)
    queries = vectors[2:52:2] + 0.02 * random.standard_normal((25, 64)).astype(np.float32)
    for _ in range(2):  # a sketch is made once it pays
        found = index.search(queries, 10)[0]
    for query, ids in zip(queries, found, strict=True):
        scores = index.scores(query, left)
        assert ids.tolist() == left[np.lexsort((left, -scores))][:10].tolist()
