"""The extraction prompt for small models: entities first, then the relations between these."""

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
ENTITIES = jsonl(
    {"name": "Ann Lee", "entity_type": "person", "description": "Ann Lee keeps the mill."},
    {"name": "Marsh End", "entity_type": "place", "description": "Marsh End has a mill."},
    {"name": "Bob", "entity_type": "person", "description": "Bob brings the grain."},
)
RELATIONS = jsonl(
    {"source": "Bob", "target": "Ann Lee", "description": "Bob brings Ann Lee the grain."}
)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_two_short_questions_give_entities_and_relations(
    tmp_path: Path, language: str
) -> None:
    """The second has the names instead of the first answer, and there is no gleaning by default."""
    llm = ScriptedLLM([ENTITIES, RELATIONS])
    async with index(tmp_path / "kb", llm, options=SMALL, language=language) as rag:
        (extraction,) = await rag.extract(TEXT * 40)
    first, second = llm.requests

    assert extraction.state == "ok" and not extraction.rejections
    assert {entity.name: entity.type for entity in extraction.entities} == {
        "Ann Lee": "person",
        "Marsh End": "place",
        "Bob": "person",
    }
    (relation,) = extraction.relations
    assert (relation.source, relation.target) == ("Bob", "Ann Lee")
    assert second.messages[:2] == first.messages
    assert "Marsh End" in second.messages[2].content
    assert "keeps the mill" not in second.messages[2].content


async def test_one_entity_has_no_relations(tmp_path: Path) -> None:
    """So nobody is asked; an empty first answer is asked for twice, as with any prompt."""
    alone = ENTITIES.split("\n")[0]
    for answers, calls, state in (([alone], 1, "ok"), (["", ""], 2, "failed")):
        llm = ScriptedLLM(answers)
        async with index(tmp_path / state, llm, options=SMALL) as rag:
            (extraction,) = await rag.extract(TEXT)
        assert len(llm.requests) == calls and extraction.state == state


async def test_a_cut_off_list_of_relations_is_resumed(tmp_path: Path) -> None:
    """In the form of relations."""
    llm = ScriptedLLM(
        [ENTITIES, Completion(RELATIONS, "length"), RELATIONS.replace("Bob", "Marsh End")]
    )
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT)
    assert len(extraction.relations) == 2 and extraction.resumed == 1


def respond(request: Request) -> Reply:
    """Entities, then relations."""
    is_first = len(request.json["messages"]) == 2
    return chat_reply(ENTITIES if is_first else RELATIONS)


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
    """One kind of record at a time; a setting of the user's decides."""
    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, **settings)
        async with index(tmp_path / "kb", llm, options=options) as rag:
            await rag.extract(TEXT)
    formats = [body.get("response_format") for body in server.bodies]
    assert [form is not None for form in formats] == [is_forced] * len(formats)
    if options is SMALL and is_forced:
        first, second = map(str, formats)
        assert "entity_type" in first and "source" not in first
        assert "source" in second and "entity_type" not in second
