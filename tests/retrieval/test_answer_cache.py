"""Answers that are given again to similar questions."""

from dataclasses import replace
from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, LLMError, QueryParam
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import entity, index

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
RECORDS = [entity("Marie Curie", "She discovered radium.")]
REUSING = QueryParam(mode="naive", similarity_reuse=0.5)


def answering(same: str = "1.0") -> ScriptedLLM:
    """A model that counts its answers, and that scores the likeness of questions like this."""
    answers = iter(range(1, 99))

    def script(request: Request) -> str:
        return same if "compare two questions" in request.text else f"Radium {next(answers)} [1]."

    return ScriptedLLM(script)


async def reused(rag: AsyncLightRAG, question: str, param: QueryParam = REUSING) -> bool:
    """Whether the question gets an answer that was written before."""
    answer = await rag.query(question, param)
    return bool((await rag.traces.get(str(answer.trace_id))).reused)


async def test_a_similar_question_gets_the_stored_answer(tmp_path: Path) -> None:
    """The whole answer with its citations and its context, free of charge, however it is asked for;
    an unlike question does not get it.
    """
    async with index(tmp_path, answering()) as rag:
        await rag.insert_records(TEXT, RECORDS)
        first = await rag.query("What did Marie Curie discover?", REUSING)
        again = await rag.query("What did marie curie discover", REUSING)
        assert again.usage.calls == 0 and first.usage.calls == 1
        assert replace(again, usage=first.usage, trace_id=first.trace_id) == first
        stream = rag.stream("What did Marie Curie discover", REUSING)
        assert [piece async for piece in stream] == [first.text] and stream.answer.citations
        assert not await reused(rag, "Where is Paris on a map of Europe today?")
        assert not await reused(rag, "What did Marie Curie discover?", QueryParam(mode="naive"))


async def test_nothing_outlives_a_change_or_other_settings(tmp_path: Path) -> None:
    """A changed index, another parameter and another model each need an answer of their own."""
    question = "What did Marie Curie discover?"
    async with index(tmp_path, answering()) as rag:
        await rag.insert_records(TEXT, RECORDS)
        assert not await reused(rag, question) and await reused(rag, question)
        assert not await reused(rag, question, replace(REUSING, user_prompt="Be brief."))
        await rag.insert_records(Document("Pierre taught.", id="d2"), [entity("Pierre")])
        assert not await reused(rag, question) and await reused(rag, question)
    other = ScriptedLLM(lambda request: "Radium [1].", name="other")
    async with index(tmp_path, other) as rag:
        assert not await reused(rag, question)


@pytest.mark.parametrize(
    ("score", "calls"),
    [
        *[(yes, 1) for yes in ("1.0", "1", ".9", " 0.8。\n", "<think>0.1</think>0.95")],
        *[(no, 2) for no in ("0.2", "no idea", "0.6", "0.79", "10%", "1. They differ")],
        *[(no, 2) for no in ("0.9 or 0.1", "80", "-1", "1.5")],
    ],
)
async def test_the_model_may_be_asked_whether_questions_are_the_same(
    tmp_path: Path, score: str, calls: int
) -> None:
    """That is part of the cost, of an answer given again or of the one that is written after it. Only
    a lone number of at least 0.8 is a yes.
    """
    param = replace(REUSING, similarity_reuse=0.0, similarity_check=True)
    async with index(tmp_path, answering(score)) as rag:
        await rag.insert_records(TEXT, RECORDS)
        assert (await rag.query("Who discovered radium?", param)).usage.calls == 1
        answer = await rag.query("Where was radium discovered?", param)
        assert answer.usage.calls == calls
        assert (await rag.traces.get(str(answer.trace_id))).reused == (calls == 1)


async def test_a_question_that_failed_is_not_kept(tmp_path: Path) -> None:
    """The next one is answered anew."""
    async with index(tmp_path, ScriptedLLM([LLMError("gone"), "Radium [1]."])) as rag:
        await rag.insert_records(TEXT, RECORDS)
        with pytest.raises(LLMError, match="gone"):
            await rag.query("What?", REUSING)
        assert not await reused(rag, "What?") and await reused(rag, "What?")
