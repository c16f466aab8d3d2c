"""Filters: what they let through, and that nothing else is seen through them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import MODES, QueryParam
from lightrag_jsonl.core.types import Document, Json, Mode
from tests.kit import index
from tests.retrieval.conftest import Pipelines

QUESTION = "Who was Scrooge's partner?"


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "bypass"])
@pytest.mark.parametrize("where", [{"id": "clerk"}, {"date": {"$gte": "1844"}}])
@pytest.mark.parametrize("embedded", [True, False], ids=["dense", "lexical only"])
async def test_what_other_documents_say_does_not_leak(
    carol: Path, pipelines: Pipelines, mode: Mode, where: dict[str, str], embedded: bool
) -> None:
    """A filter holds for chunks, entities, relations, and for merged descriptions, counts and
    reasons.
    """
    param = QueryParam(mode=mode, where=where)
    context = await pipelines(carol, embedded=embedded).retrieve(QUESTION, param)
    assert {chunk.document_id for chunk in context.chunks} == {"clerk"}
    shown = (*context.entities, *context.relations, *context.chunks)
    assert not any("Marley" in str(item) or "miser" in str(item) for item in shown)
    assert "Marley" not in context.prompt and "miser" not in context.prompt
    if mode != "naive":
        scrooge = next(entity for entity in context.entities if entity.name == "Scrooge")
        assert scrooge.description == "Scrooge pays his clerk badly."
        assert scrooge.degree == 1
        assert len(scrooge.chunk_ids) == 1
        (employment,) = context.relations
        assert (employment.source, employment.target) == ("Bob Cratchit", "Scrooge")
        assert (employment.weight, employment.keywords) == (5, ("employment",))


@pytest.mark.parametrize(
    "where",
    [
        {"shelf": "z"},
        {"shelf": 10**30},
        {"shelf": ["z", -(10**400)]},
        {"shelf": "\ud800"},
        {"shelf": {"$lt": -(10**400)}},
        {"\ud800": 1},
    ],
)
async def test_a_filter_that_nothing_meets_leaves_nothing(
    carol: Path, pipelines: Pipelines, where: dict[str, Json]
) -> None:
    """Numbers past 64 bits and half surrogate pairs are compared like any value."""
    pipeline = pipelines(carol)
    assert (await pipeline.retrieve(QUESTION, QueryParam(where=where))).empty
    shelf = await pipeline.retrieve(QUESTION, QueryParam(where={"shelf": "b"}))
    assert {chunk.document_id for chunk in shelf.chunks} == {"clerk", "son"}


YEARS: list[Json] = [2020, "2021", None, 2022]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"$gt": 2030}, set()),
        ({"$lt": "1000"}, set()),
        ({"$gte": 2020, "$lt": 2022.5}, {2020, 2022}),
        ({"$gte": [2022, "2021"]}, {2022, "2021"}),
        ({"$ne": 2020}, {"2021", 2022}),
        ({"$eq": 2020}, {2020}),
        ({"$in": [2020, "2021"]}, {2020, "2021"}),
        ({"$nin": [2020, "2021"]}, {2022}),
        ({"$in": [2020, "2021"], "$ne": 2020}, {"2021"}),
        ({"$ne": [2020, "2021"]}, {2022}),
        ({"$ne": None}, {2020, "2021", 2022}),
        ({"$ne": [None, 2022]}, {2020, "2021"}),
        (None, {None}),
        ([None, 2022], {None, 2022}),
        ([], set()),
    ],
)
async def test_values_are_compared_with_those_of_their_kind(
    tmp_path: Path, wanted: Json, found: set[Json]
) -> None:
    """No text is greater than any number; a fact that is not there meets no comparison."""
    given = [Document(f"Ann met Bob {y}.", id=str(y), metadata={"year": y}) for y in YEARS]
    assert await _found(tmp_path, given, {"year": wanted}) == set(map(str, found))


@pytest.mark.parametrize("key", ["tags", 'a"b', "标签"])
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("red", {"a", "c"}),
        (["red", 7], {"a", "b", "c"}),
        (7, {"b"}),
        ("[", {"b"}),
        ({"$ne": "red"}, {"b"}),
        ({"$nin": [7]}, {"a", "c"}),
        (None, {"d"}),
    ],
)
async def test_of_a_list_of_facts_one_is_enough(
    tmp_path: Path, key: str, wanted: Json, found: set[str]
) -> None:
    """A document with several tags is found by each of them, as one whose only fact it is."""
    facts: dict[str, Json] = {"a": ["red", "round"], "b": ["[", 7, {"x": "red"}], "c": "red"}
    given = [Document("Ann met Bob.", id=id, metadata={key: fact}) for id, fact in facts.items()]
    given.append(Document("Ann met Bob.", id="d"))
    assert await _found(tmp_path, given, {key: wanted}) == found


@pytest.mark.parametrize("wanted", [{"$gt": None}, {"$gt": []}, {"$ne": {}}, {"$lt": [[1]]}, {}])
async def test_a_comparison_with_what_cannot_be_compared_is_refused(
    tmp_path: Path, wanted: Json
) -> None:
    """The error names the field, and not the database."""
    with pytest.raises(ConfigError, match=r"^where\['year'\]"):
        await _found(tmp_path, [Document("Ann met Bob.", id="a")], {"year": wanted})


@pytest.mark.parametrize(
    "key", ["shelf", "a.b", "$", "", "a]b", "'", '"', 'a"b', "\\", "a\nb", "架"]
)
async def test_any_metadata_can_be_asked_for(tmp_path: Path, key: str) -> None:
    """Whatever it is called."""
    given = [Document("Ann met Bob.", id=id, metadata={key: id}) for id in ("a", "b")]
    assert await _found(tmp_path, given, {key: "a"}) == {"a"}


async def _found(folder: Path, given: list[Document], where: dict[str, Json]) -> set[str]:
    """The documents that a question finds under a filter."""
    async with index(folder) as rag:
        await rag.insert(given)
        found = await rag.retrieve("Ann", QueryParam(mode="naive", where=where))
    return {chunk.document_id for chunk in found.chunks}
