"""Filters: what they let through, and that nothing else is seen through them."""

from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import ConfigError, Document, QueryParam
from tests.kit import GRAPH_MODES, SEARCHING_MODES, Mode, index, prompts
from tests.retrieval.conftest import Pipelines

QUESTION = "Who was Scrooge's partner?"


@pytest.mark.parametrize("mode", SEARCHING_MODES)
@pytest.mark.parametrize("where", [{"id": "clerk"}, {"date": {"$gte": "1844"}}])
async def test_what_other_documents_say_does_not_leak(
    carol: Path, pipelines: Pipelines, mode: Mode, where: dict[str, str]
) -> None:
    """A filter holds for chunks, entities, relations, and for merged descriptions, counts and
    reasons.
    """
    param = QueryParam(mode=mode, where=where)
    context = await pipelines(carol).retrieve(QUESTION, param)
    assert {chunk.document_id for chunk in context.chunks} == {"clerk"}
    shown = (*context.entities, *context.relations, *context.chunks)
    assert not any("Marley" in str(item) or "miser" in str(item) for item in shown)
    assert "Marley" not in context.prompt and "miser" not in context.prompt
    if mode == "overview":
        names = [name for community in context.communities for name in community.entities]
        assert sorted(names) == ["Bob Cratchit", "Scrooge"]
    elif mode in GRAPH_MODES:
        scrooge = next(entity for entity in context.entities if entity.name == "Scrooge")
        assert scrooge.description == "Scrooge pays his clerk badly."
        assert scrooge.degree == 1
        assert len(scrooge.chunk_ids) == 1
        (employment,) = context.relations
        assert (employment.source, employment.target) == ("Bob Cratchit", "Scrooge")
        assert (employment.weight, employment.keywords) == (5, ("employment",))


async def test_a_filter_that_nothing_meets_leaves_nothing(
    carol: Path, pipelines: Pipelines
) -> None:
    """Numbers past 64 bits and half surrogate pairs are compared like any value."""
    pipeline, low = pipelines(carol), -(10**400)
    values: list[Any] = ["z", 10**30, ["z", low], "\ud800", {"$lt": low}]
    for field, value in (*(("shelf", value) for value in values), ("\ud800", 1)):
        assert (await pipeline.retrieve(QUESTION, QueryParam(where={field: value}))).empty, value
    shelf = await pipeline.retrieve(QUESTION, QueryParam(where={"shelf": "b"}))
    assert {chunk.document_id for chunk in shelf.chunks} == {"clerk", "son"}


@pytest.mark.parametrize(
    ("language", "param", "told"),
    [
        ("en", {}, "Nothing was found in the indexed documents for this question."),
        ("en", {"where": {"keeper": "Zoe"}}, "No document passes the filter (keeper = Zoe)."),
        (
            "en",
            {"where": {"keeper": ["Ilse", "安 🕯"]}},
            "Nothing was found for this question in the 2 documents that pass the filter (keeper = Ilse | 安 🕯).",
        ),
        (
            "en",
            {"where": {"keeper": "Ilse", "date": {"$lt": "1901"}}},
            "Nothing was found for this question in the one document that passes the filter "
            "(keeper = Ilse, date < 1901).",
        ),
        (
            "en",
            {"where": {"keepr": {"$ne": "Ilse"}}},
            "No document passes the filter (keepr != Ilse). No document has keepr; the fields are "
            "content_keywords, date, id, keeper, source, title.",
        ),
        (
            "en",
            {"as_of": "1899"},
            "As of 1899, nothing was found in the indexed documents for this question.",
        ),
        (
            "zh",
            {"as_of": "1899", "where": {"keeper": {"$contains": "s"}}},
            "截至 1899 的情况：在符合过滤条件（keeper contains s）的 1 篇文档中没有找到与这个问题有关的内容。",
        ),
        (
            "zh",
            {"where": {"看守": None, "keeper": "佐伊"}},
            "没有文档符合过滤条件（看守 = null, keeper = 佐伊）。没有文档含有字段 看守；现有字段：content_keywords、"
            "date、id、keeper、source、title。",
        ),
    ],
)
async def test_an_answer_without_findings_says_what_was_searched(
    tmp_path: Path, language: str, param: dict[str, Any], told: str
) -> None:
    """In the language of the index: no more than the documents that pass the filter, up to the moment asked about."""
    async with index(tmp_path, language=language, prompts=prompts(language)) as rag:
        for number, keeper in enumerate(("Ilse", "安 🕯")):
            metadata: dict[str, Any] = {"keeper": keeper}
            document = Document("灯塔 stands.", keeper, date=f"190{number}", metadata=metadata)
            await rag.insert(document)
        question = "Xyzzy plugh?" if language == "en" else "红烧茄子？"
        assert (await rag.query(question, param)).text == told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "Who is Oddvar Brekke?",
            "No sentence with “Oddvar Brekke” was found in the documents that pass",
        ),
        ("诸葛亮是谁？", "符合过滤条件的文档中没有找到含有“诸葛亮”的句子。"),
    ],
)
async def test_a_name_without_a_sentence_was_looked_for_in_what_passes(
    tmp_path: Path, question: str, told: str
) -> None:
    """The answer without a model says so, and the sentence is no claim."""
    language = "zh" if question.startswith("诸") else "en"
    async with index(tmp_path, language=language) as rag:
        await rag.insert(Document("Who keeps the lamp? Nobody is there. 谁是灯塔看守？", id="lamp"))
        answer = await rag.query(question, where={"id": "lamp"}, least_likeness=0)
    assert answer.text.startswith(told)
    assert not answer.uncited and answer.context.where == {"id": "lamp"}


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "Nothing of what was found fits into the budget of tokens (5)."),
        ("zh", "检索到的内容均超出 5 个 token 的上限。"),
    ],
)
async def test_what_the_budget_does_not_hold_was_found(
    tmp_path: Path, language: str, told: str
) -> None:
    """The answer does not say that nothing was found, with a filter or without."""
    async with index(tmp_path, language=language) as rag:
        await rag.insert(Document("Ilse keeps the lighthouse 灯塔 🕯 of Skarn.", id="lamp"))
        for where in ({}, {"id": "lamp"}):
            question = "Who keeps the lighthouse 灯塔?"
            assert (await rag.query(question, where=where, max_total_tokens=5)).text == told


async def test_a_filter_that_makes_no_sense_is_an_error_whatever_is_asked(tmp_path: Path) -> None:
    """Also if small talk looks for nothing; the error names the forms of dates."""
    async with index(tmp_path) as rag:
        await rag.insert("The lamp 🕯 burns.")
        for question in ("What burns?", "hello"):
            with pytest.raises(ConfigError, match="the value after <= must be a date such as 2021"):
                await rag.query(question, where={"date": {"$lte": "明天"}})
