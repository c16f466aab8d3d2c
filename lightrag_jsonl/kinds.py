"""Checks the types of dataclass fields and names the field whose value is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Any

from lightrag_jsonl.errors import ConfigError

Check = Callable[[Any], bool]
LONGEST = 60  # characters of a value that are shown in an error

# By the declared type: a check of the value, and words for what it must be.
KINDS: Mapping[str, tuple[Check, str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (lambda value: isinstance(value, Integral) and not _is_bool(value), "a whole number"),
    "float": (lambda value: isinstance(value, Real) and not _is_bool(value), "a number"),
    "tuple[str, ...]": (lambda value: _are_texts(value), "a tuple of texts"),
    "Sequence[str]": (lambda value: _are_texts(value), "a tuple of texts"),
    "Mapping[str, Any]": (lambda value: isinstance(value, Mapping), "a mapping"),
}


def check_fields(made: Any) -> None:
    """Check the fields of a dataclass instance; `ConfigError` names one whose value has the wrong
    type.

    Numbers of other libraries (numpy) are replaced by Python's own, so that they can be stored.
    """
    kind: Any = type(made)
    for name, check, told, optional in _checks(kind):
        value = getattr(made, name)
        if not check(value) and not (optional and value is None):
            shown = repr(value)
            shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
            raise ConfigError(f"{name} must be {told}, not {shown}")
        if isinstance(value, Real) and not isinstance(value, int | float):
            plain = int(value) if isinstance(value, Integral) else float(value)
            object.__setattr__(made, name, plain)


def plain_json(value: object, name: str) -> Any:
    """A value as plain JSON: numbers of other libraries as Python's own, tuples and sets as lists.

    `ConfigError` shows a value that cannot be JSON.
    """
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain_json(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [plain_json(item, name) for item in value]
    raise ConfigError(f"{name} must be texts, numbers, or lists of them, not {value!r}")


@cache
def _checks(kind: Any) -> list[tuple[str, Check, str, bool]]:
    """The checkable fields of a class: name, check, words for what it must be, whether None is allowed."""
    found = []
    for field in fields(kind):
        declared = str(field.type)  # the source text: annotations are not evaluated
        plain = declared.removesuffix(" | None")
        if plain in KINDS:
            found.append((field.name, *KINDS[plain], plain != declared))
    return found


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(one, str) for one in value)
