"""Values of another kind than is declared are told by the name of their field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Any

from lightrag_jsonl.errors import ConfigError

Check = Callable[[Any], bool]
LONGEST = 60  # characters of a value that are shown

# By the declared type: what a value has to be, and how that is told.
KINDS: Mapping[str, tuple[Check, str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (lambda value: isinstance(value, Integral) and not _is_bool(value), "a whole number"),
    "float": (lambda value: isinstance(value, Real) and not _is_bool(value), "a number"),
    "tuple[str, ...]": (lambda value: _are_texts(value), "a tuple of texts"),
    "Mapping[str, Json]": (lambda value: isinstance(value, Mapping), "a mapping"),
}


def check_fields(made: Any) -> None:
    """Check the fields of a dataclass; `ConfigError` names the one whose value is of another kind."""
    kind: Any = type(made)
    for name, check, told, optional in _checks(kind):
        value = getattr(made, name)
        if not check(value) and not (optional and value is None):
            shown = repr(value)
            shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
            raise ConfigError(f"{name} must be {told}, not {shown}")


@cache
def _checks(kind: Any) -> list[tuple[str, Check, str, bool]]:
    """The fields of a class whose kind is known: name, check, how it is told, whether None may be."""
    found = []
    for field in fields(kind):
        declared = str(field.type)  # as it is written, since annotations are not evaluated
        plain = declared.removesuffix(" | None")
        if plain in KINDS:
            found.append((field.name, *KINDS[plain], plain != declared))
    return found


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(one, str) for one in value)
