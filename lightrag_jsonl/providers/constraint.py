"""The constraint that makes a server hold a model to a record schema, and how its answer is read.

JSON schemas are understood by OpenAI, llama.cpp, vLLM and others. They describe one value, so the
records come in an object, and are put on lines of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from lightrag_jsonl.core.types import Json

NAME_FIELDS: Final = frozenset({"name", "source", "target", "entity", "subject", "object"})
# (`object` is free beside an `object-entity`, which may say that it is no entity.)
_WRAPPER = re.compile(r'\s*(?:```\w*\s*)?\{\s*"records"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_END = re.compile(r"\s*(?:\]\s*(?:\}\s*`*\s*)?)?\Z")
_DECODER = json.JSONDecoder()


def record_format(schema: Mapping[str, Json], names: Sequence[str] | None = None) -> Json:
    """The `response_format` of an answer whose records follow `schema`; with `names`, fields that
    name entities hold one of these (an empty sequence restricts nothing).

    Definitions are moved to the top, where references lead to.
    """
    record: dict[str, Any] = dict(schema)
    definitions = record.pop("$defs", {})
    if names:
        record = _limit_names(record)
        definitions = {**definitions, "entity-name": {"enum": list(dict.fromkeys(names))}}
    wrapped: Json = {
        "type": "object",
        "properties": {"records": {"type": "array", "items": record}},
        "required": ["records"],
        "additionalProperties": False,
        "$defs": definitions,
    }
    return {"type": "json_schema", "json_schema": {"name": "records", "schema": wrapped}}


def _limit_names(schema: Any) -> Any:
    """A schema whose fields that name entities refer to the list of names."""
    if isinstance(schema, list):
        return [_limit_names(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    limited = {key: _limit_names(part) for key, part in schema.items()}
    fields = limited.get("properties", {})
    for name in NAME_FIELDS & fields.keys():
        if name != "object" or "object-entity" not in fields:
            fields[name] = {"$ref": "#/$defs/entity-name"}
    return limited


def unwrap_records(text: str) -> str:
    """The records in `{"records": […]}`, one a line; an incomplete one at the end keeps its line.

    Text of another form is returned as it is.
    """
    head = _WRAPPER.match(text)
    if head is None:
        return text
    lines, position = [], head.end()
    with suppress(ValueError, RecursionError):
        while gap := _BETWEEN.match(text, position):
            position = gap.end()
            _, end = _DECODER.raw_decode(text, position)
            lines.append(text[position:end])
            position = end
    rest = text[position:]
    if not _END.fullmatch(rest):
        lines.append(rest)
    return "\n".join(re.sub(r"[\r\n]", " ", line) for line in lines)
