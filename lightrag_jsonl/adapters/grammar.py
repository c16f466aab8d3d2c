"""A GBNF grammar that lets a model write nothing but records of a schema, one a line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeGuard

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.types import Json

NAME_FIELDS = frozenset({"name", "source", "target", "entity", "subject", "object"})
# (`object` is free beside an `object-entity`, which may say that it is no entity.)
LAST_TYPE = "done"  # a record of this type ends the answer
MAX_RECORDS = 200
MAX_CHARACTERS = 1000  # of strings without maxLength, so that a repeating model comes to an end
MAX_ITEMS = 30
MAX_DEPTH = 12
MAX_ALTERNATIVES = 1000  # up to so many possible integers are listed one by one

BASE_RULES: Mapping[str, str] = {
    "sp": '" "?',
    # The characters of strings, by ranges: no control characters, line separators or surrogates.
    # There is no \u escape, since all of these can be written as they are.
    "char": r'[ !#-\[\]-~\u00A0-\u2027\u202A-\uD7FF\uE000-\U0010FFFF] | "\\" ["\\/nt]',
    "fraction": '"." [0-9]{1,4}',
    "scalar": 'text | number | "true" | "false" | "null"',
    "text": f'"\\"" char{{0,{MAX_CHARACTERS}}} "\\""',
    "number": '"-"? ("0" | [1-9] [0-9]{0,8}) fraction?',
    "list": f'"[" (scalar ("," sp scalar){{0,{MAX_ITEMS - 1}}})? "]"',
    "field": 'text ":" sp scalar',
    "map": f'"{{" (field ("," sp field){{0,{MAX_ITEMS - 1}}})? "}}"',
    "any": "scalar | list | map",
}
NOTES = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description"}
    | {"examples", "default", "deprecated"}
)
KEYS: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum"}),
    "number": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
    "null": frozenset(),
}


def record_grammar(
    schema: Json, *, names: Sequence[str] | None = None, max_records: int = MAX_RECORDS
) -> str:
    """The grammar of up to `max_records` lines, each a JSON object that obeys `schema`.

    Branches of a top-level `oneOf` should differ in a `const`. A branch whose `type` is "done"
    comes last and ends the answer. With `names`, fields that name entities can only contain these
    strings (an empty list restricts nothing). Every line obeys the schema, but not everything that
    obeys it can be written: strings, lists and numbers are bounded, and keys have the schema's
    order. Raises `ConfigError` if a keyword of the schema has no grammar.
    """
    rules = _Rules(schema, tuple(dict.fromkeys(names or ())))
    branches = rules.branches(schema)
    last = [branch for branch in branches if _type_const(branch) == LAST_TYPE]
    others = [branch for branch in branches if branch not in last]
    rules.add("record", " | ".join(rules.value(branch, "$") for branch in others or last))
    if last and others:
        end = " | ".join(rules.value(branch, "$") for branch in last)
        root = f'(record "\\n"){{0,{max_records}}} ({end}) "\\n"?'
    else:
        root = f'(record ("\\n" record){{0,{max_records - 1}}})? "\\n"?'
    return rules.text(root)


class _Rules:
    """The rules so far, by name; equal bodies share one rule."""

    def __init__(self, schema: Json, names: tuple[str, ...]) -> None:
        self._root = schema
        self._names = " | ".join(literal(name) for name in names)
        self._bodies: dict[str, str] = {}
        self._shared: dict[str, str] = {}

    def add(self, name: str, body: str) -> str:
        self._bodies[name] = body
        return name

    def text(self, root: str) -> str:
        lines = [f"root ::= {root}"]
        for name, body in {**self._bodies, **BASE_RULES}.items():
            lines.append(f"{name} ::= {body}")
        return "\n".join(lines) + "\n"

    def branches(self, schema: Json, depth: int = 0) -> list[Json]:
        """The alternatives of a schema, each merged with what is beside its `oneOf`."""
        if depth > MAX_DEPTH:
            raise _no_grammar("$", "its alternatives nest too deep")
        schema = self._resolved(schema)
        if not isinstance(schema, dict):
            return [schema]
        for key in ("oneOf", "anyOf"):
            options = schema.get(key)
            if isinstance(options, list):
                base = {name: part for name, part in schema.items() if name != key}
                return [
                    inner
                    for option in options
                    for inner in self.branches(_merged(base, self._resolved(option)), depth + 1)
                ]
        return [schema]

    def value(self, schema: Json, path: str) -> str:
        """A rule's name, or a literal, for one value of a schema."""
        if path.count(".") + path.count("[]") > MAX_DEPTH:
            raise _no_grammar(path, "it nests too deep")
        branches = self.branches(schema)
        if not branches:
            raise _no_grammar(path, "it allows nothing")
        if len(branches) > 1:
            return self._share(" | ".join(self.value(branch, path) for branch in branches))
        branch = branches[0]
        if branch is True or branch == {}:
            return "any"
        if not isinstance(branch, dict):
            raise _no_grammar(path, "it allows nothing")
        if "const" in branch:
            return literal(branch["const"])
        if isinstance(choices := branch.get("enum"), list):
            return self._share(" | ".join(literal(choice) for choice in choices))
        kinds = _kinds(branch, path)
        return self._share(" | ".join(self._of_kind(kind, branch, path) for kind in kinds))

    def _of_kind(self, kind: str, schema: dict[str, Json], path: str) -> str:
        known = frozenset().union(*(KEYS[other] for other in _kinds(schema, path)))
        for key in schema:
            if key not in known and key not in NOTES and key != "type":
                raise _no_grammar(path, f"`{key}` has no grammar")
        makers: Mapping[str, Callable[[dict[str, Json], str], str]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": _integer,
            "number": _number,
        }
        if kind in makers:
            return makers[kind](schema, path)
        return '("true" | "false")' if kind == "boolean" else '"null"'

    def _object(self, schema: dict[str, Json], path: str) -> str:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        if not isinstance(properties, dict) or not _are_names(required):
            raise _no_grammar(path, "`properties` or `required` is malformed")
        if not properties and not required:
            return "map"
        fields = {**properties, **{str(key): True for key in required if key not in properties}}
        names = NAME_FIELDS - ({"object"} if "object-entity" in fields else frozenset())
        members = []
        for key, part in fields.items():
            inner = f"{path}.{key}"
            value = self._name(part, inner) if key in names else self.value(part, inner)
            members.append((f'{literal(key)} ":" sp {value}', key in required))
        return f'"{{" {_members(members)} "}}"'

    def _name(self, schema: Json, path: str) -> str:
        """An entity's name: one of those given, or any that is not empty."""
        if not isinstance(schema, dict) or schema.get("type") != "string" or "enum" in schema:
            return self.value(schema, path)
        if self._names:
            return self.add("name", self._names)
        return self.value({"minLength": 1, **schema}, path)

    def _array(self, schema: dict[str, Json], path: str) -> str:
        least, most = _bounds(schema, "minItems", "maxItems", MAX_ITEMS)
        if most == 0:
            return '"[" "]"'
        item = self.value(schema.get("items", True), f"{path}[]")
        items = f'{item} ("," sp {item}){{{max(least - 1, 0)},{most - 1}}}'
        return f'"[" {items} "]"' if least else f'"[" ({items})? "]"'

    def _string(self, schema: dict[str, Json], path: str) -> str:
        least, most = _bounds(schema, "minLength", "maxLength", MAX_CHARACTERS)
        return f'"\\"" char{{{least},{most}}} "\\""'

    def _share(self, body: str) -> str:
        """The name of a rule with this body, an existing or a new one."""
        if body not in self._shared:
            self._shared[body] = self.add(f"v{len(self._shared)}", body)
        return self._shared[body]

    def _resolved(self, schema: Json) -> Json:
        seen = 0
        while isinstance(schema, dict) and "$ref" in schema:
            reference, seen = schema["$ref"], seen + 1
            if not isinstance(reference, str) or not reference.startswith("#/") or seen > 20:
                raise _no_grammar(str(reference), "only references inside the schema are known")
            target = self._root
            for step in reference[2:].split("/"):
                target = target.get(step) if isinstance(target, dict) else None
            schema = target
        return schema


def literal(value: Json) -> str:
    """A JSON value as a GBNF literal."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _are_names(names: Json) -> TypeGuard[list[Json]]:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _members(members: Iterable[tuple[str, bool]]) -> str:
    """The fields in order, with commas between those that are present."""
    members = list(members)
    first = next((at for at, (_, needed) in enumerate(members) if needed), None)
    if first is None:
        tails = [_tail(members[at:]) for at in range(len(members))]
        return f"({' | '.join(tails)})?"
    before = "".join(f'({text} "," sp)? ' for text, _ in members[:first])
    return before + _tail(members[first:])


def _tail(members: Sequence[tuple[str, bool]]) -> str:
    parts = [members[0][0]]
    for text, needed in members[1:]:
        parts.append(f'"," sp {text}' if needed else f'("," sp {text})?')
    return " ".join(parts)


def _integer(schema: dict[str, Json], path: str) -> str:
    low, high = _range(schema, path)
    if low is not None and high is not None:
        return "(" + " | ".join(f'"{number}"' for number in _span(low, high, path)) + ")"
    return _open_ended(low, high, path)


def _number(schema: dict[str, Json], path: str) -> str:
    low, high = _range(schema, path)
    if low is None or high is None:
        return f"{_open_ended(low, high, path)} fraction?"
    if low < 0:
        raise _no_grammar(path, "negative bounds have no grammar")
    whole = " | ".join(f'"{number}"' for number in _span(low, high - 1, path))
    return f'(({whole}) fraction? | "{high}")' if whole else f'"{high}"'


def _open_ended(low: int | None, high: int | None, path: str) -> str:
    if high is not None or low not in (None, 0, 1):
        raise _no_grammar(path, "only `minimum` 0 or 1 can stand without `maximum`")
    if low == 1:
        return "[1-9] [0-9]{0,8}"
    return ('"-"? ' if low is None else "") + '("0" | [1-9] [0-9]{0,8})'


def _span(low: int, high: int, path: str) -> range:
    if high - low > MAX_ALTERNATIVES:
        raise _no_grammar(path, f"more than {MAX_ALTERNATIVES} integers")
    return range(low, high + 1)


def _range(schema: dict[str, Json], path: str) -> tuple[int | None, int | None]:
    """The bounds as integers, rounded inwards."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if not all(bound is None or _is_finite(bound) for bound in (low, high)):
        raise _no_grammar(path, "`minimum` or `maximum` is no number")
    return (
        math.ceil(low) if isinstance(low, int | float) else None,
        math.floor(high) if isinstance(high, int | float) else None,
    )


def _is_finite(bound: Json) -> bool:
    return isinstance(bound, int) or (isinstance(bound, float) and math.isfinite(bound))


def _bounds(schema: dict[str, Json], low: str, high: str, default: int) -> tuple[int, int]:
    least, most = schema.get(low, 0), schema.get(high)
    least = least if isinstance(least, int) else 0
    return least, most if isinstance(most, int) else max(default, least)


def _kinds(schema: Mapping[str, Json], path: str) -> list[str]:
    """The types that a schema names, or that its keywords imply."""
    named = schema.get("type")
    kinds = [named] if isinstance(named, str) else named
    if kinds is None:
        kinds = [
            kind for kind, key in (("object", "properties"), ("array", "items")) if key in schema
        ]
    if not isinstance(kinds, list) or not kinds:
        raise _no_grammar(path, "it has no `type`")
    known = [kind for kind in kinds if isinstance(kind, str) and kind in KEYS]
    if len(known) != len(kinds):
        raise _no_grammar(path, f"unknown type in {kinds}")
    return known


def _merged(base: dict[str, Json], branch: Json) -> Json:
    """A branch of a `oneOf`, merged with the keywords beside the `oneOf`."""
    if not isinstance(branch, dict):
        return branch
    merged = {**base, **branch}
    for key in ("properties", "required"):
        ours, theirs = base.get(key), branch.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            merged[key] = {**ours, **theirs}
        elif isinstance(ours, list) and isinstance(theirs, list):
            merged[key] = [*ours, *(item for item in theirs if item not in ours)]
    return merged


def _type_const(schema: Json) -> Json:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    kind = properties.get("type") if isinstance(properties, dict) else None
    if not isinstance(kind, dict):
        return None
    choices = kind.get("enum")
    return choices[0] if isinstance(choices, list) and len(choices) == 1 else kind.get("const")


def _no_grammar(path: str, why: str) -> ConfigError:
    return ConfigError(f"no grammar for the schema at {path}: {why}")
