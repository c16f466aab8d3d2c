"""How each kind of model server enforces a record schema, and how its answer is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from lightrag_jsonl.adapters.grammar import record_grammar
from lightrag_jsonl.types import Json

Means: TypeAlias = Literal["grammar", "structured_outputs", "json_schema"]

# By the name that a server gives itself: `owned_by` in its list of models.
SERVERS: Mapping[str, Means] = {"llamacpp": "grammar", "vllm": "structured_outputs"}
WRAPPER = re.compile(r'\s*\{\s*"records"\s*:\s*\[')
BETWEEN = re.compile(r"[\s,]*")
END = re.compile(r"\s*\]\s*\}\s*\Z")
DECODER = json.JSONDecoder()


def means_of(models: Mapping[str, Json]) -> Means:
    """How the server with this list of models enforces a schema; by a JSON schema if it is unknown."""
    listed = models.get("data")
    for model in listed if isinstance(listed, list) else ():
        owner = model.get("owned_by") if isinstance(model, dict) else None
        if isinstance(owner, str) and owner.lower() in SERVERS:
            return SERVERS[owner.lower()]
    return "json_schema"


def constraint(means: Means, schema: Json, names: Sequence[str] | None) -> dict[str, Json]:
    """The fields of a request that force every line of its answer to follow `schema`.

    Raises `ConfigError` if the schema has no grammar.
    """
    if means == "grammar":
        return {"grammar": record_grammar(schema, names=names)}
    if means == "structured_outputs":
        return {"structured_outputs": {"grammar": record_grammar(schema, names=names)}}
    wrapper: Json = {"name": "records", "schema": _object_of_records(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": wrapper}}


def unwrap(text: str) -> str:
    """The records in `{"records": […]}`, one a line; an incomplete one at the end keeps its line.

    Text of another form is returned as it is.
    """
    head = WRAPPER.match(text)
    if head is None:
        return text
    lines, at = [], head.end()
    while at < len(text):
        gap = BETWEEN.match(text, at)
        at = gap.end() if gap else at
        try:
            _, end = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        lines.append(text[at:end].replace("\r", " ").replace("\n", " "))
        at = end
    rest = text[at:]
    if rest and not END.fullmatch(rest):
        lines.append(rest)
    return "\n".join(lines)


def _object_of_records(schema: Json) -> dict[str, Json]:
    """A schema for the whole answer; definitions are moved to where references look for them."""
    shared: dict[str, Json] = {}
    if isinstance(schema, dict):
        shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        schema = {key: part for key, part in schema.items() if key not in shared}
    return {
        "type": "object",
        "properties": {"records": {"type": "array", "items": schema}},
        "required": ["records"],
        "additionalProperties": False,
        **shared,
    }
