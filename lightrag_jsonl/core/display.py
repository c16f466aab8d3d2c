"""How values look in a console and in a notebook: short reprs, and small tables of HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from reprlib import Repr
from typing import Any, TypeVar

from lightrag_jsonl.core.text import clipped

Value = TypeVar("Value")  # a dataclass

_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80  # characters of one value
_REPR.maxtuple = _REPR.maxdict = _REPR.maxfrozenset = 3  # items of a collection
_CELL = 200  # characters of a cell
_ROWS = 60


def short_repr(value: Any) -> str:
    """The repr of a dataclass, without fields with default values, long values clipped."""
    parts = []
    for field in fields(value):
        content = getattr(value, field.name)
        if content not in (field.default, {}):
            parts.append(f"{field.name}={_REPR.repr(content)}")
    return f"{type(value).__name__}({', '.join(parts)})"


def with_short_repr(dataclass_type: type[Value]) -> type[Value]:
    """A class decorator: `short_repr` as the repr of a dataclass."""
    dataclass_type.__repr__ = short_repr  # type: ignore[method-assign]
    return dataclass_type


def html_table(title: str, rows: Iterable[Sequence[object]]) -> str:
    """A table for a notebook: everything escaped, long texts clipped, at most 60 rows."""
    lines = [[f"<td>{escape(clipped(str(cell), _CELL))}</td>" for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines[:_ROWS])
    omitted = f"<p>… {len(lines) - _ROWS:,} more</p>" if len(lines) > _ROWS else ""
    return f'<p style="white-space: pre-wrap">{escape(title)}</p><table>{body}</table>{omitted}'
