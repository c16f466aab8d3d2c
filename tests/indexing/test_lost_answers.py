"""Answers that lose records: their chunks are unfinished, named as failures, and asked for again."""

from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, Completion, Document, IndexOptions, InsertReport
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import Record, entity, index, jsonl, problems, relation

TEXT = "Ines Vega keeps bees in Toledo, and Omar Sahin sells her honey in 伊斯坦布尔."
OPTIONS = IndexOptions(max_gleanings=1, glean_min_tokens=1, max_resumes=2)
HALF: Record = {"type": "entity", "name": "Ines Vega"}  # neither type nor description
UNREADABLE = (
    r'{"type": "entity", "name": "Ines \Vega", "entity_type": "person", "description": 1 2}'
)


def done(entities: int, relationships: int = 0) -> Record:
    return {"type": "done", "entities": entities, "relationships": relationships}


GOOD = jsonl(entity("Ines Vega"), entity("Toledo"), relation("Ines Vega", "Toledo"), done(2, 1))


class Repairable:
    """A model that gives one answer to everything until it is repaired."""

    def __init__(self, answer: str | Completion) -> None:
        self.answer = answer
        self.repaired = False

    def __call__(self, request: Request) -> str | Completion:
        return GOOD if self.repaired else self.answer


async def inserted(rag: AsyncLightRAG) -> tuple[InsertReport, Any]:
    report = await rag.insert(Document(TEXT, id="bees"))
    (status,) = await rag.documents()
    return report, status


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (jsonl(HALF, HALF, done(2)), "none of the 2 records of the answer could be read"),
        (f"{UNREADABLE}\n{jsonl(done(1))}", "none of the 1 records of the answer could be read"),
        (jsonl(done(3, 1)), "the answer declares 4 records and holds none"),
        (jsonl(entity(" "), done(1)), "1 of 1 record of the answer could not be read"),
        (jsonl(entity("Toledo"), HALF, HALF, done(3)), "2 of 3 records"),
        (Completion(jsonl(entity("Toledo")), "filter"), "a content filter"),
        (Completion(jsonl(entity("Toledo")), "RECITATION"), "a content filter"),  # type: ignore[arg-type]
        (Completion(jsonl(entity("Toledo")), "error"), "broke the answer off"),
        (Completion(jsonl(entity("Toledo")), "no_reason_known"), "broke the answer off"),  # type: ignore[arg-type]
        (Completion("", "filter"), "a content filter"),
        (Completion(jsonl(entity("Toledo")), "length"), "still cut off after 1 continuations"),
    ],
)
async def test_a_chunk_that_lost_its_records_is_asked_for_again(
    tmp_path: Path, answer: str | Completion, reason: str
) -> None:
    """The document is not done, the report and its status say why, and a retry asks the model, not
    the cache; once it answers, all is as if it always had."""
    model = Repairable(answer)
    llm = ScriptedLLM(model)
    async with index(tmp_path, llm, options=OPTIONS) as rag:
        report, status = await inserted(rag)
        assert status.state in ("partial", "failed") and status.failures == report.failures
        assert [failure.document_id for failure in report.failures] == ["bees"]
        assert reason in report.failures[0].reason
        assert (status.state == "failed") == ("Toledo" not in rag.graph)

        llm.requests.clear()
        again = await rag.retry()
        assert llm.requests and again.failures == report.failures
        model.repaired = True
        assert (await rag.retry()).failures == ()
        assert [one.state for one in await rag.documents()] == ["done"]
        assert {"Ines Vega", "Toledo"} <= set(rag.graph)
        assert (await rag.retry()).documents == ()
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    "answer",
    [
        jsonl(done(0)),
        f"There is nothing in it.\n{jsonl(done(0))}",
        jsonl(entity("Ines Vega"), entity("Toledo"), HALF, done(9)),
        jsonl(entity("Toledo"), relation("Toledo", "Toledo"), done(1, 1)),
        Completion(GOOD, "STOP"),  # type: ignore[arg-type]
        Completion(GOOD, "end_turn"),  # type: ignore[arg-type]
        Completion(GOOD, None),  # type: ignore[arg-type]
    ],
)
async def test_an_answer_with_a_flaw_is_no_loss(tmp_path: Path, answer: str | Completion) -> None:
    """Nothing to find, one bad record among good ones, a wrong count, a word for a whole answer that
    is another server's: none of these is worth a second payment."""
    llm = ScriptedLLM(lambda request: answer)
    async with index(tmp_path, llm, options=OPTIONS) as rag:
        report, status = await inserted(rag)
        assert (status.state, report.failures) == ("done", ())


async def test_a_gleaning_that_a_filter_cuts_off_is_repeated_alone(tmp_path: Path) -> None:
    """What was read before it counts and is not paid for again."""
    answers: list[str | Completion] = [
        GOOD,
        Completion(jsonl(entity("Omar Sahin")), "filter"),
        jsonl(entity("Omar Sahin"), entity("伊斯坦布尔")),
    ]
    llm = ScriptedLLM(answers)
    async with index(tmp_path, llm, options=OPTIONS) as rag:
        report, status = await inserted(rag)
        assert status.state == "partial" and "content filter" in report.failures[0].reason
        assert {"Toledo", "Omar Sahin"} <= set(rag.graph)
        again = await rag.retry()
        assert (again.usage.calls, again.failures, len(llm.requests)) == (1, (), 3)
        assert "伊斯坦布尔" in rag.graph


async def test_a_summary_that_a_filter_cuts_off_is_not_used(tmp_path: Path) -> None:
    """The descriptions stand in, and the next insert asks again."""

    def answer(request: Request) -> str | Completion:
        if request.question.startswith("Subject:"):
            return Completion("Half a summ", "filter")
        return jsonl(entity("Toledo", f"Toledo is {len(llm.requests)}."), done(1))

    llm = ScriptedLLM(answer)
    options = IndexOptions(max_gleanings=0, summarize_fragments=2)
    async with index(tmp_path, llm, options=options) as rag:
        for number in range(4):
            await rag.insert(Document(f"Toledo {number}.", id=str(number)))
        assert "Half a summ" not in (await rag.entities.get("Toledo")).description
    assert problems(tmp_path) == []


@pytest.mark.parametrize("finish", ["filter", "error"])
async def test_an_answer_to_a_reader_that_was_broken_off_is_marked(
    tmp_path: Path, finish: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is `truncated`, and it is not given again from the cache."""

    def answer(request: Request) -> str | Completion:
        if "JSON Lines" in request.text:
            return GOOD
        return Completion("Ines Vega keeps", finish)

    llm = ScriptedLLM(answer)
    options = IndexOptions(max_gleanings=0)
    async with index(tmp_path, llm, options=options) as rag:
        await rag.insert(TEXT)
        for _ in range(2):
            llm.requests.clear()
            found = await rag.query("What does Ines Vega keep?", mode="naive")
            assert (found.text, found.truncated, len(llm.requests)) == ("Ines Vega keeps", True, 1)
    assert "not whole" in caplog.text
