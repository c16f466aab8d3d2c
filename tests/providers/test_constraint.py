"""Record schemas as constraints, and answers wrapped in one object."""

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.providers.record_format import record_format, unwrap_records
from lightrag_jsonl.providers.record_grammar import record_grammar

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
records = st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), max_size=4)


def wrapped_schema(schema: dict[str, Any], names: list[str] | None = None) -> dict[str, Any]:
    format: Any = record_format(schema, names)
    whole: dict[str, Any] = format["json_schema"]["schema"]
    return whole


def is_allowed(schema: dict[str, Any], *found: Any) -> bool:
    checker = jsonschema.Draft202012Validator(schema)
    return bool(checker.is_valid({"records": list(found)}))


@pytest.mark.slow
@given(records, st.sampled_from([None, 1]), st.data())
def test_a_cut_object_keeps_the_whole_records(
    found: list[dict[str, Any]], indent: int | None, data: st.DataObject
) -> None:
    """Whatever its layout, the object's records come out unchanged, one a line. Cut anywhere, those
    before the cut are whole lines, and at most one line is broken.
    """
    text = json.dumps({"records": found}, indent=indent, ensure_ascii=False)
    lines = [line for line in unwrap_records(text).split("\n") if line]
    assert [json.loads(line) for line in lines] == found
    start = text.find("[") + 1
    cut = text[: data.draw(st.integers(start, len(text)))]

    lines = [line for line in unwrap_records(cut).split("\n") if line]

    whole: list[Any] = []
    for line in lines:
        try:
            whole.append(json.loads(line))
        except ValueError:
            break
    assert whole == found[: len(whole)]
    assert len(lines) - len(whole) <= 1


@pytest.mark.parametrize("text", ['{"a":1}\n{"b":2}', "", "{", '{"records": 3}', '[{"a":1}]'])
def test_other_text_is_left_alone(text: str) -> None:
    """Only the wrapper is taken off."""
    assert unwrap_records(text) == text


def test_names_are_for_names_only() -> None:
    """Entity fields are held to the list; descriptions, and an object that is no entity, are free. A
    schema's definitions move to the top, where references look.
    """

    def thing(kind: str, *fields: str) -> Any:
        properties: Any = {"type": {"const": kind}, **{key: {"type": "string"} for key in fields}}
        return {"type": "object", "properties": properties, "required": ["type", *fields]}

    claim = thing("claim", "subject", "object")
    claim["properties"]["object-entity"] = {"type": "boolean"}
    schema: dict[str, Any] = {
        "oneOf": [thing("entity", "name", "description"), thing("r", "source", "target"), claim]
    }
    limited = wrapped_schema(schema, ["乔峰", "a\nb", "乔峰"])

    assert is_allowed(limited, {"type": "entity", "name": "a\nb", "description": "free"})
    assert is_allowed(limited, {"type": "claim", "subject": "乔峰", "object": "free"})
    assert not is_allowed(limited, {"type": "entity", "name": "阿朱", "description": "乔峰"})
    assert not is_allowed(limited, {"type": "r", "source": "乔峰", "target": "阿朱"})
    assert wrapped_schema(schema, []) == wrapped_schema(schema)
    own = wrapped_schema({"$ref": "#/$defs/x", "$defs": {"x": thing("a", "name")}}, ["乔峰"])
    assert is_allowed(own, {"type": "a", "name": "乔峰"}) and not is_allowed(own, {})


def test_lists_of_a_constrained_answer_end() -> None:
    """Where a schema sets no limit, a list may have ten items, and texts in it a hundred characters; a
    limit of the schema, and texts outside of lists, stay as they are.
    """
    text: Any = {"type": "string"}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": text,
            "aliases": {"type": "array", "items": text},
            "tags": {"type": "array", "items": text, "maxItems": 12},
            "kinds": {"type": "array", "items": {"enum": ["friend" * 30]}},
        },
    }
    limited = wrapped_schema(schema)

    assert is_allowed(
        limited, {"name": "长" * 500, "aliases": ["别" * 100] * 10, "tags": ["a"] * 12}
    )
    assert is_allowed(limited, {"kinds": ["friend" * 30]})
    assert not is_allowed(limited, {"aliases": ["a"] * 11})
    assert not is_allowed(limited, {"aliases": ["a" * 101]})
    assert not is_allowed(limited, {"tags": ["a"] * 13})
    assert schema["properties"]["aliases"] == {"type": "array", "items": {"type": "string"}}


def test_a_grammar_lets_nothing_follow_the_last_record() -> None:
    """A small model would begin anew after "done"; without such a record any record may follow any."""
    entity = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    done = {"type": "object", "properties": {"type": {"const": "done"}}, "required": ["type"]}
    with_end = record_grammar({"oneOf": [entity, done]})
    without_end = record_grammar({"oneOf": [entity]})
    assert with_end is not None and without_end is not None
    root = with_end.split("\n")[0]
    record, last_record = re.findall(r"rule-\d+", root)
    assert root == f'root ::= ({record} "\\n")* ({last_record} "\\n"?)?'
    assert without_end.split("\n")[0].count("rule-") == 2


def test_records_with_one_text_are_a_list_of_texts() -> None:
    """In a grammar and in a schema; names limit the texts, and the list is read text by text."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 9}},
        "required": ["name"],
    }
    grammar = record_grammar(schema)
    assert grammar is not None
    assert re.match(r'root ::= "\[" \((rule-\d+) \("," \1\)\*\)\? "\]"\n', grammar)
    limited = wrapped_schema(schema, ["乔峰"])
    assert is_allowed(limited, "乔峰") and not is_allowed(limited, "阿朱")
    assert not is_allowed(wrapped_schema(schema), {"name": "乔峰"})
    assert unwrap_records('{"records": ["乔峰", "阿朱", "段') == '"乔峰"\n"阿朱"\n"段'
