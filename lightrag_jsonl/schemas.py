"""Compiled JSON Schemas (Draft 2020-12) that say in words what is wrong with a record, and where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import jsonschema_rs

from lightrag_jsonl.errors import PromptError
from lightrag_jsonl.types import Json

_MAX_FAULTS = 3
_MAX_WORDS = 200
_REQUIRED = " is a required property"


class Schema:
    """A schema ready for use, made by `compile_schema`."""

    __slots__ = ("_branches", "_check", "source")

    def __init__(self, source: Mapping[str, Json], check: _Check, branches: _Branches | None):
        self.source = source
        self._check = check
        self._branches = branches

    def error(self, record: Json) -> str | None:
        """None for a valid value; otherwise what is wrong and where.

        If the schema is a `oneOf` (or `anyOf`) whose branches differ in a constant field, the
        message is about the branch that the record's field names: "relationship: 'object-entity' is
        missing".
        """
        if self._check.is_valid(record):
            return None
        words = self._branches.error(record) if self._branches else None
        return words or self._check.error(record) or "does not match the schema"


def compile_schema(schema: Mapping[str, Json]) -> Schema:
    """Compile a JSON Schema.

    Raises `PromptError` if it is not valid, or refers to another schema: nothing is read from disk
    or the network.
    """
    if not isinstance(schema, Mapping):
        raise PromptError(f"a schema must be an object, not {type(schema).__name__}")
    source = dict(schema)
    return Schema(source, _Check(source), _find_branches(source))


class _Check:
    """One validator, with its errors as short phrases."""

    __slots__ = ("_validator",)

    def __init__(self, source: dict[str, Json]) -> None:
        try:
            self._validator = jsonschema_rs.Draft202012Validator(source, retriever=_refuse)
        except (ValueError, TypeError, RecursionError) as error:
            reason = getattr(error, "message", "") or str(error)
            raise PromptError(f"not a valid JSON Schema: {_short(reason)}") from error

    def is_valid(self, record: Json) -> bool:
        return bool(self._validator.is_valid(record))

    def error(self, record: Json) -> str | None:
        faults: list[str] = []
        for fault in self._validator.iter_errors(record):
            faults.append(_words(fault.message, fault.instance_path))
            if len(faults) == _MAX_FAULTS:
                break
        return "; ".join(faults) or None


@dataclass(frozen=True, slots=True)
class _Branches:
    """The branches of a `oneOf`, by the value of the field that distinguishes them."""

    field: str
    checks: Mapping[str, _Check]

    def error(self, record: Json) -> str | None:
        if not isinstance(record, dict):
            return None
        known = ", ".join(self.checks)
        if self.field not in record:
            return f"'{self.field}' is missing (known: {known})"
        value = record[self.field]
        check = self.checks.get(_label(value))
        if check is None:
            return f"unknown {self.field} {_short(_label(value, quote=True))} (known: {known})"
        words = check.error(record)
        return f"{_label(value)}: {words}" if words else None


def _find_branches(source: Mapping[str, Json]) -> _Branches | None:
    for keyword in ("oneOf", "anyOf"):
        options = source.get(keyword)
        if isinstance(options, list) and options:
            resolved = [_resolve(option, source) for option in options]
            field = _telling_field(resolved)
            if field is not None:
                return _Branches(field, _checks(field, resolved, source))
    return None


def _telling_field(options: Sequence[Mapping[str, Json]]) -> str | None:
    """The first property that every branch fixes to a constant, each to a different one."""
    for field in _properties(options[0]):
        values = [_constant(option, field) for option in options]
        labels = [_label(value) for value in values if value is not None]
        if len(labels) == len(options) == len(set(labels)):
            return field
    return None


def _checks(
    field: str, options: Iterable[Mapping[str, Json]], source: Mapping[str, Json]
) -> dict[str, _Check]:
    shared = {key: source[key] for key in ("$id", "$defs", "definitions") if key in source}
    return {_label(_constant(option, field)): _Check({**shared, **option}) for option in options}


def _resolve(option: Json, source: Mapping[str, Json]) -> Mapping[str, Json]:
    """Follow one `#/…` reference; anything that is no object has no properties."""
    if not isinstance(option, dict):
        return {}
    reference = option.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return option
    target: Json = dict(source)
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        target = target.get(step) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else {}


def _properties(option: Mapping[str, Json]) -> dict[str, Json]:
    properties = option.get("properties")
    return properties if isinstance(properties, dict) else {}


def _constant(option: Mapping[str, Json], field: str) -> Json:
    rule = _properties(option).get(field)
    if not isinstance(rule, dict):
        return None
    if "const" in rule:
        return rule["const"]
    choices = rule.get("enum")
    return choices[0] if isinstance(choices, list) and len(choices) == 1 else None


def _label(value: Json, *, quote: bool = False) -> str:
    if isinstance(value, str) and not quote:
        return value
    return json.dumps(value, ensure_ascii=False).replace('"', "'")


def _words(message: str, path: Sequence[str | int]) -> str:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    if message.endswith(_REQUIRED):
        name = message.removesuffix(_REQUIRED).strip('"')
        message = f"'{name}' is missing"
    where = where.removeprefix(".")
    return f"{where}: {_short(message)}" if where else _short(message)


def _short(words: str) -> str:
    """A long message without its middle: the value comes first, what is wrong with it last."""
    if len(words) <= _MAX_WORDS:
        return words
    half = _MAX_WORDS // 2
    return f"{words[:half]} … {words[-half:]}"


def _refuse(uri: str) -> Json:
    raise ValueError(f"a schema must be complete in itself; {uri} is outside")
