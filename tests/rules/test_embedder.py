"""Promises of the hashing embedder."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.testing import HashEmbedder
from tests.kit import Vectors, rows_of


def embed(*texts: str, dim: int = 256) -> Vectors:
    return asyncio.run(HashEmbedder(dim).embed(texts, kind="passage"))


@pytest.mark.slow
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=4))
@settings(deadline=None)
def test_every_text_has_a_unit_vector(texts: list[str]) -> None:
    """float32 of the promised shape, unit length, never NaN, alone or among others."""
    vectors = embed(*texts)

    assert vectors.shape == (len(texts), 256) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(embed(text)[0], vector)


def test_vectors_never_change() -> None:
    """Vectors are stored, so a change of the hash must change the embedder's name."""
    vector = embed("Marley was dead 曹操", dim=16)[0]

    with pytest.raises(ValueError, match="dim"):
        HashEmbedder(1)
    assert HashEmbedder(16).name == "hash-16-2"
    pinned = "-.119 -.362 -.312 .056 .119 0 .062 0 -.138 .681 .062 -.009 -.114 .471 0 -.123"
    assert np.allclose(vector, [float(number) for number in pinned.split()], atol=1e-3)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Scrooge’s partner", "the partners of Scrooge", "a river in Denmark"),
        ("ＳＣＲＯＯＧＥ", "scrooge", "Cratchit"),
        ("刘备是谁", "刘备与关羽", "谁是作者"),
        ("劉備是誰", "刘备与关羽", "谁是作者"),
        ("colour of the house", "coloured houses", "the taste of the soup"),
    ],
)
def test_shared_words_bring_texts_together(text: str, near: str, far: str) -> None:
    """Spelling, width and inflection matter less than what the words are."""
    first, second, third = embed(text, near, far, dim=1024)

    assert first @ second > first @ third + 0.1


@pytest.mark.slow
async def test_chinese_questions_find_their_passage(shared_data: Path) -> None:
    """At its default size the embedder alone ranks the right passage first for most questions."""
    folder = shared_data / "zh-cmrc2018"
    passages = {one["id"]: one["text"] for one in rows_of(folder / "passages.jsonl.gz")[:300]}
    asked = rows_of(folder / "questions.jsonl.gz")
    asked = [one for one in asked if passages.keys() >= set(one["supporting"])]
    stored = await HashEmbedder().embed([*passages.values()], kind="passage")
    vectors = await HashEmbedder().embed([one["question"] for one in asked], kind="query")
    best = [[*passages][at] for at in (vectors @ stored.T).argmax(axis=1)]
    hits = [id in one["supporting"] for id, one in zip(best, asked, strict=True)]
    assert len(hits) > 1_000 and np.mean(hits) >= 0.78
