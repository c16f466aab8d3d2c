"""Keyword extractors, rerankers, answerers and embedders that users bring, in a query."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from lightrag_jsonl import Document, EmbeddingError, Keywords, LLMError
from lightrag_jsonl.core.answers import note_lines
from lightrag_jsonl.testing import HashEmbedder
from tests.kit import index

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
QUESTION = "What did Marie Curie discover?"
PARTS = ("keyword_extractor", "reranker", "answerer", "embedder")


class Own(HashEmbedder):
    """All parts in one, each giving what a function gives; texts of documents are embedded as usual."""

    def __init__(self, give: Callable[..., object]) -> None:
        super().__init__()
        self.name = "mine"
        self._give = give

    async def _answer(self, *given: object) -> Any:
        result = self._give(*given[1:])
        return await result if asyncio.iscoroutine(result) else result

    keywords = score = answer = _answer

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Any:
        if kind == "passage":
            return await super().embed(texts, kind=kind)
        return await self._answer(self, texts)


def failing(*given: object) -> object:
    """Raises."""
    raise KeyError("x")


def filled(*numbers: object) -> Callable[[Sequence[str]], object]:
    """Rows of the usual length, which hold these numbers in turn."""
    return lambda texts: [[*numbers] * (1024 // len(numbers))] * len(texts)


WRONG: list[tuple[str, Callable[..., object], str]] = [
    *((part, failing, "failed: KeyError: 'x'") for part in PARTS),
    *((part, lambda *given: None, "mine") for part in PARTS),
    ("embedder", lambda texts: [[1.0, 0.0]] * len(texts), "must give vectors of shape"),
    ("embedder", filled(float("nan"), 0.0), "NaN"),
    ("embedder", filled(1.0, float("inf")), "infinity"),
    ("embedder", filled(0.0), "only zeros"),
    ("embedder", filled(1.0, 1j), "they are complex"),
    ("embedder", filled("a", "b"), "not a table of numbers"),
    (
        "keyword_extractor",
        lambda *given: Keywords((), (1,)),
        "Expected `str`, got `int` - at `\\$.low_level",
    ),  # type: ignore[arg-type]
    (
        "keyword_extractor",
        lambda *given: Keywords("镭", ()),
        "Expected `array`, got `str` - at `\\$.high_level",
    ),  # type: ignore[arg-type]
    ("reranker", lambda texts: ["best"] * len(texts), "failed: ValueError"),
    ("reranker", lambda texts: [[1.0, 2.0]] * len(texts), "numbers of shape"),
    ("answerer", lambda *given: b"Radium.", "it gave bytes, not a text"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["query", "stream"])
@pytest.mark.parametrize(("part", "give", "words"), WRONG)
async def test_whatever_a_part_does_wrong_is_reported_as_its_error(
    part: str, give: Callable[..., object], words: str, streamed: bool, tmp_path: Path
) -> None:
    """By its name, with its own error as the cause if it raised one, and in the trace."""
    kind = EmbeddingError if part == "embedder" else LLMError
    async with index(tmp_path, **{part: Own(give)}) as rag:
        await rag.insert(TEXT)
        with pytest.raises(kind, match=words) as caught:
            if streamed:
                [piece async for piece in rag.stream(QUESTION)]
            else:
                await rag.query(QUESTION)
        assert str(caught.value).startswith(f"{part.replace('_', ' ')} 'mine'")
        assert give is not failing or isinstance(caught.value.__cause__, KeyError)
        (trace,) = await rag.traces.list()
        assert (await rag.traces.get(trace.id)).error == str(caught.value)


async def test_an_answer_may_hold_half_a_character(tmp_path: Path) -> None:
    """It is replaced, as no file and no database takes it."""
    async with index(tmp_path, answerer=Own(lambda *given: "镭 \ud83c")) as rag:
        await rag.insert(TEXT)
        answer = await rag.query(QUESTION)
        assert answer.text == "镭 \ufffd" == (await rag.traces.get(str(answer.trace_id))).answer


async def test_the_lines_below_an_answer_are_in_one_language(tmp_path: Path) -> None:
    """The reason that marks a claim in Latin letters is Chinese in a Chinese index, as the words around it are."""
    answerer = Own(lambda *given: "Tern 1899 [1]")
    async with index(tmp_path, language="zh", answerer=answerer) as rag:
        await rag.insert("Tern号于１８９８年下水🚢。")
        answer = await rag.query("Tern号是哪一年下水的？")
    (line,) = [line for line in note_lines(answer) if line.startswith("(!)")]
    assert "原文写的是“１８９８年”，不是“1899”" in line


@pytest.mark.parametrize("part", PARTS)
async def test_a_question_that_is_cancelled_while_a_part_works_is_cancelled(
    part: str, tmp_path: Path
) -> None:
    """That is no fault of the part."""
    begun = asyncio.Event()

    async def wait(*given: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with index(tmp_path, **{part: Own(wait)}) as rag:
        await rag.insert(TEXT)
        task = asyncio.create_task(rag.query(QUESTION))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
