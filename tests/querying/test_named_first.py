"""What the question names stands first, however little is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightrag_jsonl import QueryParam
from lightrag_jsonl.types import Document, Mode
from tests.indexing.kit import entity, index, relation


@pytest.mark.parametrize("mode", ["local", "hybrid", "mix"])
async def test_a_named_entity_without_relations_comes_before_its_neighbours(
    tmp_path: Path, mode: Mode
) -> None:
    """Relations bring others a vote that it cannot get; and the budget cuts from the end."""
    others = [entity(f"Liu B{n}", f"The {n}th of the Lius.") for n in range(9)]
    joined = [relation("Liu B0", f"Liu B{n}", "They are cousins.") for n in range(1, 9)]
    async with index(tmp_path) as rag:
        await rag.insert_records(Document("Lius", id="a"), [*others, *joined])
        await rag.insert_records(Document("Liu Bei", id="b"), [entity("Liu Bei", "A king.")])
        param = QueryParam(mode=mode, ll_keywords=("Liu Bei",), max_entity_tokens=40)
        context = await rag.retrieve("What did Liu Bei do?", param=param)
        assert context.entities[0].name == "Liu Bei"


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who is Liu Bei?", "Liu Bei"),
        ("What is “Liu Bei’s”, then?", "Liu Bei"),
        ("谁是（刘备）？", "刘备"),
        ("Is C++, or C, older?", "C++"),
    ],
)
async def test_why_quotes_the_name_and_not_what_stands_around_it(
    tmp_path: Path, question: str, name: str
) -> None:
    """Marks of the question are no part of the name, marks of the name are."""
    async with index(tmp_path) as rag:
        await rag.insert_records(Document(name, id="a"), [entity(name, "Known.")])
        context = await rag.retrieve(question, mode="local")
        assert f"named “{name}”" in context.entities[0].why
