"""What prompts promise: strict templates, errors at load that name file and key, replies read."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Message, PromptError, PromptManager, ResponseError, Schema
from lightrag_jsonl.llm.json_values import read_json
from lightrag_jsonl.llm.prompt import Prompt, read_prompt
from lightrag_jsonl.llm.prompt_manager import RecordList, check_set
from lightrag_jsonl.llm.schemas import row_schema
from lightrag_jsonl.testing import ScriptedLLM

DEFINITION = {
    "type": "object",
    "properties": {"entity": {"type": "string"}, "definition": {"type": "string"}},
    "required": ["entity", "definition"],
}


def invoke(manager: PromptManager, id: str, answer: str, **variables: object) -> object:
    async def llm(system: str, prompt: str) -> str:
        return answer

    return asyncio.run(manager.invoke(id, variables, llm))


def manager_of(**settings: object) -> PromptManager:
    manager = PromptManager()
    manager.load_config({"it": {"prompt": "{{ text }}", **settings}}, source="my.json")
    return manager


def write_prompt(folder: Path, name: str, front: str, body: str = "# user\n{{ text }}\n") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(f"---\n{front}\n---\n{body}", encoding="utf-8")
    return path


# ── templates ───────────────────────────────────────────────────────────────────


@given(st.text())
def test_user_text_is_never_evaluated(text):
    """What is inside a variable stands in the prompt as it is, template syntax included."""
    hostile = "{{ 7 * 7 }}{% for x in y %}" + text + "{# no #}"

    (message,) = Prompt("<{{ text }}>").render({"text": hostile})

    assert message.content == f"<{hostile}>"


@pytest.mark.parametrize(
    "template",
    [
        "{{ text.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ range(10 ** 9) }}",
        "{{ 1 / 0 }}",
        "{{ text.nothing.more }}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
    ],
)
def test_a_template_cannot_leave_its_sandbox(template):
    """Reaching for Python's insides, or failing in any other way, is a `PromptError`."""
    with pytest.raises(PromptError):
        Prompt(template).render({"text": "中文"})


def test_variables_come_from_the_input_the_prompt_or_the_manager():
    """Input wins over the prompt's terms, these win over the global ones; a missing one is named."""
    terms = dict.fromkeys("abc", "global")
    prompt = Prompt("{{ a }} {{ b }} {{ c }}", terms={"b": "prompt", "c": "prompt"})
    (message,) = PromptManager({"it": prompt}, terms=terms).render("it", {"c": "input"})
    assert message.content == "global prompt input"
    with pytest.raises(PromptError, match=r"'a' is missing.*given: b, c"):
        prompt.render({})


@pytest.mark.parametrize(
    ("template", "value", "written"),
    [
        ("{{ it }}", {"城市": ["北京"]}, '{"城市": ["北京"]}'),
        ("{{ it | joined('、') }}", ["人物", "地点"], "人物、地点"),
        ("{{ it | joined }}", "plain", "plain"),
        (
            "{{ it }}",
            [Message("user", "你好"), Message("assistant", "🌍")],
            "user: 你好\nassistant: 🌍",
        ),
        ("{{ it }}", None, ""),
    ],
)
def test_values_that_are_no_text_are_written_readably(template, value, written):
    """Lists and mappings become JSON with their own characters, `joined` lists, turns lines."""
    assert Prompt(template).render({"it": value}) == (Message("user", written),)


# ── configuration ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("schema", ["schema", "object-schema"])
@pytest.mark.parametrize("encode", [lambda value: value, json.dumps], ids=["objects", "strings"])
def test_the_trustgraph_layout_is_read(encode, schema):
    """Its system text, index and templates work, given as objects or as JSON strings."""
    prompt = {"prompt": "Define: {{text}}", "response-type": "jsonl", schema: DEFINITION}
    config = {"system": "Brief.", "template-index": ["define"], "template.define": prompt}
    manager = PromptManager()
    manager.load_config({key: encode(value) for key, value in config.items()})

    assert manager.ids == ("define",)
    messages = (Message("system", "Brief."), Message("user", "Define: 猫"))
    assert manager.render("define", {"text": "猫"}) == messages
    answer = '{"entity":"cat","definition":"x"}\n{"entity":"dog"}\n{"entity":"fox","defi'
    found = [{"entity": "cat", "definition": "x"}]
    assert invoke(manager, "define", answer, text="…") == found
    assert manager.parse_jsonl(answer, prompt="define") == found


@pytest.mark.parametrize(
    ("answer", "state", "refused"),
    [
        ('{"entity":"猫","definition":"x"}', "ok", 0),
        ("", "empty", 0),
        ('{"entity":"猫","definition":"x"}\n{"entity":"dog"}\n{"entity":"f', "partial", 2),
        ("I cannot do that.", "failed", 1),
        ('{"entity":"dog"', "failed", 1),
    ],
)
def test_an_invocation_says_what_it_refused(
    caplog: pytest.LogCaptureFixture, answer: str, state: str, refused: int
) -> None:
    """An answer with nothing in it, a cut one and an unreadable one would else look the same."""
    manager = manager_of(**{"response-type": "jsonl", "schema": DEFINITION})
    records = invoke(manager, "it", answer, text="…")
    assert isinstance(records, RecordList) and records.state == state
    assert len(records.rejections) == caplog.text.count("is not a valid record") == refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"response-type": "jsnol"}, r"'jsnol' - at `\$\.response-type`"),
        ({"schema": {"type": "objekt"}}, "schema"),
        ({"schema": "no json"}, r"got `str` - at `\$\.schema`"),
        ({"prompt": "{{ open"}, "not a template"),
        ({"prompt": None}, r"got `null` - at `\$\.prompt`"),
        ({"respones-type": "json"}, "unknown field `respones-type`"),
        ({"terms": ["a"]}, r"got `array` - at `\$\.terms`"),
        ({"schema": DEFINITION, "object-schema": {"type": "object"}}, "object-schema differ"),
    ],
)
def test_a_bad_prompt_fails_at_load(settings, words):
    """The error comes at load and names the source, the prompt and the key."""
    with pytest.raises(PromptError, match=words) as caught:
        manager_of(**settings)
    assert str(caught.value).startswith("my.json: it")


def test_a_bad_configuration_adds_nothing():
    """One wrong prompt, or one that is only in the index, leaves those before as they were."""
    manager = PromptManager()
    for config in ({"a": {"prompt": "x"}, "b": {}}, {"template-index": ["b"], "template.a": {}}):
        with pytest.raises(PromptError, match=r"\bb: "):
            manager.load_config(config)
    assert manager.ids == ()


def test_an_unknown_id_is_a_key_error_that_lists_near_names():
    """A misspelt id is answered with the ids that look like it."""
    with pytest.raises(KeyError, match="'extract-definition'; there is: extract-definitions"):
        PromptManager.load("en").prompt("extract-definition")


# ── replies ─────────────────────────────────────────────────────────────────────


def test_an_llm_port_is_asked_with_messages_and_response_type():
    """An `LLM` gets the messages as rendered, and the form of the answer."""
    llm = ScriptedLLM(['{"a": 1}'])
    manager = manager_of(**{"response-type": "json", "system": "S"})

    assert asyncio.run(manager.invoke("it", {"text": "T"}, llm)) == {"a": 1}
    (asked,) = llm.requests
    assert asked.messages == (Message("system", "S"), Message("user", "T"))
    assert asked.response_type == "json"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[]", []),
        (' "text" ', "text"),
        ('\ufeff```json\n{"实体": "北京大学"}\n```', {"实体": "北京大学"}),
        ('As said in [1], {it} is: {"a": [1, 2]} – done', {"a": [1, 2]}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": "\\ud800"}', {"a": "\ufffd"}),
    ],
)
def test_json_is_found_where_models_put_it(reply, value):
    """Fences and words around the one value do not matter."""
    assert read_json(reply) == value


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no value",
        '{"a": {"b": 1}, "c": ',
        '{"a": "cut off [] ',
        '[{"a": 1}, {"a"',
        '{"a": 1} and {',
        '{"a": {"b": 1}, oops}',
        '<think>maybe {"a": 1}',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5000 + "}",
        "[" * 100_000,
        "{" * 200_000,
        '{"a": ' * 50_000,
    ],
    ids=lambda reply: reply[:20],
)
def test_json_that_breaks_off_is_an_error_and_never_completed(reply):
    """No part of a broken value passes for the value; the error is a RuntimeError with the text."""
    with pytest.raises(ResponseError) as caught:
        read_json(reply)

    assert isinstance(caught.value, RuntimeError)
    assert caught.value.text == reply
    assert repr(reply[:20])[1:-1] in str(caught.value)
    assert len(str(caught.value)) < 1000
    with pytest.raises(ResponseError, match=r"definition.*entity"):  # the path
        read_json('{"entity": "cat"}', schema=Schema(DEFINITION))


# ── folders ─────────────────────────────────────────────────────────────────────


def test_one_prompt_can_be_overridden(tmp_path):
    """A file replaces the prompt of its name, also under an alias; the others stay."""
    write_prompt(tmp_path, "keywords", "response-type: json", "# user\n找：{{ query }}\n")
    write_prompt(tmp_path, "ontology-extract", "response-type: jsonl")

    manager = PromptManager.load("zh", overrides=tmp_path)

    assert manager.render("keywords", {"query": "乔峰"}) == (Message("user", "找：乔峰"),)
    assert manager.render("extract-with-ontologies", {"text": "t"}) == (Message("user", "t"),)
    assert manager.ids == PromptManager.load("zh").ids


JSON = "response-type: json\n"
ASK = "# user\n{{ query }}"


@pytest.mark.parametrize(
    ("front", "body", "words"),
    [
        ("response-type: text", ASK, "response-type: must be 'json'"),
        (JSON, "# user\n{{ question }}", "nothing provides question"),
        (JSON + "inputs: [query, history]", ASK, "'history' is decl"),
        (JSON + "inputs: []", ASK, "'query' is used but not"),
        (JSON + "schema: {type: objekt}", "# user\n", "schema"),
        (JSON + "schema: {type: array}\nexamples: '{}'", "# user\n", "examples: line 1"),
        (JSON + "examples: '{'", "# user\n", "examples: line 1: invalid JSON"),
        (JSON, "# user\n{% if %}", "not a template"),
        (JSON, "# system\nonly", "needs one part `# user`"),
        (JSON, "# user\n# system\n", "needs one part `# user`"),
        (JSON, "stray\n# user\n", "belongs to no part"),
        ("response-type: [", "# user\n", "front matter"),
        ("revision: 2024-13-45", "# user\n", "front matter.*: month"),
        ("revision: !!int ''", "# user\n", "front matter"),
        ("prompt: x", "# user\n", "`prompt` and `system` are parts"),
    ],
)
def test_a_bad_override_fails_at_load_naming_its_file(tmp_path, front, body, words):
    """Load and `check_set` say the same about a file: its name, the key, what is wrong."""
    write_prompt(tmp_path, "keywords", front, body)

    with pytest.raises(PromptError, match=words) as caught:
        PromptManager.load("en", overrides=tmp_path)

    problems = check_set(tmp_path)
    assert problems
    assert all("keywords.md: " in problem for problem in [*problems, str(caught.value)])
    assert any(problem in str(caught.value) for problem in problems)


def test_a_language_is_a_code_a_name_or_a_folder_with_every_prompt(tmp_path):
    """Other languages use the English prompts, regions of Chinese the Chinese ones; the error says
    what a language can be, or which prompts a folder lacks.
    """
    for language, same in (("fr", "en"), ("pt-BR", "en"), ("Klingon", "en"), ("zh-Hant", "zh")):
        assert PromptManager.load(language).text == PromptManager.load(same).text
    for language in ("../up", "", tmp_path / "none"):
        with pytest.raises(PromptError, match=r"fr or French.*check FOLDER"):
            PromptManager.load(language)
    write_prompt(tmp_path / "mine", "extract-topics", "response-type: jsonl")
    with pytest.raises(PromptError, match=r"lacks .*keywords.*overrides"):
        PromptManager.load(tmp_path / "mine")


# ── rows ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "table",
    [
        {"fields": [{"name": "城市", "primary": True}, {"name": "n", "type": "int"}]},
        {"properties": {"n": {"type": "integer"}}, "required": ["城市"]},
        '{"fields": [{"name": "城市", "required": true}, {"name": "n", "type": "integer"}]}',
    ],
)
def test_rows_are_held_to_the_tables_own_fields(table):
    """Rows of `extract-rows` pass by the schema that came with the call."""
    manager = PromptManager.load("zh")
    answer = '{"城市":"北京","n":22}\n{"n":1}\n{"城市":"上海","n":"many"}\n{"城市":"广州"}'

    rows = invoke(manager, "extract-rows", answer, text="…", schema=table)

    assert rows == [{"城市": "北京", "n": 22}, {"城市": "广州"}]


def test_a_table_may_be_a_list_of_fields():
    """Names alone are texts; unknown fields are refused."""
    schema = Schema(row_schema(["name", "age"]))
    assert schema.error({"name": "Ada", "age": None}) is None
    assert schema.error({"name": "Ada", "shoe": "7"}) is not None
    for bad in ({}, [], [3], "no json", 7):
        with pytest.raises(PromptError, match="schema"):
            row_schema(bad)


def test_a_pipe_is_no_prompt(tmp_path):
    """A folder that an index remembers may hold a pipe; it is refused instead of waited for."""
    os.mkfifo(tmp_path / "answer.md")
    with pytest.raises(PromptError, match="not a regular file"):
        PromptManager.load(tmp_path)


def test_a_file_is_parsed_again_only_when_its_text_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its time of change says: what was edited meanwhile is read."""
    parsed: list[str] = []

    def load(text: str, Loader: Any) -> Any:
        parsed.append(text)
        return {"revision": 1}

    monkeypatch.setattr("yaml.load", load)
    path = tmp_path / "ask.md"
    path.write_text("---\nrevision: 1\n---\n# user\nWhat is 水?\n", encoding="utf-8")
    assert [read_prompt(path).template, read_prompt(path).template] == ["What is 水?"] * 2
    assert len(parsed) == 1
    times = path.stat()
    path.write_text("---\nrevision: 1\n---\n# user\nWhat is 火?\n", encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_prompt(path).template == "What is 火?"


def test_a_changed_prompt_is_that_of_one_set_only() -> None:
    """Also inside its schema, its terms and its lists."""
    prompt = PromptManager.load("en").prompt("extract-graph")
    prompt.revision = "next"
    assert prompt.schema and prompt.terms
    prompt.schema["title"] = "own"
    prompt.terms["date"] = "1902"
    assert isinstance(prompt.declared_inputs, list)
    prompt.declared_inputs.append("own")
    again = PromptManager.load("en").prompt("extract-graph")
    assert again.revision != "next" and again.schema and "title" not in again.schema
    assert again.terms and again.terms["date"] == "" and "own" not in again.inputs
