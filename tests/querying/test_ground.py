"""What a walk goes over agrees with what can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.querying import walk
from lightrag_jsonl.querying.ground import synonyms_among
from lightrag_jsonl.vectors import VectorIndex


def families(count: int, dim: int, seed: int) -> Vectors:
    """Unit vectors in families of about ten, the members of each nearly alike."""
    random = np.random.default_rng(seed)
    heads = random.standard_normal((count // 10, dim))[random.integers(0, count // 10, count)]
    vectors = heads + random.standard_normal((count, dim)) * random.uniform(0.1, 0.9, (count, 1))
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.mark.parametrize(("count", "dim", "leading"), [(200, 384, 40), (150, 7, 9), (30, 64, 1)])
def test_synonyms_are_those_of_every_pair(count: int, dim: int, leading: int) -> None:
    """As many as comparing each with each finds; an entity without a vector has none."""
    ids, vectors = np.arange(count) * 3, families(count, dim, seed=count)
    index = VectorIndex(dim)
    index.update(ids[5:], vectors[5:])
    asking = ids[::-1][:leading]
    found, cosines = synonyms_among(index, asking, ids)
    exact = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    exact[:5] = exact[:, :5] = 0
    np.fill_diagonal(exact, 0)
    expected: dict[tuple[int, int], float] = {}
    for one in (asking // 3).tolist():
        near = np.argsort(-exact[one])[: walk.SYNONYMS].tolist()
        for other in near:
            if exact[one, other] >= walk.SYNONYM_SIMILARITY:
                expected[min(one, other) * 3, max(one, other) * 3] = exact[one, other]
    assert [tuple(pair) for pair in found.tolist()] == sorted(expected)
    assert cosines.tolist() == pytest.approx([expected[pair] for pair in sorted(expected)])
    assert len(expected) >= leading // 2


def test_a_synonym_is_as_near_whatever_stands_around_it() -> None:
    """To the last bit: what was deleted before, and in what order things came, changes no answer."""
    ids, vectors = np.arange(200), families(200, 384, seed=3)
    index = VectorIndex(384)
    index.update(ids, vectors)
    found, cosines = synonyms_among(index, ids[:40], ids)
    assert len(found) > 20
    for (one, other), cosine in zip(found.tolist(), cosines.tolist(), strict=True):
        alone = synonyms_among(index, np.array([one]), np.array([one, other]))
        assert (alone[0].tolist(), alone[1].tolist()) == ([[one, other]], [cosine])


def test_nobody_known_has_no_synonyms() -> None:
    """Neither in an empty index nor among nobody."""
    index = VectorIndex(8)
    for rows in (np.arange(3), np.arange(0)):
        assert [len(part) for part in synonyms_among(index, rows, rows)] == [0, 0]
