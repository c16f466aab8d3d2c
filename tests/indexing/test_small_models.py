"""The extraction prompt for small models: the model lists names, and sentences of the text tell of them."""

from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import IndexOptions, OpenAILLM
from lightrag_jsonl.core.types import Completion, Extraction
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import index
from tests.servers import Reply, Request, ScriptedServer, chat_reply

SMALL = IndexOptions(extraction="extract-small")
TEXT = (
    '"Good morning," said Ann Lee. Ann Lee keeps the mill at Marsh End. Bob Carter brings Ann Lee the grain '
    "of three farms. The turbidity meter stands beside the wheel; the turbidity meter was a gift."
)
CHINESE_TEXT = "玄德曰：“好。”桓帝崩，灵帝即位。大将军窦武辅佐灵帝，诛杀宦官。窦武大怒。"
NAMES = '["Ann Lee", "Bob Carter", "Marsh End"]'


async def extracted(
    folder: Path, answer: str | Completion, text: str = TEXT, **settings: Any
) -> Extraction:
    """What an index for small models reads from a text, if the model answers so, twice at most."""
    llm = ScriptedLLM([answer, answer])
    async with index(folder, llm, **{"options": SMALL, **settings}) as rag:
        (extraction,) = await rag.extract(text)
    return extraction


def names_of(extraction: Extraction) -> list[str]:
    return [entity.name for entity in extraction.entities]


async def test_the_model_names_and_the_text_tells(tmp_path: Path) -> None:
    """A description is a sentence of the text with the name, one that tells something if there is one; a
    relation is a sentence with both names. The origin of the records says that they quote.
    """
    extraction = await extracted(tmp_path, NAMES)
    assert names_of(extraction) == ["Ann Lee", "Marsh End", "Bob Carter"]
    descriptions = {entity.name: entity.description for entity in extraction.entities}
    assert descriptions["Ann Lee"].startswith("Ann Lee keeps the mill at Marsh End.")
    sentences = [
        *descriptions.values(),
        *(relation.description for relation in extraction.relations),
    ]
    assert all(sentence in TEXT for sentence in sentences)
    pairs = {(relation.source, relation.target): relation for relation in extraction.relations}
    assert pairs["Bob Carter", "Ann Lee"].description == (
        "Bob Carter brings Ann Lee the grain of three farms."
    )
    assert pairs["Ann Lee", "Marsh End"].keywords == ("mentioned together",)
    assert extraction.state == "ok"
    assert extraction.extractor.endswith("descriptions quoted")


async def test_one_short_question_is_asked(tmp_path: Path) -> None:
    """Without gleaning, also of a long chunk."""
    llm = ScriptedLLM([NAMES])
    async with index(tmp_path, llm, options=SMALL) as rag:
        await rag.extract(TEXT * 15)
    (request,) = llm.requests
    assert len(request.text) < len(TEXT * 15) + 500


@pytest.mark.parametrize(
    "answer",
    [
        '"Ann Lee"\n"Bob Carter"\n"Marsh End"',
        '```json\n[\n  "Ann Lee",\n  "Bob Carter",\n  "Marsh End"\n]\n```',
        '{"name": "Ann Lee"}\n{"name": "Bob Carter", "type": "person"}\n{"entity_name": "Marsh End"}',
        '["Ann Lee", "Bob Carter", "Ann Lee", "Marsh End", "ann lee"]',
    ],
    ids=["lines", "fenced", "objects", "repeated"],
)
async def test_all_forms_of_a_list_are_read(tmp_path: Path, answer: str) -> None:
    """An array, texts or objects one a line; names that come back count once."""
    extraction = await extracted(tmp_path, answer)
    assert names_of(extraction) == ["Ann Lee", "Marsh End", "Bob Carter"]
    assert extraction.state == "ok"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Cara Quill", "does not have this name"),
        ("He", "does not have this name"),
        ("Good morning, said Ann Lee", "does not have this name"),
        ('good morning,\\" said Ann Lee', "a clause"),
        ("Ann Lee keeps the mill at", "a clause"),
        ("it was a gift", "does not have this name"),
        ("the turbidity meter was", "a clause"),
        ("Ah!", "does not have this name"),
        ("mill", "a common word"),
        ("the wheel", "a common word"),
        ("three farms", "a common word"),
    ],
)
async def test_what_is_no_name_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    """Names that the text does not have, clauses and common words; each with the reason."""
    extraction = await extracted(tmp_path, f'["Ann Lee", "{name}"]')
    assert names_of(extraction) == ["Ann Lee"]
    (rejection,) = extraction.rejections
    assert rejection.reason == "unsupported" and reason in rejection.detail


async def test_a_term_in_lower_case_needs_more_than_a_mention(tmp_path: Path) -> None:
    """It has several words and comes back, or the text defines it."""
    text = f"{TEXT} Turbidity is a measure of clearness. Some say turbidity is a measure of haze."
    extraction = await extracted(tmp_path, '["turbidity meter", "turbidity", "grain"]', text)
    assert names_of(extraction) == ["turbidity meter", "turbidity"]


async def test_chinese_clauses_are_no_names(tmp_path: Path) -> None:
    """Nor are single characters, lists, or a name with the verb after it."""
    answer = (
        '["灵帝", "窦武", "玄德曰", "灵帝即位", "桓帝崩，灵帝即位", "帝", "窦武大怒", "大将军"]'
    )
    extraction = await extracted(tmp_path, answer, CHINESE_TEXT, language="zh")
    assert names_of(extraction) == ["灵帝", "大将军", "窦武"]
    assert {rejection.reason for rejection in extraction.rejections} == {"unsupported"}
    sentences = [relation.description for relation in extraction.relations]
    assert sentences and set(sentences) == {"大将军窦武辅佐灵帝，诛杀宦官。"}


async def test_a_cut_list_is_resumed(tmp_path: Path) -> None:
    """In the form in which the model began; the half name at the end does not count."""
    llm = ScriptedLLM([Completion('["Ann Lee", "Bob Ca', "length"), '"Bob Carter", "Marsh End"]'])
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT)
    assert names_of(extraction) == ["Ann Lee", "Marsh End", "Bob Carter"]
    assert extraction.resumed == 1 and not extraction.error
    assert llm.requests[1].messages[-2].content == '"Ann Lee"'


async def test_a_list_that_begins_again_is_at_its_end(tmp_path: Path) -> None:
    """Nothing is asked again, and the chunk is not unfinished."""
    llm = ScriptedLLM(
        [Completion('["Ann Lee", "Bob Carter", "Ann Lee", "Bob Carter", "Ann Lee",', "length")]
    )
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT)
    assert names_of(extraction) == ["Ann Lee", "Bob Carter"]
    assert not extraction.error and not extraction.unfinished
    assert len(llm.requests) == 1


async def test_a_text_without_names_gives_an_empty_chunk(tmp_path: Path) -> None:
    """An empty list is an answer."""
    extraction = await extracted(tmp_path, "[]", "It rained all day, and then it stopped.")
    assert extraction.state == "empty"


async def test_quoted_records_answer_questions(tmp_path: Path) -> None:
    """The names are entities of the index, with the sentence behind them and the chunk it stands in."""
    async with index(tmp_path / "kb", ScriptedLLM([NAMES]), options=SMALL) as rag:
        await rag.insert(TEXT)
        entity = await rag.entities.get("Bob Carter")
        assert entity is not None
        assert entity.description == "Bob Carter brings Ann Lee the grain of three farms."
        assert len(entity.chunk_ids) == 1
    llm = ScriptedLLM([])
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        await rag.insert(TEXT)
    assert not llm.requests


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
    """A list of texts for small models; a setting of the user's decides."""

    def respond(request: Request) -> Reply:
        return chat_reply('{"records": ["Ann Lee", "Marsh End"]}')

    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, **settings)
        async with index(tmp_path / "kb", llm, options=options) as rag:
            (extraction,) = await rag.extract(TEXT)
    formats = [body.get("response_format") for body in server.bodies]
    assert formats and [form is not None for form in formats] == [is_forced] * len(formats)
    if options is SMALL and is_forced:
        assert "string" in str(formats[0]) and "entity_type" not in str(formats[0])
        assert names_of(extraction) == ["Ann Lee", "Marsh End"]
