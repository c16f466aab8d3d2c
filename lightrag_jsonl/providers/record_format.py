"""Records in a format forced by the server: the request's schema, and the records of the answer."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lightrag_jsonl.core.types import Json
from lightrag_jsonl.core.validation import only_text_field
from lightrag_jsonl.text.patterns import pattern_of

NAME_FIELDS = frozenset({"name", "source", "target", "entity", "subject", "object"})
LIST_ITEMS = 10  # of a list in a constrained answer whose schema sets no limit
ITEM_CHARACTERS = 100  # of a text in such a list: a name or a keyword
_WRAPPER = pattern_of(r'\s*(?:```\w*\s*)?\{\s*"records"\s*:\s*\[')
_SPACE_OR_COMMA = pattern_of(r"[\s,]*")
_RECORD_DECODER = json.JSONDecoder()


def record_format(schema: Mapping[str, Json], names: Sequence[str] | None = None) -> Json:
    """The `response_format` of an answer in records of a `schema`; see `limited_schema`.

    Definitions are moved to the top, the target of references. Records with one text are texts.
    """
    record = limited_schema(schema, names)
    definitions = record.pop("$defs")
    if text_field := only_text_field(schema):
        record = record["properties"][text_field]
    wrapped: Json = {
        "type": "object",
        "properties": {"records": {"type": "array", "items": record}},
        "required": ["records"],
        "additionalProperties": False,
        "$defs": definitions,
    }
    return {"type": "json_schema", "json_schema": {"name": "records", "schema": wrapped}}


def limited_schema(
    schema: Mapping[str, Json], names: Sequence[str] | None = None
) -> dict[str, Any]:
    """The schema of a record for constrained answers; with `names`, fields for names of entities
    hold a name of the list (an empty sequence restricts nothing).

    Lists get an end where the schema gives none, since a small model under a constraint may not
    find an end. The schema always has `$defs`.
    """
    record: dict[str, Any] = _changed(dict(schema), _limit_list)
    definitions = record.pop("$defs", {})
    if names:
        record = _changed(record, _limit_names)
        definitions = {**definitions, "entity-name": {"enum": list(dict.fromkeys(names))}}
    return {**record, "$defs": definitions}


def _changed(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A schema with a change to each object in it, the inner ones first."""
    if isinstance(schema, list):
        return [_changed(part, change) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return change({key: _changed(part, change) for key, part in schema.items()})


def _limit_list(schema: dict[str, Any]) -> dict[str, Any]:
    """A list with an end, of short texts; other schemas are unchanged."""
    if schema.get("type") == "array":
        schema.setdefault("maxItems", LIST_ITEMS)
        items = schema.get("items")
        if isinstance(items, dict) and items.get("type") == "string" and "enum" not in items:
            items.setdefault("maxLength", ITEM_CHARACTERS)
    return schema


def _limit_names(schema: dict[str, Any]) -> dict[str, Any]:
    """References to the list of names in fields for names; a flagged `object` is free."""
    fields = schema.get("properties", {})
    for name in NAME_FIELDS & fields.keys():
        if name != "object" or "object-entity" not in fields:
            fields[name] = {"$ref": "#/$defs/entity-name"}
    return schema


def unwrap_records(text: str) -> str:
    """The records in `{"records": […]}` on a line each, also a cut record; other text is unchanged."""
    wrapper = _WRAPPER.match(text)
    if wrapper is None:
        return text
    records: list[str] = []
    position = wrapper.end()
    with suppress(ValueError, RecursionError):
        while gap := _SPACE_OR_COMMA.match(text, position):
            position = gap.end()
            _, end = _RECORD_DECODER.raw_decode(text, position)
            records.append(text[position:end])
            position = end
    if cut_record := text[position:].strip(" \t\r\n]}`"):
        records.append(cut_record)
    return "\n".join(re.sub(r"[\r\n]", " ", record) for record in records)
