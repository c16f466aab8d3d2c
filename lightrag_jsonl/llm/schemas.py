"""Compiled JSON Schemas (Draft 2020-12), with faults of a record in words and with their place."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.core.types import Json, Record
from lightrag_jsonl.core.validation import only_text_field
from lightrag_jsonl.text.strings import cut

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

_MAX_FAULTS = 3  # named in one message
_MAX_LENGTH = 200  # characters of one fault
_REQUIRED = " is a required property"
_TYPE_ALIASES = {"int": "integer", "float": "number", "double": "number", "bool": "boolean"}
_JSON_TYPES = {"integer", "number", "boolean"}
_SCHEMA_WORDS = {"type", "properties", "$ref", "oneOf", "anyOf", "allOf"}
_REQUIRED_WORDS = ("required", "primary", "primary_key", "primary-key")


class Schema:
    """A compiled JSON Schema; `PromptError` for an invalid schema, or a reference to another
    schema.

    `only_text_field` names the field of a record with one text: the text may stand for the record;
    "" otherwise.
    """

    def __init__(self, source: Mapping[str, Json]) -> None:
        from jsonschema_rs import Draft202012Validator

        if not isinstance(source, Mapping):
            raise PromptError(f"a schema must be an object, not {type(source).__name__}")
        self.source = dict(source)
        try:
            self._validator = Draft202012Validator(self.source, retriever=_refuse)
        except (ValueError, TypeError, RecursionError) as error:
            reason = getattr(error, "message", "") or str(error)
            raise PromptError(f"not a valid JSON Schema: {_short(reason)}") from error
        self.only_text_field = only_text_field(self.source)
        self._branches = _branches(self.source)
        self._list_limits = _list_limits(self.source, self._branches)

    def with_short_lists(self, record: Record) -> Record:
        """A record with lists cut at the schema's limits: a long list costs no whole record."""
        branch = record.get(self._branches.key) if self._branches.key else None
        constant = branch if isinstance(branch, str) else None
        limits = self._list_limits.get(constant, {})
        long_lists = {
            name: value[:limit]
            for name, limit in limits.items()
            if isinstance(value := record.get(name), list) and len(value) > limit
        }
        return {**record, **long_lists} if long_lists else record

    def error(self, record: Json) -> str | None:
        """None for a valid value; otherwise the fault and the place.

        If the branches of a `oneOf` differ in a constant field, the branch with the constant of the
        record counts: "relationship: 'object-entity' is missing".
        """
        if self._validator.is_valid(record):
            return None
        name = self._branches.key
        validators = self._branches.validators
        if not validators or not isinstance(record, dict):
            return _faults(self._validator, record)
        if name not in record:
            return f"'{name}' is missing"
        constant = record[name]
        if isinstance(constant, str) and constant in validators:
            return f"{constant}: {_faults(validators[constant], record)}"
        value = _short(json.dumps(constant, ensure_ascii=False).replace('"', "'"))
        return f"unknown {name} {value} (known: {', '.join(validators)})"


class _Branches(Struct, frozen=True):
    """The validators of a `oneOf` by the constant in a field; `key` names the field."""

    key: str
    validators: Mapping[str, "Draft202012Validator"]


def _branches(schema: Mapping[str, Any]) -> _Branches:
    """The branches of a schema's `oneOf`; empty if no field distinguishes the branches."""
    branches = schema.get("oneOf", [])
    properties = [branch.get("properties", {}) for branch in branches if isinstance(branch, dict)]
    if not properties or len(properties) != len(branches):
        return _Branches("", {})
    for name in properties[0]:
        settings = [fields[name] for fields in properties if isinstance(fields.get(name), dict)]
        values = [field.get("const") for field in settings]
        constants = [value for value in values if isinstance(value, str)]
        if len(set(constants)) == len(branches):
            return _Branches(name, _branch_validators(schema, constants))
    return _Branches("", {})


def _branch_validators(
    schema: Mapping[str, Any], constants: list[str]
) -> dict[str, "Draft202012Validator"]:
    """A validator for each branch: of the branch and of the demands beside the `oneOf`."""
    from jsonschema_rs import Draft202012Validator

    common = {word: value for word, value in schema.items() if word != "oneOf"}
    validators: dict[str, Draft202012Validator] = {}
    for constant, branch in zip(constants, schema["oneOf"], strict=True):
        demands = [*schema.get("allOf", []), branch]
        validators[constant] = Draft202012Validator({**common, "allOf": demands})
    return validators


def _list_limits(
    schema: Mapping[str, Any], branches: _Branches
) -> dict[str | None, dict[str, int]]:
    """The `maxItems` of each list, by the constant of the branch, if any, and by the field."""
    name = branches.key
    limits: dict[str | None, dict[str, int]] = {}
    for branch in schema["oneOf"] if name else [schema]:
        properties = branch.get("properties", {})
        constant = properties[name]["const"] if name else None
        for list_name, settings in properties.items():
            limit = settings.get("maxItems") if isinstance(settings, dict) else None
            if isinstance(limit, int):
                limits.setdefault(constant, {})[list_name] = limit
    return limits


def _faults(validator: "Draft202012Validator", record: Json) -> str:
    errors = islice(validator.iter_errors(record), _MAX_FAULTS)
    return "; ".join(_fault(error.instance_path, error.message) for error in errors)


def _fault(path: list[str | int], message: str) -> str:
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
    """The schema of the rows of a table.

    `table` is a JSON Schema of a row, a list of fields (names, or mappings with `name` and `type`),
    a mapping with `fields`, or the JSON text of one of these. Fields that are not required may be
    null or missing; fields not in the table are refused.
    """
    if isinstance(table, str):
        table = _decoded_table(table)
    if isinstance(table, Mapping) and "fields" not in table and _SCHEMA_WORDS & set(table):
        return dict(table)
    fields = table.get("fields") if isinstance(table, Mapping) else table
    if not fields or not isinstance(fields, list | tuple):
        raise PromptError("schema: must be a JSON Schema, or a table with a list of `fields`")
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for column in fields:
        settings = column if isinstance(column, Mapping) else {"name": column}
        name = settings.get("name")
        if not isinstance(name, str):
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


def _decoded_table(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"schema: neither a JSON Schema nor a table: {error}") from error


def _field_schema(settings: Mapping[str, Any], required: bool) -> Json:
    if settings.get("enum"):
        constants = [*settings["enum"]]
        return {"enum": constants if required else [*constants, None]}
    type_name = str(settings.get("type")).casefold()
    json_type = _TYPE_ALIASES.get(type_name, type_name)
    if json_type not in _JSON_TYPES:
        json_type = "string"
    return {"type": json_type if required else [json_type, "null"]}
