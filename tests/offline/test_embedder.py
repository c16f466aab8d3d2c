"""Promises of the hashing embedder."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.providers.offline import HashEmbedder


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def embed(*texts: str, dim: int = 256) -> Vectors:
    return asyncio.run(HashEmbedder(dim).embed(texts, kind="passage"))


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=4))
@settings(deadline=None)
def test_every_text_has_a_unit_vector(texts: list[str]) -> None:
    """float32 of the promised shape, unit length, never NaN, whatever the text."""
    vectors = embed(*texts)

    assert vectors.shape == (len(texts), 256) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_vector_does_not_depend_on_its_batch() -> None:
    """A text has one vector, alone or among others, for a query or a passage."""
    texts = ["Scrooge", "曹操大怒", "", "Scrooge and Marley"]

    assert np.array_equal(embed(*texts), np.concatenate([embed(text) for text in texts]))


def test_vectors_never_change() -> None:
    """Vectors are stored, so a change of the hash must change the embedder's name."""
    vector = embed("Marley was dead 曹操", dim=16)[0]

    assert HashEmbedder(16).name == "hash-16-1"
    assert np.allclose(vector, PINNED, atol=1e-3)


PINNED = [
    -0.119,
    -0.362,
    -0.312,
    0.056,
    0.119,
    0.0,
    0.062,
    0.0,
    -0.138,
    0.681,
    0.062,
    -0.009,
    -0.114,
    0.471,
    0.0,
    -0.123,
]


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Scrooge’s partner", "the partners of Scrooge", "a river in Denmark"),
        ("ＳＣＲＯＯＧＥ", "scrooge", "Cratchit"),
        ("刘备是谁", "刘备与关羽", "谁是作者"),
        ("colour of the house", "coloured houses", "the taste of the soup"),
    ],
)
def test_shared_words_bring_texts_together(text: str, near: str, far: str) -> None:
    """Spelling, width and inflection matter less than what the words are."""
    first, second, third = embed(text, near, far, dim=1024)

    assert first @ second > first @ third + 0.1


def test_a_dimension_is_needed() -> None:
    """A vector of no or one number could tell nothing apart."""
    with pytest.raises(ValueError, match="dim"):
        HashEmbedder(1)


async def test_chinese_questions_find_their_passage(shared_data: Path) -> None:
    """At its default size the embedder alone ranks the right passage first for most questions."""
    folder = shared_data / "zh-cmrc2018"
    passages, questions = read(folder / "passages.jsonl.gz"), read(folder / "questions.jsonl.gz")
    embedder = HashEmbedder()
    stored = await embedder.embed([one["text"] for one in passages], kind="passage")
    asked = await embedder.embed([one["question"] for one in questions], kind="query")
    best = (asked @ stored.T).argmax(axis=1)
    hits = [
        passages[at]["id"] in one["supporting"] for at, one in zip(best, questions, strict=True)
    ]
    assert np.mean(hits) >= 0.75
