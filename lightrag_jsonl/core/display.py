"""How values look in a console and in a notebook: short reprs, and small tables of HTML."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from reprlib import Repr
from typing import Any, TypeVar

from lightrag_jsonl.text.strings import clipped

Dataclass = TypeVar("Dataclass")

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


def with_short_repr(dataclass_type: type[Dataclass]) -> type[Dataclass]:
    """A class decorator: `short_repr` as the repr of a dataclass."""
    dataclass_type.__repr__ = short_repr  # type: ignore[method-assign]
    return dataclass_type


def with_field_lines(dataclass_type: type[Dataclass]) -> type[Dataclass]:
    """A class decorator: `field_lines` as the text of a dataclass, such as a report in a terminal."""
    dataclass_type.__str__ = field_lines  # type: ignore[method-assign]
    return dataclass_type


def field_lines(value: Any) -> str:
    """A dataclass with a field a line: names aligned, empty fields left out, of long lists the beginning."""
    words = {name.replace("_", " "): _in_words(content) for name, content in _filled_fields(value)}
    width = max(map(len, words), default=0)
    return "\n".join(f"{name:<{width}}  {content}" for name, content in words.items())


def _filled_fields(value: Any) -> Iterator[tuple[str, object]]:
    """The fields with another content than nothing: no 0, "", None, empty list or empty value."""
    for field in fields(value):
        content = getattr(value, field.name)
        is_empty = not any(_filled_fields(content)) if is_dataclass(content) else not content
        if not is_empty:
            yield field.name, content


def _in_words(content: object) -> str:
    """The content of a field on one line."""
    if isinstance(content, int):
        return f"{content:,}"
    if isinstance(content, Mapping):
        return ", ".join([f"{key} {_in_words(item)}" for key, item in content.items()])
    if isinstance(content, tuple):
        items = [clipped(_in_words(item), _REPR.maxstring) for item in content[: _REPR.maxtuple]]
        omitted = len(content) - len(items)
        return "; ".join(items) + (f"; and {omitted:,} more" if omitted else "")
    if is_dataclass(content):
        parts = [
            f"{name.replace('_', ' ')} {_in_words(part)}" for name, part in _filled_fields(content)
        ]
        return ", ".join(parts)
    return " ".join(str(content).split())


def html_table(title: str, rows: Iterable[Sequence[object]]) -> str:
    """A table for a notebook: everything escaped, long texts clipped, at most 60 rows."""
    lines = [_html_row(row) for row in rows]
    heading = f'<p style="white-space: pre-wrap">{escape(title)}</p>'
    table = f"<table>{''.join(lines[:_ROWS])}</table>"
    omitted = len(lines) - _ROWS
    return heading + table + (f"<p>… {omitted:,} more</p>" if omitted > 0 else "")


def _html_row(row: Sequence[object]) -> str:
    cells = [f"<td>{escape(clipped(str(cell), _CELL))}</td>" for cell in row]
    return f"<tr>{''.join(cells)}</tr>"
