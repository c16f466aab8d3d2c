"""Compiled JSON Schemas (Draft 2020-12) that say in words what is wrong with a record, and where."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from jsonschema_rs import Draft202012Validator

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.types import Json

_MAX_FAULTS = 3  # named in one message
_MAX_LENGTH = 200  # characters of one fault
_REQUIRED = " is a required property"
_TYPES = {"int": "integer", "float": "number", "double": "number", "bool": "boolean"}
_JSON_TYPES = {"integer", "number", "boolean"}
_SCHEMA_WORDS = {"type", "properties", "$ref", "oneOf", "anyOf", "allOf"}
_REQUIRED_WORDS = ("required", "primary", "primary_key", "primary-key")


class Schema:
    """A compiled JSON Schema; `PromptError` if it is not valid, or refers to another one."""

    def __init__(self, source: Mapping[str, Json]) -> None:
        if not isinstance(source, Mapping):
            raise PromptError(f"a schema must be an object, not {type(source).__name__}")
        self.source = dict(source)
        try:
            self._validator = Draft202012Validator(self.source, retriever=_refuse)
        except (ValueError, TypeError, RecursionError) as error:
            reason = getattr(error, "message", "") or str(error)
            raise PromptError(f"not a valid JSON Schema: {_short(reason)}") from error

    def error(self, record: Json) -> str | None:
        """None for a valid value; otherwise what is wrong and where.

        Of a `oneOf` whose branches differ in a constant field, the one that the record names
        counts: "relationship: 'object-entity' is missing".
        """
        if self._validator.is_valid(record):
            return None
        return _faults(self._validator.iter_errors(record))


def row_schema(table: object) -> dict[str, Json]:
    """The schema that each row of a table must obey.

    `table` is a JSON Schema of a row, a list of fields (names, or mappings with `name` and `type`),
    a mapping with such `fields`, or any of these as JSON text. Fields that are not required may be
    null or missing; fields not in the table are refused.
    """
    if isinstance(table, str):
        try:
            table = json.loads(table)
        except (ValueError, RecursionError) as error:
            raise PromptError(f"schema: neither a JSON Schema nor a table: {error}") from error
    if isinstance(table, Mapping) and "fields" not in table and _SCHEMA_WORDS & set(table):
        return dict(table)
    fields = table.get("fields") if isinstance(table, Mapping) else table
    if not fields or not isinstance(fields, list | tuple):
        raise PromptError("schema: must be a JSON Schema, or a table with a list of `fields`")
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for field in fields:
        settings = field if isinstance(field, Mapping) else {"name": field}
        if not isinstance(name := settings.get("name"), str):
            raise PromptError("schema: each field of a table needs a name")
        if any(settings.get(word) is True for word in _REQUIRED_WORDS):
            required.append(name)
        properties[name] = _field_schema(settings, name in required)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _field_schema(field: Mapping[str, Any], required: bool) -> Json:
    if field.get("enum"):
        return {"enum": [*field["enum"]] if required else [*field["enum"], None]}
    given = str(field.get("type")).casefold()
    name = _TYPES.get(given, given if given in _JSON_TYPES else "string")
    return {"type": name if required else [name, "null"]}


def _refuse(uri: str) -> Json:
    raise ValueError(f"a schema must be complete in itself; {uri} is outside")


# ── faults in words (`ValidationError`s have no types for mypy) ─────────────────


def _faults(errors: Any) -> str:
    return "; ".join(map(_fault, islice(errors, _MAX_FAULTS)))


def _fault(error: Any) -> str:
    path, message = error.instance_path, error.message
    if branches := getattr(error.kind, "context", None):
        message = _branch_fault(branches) or message
    elif message.endswith(_REQUIRED):
        message = message.removesuffix(_REQUIRED).replace('"', "'") + " is missing"
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{where.removeprefix('.')}: {_short(message)}" if where else _short(message)


def _branch_fault(branches: Sequence[Any]) -> str:
    """What is wrong with a record by the branch that its constant field names; "" if none is."""
    others = [next(filter(_constant, errors), None) for errors in branches]
    named = [errors for errors, other in zip(branches, others, strict=True) if other is None]
    excluded = list(filter(None, others))
    if not excluded:  # what do all branches miss?
        return "; ".join(sorted(set.intersection(*(set(map(_fault, one)) for one in branches))))
    value, field = excluded[0].instance, excluded[0].instance_path[0]
    if named:
        return f"{_label(value)}: {_faults(named[0])}" if len(named) == 1 else ""
    known = ", ".join(map(_constant, excluded))
    return f"unknown {field} {_short(_quoted(value))} (known: {known})"


def _constant(error: Any) -> str:
    """The one value that a field must have, if the error is about that; else ""."""
    options = getattr(error.kind, "options", None) or [getattr(error.kind, "expected_value", None)]
    is_constant = len(options) == 1 and options[0] and len(error.instance_path) == 1
    return _label(options[0]) if is_constant else ""


def _label(value: Json) -> str:
    return value if isinstance(value, str) else _quoted(value)


def _quoted(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False).replace('"', "'")


def _short(words: str) -> str:
    """A long message without its middle: the value comes first, what is wrong with it last."""
    half = _MAX_LENGTH // 2
    return words if len(words) <= _MAX_LENGTH else f"{words[:half]} … {words[-half:]}"
