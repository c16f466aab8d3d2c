"""Tokenizers that users bring: what they do wrong is told as theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lightrag_jsonl import ConfigError, IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.calls import ToldTokenizer
from tests.querying.test_foreign import raising

TEXT = "Marie Curie discovered radium in Paris. " * 30
OTHER = "Pierre Curie taught physics at the Sorbonne."
QUESTION = "What did Marie Curie discover? " * 20
SMALL = IndexOptions(chunk_tokens=50, chunk_overlap=5)


class Own:
    """Counts words; or what the given functions say."""

    name = "mine"

    def __init__(
        self,
        count: Callable[..., object] = lambda text: len(text.split()),
        truncate: Callable[..., object] = lambda text, limit: " ".join(text.split()[:limit]),
    ) -> None:
        self._count = count
        self._truncate = truncate

    def count(self, text: str) -> int:
        return self._count(text)  # type: ignore[return-value]

    def truncate(self, text: str, limit: int) -> str:
        return self._truncate(text, limit)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (raising(KeyError("x")), "KeyError: 'x'"),
        (lambda text: -1, "ValueError: it counted -1 tokens"),
        (lambda text: len(text) / 4, "TypeError: 'float' object"),
        (lambda text: None, "TypeError: 'NoneType' object"),
    ],
)
def test_a_count_that_is_none_is_told_as_the_tokenizers(
    tmp_path: Path, count: Callable[..., object], told: str
) -> None:
    """Alone a document fails so; among others, it is one that could not be read."""

    def some(text: str) -> object:
        return len(text.split()) if text in OTHER else count(text)

    with LightRAG(tmp_path, tokenizer=Own(some), options=SMALL) as rag:
        with pytest.raises(ConfigError, match=f"^tokenizer 'mine' failed: {told}"):
            rag.insert(TEXT)
        report = rag.insert([TEXT, OTHER])
        assert len(report.documents) == len(report.failures) == 1
        assert f"tokenizer 'mine' failed: {told}" in report.failures[0].reason


@pytest.mark.parametrize(
    ("truncate", "told"),
    [
        (raising(KeyError("x")), "KeyError: 'x'"),
        (lambda text, limit: None, "TypeError: it gave NoneType, not a text"),
    ],
)
def test_a_cut_that_is_none_is_told_as_the_tokenizers(
    tmp_path: Path, truncate: Callable[..., object], told: str
) -> None:
    """Where a question has to be cut."""
    with LightRAG(tmp_path, tokenizer=Own(truncate=truncate), options=SMALL) as rag:
        rag.insert(TEXT)
        with pytest.raises(ConfigError, match=f"^tokenizer 'mine' failed: {told}"):
            rag.query(QUESTION, QueryParam(max_total_tokens=60))


@pytest.mark.parametrize(
    "truncate",
    [
        lambda text, limit: " ".join(text.split()[:limit]),
        lambda text, limit: text + "…",
        lambda text, limit: text.encode()[: 6 * limit].decode(errors="replace"),
    ],
)
def test_what_is_cut_otherwise_is_cut_by_the_counts(
    tmp_path: Path, truncate: Callable[..., str]
) -> None:
    """Words joined anew, an ellipsis, half a character: the text's own beginning stands for them."""
    text = "Marie  Curie\ndécouvrit le radium à Paris.\n\n" * 30
    tokenizer = ToldTokenizer(Own(truncate=truncate))
    for limit in (0, 1, 7, 1000):
        cut = tokenizer.truncate(text, limit)
        assert text.startswith(cut) and tokenizer.count(cut) <= limit
    with LightRAG(tmp_path, tokenizer=tokenizer, options=SMALL) as rag:
        rag.insert(text)
        chunks = rag.retrieve("Marie Curie").chunks
    assert len(chunks) > 1
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)


def test_counts_may_be_numpys(tmp_path: Path) -> None:
    """Whole numbers of any kind are taken for what they are."""
    counting = Own(lambda text: np.int64(len(text.split())))
    with LightRAG(tmp_path, tokenizer=counting, options=SMALL) as rag:
        rag.insert(TEXT)
        context = rag.retrieve("What did Marie Curie discover?")
    assert context.chunks and type(context.tokens) is int
