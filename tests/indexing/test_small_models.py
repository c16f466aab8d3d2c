"""The extraction prompt for small models: the model lists names, and sentences of the text tell of them."""

import re
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Completion, IndexOptions, OpenAILLM
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import index
from tests.servers import Reply, Request, ScriptedServer, chat_reply

SMALL = IndexOptions(extraction="extract-small")
TEXT = (
    '"Good morning," said Ann Lee. Ann Lee keeps the mill at Marsh End. Bob Carter brings Ann Lee the grain '
    "of three farms. The turbidity meter stands beside the mill race; the mill race feeds the wheel, and the "
    "turbidity meter was a gift of Bob Carter."
)
CHINESE_TEXT = "玄德曰：“好。”桓帝崩，灵帝即位。大将军窦武辅佐灵帝，诛杀宦官。窦武大怒。"
BY_RULES = ["Ann Lee", "Marsh End", "Bob Carter"]
NAMES = '["Ann Lee", "turbidity meter", "mill race"]'
ALL_NAMES = [*BY_RULES, "turbidity meter", "mill race"]


async def extracted(
    folder: Path, answer: str | Completion, text: str = TEXT, **settings: Any
) -> Any:
    """What an index for small models reads from a text, if the model answers so, twice at most."""
    llm = ScriptedLLM([answer, answer])
    async with index(folder, llm, **{"options": SMALL, **settings}) as rag:
        (extraction,) = await rag.extract(text)
    return extraction


def names_of(extraction: Any) -> list[str]:
    return [entity.name for entity in extraction.entities]


async def test_the_model_names_and_the_text_tells(tmp_path: Path) -> None:
    """The model's names join those that rules find. A description is made of sentences of the text with the
    name, one that tells something first; a relation is a sentence with both names. The origin of the
    records says that they quote.
    """
    extraction = await extracted(tmp_path, NAMES)
    assert names_of(extraction) == ALL_NAMES
    descriptions = {entity.name: entity.description for entity in extraction.entities}
    assert descriptions["Ann Lee"].startswith("Ann Lee keeps the mill at Marsh End.")
    assert descriptions["mill race"].startswith("The turbidity meter stands beside the mill race")
    for relation in extraction.relations:
        assert relation.source in relation.description and relation.target in relation.description
    sentences = [
        *descriptions.values(),
        *(relation.description for relation in extraction.relations),
    ]
    for description in sentences:
        assert all(sentence in TEXT for sentence in re.split(r"(?<=[.!?]) ", description))
    pairs = {(relation.source, relation.target): relation for relation in extraction.relations}
    assert pairs["turbidity meter", "mill race"].keywords == ("mentioned together",)
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
        '"Ann Lee"\n"turbidity meter"\n"mill race"',
        '```json\n[\n  "Ann Lee",\n  "turbidity meter",\n  "mill race"\n]\n```',
        '{"name": "mill race"}\n{"entity_name": "Turbidity meter", "type": "thing", "description": "It hums."}',
        '["mill race", "Ann Lee", "mill race", "turbidity meter", "ann lee"]',
    ],
    ids=["lines", "fenced", "objects", "repeated"],
)
async def test_all_forms_of_a_list_are_read(tmp_path: Path, answer: str) -> None:
    """An array, texts or objects one a line, of which only the names count; repeated names count once."""
    extraction = await extracted(tmp_path, answer)
    assert names_of(extraction) == ALL_NAMES
    assert extraction.state == "ok"
    assert "hums" not in str(extraction.entities)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Cara Quill", "does not have this name"),
        ("He", "does not have this name"),
        ("Good morning, said Ann Lee", "does not have this name"),
        ('good morning,\\" said Ann Lee', "a clause"),
        ("Ann Lee keeps the mill at", "a clause"),
        ("it was a gift", "does not have this name"),
        ("turbidity meter was", "a clause"),
        ("of Bob Carter", "a clause"),
        ("Ah!", "does not have this name"),
        ("mill", "a common word"),
        ("the wheel", "a common word"),
        ("three farms", "a common word"),
    ],
)
async def test_what_is_no_name_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    """Names that the text does not have, clauses and common words; each with the reason."""
    extraction = await extracted(tmp_path, f'["Ann Lee", "{name}"]')
    assert names_of(extraction) == BY_RULES
    (rejection,) = extraction.rejections
    assert rejection.reason == "unsupported" and reason in rejection.detail


async def test_a_term_in_lower_case_needs_more_than_a_mention(tmp_path: Path) -> None:
    """It has several words and comes back, or the text defines it."""
    text = f"{TEXT} Some say that turbidity is a measure of haze."
    extraction = await extracted(tmp_path, '["turbidity meter", "turbidity", "grain"]', text)
    assert names_of(extraction) == [*BY_RULES, "turbidity meter", "turbidity"]


async def test_chinese_clauses_are_no_names(tmp_path: Path) -> None:
    """Nor are single characters, lists, or a name with the verb after it."""
    answer = (
        '["灵帝", "窦武", "玄德曰", "灵帝即位", "桓帝崩，灵帝即位", "帝", "窦武大怒", "大将军"]'
    )
    extraction = await extracted(tmp_path, answer, CHINESE_TEXT, language="zh")
    assert names_of(extraction) == ["桓帝", "灵帝", "大将军", "窦武"]
    assert {rejection.reason for rejection in extraction.rejections} == {"unsupported"}
    sentences = {relation.description for relation in extraction.relations}
    assert "大将军窦武辅佐灵帝，诛杀宦官。" in sentences


async def test_a_cut_list_is_resumed(tmp_path: Path) -> None:
    """In the form in which the model began; the half name at the end does not count."""
    llm = ScriptedLLM(
        [Completion('["mill race", "turbidity", "turb', "length"), '"turbidity meter"]']
    )
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT)
    assert names_of(extraction) == ALL_NAMES
    assert extraction.resumed == 1 and not extraction.error
    assert llm.requests[1].messages[-2].content == '"mill race"\n"turbidity"'


async def test_a_list_that_begins_again_is_at_its_end(tmp_path: Path) -> None:
    """Nothing is asked again, and the chunk is not unfinished."""
    loop = '["mill race", "turbidity meter", "mill race", "turbidity meter", "mill race",'
    llm = ScriptedLLM([Completion(loop, "length")])
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        (extraction,) = await rag.extract(TEXT)
    assert names_of(extraction) == ALL_NAMES
    assert not extraction.error and not extraction.unfinished
    assert len(llm.requests) == 1


async def test_an_empty_list_is_an_answer(tmp_path: Path) -> None:
    """The names by rules stay; without any the chunk is empty."""
    assert names_of(await extracted(tmp_path / "named", "[]")) == BY_RULES
    rain = "It rained all day, and then it stopped."
    assert (await extracted(tmp_path / "empty", "[]", rain)).state == "empty"


async def test_without_an_answer_a_chunk_has_failed(tmp_path: Path) -> None:
    """Rules do not hide that the model gave no list, so that a retry asks again."""
    extraction = await extracted(tmp_path, "I am sorry, but I cannot do that.")
    assert extraction.state == "failed" and not extraction.entities


async def test_quoted_records_are_stored(tmp_path: Path) -> None:
    """The names are entities of the index, with the sentence behind them and the chunk it stands in; what
    is indexed is not asked again.
    """
    async with index(tmp_path / "kb", ScriptedLLM([NAMES]), options=SMALL) as rag:
        await rag.insert(TEXT)
        entity = await rag.entities.get("mill race")
        assert entity is not None
        assert entity.description in TEXT and len(entity.chunk_ids) == 1
    llm = ScriptedLLM([])
    async with index(tmp_path / "kb", llm, options=SMALL) as rag:
        await rag.insert(TEXT)
    assert not llm.requests


@pytest.mark.parametrize(
    ("options", "settings", "is_forced"),
    [
        (SMALL, {}, False),
        (SMALL, {"constrain": "auto"}, True),
        (IndexOptions(), {}, False),
        (IndexOptions(), {"constrain": "auto"}, True),
    ],
)
async def test_the_form_is_forced_on_request_only(
    tmp_path: Path, options: IndexOptions, settings: dict[str, Any], is_forced: bool
) -> None:
    """A list of texts for small models."""

    def respond(request: Request) -> Reply:
        return chat_reply('{"records": ["mill race", "turbidity meter"]}')

    with ScriptedServer(respond=respond) as server:
        llm = OpenAILLM("m", base_url=server.base_url, **settings)
        async with index(tmp_path / "kb", llm, options=options) as rag:
            (extraction,) = await rag.extract(TEXT)
    formats = [body.get("response_format") for body in server.bodies]
    assert formats and [form is not None for form in formats] == [is_forced] * len(formats)
    if options is SMALL and is_forced:
        assert "string" in str(formats[0]) and "entity_type" not in str(formats[0])
        assert names_of(extraction) == ALL_NAMES
