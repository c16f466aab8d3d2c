"""Grammars from schemas, and answers wrapped in one object."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.adapters.constrain import constraint, means_of, unwrap
from lightrag_jsonl.adapters.grammar import literal, record_grammar
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.types import Json

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
records = st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), max_size=4)


def rule(grammar: str, name: str) -> str:
    return next(
        line.split(" ::= ", 1)[1] for line in grammar.split("\n") if line.startswith(f"{name} ::= ")
    )


def thing(kind: str, *required: str, **properties: Json) -> Json:
    fields: dict[str, Json] = {"type": {"const": kind}, **properties}
    return {"type": "object", "properties": fields, "required": ["type", *required]}


@given(records, st.sampled_from([None, 1]), st.booleans())
def test_unwrapping_gives_every_record_a_line(
    found: list[dict[str, Json]], indent: int | None, raw: bool
) -> None:
    """Whatever its layout, the object's records come out unchanged, one a line."""
    text = json.dumps({"records": found}, indent=indent, ensure_ascii=raw)

    lines = [line for line in unwrap(text).split("\n") if line]

    assert [json.loads(line) for line in lines] == found


@given(records, st.data())
def test_a_cut_object_keeps_the_whole_records(
    found: list[dict[str, Json]], data: st.DataObject
) -> None:
    """Cut anywhere: the records before the cut are whole lines, and nothing is invented."""
    text = json.dumps({"records": found}, ensure_ascii=False)
    cut = text[: data.draw(st.integers(0, len(text)))]

    lines = unwrap(cut).split("\n") if cut.startswith('{"records": [') else []
    whole = [line for line in lines if line and cut.count(line)]

    read = []
    for line in whole:
        try:
            read.append(json.loads(line))
        except ValueError:
            break
    assert read == found[: len(read)]
    assert len(lines) - len(read) <= 1


@pytest.mark.parametrize(
    "text", ['{"a":1}\n{"b":2}', "", "{", '{"records": 3}', '[{"a":1}]', "no records"]
)
def test_other_text_is_left_alone(text: str) -> None:
    """Only the wrapper is taken off."""
    assert unwrap(text) == text


def test_unwrapping_hostile_text_is_no_crash() -> None:
    """Depth and endless numbers stay in the text for the reader to judge."""
    for inside in ("[" * 100_000, '{"a":' + "9" * 5_000 + "}"):
        assert unwrap('{"records":[' + inside) == inside


def test_a_server_is_known_by_its_list_of_models() -> None:
    """An unknown or broken list means a JSON schema."""
    assert means_of({"data": [{"owned_by": "llamacpp"}]}) == "grammar"
    assert means_of({"data": [None, {"owned_by": "vllm"}]}) == "structured_outputs"
    assert means_of({"data": [{"owned_by": "library"}]}) == "json_schema"
    assert means_of({"data": None}) == means_of({}) == "json_schema"


def test_definitions_stay_where_references_look() -> None:
    """A schema's $defs move to the top of the wrapper."""
    schema: Json = {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}}
    fields = constraint("json_schema", schema, None)

    wrapper = fields["response_format"]["json_schema"]["schema"]  # type: ignore[index,call-overload]
    assert wrapper["$defs"] == {"x": {"type": "object"}}  # type: ignore[index,call-overload]
    assert wrapper["properties"]["records"]["items"] == {"$ref": "#/$defs/x"}  # type: ignore[index,call-overload]


def test_fields_keep_order_and_commas_fit() -> None:
    """Required fields are always there, optional ones may be, before or after."""
    text = {"type": "string"}
    schema: Json = {"properties": {"a": text, "b": text, "c": text}, "required": ["b"]}
    grammar = record_grammar(schema)
    string = rule(grammar, "record").strip()

    assert rule(grammar, string) == (
        '"{" ("\\"a\\"" ":" sp v0 "," sp)? "\\"b\\"" ":" sp v0 ("," sp "\\"c\\"" ":" sp v0)? "}"'
    )


def test_done_comes_last() -> None:
    """A record that says "done" ends the answer and stands nowhere else."""
    schema: Json = {"oneOf": [thing("entity", "name", name={"type": "string"}), thing("done")]}
    grammar = record_grammar(schema, max_records=3)

    assert rule(grammar, "root").startswith('(record "\\n"){0,3} (v')
    assert "done" not in rule(grammar, rule(grammar, "record"))


def test_what_stands_beside_a_one_of_counts_in_every_branch() -> None:
    """Common properties and required fields are part of each alternative."""
    schema: Json = {
        "type": "object",
        "properties": {"note": {"type": "boolean"}},
        "required": ["note"],
        "oneOf": [thing("a"), thing("b")],
    }
    grammar = record_grammar(schema)

    for name in rule(grammar, "record").split(" | "):
        assert "note" in rule(grammar, name) and "type" in rule(grammar, name)


def test_names_are_for_names_only() -> None:
    """Entity fields are held to the list; descriptions, and an object that is no entity, are free."""
    text = {"type": "string"}
    kinds = thing("entity", name=text, description=text), thing("r", source=text, target=text)
    claim = thing("claim", subject=text, object=text, **{"object-entity": {"type": "boolean"}})
    grammar = record_grammar({"oneOf": [*kinds, claim]}, names=["乔峰", "a\nb", "乔峰"])

    assert rule(grammar, "name") == '"\\"乔峰\\"" | "\\"a\\\\nb\\""'
    assert grammar.count("sp name") == 4
    assert "sp name" not in record_grammar({"oneOf": [*kinds]}, names=[])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_prompt_of_records_has_a_grammar(language: str) -> None:
    """The schemas that the package ships can all be held to."""
    manager = PromptManager.load(language)
    schemas = [prompt.schema for prompt in map(manager.prompt, manager.ids) if prompt.schema]

    grammars = [record_grammar(schema.source) for schema in schemas]

    assert len(grammars) >= 6


@given(st.text(max_size=20))
def test_a_literal_is_one_line_of_quoted_json(text: str) -> None:
    """Undoing the grammar's escapes gives the JSON of the text."""
    written = literal(text)
    inner = written[1:-1].replace('\\"', '"').replace("\\\\", "\\")

    assert "\n" not in written
    assert json.loads(inner) == text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "pattern": "a"}, r"at \$: `pattern`"),
        ({"properties": {"a": {"type": "array", "uniqueItems": True}}}, r"at \$\.a: `uniqueItems`"),
        ({"properties": {"a": {"type": "integer", "minimum": 5}}}, "minimum"),
        ({"properties": {"a": {"type": "number", "minimum": -1, "maximum": 1}}}, "negative"),
        ({"properties": {"a": {"type": "integer", "minimum": 0, "maximum": 10**6}}}, "integers"),
        ({"properties": {"a": {"type": "integer", "maximum": math.inf}}}, "no number"),
        ({"properties": {"a": {"type": "number", "minimum": math.nan}}}, "no number"),
        ({"properties": {}, "required": [["a"]]}, "malformed"),
        ({"properties": {"a": False}}, "allows nothing"),
        ({"properties": {"a": {"oneOf": []}}}, "allows nothing"),
        ({"$defs": {"a": {"oneOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, "too deep"),
        ({"allOf": [{}]}, "no `type`"),
        ({"type": "objekt"}, "unknown type"),
        ({"$ref": "http://example.org/x"}, "references"),
        ({"$ref": "#"}, "references"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "references"),
        ({"properties": {"a": {"type": "array", "items": {"$ref": "#/properties/a"}}}}, "too deep"),
    ],
)
def test_what_has_no_grammar_is_named(schema: Json, words: str) -> None:
    """A keyword that a grammar cannot hold is an error with its path, never ignored."""
    with pytest.raises(ConfigError, match=words):
        record_grammar(schema)
