"""What an answer cost, all that was asked of the model for it, and whether the model came to its end."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from lightrag_jsonl import (
    Answer,
    Completion,
    Document,
    EmbeddingError,
    LLMError,
    Message,
    QueryParam,
    Usage,
)
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.kit import Mode, Vectors, entity, index
from tests.llm.test_client import Pieces

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
RADIUM = [entity("Marie Curie", "She discovered radium.")]
KEYWORDS = Completion(
    '{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}', usage=Usage(50, 5)
)


def asks_for_keywords(request: Request) -> bool:
    return "high_level_keywords" in request.text


class Limited(ScriptedLLM):
    """A model whose answers and streams end alike."""

    def __init__(self, finish: Literal["stop", "length"]) -> None:
        answer = Completion("Radium [1] and", finish)
        super().__init__(lambda asked: KEYWORDS if asks_for_keywords(asked) else answer)
        self.finish = finish

    def stream(self, messages: Sequence[Message], **more: object) -> Pieces:  # type: ignore[override]
        self.requests.append(Request(tuple(messages), "text", None))
        pieces = Pieces(["Radium [1] and"])
        pieces.finish = self.finish
        return pieces


@pytest.mark.parametrize("mode", ["naive", "mix", "bypass"])
@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_an_answer_says_that_it_is_cut(
    tmp_path: Path, mode: Mode, finish: Literal["stop", "length"]
) -> None:
    """Whole or streamed; new, from the cache, or given again to a similar question."""
    model = Limited(finish)
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
    monkeypatch.setattr("lightrag_jsonl.core.retrying.FIRST_PAUSE", 0.0)
    async with index(tmp_path, Speechless(answer)) as rag:
        await rag.insert_records(TEXT, RADIUM)
        with pytest.raises(LLMError) as caught:
            await rag.query("Who?")
        assert caught.value.usage == paid
        (trace,) = await rag.traces.list()
        assert (await rag.traces.get(trace.id)).usage == paid
        await rag.admin.clear_cache()
        events: list[Any] = []
        with pytest.raises(LLMError):
            _ = [piece async for piece in rag.stream("Who?", listener=events.append)]
        assert events[-1].stage == "end"
        assert events[-1].usage == Usage(50, 5, calls=2)  # what the word cost, nobody reported


class Fails(HashEmbedder):
    """An embedder that takes no questions."""

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        if kind == "query":
            raise ValueError("out of order")
        return await super().embed(texts, kind=kind)


async def test_a_retrieval_that_fails_says_what_it_cost(tmp_path: Path) -> None:
    """What the model was paid before the embedder failed, whose own error is the cause."""
    async with index(tmp_path, ScriptedLLM([KEYWORDS]), embedder=Fails()) as rag:
        await rag.insert_records(TEXT, RADIUM)
        with pytest.raises(EmbeddingError, match="out of order") as caught:
            await rag.retrieve("Who?")
        assert caught.value.usage == Usage(50, 5, calls=1)
        assert type(caught.value.__cause__) is ValueError
