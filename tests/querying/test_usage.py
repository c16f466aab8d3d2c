"""What an answer cost, all that was asked of the model for it, and whether the model came to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from lightrag_jsonl import Document, LightRAG, QueryParam
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Answer, Completion, Message, Mode, Usage
from tests.indexing.kit import entity

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
RADIUM = [entity("Marie Curie", "She discovered radium.")]


def test_keywords_that_cannot_be_read_cost_what_they_cost(tmp_path: Path) -> None:
    """Both times they were asked for count, and so does the answer."""
    model = ScriptedLLM(
        lambda request: "none" if "high_level_keywords" in request.text else "Radium [1]."
    )
    with LightRAG(tmp_path, llm=model) as rag:
        rag.insert_records(TEXT, RADIUM)
        usage = rag.query("What did Marie Curie discover?").usage
    assert usage.calls == len(model.requests) == 3


@pytest.mark.parametrize(("score", "calls"), [("1.0", 1), ("0.0", 3)])
def test_asking_whether_questions_are_the_same_is_part_of_the_cost(
    tmp_path: Path, score: str, calls: int
) -> None:
    """Of an answer that is written after it, and of one that is reused: then it is all it cost."""

    def script(request: Request) -> str:
        if "high_level_keywords" in request.text:
            return '{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}'
        return score if "compare two questions" in request.text else "Radium [1]."

    param = QueryParam(similarity_reuse=0.0, similarity_check=True)
    model = ScriptedLLM(script)
    with LightRAG(tmp_path, llm=model) as rag:
        rag.insert_records(TEXT, RADIUM)
        assert rag.query("Who discovered radium?", param).usage.calls == 2
        again = rag.query("Where was radium discovered?", param)
        assert rag.trace(str(again.trace_id)).reused == (score == "1.0")
    assert again.usage.calls == len(model.requests) - 2 == calls


def test_an_empty_answer_costs_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is thrown away and asked for again; asked once more, what came of it costs nothing."""
    monkeypatch.setattr("lightrag_jsonl.ask.FIRST_PAUSE", 0.0)
    said = [Completion(text, usage=Usage(100, 7)) for text in ("", "\n", "Radium [1].")]
    with LightRAG(tmp_path, llm=ScriptedLLM(said)) as rag:
        rag.insert_records(TEXT, RADIUM)
        first, second = (rag.query("Who?", mode="naive") for _ in range(2))
    assert first.usage == Usage(300, 21, calls=3) and second.usage == Usage()


class Limited(ScriptedLLM):
    """A model whose every stream ends as its answers do."""

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        return Ended(super().complete(messages))


class Ended:
    """An answer in one piece; `finish` is known at its end."""

    finish = "stop"

    def __init__(self, answer: Awaitable[Completion]) -> None:
        self._answer = answer
        self._told = False

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if self._told:
            raise StopAsyncIteration
        done = await self._answer
        self.finish, self._told = done.finish, True
        return done.text


@pytest.mark.parametrize("mode", ["naive", "mix", "bypass"])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_answer_says_that_it_is_cut(
    tmp_path: Path, mode: Mode, finish: Literal["stop", "length"]
) -> None:
    """Whole or streamed; new, from the cache, or given again to a similar question."""

    def script(request: Request) -> str | Completion:
        if "high_level_keywords" in request.text:
            return '{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}'
        return Completion("Radium [1] and", finish)

    model = Limited(script)
    plain, reused = QueryParam(mode=mode), QueryParam(mode=mode, similarity_reuse=0.0)
    with LightRAG(tmp_path, llm=model) as rag:
        rag.insert_records(TEXT, RADIUM)

        def streamed(question: str, param: QueryParam) -> Answer:
            stream = rag.stream(question, param)
            assert "".join(stream) == "Radium [1] and"
            return stream.answer

        new = [rag.query("Who?", plain), streamed("What?", plain)]
        paid = len(model.requests)
        known = [rag.query("What?", plain), streamed("Who?", plain)]
        assert len(model.requests) == paid
        rag.query("Who?", reused)
        again = [rag.query("Where?", reused), streamed("When?", reused)]
        assert all(rag.trace(str(answer.trace_id)).reused for answer in again)
        every = [*new, *known, *again]
        told = {rag.trace(str(answer.trace_id)).truncated for answer in every}
        pages = [rag.trace_html(str(answer.trace_id)) for answer in every]
    assert told == {one.truncated for one in every} == {finish == "length"}
    assert all(("reached its token limit" in page) == (finish == "length") for page in pages)
