"""Keyword extractors, rerankers and answerers that users bring: errors name the part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lightrag_jsonl import Context, Document, Keywords, LightRAGError, LLMError, Message
from tests.kit import index

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
QUESTION = "What did Marie Curie discover?"


def raising(error: BaseException) -> Callable[..., object]:
    """A function that raises."""

    def fail(*given: object) -> object:
        raise error

    return fail


class Own:
    """All three parts in one, each giving what a function gives."""

    name = "mine"

    def __init__(self, give: Callable[..., object]) -> None:
        self._give = give

    async def keywords(self, question: str, history: Sequence[Message] = ()) -> Keywords:
        return self._give()  # type: ignore[return-value]

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return self._give(texts)  # type: ignore[return-value]

    async def answer(self, question: str, context: Context) -> str:
        return self._give()  # type: ignore[return-value]


PARTS = {
    "keyword_extractor": "keyword extractor 'mine'",
    "reranker": "reranker 'mine'",
    "answerer": "answerer 'mine'",
}
EVERYWHERE = [
    (raising(KeyError("x")), "failed: KeyError: 'x'"),
    (raising(Exception()), "failed: Exception$"),
    (lambda *given: None, "failed: "),
]
ONLY = [
    ("keyword_extractor", lambda: (["a"], ["b"]), "failed: AttributeError"),
    ("keyword_extractor", lambda: Keywords((), (1,)), "it gave int, not a text"),  # type: ignore[arg-type]
    ("keyword_extractor", lambda: Keywords("镭", ()), "it gave one text, not several"),  # type: ignore[arg-type]
    ("reranker", lambda texts: ["best"] * len(texts), "failed: ValueError"),
    ("reranker", lambda texts: [[1.0, 2.0]] * len(texts), "numbers of shape"),
    ("answerer", lambda: b"Radium.", "it gave bytes, not a text"),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["query", "stream"])
@pytest.mark.parametrize(
    ("part", "give", "message"),
    [*((part, give, message) for part in PARTS for give, message in EVERYWHERE), *ONLY],
)
async def test_whatever_a_part_does_is_reported_as_its_error(
    part: str, give: Callable[..., object], message: str, streamed: bool, tmp_path: Path
) -> None:
    """By its name, with its own error as the cause, and in the trace."""
    async with index(tmp_path, **{part: Own(give)}) as rag:
        await rag.insert(TEXT)
        with pytest.raises(LLMError, match=message) as caught:
            if streamed:
                [piece async for piece in rag.stream(QUESTION)]
            else:
                await rag.query(QUESTION)
        assert str(caught.value).startswith(PARTS[part])
        assert caught.value.__cause__ is not None
        (trace,) = await rag.traces.list()
        assert (await rag.traces.get(trace.id)).error == str(caught.value)


async def test_an_error_of_the_package_is_reported_as_it_is(tmp_path: Path) -> None:
    """It needs no other words."""
    async with index(tmp_path, answerer=Own(raising(LightRAGError("ask later")))) as rag:
        await rag.insert(TEXT)
        with pytest.raises(LightRAGError, match=r"^ask later$"):
            await rag.query(QUESTION)


async def test_an_answer_may_hold_half_a_character(tmp_path: Path) -> None:
    """It is replaced, as no file and no database takes it."""
    async with index(tmp_path, answerer=Own(lambda: "镭 \ud83c")) as rag:
        await rag.insert(TEXT)
        answer = await rag.query(QUESTION)
        assert answer.text == "镭 \ufffd" == (await rag.traces.get(str(answer.trace_id))).answer


@pytest.mark.parametrize("part", PARTS)
async def test_a_question_that_is_cancelled_while_a_part_works_is_cancelled(
    part: str, tmp_path: Path
) -> None:
    """That is no fault of the part."""
    begun = asyncio.Event()

    class Slow(Own):
        async def _wait(self, *given: object) -> None:
            begun.set()
            await asyncio.Event().wait()

        keywords = score = answer = _wait  # type: ignore[assignment]

    async with index(tmp_path, **{part: Slow(print)}) as rag:
        await rag.insert(TEXT)
        task = asyncio.create_task(rag.query(QUESTION))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
