"""The extraction prompt for small models: one kind of record, in the words of the text."""

from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import IndexOptions, OpenAILLM
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import index, jsonl
from tests.servers import Reply, Request, ScriptedServer, chat_reply

SMALL = IndexOptions(extraction="extract-small")
TEXT = "Ann Lee keeps the mill at Marsh End, and Bob brings her the grain."
CHINESE_TEXT = "桓帝崩，灵帝即位，大将军窦武辅佐灵帝。"
RELATIONS = jsonl(
    {"source": "Bob", "target": "Ann Lee", "description": "Bob brings Ann Lee the grain."},
    {"source": "Ann Lee", "target": "Bob", "description": "Ann Lee keeps the mill."},
    {"source": "Bob", "target": "Marsh End", "description": "The grain is brought."},
    {
        "source": "Ann Lee keeps, and Bob",
        "target": "the mill",
        "description": "Ann Lee keeps the mill.",
    },
    {
        "source": "that Bob brings the grain",
        "target": "Marsh End",
        "description": "Ann Lee keeps the mill at Marsh End.",
    },
    {
        "source": "Ann Lee",
        "target": "Bob",
        "description": "Ann Lee married Bob's brother in Paris.",
    },
)
CHINESE_RELATIONS = jsonl(
    {"source": "桓帝崩，灵帝即位。", "target": "灵帝", "description": "桓帝崩，灵帝即位。"},
    {"source": "窦武", "target": "灵帝", "description": "窦武对灵帝进行赏赐，灵帝对窦武进行赏赐。"},
    {"source": "窦武", "target": "灵帝", "description": "窦武曰："},
)


async def test_a_statement_belongs_to_what_it_names(tmp_path: Path) -> None:
    """A relation names both ends; a sentence about one end describes this one, also if the other end is
    no name; a sentence about neither, and what is no copy of the text, are refused, with the reason. A
    single short question is asked, without gleaning.
    """
    llm = ScriptedLLM([RELATIONS])
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT * 40)

    (relation,) = extraction.relations
    assert (relation.source, relation.target) == ("Bob", "Ann Lee")
    assert {entity.name: entity.description for entity in extraction.entities} == {
        "Ann Lee": "Ann Lee keeps the mill.",
        "Bob": "",
        "the mill": "Ann Lee keeps the mill.",
        "Marsh End": "Ann Lee keeps the mill at Marsh End.",
    }
    reasons = [rejection.reason for rejection in extraction.rejections]
    assert reasons == ["unnamed_ends", "unsupported"]
    (request,) = llm.requests
    hint, _, _ = request.text.partition("Ann Lee keeps")
    assert "Ann Lee" in hint  # names found by rules


async def test_a_chinese_clause_is_no_name(tmp_path: Path) -> None:
    """And what the text does not say is refused."""
    async with index(tmp_path, ScriptedLLM([CHINESE_RELATIONS]), options=SMALL) as rag:
        (extraction,) = await rag.extract(CHINESE_TEXT)
    (emperor,) = extraction.entities
    assert (emperor.name, emperor.description) == ("灵帝", "桓帝崩，灵帝即位。")
    assert [rejection.reason for rejection in extraction.rejections] == ["unsupported"] * 2


async def test_a_description_may_be_a_translation(tmp_path: Path) -> None:
    """Its words are not in the text then."""
    record = {
        "source": "Ann Lee",
        "target": "Marsh End",
        "description": "Ann Lee在Marsh End看守磨坊。",
    }
    async with index(tmp_path, ScriptedLLM([jsonl(record)]), options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT)
    assert len(extraction.relations) == 1


async def test_a_cut_off_answer_is_resumed(tmp_path: Path) -> None:
    """In the same form."""
    first, second, *_ = RELATIONS.split("\n")
    llm = ScriptedLLM([Completion(first, "length"), second])
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT)
    assert len(extraction.relations) == 1 and extraction.resumed == 1
    assert any(entity.description for entity in extraction.entities)


@pytest.mark.parametrize(
    ("options", "settings", "is_forced"),
    [
        (SMALL, {}, True),
        (SMALL, {"constrain": "off"}, False),
        (IndexOptions(), {}, False),
        (IndexOptions(), {"constrain": "auto"}, True),
    ],
)
async def test_the_form_is_forced_by_default_for_small_models_only(
    tmp_path: Path, options: IndexOptions, settings: dict[str, Any], is_forced: bool
) -> None:
    """One kind of record; a setting of the user's decides."""

    def respond(request: Request) -> Reply:
        return chat_reply(RELATIONS)

    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, **settings)
        async with index(tmp_path / "kb", llm, options=options) as rag:
            await rag.extract(TEXT)
    formats = [body.get("response_format") for body in server.bodies]
    assert formats and [form is not None for form in formats] == [is_forced] * len(formats)
    if options is SMALL and is_forced:
        assert "source" in str(formats[0]) and "entity_type" not in str(formats[0])
