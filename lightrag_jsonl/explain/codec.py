"""Converts frozen dataclasses to JSON text and back, by their type hints."""

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
    """The dataclass in the text; missing fields get their defaults, unknown ones are ignored.

    The text may come from anywhere. Raises `ValueError` if it is not JSON or a value does not have
    the type of its field, `TypeError` if a field without a default is missing.
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    found: T = _build(kind, value, kind.__name__)
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


def _build(kind: Any, value: Any, name: str) -> Any:
    """The value converted to its type hint; `name` is the field's name."""
    if kind in _WRITTEN:
        return _checked(value, _WRITTEN[kind], name)
    if kind is datetime:
        return datetime.fromisoformat(_checked(value, str, name))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        _checked(value, dict, name)
        return kind(**{n: _build(k, value[n], n) for n, k in _fields(kind) if n in value})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return tuple(_build(arguments[0], item, name) for item in _checked(value, list, name))
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _build(next(k for k in arguments if k is not type(None)), value, name)
    return _checked(value, str, name) if origin is typing.Literal else value


_WRITTEN: dict[Any, Any] = {str: str, bool: bool, int: int, float: (int, float)}


def _checked(value: Any, written: Any, name: str) -> Any:
    if not isinstance(value, written):
        raise ValueError(f"{name} cannot be a value of type {type(value).__name__}")
    return value
