"""Filters on documents as conditions on fields.

The fields `id`, `title`, `source` and `date` are the document's own and hold texts; dates compare as time. `content_keywords`
is a list of the themes that were read in the document. All other fields are in the metadata. A list meets a condition if a member does, null is absent, true and false
count as 1 and 0, and objects meet nothing.
"""

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct, structs

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import checked_date
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.text.dates import first_day, iso_date, last_day
from lightrag_jsonl.text.strings import cut, sanitize

CONTENT_KEYWORDS = "content_keywords"
# The document's own fields, and their columns.
OWN_FIELDS = {"id": "name", "title": "title", "source": "source", "date": "date"}
COMPARATORS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
COMPARATORS |= {"$eq": "=", "$in": "=", "$ne": "!=", "$nin": "!="}
TEXT_COMPARATORS = {"$contains": "contains", "$starts_with": "starts with"}
TEXT_COMPARATORS |= {"$ends_with": "ends with", "$not_contains": "not contains"}
COMPARATORS |= TEXT_COMPARATORS
OPPOSITES = {"!=": "=", "not contains": "contains"}  # a field must be there, and not meet this
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "contains": operator.contains,
    "starts with": str.startswith,
    "ends with": str.endswith,
}
MOST_CONDITIONS = 100  # each looks at all documents
LONGEST_FILTER = 200  # characters, in words

Value: TypeAlias = str | int | float | None


class Condition(Struct, frozen=True):
    """The field compares so with at least one of the values ("!=", "not contains": with all values).

    Texts compare with texts only, numbers with numbers only, and an absent field with nothing, but
    for "=" with None among the values. The values of own fields are texts, and so are those to be contained.
    """

    field: str
    comparator: str  # one of = != < <= > >= and those of texts
    values: tuple[Value, ...]


def parse_where(where: Mapping[str, Json]) -> tuple[Condition, ...]:
    """The conditions of `QueryParam.where`; a document has to meet all.

    A field's condition is a value, a list of alternatives, or a mapping of comparisons such as
    {"$gte": "2024-01-01"}. An absent field meets no condition but for None. `ConfigError` names
    the field of a condition that makes no sense, such as a text before which no date can be, and refuses
    more than `MOST_CONDITIONS`.
    """
    conditions: list[Condition] = []
    for field, condition in where.items():
        comparisons = condition if isinstance(condition, dict) else {"$in": condition}
        unknown_names = sorted(comparisons.keys() - COMPARATORS.keys())
        if unknown_names or not comparisons:
            raise ConfigError(
                f"where[{field!r}]: unknown comparison {', '.join(unknown_names) or '{}'}; "
                f"known are {', '.join(COMPARATORS)}"
            )
        for name, operand in comparisons.items():
            conditions.append(_condition(sanitize(field), name, operand))
    if len(conditions) > MOST_CONDITIONS:
        raise ConfigError(
            f"where has {len(conditions):,} conditions, more than {MOST_CONDITIONS}: for many values "
            "of one field, give a list"
        )
    return tuple(conditions)


def filter_words(where: Mapping[str, Json]) -> str:
    """A filter as people read it: author = Ann | 本, date >= 2024; a very long one in part."""
    texts: list[str] = []
    for condition in parse_where(where):
        values = dict.fromkeys(
            ["null" if value is None else str(value) for value in condition.values]
        )
        texts.append(f"{condition.field} {condition.comparator} {' | '.join(values)}")
    return cut(", ".join(texts), LONGEST_FILTER)


def meeting_rows(condition: Condition, values: Mapping[int, object]) -> set[int]:
    """The row ids of the documents that meet a condition; `values` has what each document has in the field."""
    comparator = condition.comparator
    if comparator in OPPOSITES:
        present_rows = {row for row, value in values.items() if value is not None}
        opposite = structs.replace(condition, comparator=OPPOSITES[comparator])
        return present_rows - meeting_rows(opposite, values)
    is_of_time = condition.field == "date" and comparator not in TEXT_COMPARATORS.values()
    if comparator == "=" and not is_of_time:
        choices = frozenset(condition.values)
        return {row for row, value in values.items() if not choices.isdisjoint(_members(value))}
    compares = _compares_in_time if is_of_time else _compares
    return {
        row
        for row, value in values.items()
        if any(
            compares(member, comparator, choice)
            for member in _members(value)
            for choice in condition.values
        )
    }


def _members(value: object) -> list[Value]:
    """A value, or those in a list; None only for an absent one, and no objects."""
    if value is None:
        return [None]
    values = value if isinstance(value, list) else [value]
    return [member for member in values if isinstance(member, str | int | float)]


def _compares(value: Value, comparator: str, choice: Value) -> bool:
    """Whether a value compares so with a choice of the same kind."""
    if value is None or choice is None or isinstance(value, str) != isinstance(choice, str):
        return False
    return _COMPARE[comparator](value, choice)


@lru_cache(maxsize=2**16)  # documents have few different dates
def _compares_in_time(value: Value, comparator: str, choice: Value) -> bool:
    """Whether a date compares so with another.

    A date is as long as it is precise: "2021-06" is neither before nor after "2021", but meets "<= 2021". So is
    the time of a day, where both texts begin with the same day in our form. What is no date is neither before
    nor after one, and equals the same text.
    """
    if value is None or choice is None:
        return comparator == "=" and value is choice
    date = str(value)
    other_date = str(choice)
    iso = iso_date(date)
    other_iso = iso_date(other_date)
    if comparator == "=" and not (iso and other_iso):
        return date == other_date
    if not (iso and other_iso):
        return False
    if iso == other_iso and {date[:10], other_date[:10]} == {iso}:
        return _COMPARE[comparator](date[: len(other_date)], other_date)
    if comparator == "=":
        return iso == other_iso
    if comparator in (">", "<="):
        day = first_day(iso) if comparator == ">" else last_day(iso)
        return _COMPARE[comparator](day, last_day(other_iso))
    day = last_day(iso) if comparator == "<" else first_day(iso)
    return _COMPARE[comparator](day, first_day(other_iso))


def _condition(field: str, name: str, operand: Json) -> Condition:
    choices = operand if isinstance(operand, list | tuple) else [operand]
    values = tuple(_comparable_value(field, choice) for choice in choices)
    comparator = COMPARATORS[name]
    if name in TEXT_COMPARATORS and not (values and all(isinstance(text, str) for text in values)):
        raise ConfigError(f"where[{field!r}]: {name} needs a text")
    if comparator not in ("=", "!=") and (not values or None in values):
        raise ConfigError(f"where[{field!r}]: {name} needs a text or a number")
    if field == "date" and comparator in ("<", "<=", ">", ">="):
        for value in values:
            checked_date(str(value), f"where['date']: the value after {comparator}")
    return Condition(field, comparator, values)


def _comparable_value(field: str, value: Json) -> Value:
    """A value as fields have it: text without half characters, and nothing else in own fields."""
    if isinstance(value, dict | list):
        raise ConfigError(f"where[{field!r}]: values must be texts or numbers")
    if value is not None and field in OWN_FIELDS:
        value = str(value)
    return sanitize(value) if isinstance(value, str) else value
