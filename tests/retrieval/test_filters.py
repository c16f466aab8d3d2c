"""Filters: what they let through, and that nothing else is seen through them."""

from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import QueryParam
from tests.kit import GRAPH_MODES, SEARCHING_MODES, Mode
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
