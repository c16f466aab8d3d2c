"""Keyword extractors, rerankers and answerers that users bring, in a query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LLMError
from tests.kit import index

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
QUESTION = "What did Marie Curie discover?"
PARTS = ["keyword_extractor", "reranker", "answerer"]


class Own:
    """All three parts in one, each giving what a function gives."""

    name = "mine"

    def __init__(self, give: Callable[[], object]) -> None:
        self._give = give

    async def _answer(self, *given: object) -> object:
        result = self._give()
        return await result if asyncio.iscoroutine(result) else result

    keywords = score = answer = _answer


def failing() -> object:
    """Raises."""
    raise KeyError("x")


@pytest.mark.parametrize("streamed", [False, True], ids=["query", "stream"])
@pytest.mark.parametrize("part", PARTS)
async def test_whatever_a_part_does_is_reported_as_its_error(
    part: str, streamed: bool, tmp_path: Path
) -> None:
    """By its name, with its own error as the cause, and in the trace."""
    async with index(tmp_path, **{part: Own(failing)}) as rag:
        await rag.insert(TEXT)
        with pytest.raises(LLMError, match="'mine' failed: KeyError: 'x'") as caught:
            if streamed:
                [piece async for piece in rag.stream(QUESTION)]
            else:
                await rag.query(QUESTION)
        assert str(caught.value).startswith(part.replace("_", " "))
        assert isinstance(caught.value.__cause__, KeyError)
        (trace,) = await rag.traces.list()
        assert (await rag.traces.get(trace.id)).error == str(caught.value)


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

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with index(tmp_path, **{part: Own(wait)}) as rag:
        await rag.insert(TEXT)
        task = asyncio.create_task(rag.query(QUESTION))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
