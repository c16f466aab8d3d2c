"""Compiled JSON Schemas (Draft 2020-12) that say in words what is wrong with a record, and where."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema_rs import Draft202012Validator

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.text import cut
from lightrag_jsonl.core.types import Json, Record

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
        self._field, self._branches = _branches(self.source)
        self._list_limits = dict(_list_limits(self.source))

    def with_short_lists(self, record: Record) -> Record:
        """A record whose lists end where the schema says: one long list costs no whole record."""
        kind = record.get(self._field) if self._field else None
        shortened = dict(record)
        for name, value in record.items():
            limit = self._list_limits.get((kind if isinstance(kind, str) else None, name))
            if limit is not None and isinstance(value, list):
                shortened[name] = value[:limit]
        return shortened

    def error(self, record: Json) -> str | None:
        """None for a valid value; otherwise what is wrong and where.

        Of a `oneOf` whose branches differ in a constant field, the one that the record names
        counts: "relationship: 'object-entity' is missing".
        """
        if self._validator.is_valid(record):
            return None
        if not self._branches or not isinstance(record, dict):
            return _faults(self._validator, record)
        if self._field not in record:
            return f"'{self._field}' is missing"
        named = record[self._field]
        if isinstance(named, str) and named in self._branches:
            return f"{named}: {_faults(self._branches[named], record)}"
        value = _short(json.dumps(named, ensure_ascii=False).replace('"', "'"))
        return f"unknown {self._field} {value} (known: {', '.join(self._branches)})"


def _branches(schema: Mapping[str, Any]) -> tuple[str, dict[str, Draft202012Validator]]:
    """The field whose constant tells the branches of a `oneOf` apart, and what each one requires."""
    branches = schema.get("oneOf", [])
    properties = [branch.get("properties", {}) for branch in branches if isinstance(branch, dict)]
    for name in properties[0] if 0 < len(properties) == len(branches) else ():
        fields = [one[name] for one in properties if isinstance(one.get(name), dict)]
        constants = [one["const"] for one in fields if isinstance(one.get("const"), str)]
        if len(set(constants)) == len(branches):
            rest = {word: value for word, value in schema.items() if word != "oneOf"}
            parts = [[*schema.get("allOf", []), branch] for branch in branches]
            compiled = [Draft202012Validator({**rest, "allOf": part}) for part in parts]
            return name, dict(zip(constants, compiled, strict=True))
    return "", {}


def _list_limits(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | None, str], int]]:
    """The `maxItems` of each list, by the constant that names its branch, if any, and its field."""
    field, _ = _branches(schema)
    for branch in schema.get("oneOf", []) if field else [schema]:
        properties = branch.get("properties", {})
        kind = properties[field]["const"] if field else None
        for name, settings in properties.items():
            limit = settings.get("maxItems") if isinstance(settings, dict) else None
            if isinstance(limit, int):
                yield (kind, name), limit


def _faults(validator: Draft202012Validator, record: Json) -> str:
    return "; ".join(map(_fault, islice(validator.iter_errors(record), _MAX_FAULTS)))


def _fault(error: Any) -> str:
    path, message = error.instance_path, error.message
    if message.endswith(_REQUIRED):
        message = message.removesuffix(_REQUIRED).replace('"', "'") + " is missing"
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{where.removeprefix('.')}: {_short(message)}" if where else _short(message)


def _short(message: str) -> str:
    """A long message without its middle: the value comes first, the fault last."""
    return cut(message, _MAX_LENGTH, ending=_MAX_LENGTH // 2)


def _refuse(uri: str) -> Json:
    raise ValueError(f"a schema must be complete in itself; {uri} is outside")


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
