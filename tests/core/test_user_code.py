"""Parts that users bring: whatever they do wrong becomes an error that names them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, LightRAGError, LLMError
from lightrag_jsonl.core.types import Context, Keywords
from lightrag_jsonl.core.user_code import (
    CheckedTokenizer,
    embed_texts,
    find_keywords,
    rerank_scores,
    write_answer,
)


def raising(error: BaseException) -> Callable[..., object]:
    def fail(*given: object) -> object:
        raise error

    return fail


class Own:
    """All parts in one, each giving what a function gives."""

    name = "mine"
    dim = 2

    def __init__(self, give: Callable[..., object]) -> None:
        self._give = give

    async def embed(self, texts: object, *, kind: str) -> object:
        return self._give(texts)

    async def keywords(self, question: str, history: object = ()) -> object:
        return self._give()

    async def score(self, query: str, texts: object) -> object:
        return self._give(texts)

    async def answer(self, question: str, context: Context) -> object:
        return self._give()


def use(part: str, give: Callable[..., object]) -> object:
    own, texts = Own(give), ["a", "b"]
    calls = {
        "embedder": lambda: embed_texts(own, texts, "passage"),  # type: ignore[arg-type]
        "keyword extractor": lambda: find_keywords(own, "who?", ()),  # type: ignore[arg-type]
        "reranker": lambda: rerank_scores(own, "who?", texts),  # type: ignore[arg-type]
        "answerer": lambda: write_answer(own, "who?", Context()),  # type: ignore[arg-type]
    }
    return asyncio.run(calls[part]())  # type: ignore[arg-type]


PARTS = ("embedder", "keyword extractor", "reranker", "answerer")
WRONG = [
    *((part, raising(KeyError("x")), "failed: KeyError: 'x'") for part in PARTS),
    *((part, lambda *given: None, "mine") for part in PARTS),
    ("embedder", lambda texts: [[1.0, 0.0]], r"2 texts must give vectors of shape \(2, 2\)"),
    ("embedder", lambda texts: [[float("nan"), 0.0]] * 2, "NaN"),
    ("embedder", lambda texts: [[1.0, float("inf")]] * 2, "infinity"),
    ("embedder", lambda texts: [[1.0, 0.0], [0.0, 0.0]], "only zeros"),
    ("embedder", lambda texts: [[1.0, 1j]] * 2, "they are complex"),
    ("embedder", lambda texts: [["a", "b"]] * 2, "not a table of numbers"),
    ("keyword extractor", lambda: Keywords((), (1,)), "it gave int, not a text"),  # type: ignore[arg-type]
    ("keyword extractor", lambda: Keywords("镭", ()), "it gave one text, not several"),  # type: ignore[arg-type]
    ("reranker", lambda texts: ["best"] * 2, "failed: ValueError"),
    ("reranker", lambda texts: [[1.0, 2.0]] * 2, "numbers of shape"),
    ("answerer", lambda: b"Radium.", "it gave bytes, not a text"),
]


@pytest.mark.parametrize(("part", "give", "words"), WRONG)
def test_whatever_a_part_does_wrong_names_it(
    part: str, give: Callable[..., object], words: str
) -> None:
    """With its own error as the cause, if it raised one."""
    kind = EmbeddingError if part == "embedder" else LLMError
    with pytest.raises(kind, match=words) as caught:
        use(part, give)
    assert str(caught.value).startswith(f"{part} 'mine'")


def test_an_error_of_the_package_is_raised_as_it_is() -> None:
    """It needs no other words."""
    for part in PARTS:
        with pytest.raises(LightRAGError, match=r"^ask later$"):
            use(part, raising(LightRAGError("ask later")))


class Words:
    """Counts words; or what the given functions say."""

    name = "mine"

    def __init__(
        self,
        count: Callable[..., object] = lambda text: len(text.split()),
        truncate: Callable[..., object] = lambda text, limit: " ".join(text.split()[:limit]),
    ) -> None:
        self.count, self.truncate = count, truncate


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (raising(KeyError("x")), "KeyError: 'x'"),
        (lambda text: len(text) / 4, "TypeError: 'float' object"),
        (lambda text: None, "TypeError: 'NoneType' object"),
    ],
)
def test_a_count_must_be_a_whole_number(count: Callable[..., object], words: str) -> None:
    """Anything else is a `ConfigError` that names the tokenizer."""
    with pytest.raises(ConfigError, match=f"^tokenizer 'mine' failed: {words}"):
        CheckedTokenizer(Words(count)).count("a b")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "truncate",
    [
        lambda text, limit: " ".join(text.split()[:limit]),
        lambda text, limit: text + "…",
        lambda text, limit: text.encode()[: 6 * limit].decode(errors="replace"),
    ],
)
def test_a_cut_is_always_a_prefix_of_the_text(truncate: Callable[..., str]) -> None:
    """Words joined anew, an ellipsis, half a character: then the prefix is found by counting."""
    text = "Marie  Curie\ndécouvrit le radium à Paris.\n\n" * 30
    tokenizer = CheckedTokenizer(Words(truncate=truncate))  # type: ignore[arg-type]
    for limit in (0, 1, 7, 1000):
        cut = tokenizer.truncate(text, limit)
        assert text.startswith(cut) and tokenizer.count(cut) <= limit
