"""Frozen dataclasses to JSON text and back, by their type hints."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(value: object) -> str:
    """The value as one line of JSON: dataclasses as objects, tuples as arrays, times as ISO text."""
    return _ENCODER.encode(value)


def from_json(kind: type[T], text: str) -> T:
    """The dataclass that the text holds; absent fields get their defaults, unknown ones are ignored."""
    found: T = _build(kind, json.loads(text))
    return found


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names(kind)}


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=_plain
)


@cache
def _names(kind: type) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind.__name__} has no place in a trace")
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def _build(kind: Any, value: Any) -> Any:
    if value is None or kind in (str, int, bool, float):
        return value
    if kind is datetime:
        return datetime.fromisoformat(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return kind(**{n: _build(k, value[n]) for n, k in _fields(kind) if n in value})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return tuple(_build(arguments[0], item) for item in value)
    if origin in (typing.Union, types.UnionType):
        return _build(next(k for k in arguments if k is not type(None)), value)
    return value
