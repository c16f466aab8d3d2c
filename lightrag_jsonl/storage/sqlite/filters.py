"""Compiles a condition on documents to SQL, with `d` as the table of documents."""

from __future__ import annotations

from lightrag_jsonl.storage.filters import All, Among, AnyOf, Compare, Condition, Not

Compiled = tuple[str, list[object]]  # an expression that is never NULL, and its parameters

COLUMNS = {"id": "d.name", "title": "d.title", "source": "d.source", "date": "d.date"}

# A field of the metadata meets a test if its value does, or a member of its list.
MEETS = """EXISTS (SELECT 1 FROM json_each(d.metadata) field WHERE field.key = ? AND ({} OR
    field.type = 'array' AND EXISTS (SELECT 1 FROM json_each(field.value) member WHERE {})))"""
ABSENT = "NOT EXISTS (SELECT 1 FROM json_each(d.metadata) WHERE key = ? AND type <> 'null')"
ONE_OF = "{0}.type NOT IN ('array', 'object') AND {0}.value IN ({1})"
TEXT = "{0}.type = 'text' AND {0}.value {1} ?"
NUMBER = "{0}.type IN ('integer', 'real', 'true', 'false') AND {0}.value {1} ?"


def compile_condition(condition: Condition) -> Compiled:
    """The condition as an SQL expression, and the values of its parameters."""
    match condition:
        case Among():
            return _among(condition)
        case Compare():
            return _compare(condition)
        case Not(inner):
            test, values = compile_condition(inner)
            return f"NOT {test}", values
        case All(conditions):
            return _joined(" AND ", conditions, none="1")
        case AnyOf(conditions):
            return _joined(" OR ", conditions, none="0")


def _joined(word: str, conditions: tuple[Condition, ...], *, none: str) -> Compiled:
    """Conditions as one; `none` is the expression if there is none."""
    compiled = [compile_condition(condition) for condition in conditions]
    tests = word.join(test for test, _ in compiled)
    return f"({tests or none})", [value for _, values in compiled for value in values]


def _among(condition: Among) -> Compiled:
    field, column = condition.field, COLUMNS.get(condition.field)
    values: list[object] = [value for value in condition.values if value is not None]
    if column:  # holds texts only
        values = [value for value in values if isinstance(value, str)]
        test, absent = f"({column} IN ({_marks(values)})) IS TRUE", f"{column} IS NULL"
    else:
        (test, values), absent = _meets(field, ONE_OF, _marks(values), values), ABSENT
    if None not in condition.values:
        return f"({test})", values
    return f"({test} OR {absent})", values if column else [*values, field]


def _compare(condition: Compare) -> Compiled:
    comparator, value = condition.comparator, condition.value
    column = COLUMNS.get(condition.field)
    if column is None:
        test = TEXT if isinstance(value, str) else NUMBER
        return _meets(condition.field, test, comparator, [value])
    if isinstance(value, str):
        return f"(({column} {comparator} ?) IS TRUE)", [value]
    return "0", []  # the column holds texts only


def _meets(field: str, test: str, operand: str, values: list[object]) -> Compiled:
    """The condition that the value, or a member, of a field of the metadata meets a test."""
    tests = (test.format("field", operand), test.format("member", operand))
    return MEETS.format(*tests), [field, *values, *values]


def _marks(values: list[object]) -> str:
    return ", ".join("?" * len(values))
