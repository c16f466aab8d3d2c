"""The difference between two states, as people see it."""

from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.kit import entity, index, read_names, relation

KEYWORDS = '{"high_level_keywords": [], "low_level_keywords": ["Cid"]}'
PRICE = "票价自2021年起为１２元。🙂"


def reply(request: Request) -> str:
    """The names in a text, or the keywords of a question, or an answer."""
    if request.response_type == "json":
        return KEYWORDS
    return read_names(request) if "Text:\n" in request.question else "Cid wrote a letter."


async def test_all_kinds_of_differences_are_listed(tmp_path: Path) -> None:
    """New, gone and changed documents, entities, relations, claims with dates, and merges of names."""
    async with index(tmp_path) as rag:
        records = [entity("票价", "１２元", valid_from="2021"), entity("Ann"), entity("Bob")]
        await rag.insert_records(Document(PRICE, id="价"), records)
        gone = [entity("Ann"), entity("Eva"), relation("Ann", "Eva")]
        await rag.insert_records(Document("Ann knows Eva.", id="gone"), gone)
        await rag.admin.snapshot("before")
        assert (await rag.admin.diff("before")).is_empty
        await rag.delete("gone")
        await rag.insert_records(
            Document("x", id="new"), [entity("票价", "１５元", valid_from="2022")]
        )
        await rag.entities.merge(["Bob"], into="Ann")
        difference = await rag.admin.diff("before")
        assert [item.name for item in difference.documents] == ["gone", "new"]
        assert [bool(item.before) for item in difference.documents] == [True, False]
        changed, *_ = [item for item in difference.entities if item.name == "票价"]
        assert changed.before == "person: １２元" and "１５元" in changed.after
        assert {item.name for item in difference.relations} == {"Ann → Eva"}
        claims = [(claim.name, claim.before, claim.after) for claim in difference.claims]
        assert ("票价", "", "１５元 (2022 – …) [new]") in claims
        assert [(item.name, item.after) for item in difference.merges] == [("bob", "Ann")]
        assert not difference.is_empty


async def test_two_snapshots_and_two_indexes_are_compared(tmp_path: Path) -> None:
    """In either direction; other combinations of arguments are errors."""
    async with index(tmp_path / "a") as rag, index(tmp_path / "b") as other:
        await rag.insert_records(Document("Ann.", id="a"), [entity("Ann")])
        await rag.admin.snapshot("one")
        await rag.insert_records(Document("Bob.", id="b"), [entity("Bob")])
        await rag.admin.snapshot("two")
        await rag.delete("a", "b")
        forward = await rag.admin.diff("one", "two")
        assert [(item.name, item.before) for item in forward.entities] == [("Bob", "")]
        back = await rag.admin.diff("two", "one")
        assert [(item.name, item.after) for item in back.entities] == [("Bob", "")]
        await other.insert_records(Document("Cid.", id="c"), [entity("Cid")])
        between = await other.admin.diff(index=tmp_path / "a")
        assert [(item.name, item.before) for item in between.entities] == [("Cid", "")]
        for arguments in ((), ("one", "two", tmp_path), ("one", None, tmp_path)):
            with pytest.raises(ConfigError, match="name a snapshot, or an index"):
                await rag.admin.diff(*arguments[:2], index=arguments[2] if arguments else None)


@pytest.mark.slow
async def test_a_model_is_asked_for_answers_only_if_wanted(tmp_path: Path) -> None:
    """The evidence is compared without a model, and the estimate covers the calls."""
    llm = ScriptedLLM(reply)
    async with index(tmp_path, llm) as rag:
        await rag.insert(Document("Ann wrote to Bob.", id="a"))
        await rag.admin.snapshot("before")
        await rag.insert(Document("Cid wrote to Dan.", id="c"))
        calls = len(llm.requests)
        questions = ["Who is Cid?", "Hello"]
        difference = await rag.admin.diff("before", questions=questions)
        assert len(llm.requests) == calls and difference.questions == 2
        asked = difference.answers[0]
        assert asked.question == "Who is Cid?" and any("Cid" in line for line in asked.new_evidence)
        assert asked.before == asked.after == ""
        answered = await rag.admin.diff("before", questions=questions, answers=True)
        assert calls < len(llm.requests) <= calls + difference.estimate.calls
        assert answered.answers[0].after and answered.usage.calls


async def test_without_a_model_answers_are_compared(tmp_path: Path) -> None:
    """Language rules write answers at no cost, so both are there."""
    async with index(tmp_path) as rag:
        await rag.insert(Document("Bob Cratchit worked for Scrooge.", id="a"))
        await rag.admin.snapshot("before")
        await rag.insert(Document("Fred is the nephew of Scrooge.", id="b"))
        difference = await rag.admin.diff("before", questions=["Who is the nephew of Scrooge?"])
        assert "Fred" not in difference.answers[0].before and "Fred" in difference.answers[0].after
        assert difference.estimate.calls == 0
