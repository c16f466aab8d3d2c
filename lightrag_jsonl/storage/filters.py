"""Filters on documents as a small tree, which each store compiles to its own query language.

The fields `id`, `title`, `source` and `date` are the document's own and hold texts. All others are
in its metadata. There, a list meets a condition if one of its members does, null is absent, true
and false count as 1 and 0, and objects meet nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Json

OWN_FIELDS = frozenset(("id", "title", "source", "date"))
LARGEST = 2**63 - 1
FINITE = int(sys.float_info.max)

Value: TypeAlias = str | int | float | bool | None  # integers are of 64 bits
Comparator: TypeAlias = Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Among:
    """The field has one of these values; None stands for an absent field."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """The field compares like this with a text or a number; texts compare with texts only, numbers
    with numbers only, and an absent field with nothing.
    """

    field: str
    comparator: Comparator
    value: str | int | float


@dataclass(frozen=True, slots=True)
class Not:
    """The condition is not met."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class All:
    """Every condition is met; true if there is none."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one condition is met."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Among | Compare | Not | All | AnyOf

COMPARATORS: Mapping[str, Comparator] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
EQUALITIES = ("$eq", "$in", "$ne", "$nin")


def parse_where(where: Mapping[str, Json]) -> Condition:
    """The condition that `QueryParam.where` describes: every field meets its own.

    A field's condition is a value, a list of alternatives, or a mapping of comparisons such as
    {"$gte": "2024-01-01"}. An absent field meets none but that for None. `ConfigError` names a
    field whose condition makes no sense.
    """
    return All(tuple(_condition(sanitize(field), wanted) for field, wanted in where.items()))


def _condition(field: str, wanted: Json) -> Condition:
    if not isinstance(wanted, dict):
        return Among(field, _values(field, wanted))
    unknown = wanted.keys() - COMPARATORS.keys() - set(EQUALITIES)
    if unknown or not wanted:
        raise ConfigError(
            f"where[{field!r}]: unknown comparison {', '.join(sorted(unknown)) or '{}'}; "
            f"known are {', '.join([*COMPARATORS, *EQUALITIES])}"
        )
    return All(tuple(_comparison(field, name, value) for name, value in wanted.items()))


def _comparison(field: str, name: str, wanted: Json) -> Condition:
    values = _values(field, wanted)
    if name in ("$eq", "$in"):
        return Among(field, values)
    if name in ("$ne", "$nin"):
        return Not(Among(field, (*values, None)))
    comparable = [value for value in values if value is not None]
    if not values or len(comparable) < len(values):
        raise ConfigError(f"where[{field!r}]: {name} needs a text or a number")
    return AnyOf(tuple(Compare(field, COMPARATORS[name], value) for value in comparable))


def _values(field: str, wanted: Json) -> tuple[Value, ...]:
    """A value or a list of alternatives as a tuple; own fields are compared as texts."""
    choices = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
    values = [_value(field, choice) for choice in choices]
    if field not in OWN_FIELDS:
        return tuple(values)
    return tuple(value if value is None else str(value) for value in values)


def _value(field: str, value: Json) -> Value:
    """A value as databases compare it: text without half characters, integers of 64 bits."""
    if isinstance(value, dict | list):
        raise ConfigError(f"where[{field!r}]: values must be texts or numbers")
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        return float(min(max(value, -FINITE), FINITE))
    return int(value) if isinstance(value, bool) else value
