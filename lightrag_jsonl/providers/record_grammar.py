"""Record schemas as grammars of llama.cpp (GBNF), without the white space between JSON's tokens.

llama.cpp can make a grammar from a JSON Schema, but allows line breaks and indentation between all
tokens; models then indent, and the user waits for white space. Under a grammar of this module the
answer is JSON Lines: one record a line.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lightrag_jsonl.core.types import Json
from lightrag_jsonl.core.validation import only_text_field
from lightrag_jsonl.providers.record_format import limited_schema

MOST_ALTERNATIVES = 100  # integers between bounds that are alternatives of a rule
MOST_REPETITIONS = 1_000  # of a rule; llama.cpp refuses grammars with many more
_BASIC_RULES = {
    "character": r'[^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})',
    "integer": '"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": '"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
}
_UNDERSTOOD = frozenset(
    {"type", "properties", "required", "items", "minItems", "maxItems", "maxLength", "const", "enum",
     "oneOf", "anyOf", "$ref", "$defs", "description", "title", "default", "examples",
     "additionalProperties", "minimum", "maximum"}
)  # fmt: skip


class UnsupportedSchemaError(ValueError):
    """A schema with a demand beyond these grammars."""


def record_grammar(schema: Mapping[str, Json], names: Sequence[str] | None = None) -> str | None:
    """The grammar of an answer in records of a `schema`, or None if the schema asks for more than
    fixed fields with texts, numbers, constants, lists and objects.

    A record of the type "done" ends the answer. Records with one text are a JSON array of the
    texts. With `names`, fields for names of entities hold a name of the list. Integers keep to
    narrow bounds; other bounds of numbers are checked when the answer is read.
    """
    limited = limited_schema(schema, names)
    grammar = _Grammar(limited.pop("$defs", {}))
    last_records = [part for part in limited.get("oneOf", []) if _is_last(part)]
    if last_records:
        limited["oneOf"] = [part for part in limited["oneOf"] if part not in last_records]
    text_field = only_text_field(schema)
    try:
        if text_field:
            record = grammar.rule(limited["properties"][text_field])
            root = f'"[" ({record} ("," {record})*)? "]"'
        else:
            record = grammar.rule(limited)
            root = f'({record} ("\\n" {record})* "\\n"?)?'
        if last_records:
            last_record = grammar.rule({"oneOf": last_records})
            root = f'({record} "\\n")* ({last_record} "\\n"?)?'
    except UnsupportedSchemaError:
        return None
    rules = {"root": root, **_BASIC_RULES, **grammar.rules}
    return "\n".join(f"{name} ::= {body}" for name, body in rules.items())


def _is_last(schema: Any) -> bool:
    """Whether a record ends the answer."""
    kind = schema.get("properties", {}).get("type", {}) if isinstance(schema, dict) else {}
    return isinstance(kind, dict) and kind.get("const") == "done"


class _Grammar(Struct):
    """The rules made so far from a schema with `definitions`."""

    definitions: Mapping[str, Any]
    rules: dict[str, str] = field(default_factory=dict)

    def rule(self, schema: Any) -> str:
        """The name of a rule for the values of a schema."""
        if not isinstance(schema, dict) or not schema.keys() <= _UNDERSTOOD:
            raise UnsupportedSchemaError
        if "$ref" in schema:
            return self._definition(schema["$ref"])
        return self._named(self._body(schema))

    def _named(self, body: str) -> str:
        """The name of a rule with a body; equal bodies share a rule."""
        for name, known_body in self.rules.items():
            if known_body == body:
                return name
        name = f"rule-{len(self.rules)}"
        self.rules[name] = body
        return name

    def _definition(self, reference: str) -> str:
        name = "def-" + "".join(c if c.isascii() and c.isalnum() else "-" for c in reference)
        if name not in self.rules:
            self.rules[name] = ""  # so that a definition may refer to itself
            key = reference.removeprefix("#/$defs/")
            if key not in self.definitions:
                raise UnsupportedSchemaError
            self.rules[name] = self.rule(self.definitions[key])
        return name

    def _body(self, schema: Mapping[str, Any]) -> str:
        for word in ("oneOf", "anyOf"):
            if word in schema:
                if schema.keys() & {"properties", "enum", "const", "items"}:
                    raise UnsupportedSchemaError
                return " | ".join(map(self.rule, schema[word]))
        if "const" in schema:
            return _literal(schema["const"])
        if "enum" in schema:
            return " | ".join(map(_literal, schema["enum"]))
        types = schema.get("type")
        if isinstance(types, list):
            return " | ".join(self.rule({**schema, "type": type}) for type in types)
        return self._body_of_type(types, schema)

    def _body_of_type(self, type: object, schema: Mapping[str, Any]) -> str:
        match type:
            case "string":
                limit = schema.get("maxLength", MOST_REPETITIONS)
                return f'"\\"" character{_up_to(limit)} "\\""'
            case "integer" if len(integers := _bounded_integers(schema)) > 0:
                return " | ".join(map(_literal, integers))
            case "integer" | "number" | "boolean" | "null":
                return str(type)
            case "array" if "items" in schema and schema["maxItems"] > 0:
                return self._list_body(schema)
            case "object" if schema.get("required"):
                return self._object_body(schema)
        raise UnsupportedSchemaError

    def _list_body(self, schema: Mapping[str, Any]) -> str:
        item = self.rule(schema["items"])
        further_items = f'("," {item}){_up_to(schema["maxItems"] - 1)}'
        items = f"{item} {further_items}"
        return f'"[" {items} "]"' if schema.get("minItems") else f'"[" ({items})? "]"'

    def _object_body(self, schema: Mapping[str, Any]) -> str:
        """An object with fields in the schema's order, the first required field first."""
        fields = {
            name: f'{_literal(name)} ":" {self.rule(value)}'
            for name, value in schema.get("properties", {}).items()
        }
        required = set(schema["required"])
        if not required <= fields.keys():
            raise UnsupportedSchemaError
        first = next(name for name in fields if name in required)
        body = fields.pop(first)
        for name, value in fields.items():
            body += f' "," {value}' if name in required else f' ("," {value})?'
        return f'"{{" {body} "}}"'


def _bounded_integers(schema: Mapping[str, Any]) -> range:
    """The integers between the bounds of a schema; empty for many integers or a missing bound."""
    lowest = schema.get("minimum")
    highest = schema.get("maximum")
    if not (isinstance(lowest, int) and isinstance(highest, int)):
        return range(0)
    integers = range(lowest, highest + 1)
    return integers if len(integers) <= MOST_ALTERNATIVES else range(0)


def _literal(value: Json) -> str:
    """A JSON value as a literal of a grammar."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _up_to(limit: object) -> str:
    """The repetition of a rule up to a limit, unlimited where the limit is too large."""
    is_small = isinstance(limit, int) and limit < MOST_REPETITIONS
    return f"{{0,{limit}}}" if is_small else "*"
