"""Schemas: compiled once, checked at load, and clear about what is wrong with a record."""

from typing import Any

import pytest

from lightrag_jsonl import PromptError, Schema

DEFINITION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"const": "definition"},
        "entity": {"type": "string"},
        "definition": {"type": "string"},
    },
    "required": ["type", "entity", "definition"],
}
RELATIONSHIP: dict[str, Any] = {
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
MIXED: dict[str, Any] = {"oneOf": [DEFINITION, RELATIONSHIP]}
EDGE: dict[str, Any] = {"type": "relationship", "subject": "a", "predicate": "b", "object": "c"}


@pytest.mark.parametrize(
    ("schema", "record", "error"),
    [
        (MIXED, EDGE, "relationship: 'object-entity' is missing"),
        (MIXED, {"type": "实体"}, "unknown type '实体' (known: definition, relationship)"),
        (MIXED, {"entity": "cat"}, "'type' is missing"),
        (
            MIXED,
            {**EDGE, "object-entity": True, "tags": [{"名称": 1}, {}]},
            "relationship: tags[1]: '名称' is missing",
        ),
        (
            DEFINITION,
            {"type": "definition", "entity": 4, "definition": ""},
            'entity: 4 is not of type "string"',
        ),
    ],
)
def test_a_fault_is_named_with_its_branch_and_path(
    schema: dict[str, Any], record: Any, error: str
) -> None:
    """By the branch that the record names, not that no branch matched; and where in the record."""
    assert Schema(schema).error(record) == error


def test_a_long_value_does_not_flood_the_message() -> None:
    """A message keeps its end, which says what is wrong."""
    record: Any = {"type": "definition", "entity": ["x" * 9000], "definition": "y"}
    error = Schema(DEFINITION).error(record)
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
def test_what_is_no_schema_is_refused_at_once(schema: dict[str, Any]) -> None:
    """A bad schema, or one that points outside itself, is a `PromptError` at load."""
    with pytest.raises(PromptError):
        Schema(schema)
