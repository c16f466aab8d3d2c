"""Converts the description of a table to the JSON Schema of its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lightrag_jsonl.errors import PromptError
from lightrag_jsonl.types import Json

_TYPES = {
    "int": "integer",
    "integer": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
}
_SCHEMA_WORDS = {"$schema", "$ref", "properties", "oneOf", "anyOf", "allOf"}
_REQUIRED_WORDS = ("required", "primary", "primary_key", "primary-key")


def row_schema(table: object) -> dict[str, Json]:
    """The schema that each row must obey.

    `table` is a JSON Schema (of a row, or of an array of rows), a mapping with `fields`, a mapping
    of field names to types, a list of fields (names, or mappings with `name` and `type`), or any of
    these as JSON text. Fields that are not required may be null or missing; fields not in the table
    are refused.
    """
    if isinstance(table, str):
        table = _decoded(table)
    if isinstance(table, Mapping):
        if _SCHEMA_WORDS & set(table) or table.get("type") in ("object", "array"):
            rows = table.get("items") if table.get("type") == "array" else table
            return dict(rows) if isinstance(rows, Mapping) else {"type": "object"}
        table = table.get("fields", table)
    fields = dict(_fields(table))
    if not fields:
        raise PromptError("schema: a table needs at least one field")
    return {
        "type": "object",
        "properties": {name: _field_schema(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if _is_required(field)],
        "additionalProperties": False,
    }


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PromptError(
            f"schema: neither a JSON Schema nor a table of fields: {error}"
        ) from error


def _fields(table: object) -> list[tuple[str, Mapping[str, Json]]]:
    """Each field's name and settings."""
    if isinstance(table, Mapping):
        return [
            (str(name), field if isinstance(field, Mapping) else {"type": field})
            for name, field in table.items()
        ]
    if not isinstance(table, Sequence) or isinstance(table, str):
        raise PromptError("schema: the fields must be a list or a mapping")
    fields: list[tuple[str, Mapping[str, Json]]] = []
    for number, field in enumerate(table):
        if isinstance(field, Mapping) and isinstance(field.get("name"), str):
            fields.append((field["name"], field))
        elif isinstance(field, str):
            fields.append((field, {}))
        else:
            raise PromptError(f"schema: fields[{number}] has no name")
    return fields


def _is_required(field: Mapping[str, Json]) -> bool:
    return any(field.get(word) is True for word in _REQUIRED_WORDS)


def _field_schema(field: Mapping[str, Json]) -> Json:
    """A field's type, or null if the field may be missing."""
    name = _TYPES.get(str(field.get("type", "string")).casefold(), "string")
    choices = field.get("enum")
    optional = not _is_required(field)
    if isinstance(choices, Sequence) and not isinstance(choices, str) and choices:
        return {"enum": [*choices, *([None] if optional else [])]}
    return {"type": [name, "null"] if optional else name}
