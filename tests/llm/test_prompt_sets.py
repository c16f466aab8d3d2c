"""What the packaged prompt sets promise: sound, in step with each other, and cheap."""

import json
import re
from typing import Any

import pytest

from lightrag_jsonl import PromptManager, Tokenizer
from lightrag_jsonl.core.options import ENTITY_TYPES
from lightrag_jsonl.llm.pair_review import PAIRS_AT_ONCE
from lightrag_jsonl.llm.prompt_manager import prompt_folder

LANGUAGES = ("en", "zh")
IDS = {
    "extract-graph": "jsonl",
    "extract-small": "jsonl",
    "resume-extract": "jsonl",
    "glean-extract": "jsonl",
    "glean-check": "text",
    "summarize-descriptions": "text",
    "keywords": "json",
    "answer": "text",
    "answer-naive": "text",
    "answer-mix": "text",
    "answer-overview": "text",
    "similarity-check": "text",
    "kg-edge-selection": "jsonl",
    "review-claims": "jsonl",
    "check-claims": "jsonl",
    "answer-again": "text",
    "review-names": "jsonl",
    "community-report": "json",
    "no-context": "text",
    "nothing-indexed": "text",
    "see-picture": "text",
    "extract-definitions": "jsonl",
    "extract-relationships": "jsonl",
    "extract-topics": "jsonl",
    "extract-rows": "jsonl",
    "agent-kg-extract": "jsonl",
    "extract-with-ontologies": "jsonl",
}
VARIABLES: dict[str, object] = {
    "text": "乔峰 fought. 🌍",
    "background": "天龙八部 › 第一回",
    "date": "2024-05-01",
    "entity_types": ["person", "place"],
    "type_notes": [],  # beside them, the types of the index are not listed
    "language": "English",
    "name": "乔峰",
    "names": ["乔峰", "丐帮"],
    "descriptions": ["a chief", "一位帮主"],
    "claims": ["- 乔峰 fought."],
    "query": "乔峰是谁？",
    "history": "user: hi",
    "context": "[1] 乔峰",
    "response_type": "one sentence",
    "user_prompt": "be kind",
    "question_a": "a?",
    "question_b": "b?",
    "edges": [{"id": "1", "s": "乔峰", "p": "leads", "o": "丐帮"}],
    "entities": ["乔峰", "丐帮"],
    "passages": ["[1] 乔峰 fought. 🌍"],
    "pairs": ['{"id": "1", "a": {"name": "乔峰"}, "b": {"name": "萧峰"}}'],
    "schema": {"fields": [{"name": "city"}]},
    "classes": ["Person"],
    "object_properties": ["leads: Person -> Group"],
    "datatype_properties": ["born: Person -> date"],
    "pending": "2",
    "failed": "1",
    "pending_reason": "连接失败",
    "failed_reason": "no answer 🌍",
    "where": "author = 安 🌍",
    "as_of": "2021-06",
    "documents": "3",
    "unknown_fields": ["autor"],
    "fields": ["author", "日期"],
}
FIXED_TOKENS = 700


@pytest.fixture(scope="module", params=LANGUAGES)
def manager(request: pytest.FixtureRequest) -> PromptManager:
    return PromptManager.load(request.param)


def shown(manager: PromptManager, id: str) -> str:
    given = {name: VARIABLES[name] for name in manager.prompt(id).inputs}
    return "\n".join(message.content for message in manager.render(id, given))


def test_a_set_is_whole(manager):
    """Every prompt of the specification is there, with its response type and inputs declared."""
    assert {id: manager.prompt(id).response_type for id in manager.ids} == IDS
    assert manager.prompt("ontology-extract") is manager.prompt("extract-with-ontologies")


def test_a_prompt_shows_all_it_is_given(manager):
    """Each variable that a prompt declares changes what the model reads, the text included."""
    for id in IDS:
        text = shown(manager, id)
        assert "{{" not in text
        assert "{%" not in text
        for name in manager.prompt(id).inputs:
            value = VARIABLES[name]
            for part in [value] if isinstance(value, str) else list(value):  # type: ignore[call-overload]
                words = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
                assert words in text


@pytest.mark.slow
def test_the_languages_are_in_step():
    """Same ids, response types, inputs, terms by name, schemas, example shapes and revisions."""
    en, zh = (PromptManager.load(language) for language in LANGUAGES)
    assert en.ids == zh.ids
    for id in en.ids:
        assert _shape(en.prompt(id)) == _shape(zh.prompt(id)), id


def _shape(prompt: Any) -> list[object]:
    """All of a prompt but its words."""
    schema = _bare(prompt.schema)
    keys = [list(json.loads(line)) for line in prompt.example_lines]
    form = [prompt.response_type, prompt.schema_input, prompt.revision]
    return [*form, prompt.inputs, prompt.aliases, set(prompt.defaults), schema, keys]


def test_chinese_prose_is_chinese_and_keys_are_ascii():
    """Without code words, JSON keys and variables, a Chinese prompt has no English words left."""
    zh = PromptManager.load("zh")
    words = {"JSON", "Lines", "true", "false", "null", "number", "object", "A", "B"}
    words |= {"Markdown", "LaTeX", "NOTHING"}
    kinds = {"entity", "relationship", "attribute", "definition", "content_keywords", "done"}
    for id in zh.ids:
        path = prompt_folder("zh") / f"{id}.md"
        body = path.read_text(encoding="utf-8").split("\n---\n", 1)[1]
        prose = re.sub(
            r"^# (system|user)$|\{\{.*?\}\}|\{%.*?%\}|\"[\w-]+\"", "", body, flags=re.MULTILINE
        )
        assert set(re.findall(r"[A-Za-z_]{2,}", prose)) <= words | kinds, id
        assert len(re.findall(r"[\u4e00-\u9fff]", prose)) >= 10, id
        for line in zh.prompt(id).example_lines:
            assert "".join(json.loads(line)).isascii()


def test_the_question_stands_last_in_answer_prompts(manager):
    """Context first, question last; the user's wishes and the history only where there are any."""
    for id in (
        "answer",
        "answer-naive",
        "answer-mix",
        "answer-overview",
        "keywords",
        "kg-edge-selection",
    ):
        given = {"query": "乔峰是谁？", "context": "[1] 乔峰", "edges": ["e"]}
        known = {name: given[name] for name in manager.prompt(id).inputs if name in given}
        messages = manager.render(id, known)
        assert messages[-1].content.endswith("乔峰是谁？")
        assert "\n\n\n" not in "".join(message.content for message in messages)


@pytest.mark.parametrize(("language", "types"), sorted(ENTITY_TYPES.items()))
def test_each_type_of_a_language_has_a_line_of_guidance(
    language: str, types: tuple[str, ...]
) -> None:
    """In place of the bare list of types, in extract-graph; a user's own types are listed."""
    manager = PromptManager.load(language)
    text = manager.render("extract-graph", {"text": ""})[0].content
    notes = manager.prompt("extract-graph").defaults["type_notes"]
    named = ", ".join([str(note).partition(":")[0].partition("：")[0] for note in notes])
    assert re.split("[,、] ?", named) == list(types)
    assert all(str(note) in text for note in notes)
    own = manager.render(
        "extract-graph", {"text": "", "entity_types": ["gene", "drug"], "type_notes": []}
    )
    assert "gene" in own[0].content and str(notes[0]) not in own[0].content


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_fixed_part_of_extract_graph_is_small(language: str, o200k: Tokenizer) -> None:
    """At most 700 o200k tokens are paid for each chunk beside its text."""
    messages = PromptManager.load(language).render("extract-graph", {"text": ""})

    assert sum(o200k.count(message.content) for message in messages) <= FIXED_TOKENS


def _bare(schema: object) -> Any:
    """A schema without its descriptions."""
    if isinstance(schema, dict):
        return {key: _bare(value) for key, value in schema.items() if key != "description"}
    return [_bare(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("prompt", ["review-claims", "review-names"])
def test_a_copied_example_judges_no_pair(manager: PromptManager, prompt: str) -> None:
    """Its ids are those of no pair, since small models copy examples."""
    records = [json.loads(line) for line in manager.prompt(prompt).example_lines]
    assert records and all(int(record["id"]) > PAIRS_AT_ONCE for record in records)
