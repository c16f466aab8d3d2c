"""Checks the fields of dataclasses against their annotations, with msgspec."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache
from typing import Any, get_type_hints

import msgspec

from lightrag_jsonl.core.errors import ConfigError

LONGEST_VALUE = 60  # characters of a value that an error shows


def check_fields(instance: object) -> None:
    """Check a dataclass instance; `ConfigError` names a field whose value has the wrong type or is
    out of bounds.

    Numbers of other libraries (numpy) are replaced by Python's own, so that they can be stored.
    """
    for name, hint in _hints(type(instance)).items():  # type: ignore[arg-type]  # mypy: no Hashable
        value = getattr(instance, name)
        try:
            checked = msgspec.convert(plain_json(value, name), hint)
        except (msgspec.ValidationError, RecursionError) as error:
            raise ConfigError(f"{name}: {error}, got {shown(value)}") from error
        object.__setattr__(instance, name, checked)


def plain_json(value: object, name: str) -> Any:
    """A value as plain JSON: numbers of other libraries as Python's own, sequences as lists."""
    if hasattr(value, "item"):  # a numpy scalar; some are subclasses of float
        return value.item()
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain_json(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [plain_json(item, name) for item in value]
    raise ConfigError(f"{name} must be texts, numbers, or lists of them, not {shown(value)}")


def shown(value: object) -> str:
    """The beginning of a value's `repr`, which a user's own class may have broken."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the user's own code may raise anything
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The fields that can be checked. A class excludes others by `unchecked`, a tuple of names."""
    hints = get_type_hints(kind, include_extras=True)
    unchecked = ("unchecked", *getattr(kind, "unchecked", ()))
    return {name: hint for name, hint in hints.items() if name not in unchecked}
