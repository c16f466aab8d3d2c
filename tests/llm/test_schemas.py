"""Schemas: compiled once, checked at load, and clear about what is wrong with a record."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.llm.schemas import Schema

DEFINITION: dict[str, Json] = {
    "type": "object",
    "properties": {
        "type": {"const": "definition"},
        "entity": {"type": "string"},
        "definition": {"type": "string"},
    },
    "required": ["type", "entity", "definition"],
}
RELATIONSHIP: dict[str, Json] = {
    "type": "object",
    "properties": {
        "type": {"const": "relationship"},
        "subject": {"type": "string"},
        "predicate": {"type": "string"},
        "object": {"type": "string"},
        "object-entity": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "object", "required": ["名称"]}},
    },
    "required": ["type", "subject", "predicate", "object", "object-entity"],
}
MIXED: dict[str, Json] = {"oneOf": [DEFINITION, RELATIONSHIP]}
EDGE: dict[str, Json] = {"type": "relationship", "subject": "a", "predicate": "b", "object": "c"}


def test_the_branch_is_picked_by_its_constant_field() -> None:
    """A record of a known type gets the fault of its own branch, not that no branch matched."""
    assert Schema(MIXED).error(EDGE) == "relationship: 'object-entity' is missing"


def test_an_unknown_type_is_named_beside_the_known_ones() -> None:
    """The message says which type was found and which would do."""
    error = Schema(MIXED).error({"type": "实体"})

    assert error == "unknown type '实体' (known: definition, relationship)"


def test_a_missing_type_is_said_to_be_missing() -> None:
    """Without the field there is no branch to pick; the field itself is the fault."""
    assert Schema(MIXED).error({"entity": "cat"}) == "'type' is missing"


def test_the_path_to_the_fault_is_part_of_the_message() -> None:
    """A fault deep in a record is named by its path."""
    record: Json = {**EDGE, "object-entity": True, "tags": [{"名称": 1}, {}]}

    assert Schema(MIXED).error(record) == "relationship: tags[1]: '名称' is missing"
    assert Schema(DEFINITION).error({"type": "definition", "entity": 4, "definition": ""}) == (
        'entity: 4 is not of type "string"'
    )


def test_a_long_value_does_not_flood_the_message() -> None:
    """A message keeps its end, which says what is wrong."""
    error = Schema(DEFINITION).error(
        {"type": "definition", "entity": ["x" * 9000], "definition": "y"}
    )

    assert error is not None and len(error) < 300 and error.endswith('is not of type "string"')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"properties": 5},
        {"pattern": "("},
        {"$ref": "#/nowhere"},
        {"$ref": "http://example.com/schema.json"},
        {"$ref": "file:///etc/hostname"},
        {"oneOf": []},
    ],
)
def test_what_is_no_schema_is_refused_at_once(schema: dict[str, Json]) -> None:
    """A bad schema, or one that points outside itself, is a `PromptError` at load."""
    with pytest.raises(PromptError):
        Schema(schema)


VALUES = st.sampled_from([None, True, 1, 1.5, "", "猫", "🐈", [], {}])
FIELDS = ["type", "entity", "definition", "subject", "predicate", "object", "object-entity"]


@given(
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
    st.sampled_from(["definition", "relationship", "entity", None]),
)
def test_the_verdict_is_that_of_jsonschema(record: dict[str, Json], kind: str | None) -> None:
    """The compiled validator and the reference implementation agree on every record."""
    if kind is not None:
        record["type"] = kind
    oracle = jsonschema.Draft202012Validator(MIXED)

    assert (Schema(MIXED).error(record) is None) == oracle.is_valid(record)
