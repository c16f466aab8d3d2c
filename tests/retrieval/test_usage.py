"""What an answer cost, all that was asked of the model for it, and whether the model came to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, IndexOptions, QueryParam
from lightrag_jsonl.core.errors import EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Answer, Completion, Message, Mode
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.providers.offline import HashEmbedder
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.tracing.events import End
from tests.kit import entity, index

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
RADIUM = [entity("Marie Curie", "She discovered radium.")]
KEYWORDS = Completion(
    '{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}', usage=Usage(50, 5)
)


def asks_for_keywords(request: Request) -> bool:
    return "high_level_keywords" in request.text


async def test_keywords_that_cannot_be_read_cost_what_they_cost(tmp_path: Path) -> None:
    """Both times they were asked for count, and so does the answer."""
    model = ScriptedLLM(lambda asked: "none" if asks_for_keywords(asked) else "Radium [1].")
    async with index(tmp_path, model) as rag:
        await rag.insert_records(TEXT, RADIUM)
        usage = (await rag.query("What did Marie Curie discover?")).usage
    assert usage.calls == len(model.requests) == 3


async def test_an_empty_answer_costs_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is thrown away and asked for again; asked once more, the answer costs nothing."""
    monkeypatch.setattr("lightrag_jsonl.llm.client.FIRST_PAUSE", 0.0)
    answers = [Completion(text, usage=Usage(100, 7)) for text in ("", "\n", "Radium [1].")]
    async with index(tmp_path, ScriptedLLM(answers)) as rag:
        await rag.insert_records(TEXT, RADIUM)
        first, second = [await rag.query("Who?", mode="naive") for _ in range(2)]
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
        self._answer: Awaitable[Completion] | None = answer

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if self._answer is None:
            raise StopAsyncIteration
        done, self._answer = await self._answer, None
        self.finish = done.finish
        return done.text


@pytest.mark.parametrize("mode", ["naive", "mix", "bypass"])
@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_an_answer_says_that_it_is_cut(
    tmp_path: Path, mode: Mode, finish: Literal["stop", "length"]
) -> None:
    """Whole or streamed; new, from the cache, or given again to a similar question."""
    model = Limited(
        lambda asked: KEYWORDS if asks_for_keywords(asked) else Completion("Radium [1] and", finish)
    )
    plain, reusing = QueryParam(mode=mode), QueryParam(mode=mode, similarity_reuse=0.0)
    async with index(tmp_path, model) as rag:
        await rag.insert_records(TEXT, RADIUM)

        async def streamed(question: str, param: QueryParam) -> Answer:
            stream = rag.stream(question, param)
            assert "".join([piece async for piece in stream]) == "Radium [1] and"
            return stream.answer

        new = [await rag.query("Who?", plain), await streamed("What?", plain)]
        paid = len(model.requests)
        known = [await rag.query("What?", plain), await streamed("Who?", plain)]
        assert len(model.requests) == paid
        await rag.query("Who?", reusing)
        again = [await rag.query("Where?", reusing), await streamed("When?", reusing)]
        traces = [await rag.traces.get(str(one.trace_id)) for one in (*new, *known, *again)]
    assert [trace.reused for trace in traces] == [False] * 4 + [True] * 2
    assert {trace.truncated for trace in traces} == {finish == "length"}
    assert {one.truncated for one in (*new, *known, *again)} == {finish == "length"}


# ── where no answer comes of it ─────────────────────────────────────────────────


class Speechless(ScriptedLLM):
    """Gives keywords, but no answer; its streams break off after a word."""

    def __init__(self, answer: Exception | Completion) -> None:
        super().__init__(
            lambda asked: KEYWORDS if asks_for_keywords(asked) else answer, seconds=0.01
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
    ids=["no credit", "no words"],
)
async def test_a_question_that_fails_says_what_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Exception | Completion, paid: Usage
) -> None:
    """In the error, in its trace and in the last of its events; empty answers were paid for, too."""
    monkeypatch.setattr("lightrag_jsonl.llm.client.FIRST_PAUSE", 0.0)
    async with index(tmp_path, Speechless(answer)) as rag:
        await rag.insert_records(TEXT, RADIUM)
        with pytest.raises(LLMError) as caught:
            await rag.query("Who?")
        assert caught.value.usage == paid
        (trace,) = await rag.traces.list()
        assert (await rag.traces.get(trace.id)).usage == paid
        await rag.admin.clear_cache()
        events = [event async for event in rag.events("Who?", explain=False)]
        assert isinstance(end := events[-1], End)
        assert end.usage == Usage(50, 5, calls=2)  # what the word cost, nobody reported


@pytest.mark.parametrize("left", [True, False])
async def test_a_stream_without_an_end_says_what_it_cost(tmp_path: Path, left: bool) -> None:
    """The call that was cut off counts; nobody reports its tokens."""
    paid = Usage(50, 5, calls=2)
    async with index(tmp_path, Speechless(NO_CREDIT)) as rag:
        await rag.insert_records(TEXT, RADIUM)
        stream = rag.stream("Who?")
        assert stream.usage == Usage() and await anext(stream) == "Radium"
        if left:
            await stream.aclose()
        else:
            with pytest.raises(LLMError) as caught:
                await anext(stream)
            assert caught.value.usage == paid
        assert stream.usage == paid


async def test_a_stream_that_is_read_says_what_its_answer_cost(tmp_path: Path) -> None:
    """Its usage and that of its answer are one."""
    async with index(tmp_path, ScriptedLLM([KEYWORDS, "Radium [1]."])) as rag:
        await rag.insert_records(TEXT, RADIUM)
        stream = rag.stream("Who?")
        assert "".join([piece async for piece in stream]) == "Radium [1]."
        assert stream.usage == stream.answer.usage and stream.usage.calls == 2


class Fails(HashEmbedder):
    """An embedder that takes neither questions nor passages about people."""

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        if kind == "query" or any("She." in text for text in texts):
            raise ValueError("out of order")
        return await super().embed(texts, kind=kind)


async def test_an_insert_and_a_retrieval_that_fail_say_what_they_cost(tmp_path: Path) -> None:
    """What the model was paid before the embedder failed."""
    facts = '{"type": "entity", "entity": "Marie", "entity_type": "x", "description": "She."}'
    model = ScriptedLLM(
        lambda asked: (
            KEYWORDS if asks_for_keywords(asked) else Completion(facts, usage=Usage(80, 8))
        )
    )
    options = IndexOptions(max_gleanings=0)

    async def failed(rag: AsyncLightRAG, call: Awaitable[object], paid: Usage) -> None:
        with pytest.raises(EmbeddingError, match="out of order") as caught:
            await call
        assert caught.value.usage == paid and type(caught.value.__cause__) is ValueError

    async with index(tmp_path, model, embedder=Fails(), options=options) as rag:
        await rag.insert_records(TEXT, RADIUM)
        await failed(rag, rag.retrieve("Who?"), Usage(50, 5, calls=1))
        await failed(rag, rag.insert("She. Pierre taught."), Usage(80, 8, calls=1))
