"""What an answer cost, all that was asked of the model for it, and whether the model came to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.adapters.offline import HashEmbedder
from lightrag_jsonl.calls import EmbeddingKind
from lightrag_jsonl.errors import EmbeddingError, LLMError
from lightrag_jsonl.explain.events import End
from lightrag_jsonl.protocols import Vectors
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


# ── where no answer comes of it ─────────────────────────────────────────────────

FACTS = (
    '{"type": "entity", "entity": "Marie Curie", "entity_type": "person", "description": "She."}'
)
KEYWORDS = Completion(
    '{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}', usage=Usage(50, 5)
)


class Speechless(ScriptedLLM):
    """Gives keywords, but no answer; its streams break off after a word."""

    def __init__(self, answer: Exception | Completion) -> None:
        super().__init__(
            lambda request: KEYWORDS if "high_level_keywords" in request.text else answer,
            seconds=0.01,
        )

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        yield "Radium"
        raise LLMError("the line is dead")


NO_CREDIT = LLMError("no credit left", permanent=True)


@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        (NO_CREDIT, Usage(50, 5, calls=1)),
        (Completion("", usage=Usage(100, 7)), Usage(350, 26, calls=4)),
    ],
)
def test_a_question_that_fails_tells_what_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Exception | Completion, paid: Usage
) -> None:
    """In the error, in its trace and in the last of its events; empty answers were paid for, too."""
    monkeypatch.setattr("lightrag_jsonl.ask.FIRST_PAUSE", 0.0)
    with LightRAG(tmp_path, llm=Speechless(answer)) as rag:
        rag.insert_records(TEXT, RADIUM)
        with pytest.raises(LLMError) as caught:
            rag.query("Who?")
        assert caught.value.usage == paid
        (told,) = rag.traces()
        assert rag.trace(told.id).usage == paid
        rag.clear_cache()
        assert isinstance(end := list(rag.events("Who?", explain=False))[-1], End)
        assert end.usage == Usage(50, 5, calls=2)  # and what the word cost, nobody said


def test_who_shares_a_call_that_fails_did_not_pay_for_it(tmp_path: Path) -> None:
    """Each question has an error of its own."""

    async def run() -> None:
        async with AsyncLightRAG(tmp_path, llm=Speechless(NO_CREDIT)) as rag:
            await rag.insert_records(TEXT, RADIUM)
            asked = (rag.query("Who?") for _ in range(3))
            errors = await asyncio.gather(*asked, return_exceptions=True)
        assert [str(error) for error in errors] == ["no credit left"] * 3
        calls = [error.usage.calls for error in errors if isinstance(error, LLMError)]
        assert sorted(calls) == [0, 0, 1]

    asyncio.run(run())


@pytest.mark.parametrize("left", [True, False])
def test_a_stream_without_an_end_tells_what_it_cost(tmp_path: Path, left: bool) -> None:
    """The call that was cut off counts; its tokens are told by nobody."""
    paid = Usage(50, 5, calls=2)
    with LightRAG(tmp_path, llm=Speechless(NO_CREDIT)) as rag:
        rag.insert_records(TEXT, RADIUM)
        stream = rag.stream("Who?")
        assert stream.usage == Usage() and next(stream) == "Radium"
        if left:
            stream.close()
        else:
            with pytest.raises(LLMError) as caught:
                next(stream)
            assert caught.value.usage == paid
        assert stream.usage == paid


def test_a_stream_that_is_read_tells_what_its_answer_cost(tmp_path: Path) -> None:
    with LightRAG(tmp_path, llm=ScriptedLLM([KEYWORDS, "Radium [1]."])) as rag:
        rag.insert_records(TEXT, RADIUM)
        stream = rag.stream("Who?")
        assert "".join(stream) == "Radium [1]." and stream.usage == stream.answer.usage
    assert stream.usage.calls == 2


class Fails(HashEmbedder):
    """An embedder that takes neither questions nor what is said of people."""

    async def embed(self, texts: Sequence[str], *, kind: EmbeddingKind) -> Vectors:
        if kind == "query" or "She." in texts[0]:
            raise ValueError("out of order")
        return await super().embed(texts, kind=kind)


def test_an_insert_and_a_retrieval_that_fail_tell_what_they_cost(tmp_path: Path) -> None:
    """What the model was paid before the embedder failed."""
    model = ScriptedLLM(
        lambda request: (
            KEYWORDS
            if "high_level_keywords" in request.text
            else Completion(FACTS, usage=Usage(80, 8))
        )
    )
    options = IndexOptions(max_gleanings=0)
    with LightRAG(tmp_path, llm=model, embedder=Fails(), options=options) as rag:
        rag.insert_records(TEXT, RADIUM)
        for call, paid in (
            (lambda: rag.retrieve("Who?"), Usage(50, 5, calls=1)),
            (lambda: rag.insert("Pierre Curie taught physics."), Usage(80, 8, calls=1)),
        ):
            with pytest.raises(EmbeddingError, match="out of order") as caught:
                call()
            assert caught.value.usage == paid and type(caught.value.__cause__) is ValueError
