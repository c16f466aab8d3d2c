"""How values look in a console and in a notebook: short reprs, and small tables of HTML."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from reprlib import Repr
from typing import Any, TypeVar

from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.text import clipped

Dataclass = TypeVar("Dataclass")

_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80  # characters of one value
_REPR.maxtuple = _REPR.maxdict = _REPR.maxfrozenset = 3  # items of a collection
_CELL = 200  # characters of a cell
_ROWS = 60


TARGET_OF_LINK = (
    r"\s<[^<>\s]{1,400}>`_{0,2}"  # of reStructuredText, with the end of its link or role
)
LINK_TARGET = (  # of a link or a picture of Markdown, with its title
    r"\((?:[^()\s]|\([^()\s]*\))*(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?\)"
)
ATTRIBUTES = r"\{:[ .#\w^][^{}\n]*\}|\{#[\w-]{1,80}\}(?=\s*$)"  # of kramdown and of pandoc, at the end of a heading
# Of Markdown, on one line: its characters stand for themselves. A role of reStructuredText is none, nor is a link.
CODE_SPAN = r"(?<![`:\\])(?P<ticks>`{1,2})(?!`)(?P<code>[^`\n]+)(?P=ticks)(?![`_])"
# Of HTML. A bare `<name>` that is no element of text is a placeholder: it stays.
TAG = (
    r"</[A-Za-z][^<>]{0,400}>|<[A-Za-z][\w:.-]{0,80}(?:\s[^<>=]{1,100}=[^<>]{0,400}|\s*/)>"
    r"|<(?:a|abbr|address|article|aside|b|big|blockquote|br|caption|center|cite|code|dd|del|details|dfn|div|dl|dt|em"
    r"|figcaption|figure|font|footer|h[1-6]|header|hr|i|img|ins|kbd|li|main|mark|nav|ol|p|picture|pre|q|s|samp"
    r"|section|small|span|strike|strong|style|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|var|wbr)"
    r"(?:\s[^<>]{0,400})?>"
)
# of Markdown and HTML; single marks only around words: not in 2 * 3 or snake_case
_TEXT_MARKS = pattern_of(
    rf"{CODE_SPAN}|{TARGET_OF_LINK}|\[\[(?:[^\[\]|\n]*\|)?(?P<note>[^\[\]|\n]+)\]\]"  # a link between notes
    rf"|!?\[(?P<text>(?:[^\[\]\\]|\\.){{0,300}})\]{LINK_TARGET}|{ATTRIBUTES}"
    rf"|(?i:{TAG})|\*\*|__|`"
    r"|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])|(?<!\w)_(?=\w)|(?<=[\w.,!?])_(?!\w)"
    r"|^[^\S\n]*(?:#{1,6}|>)\s+",
    re.MULTILINE,
)


_MARK = pattern_of(r"[\[<>*_`#{]")  # each mark has one; found in a tenth of the time


_BULLET = pattern_of(r"^([^\S\n]*)[-*+•][^\S\n]+", re.MULTILINE)
_RULE_OF_TABLE = pattern_of(r"^[ \t]*\|(?=[ \t:|-]*--)[ \t:|-]*+(?:\n|\Z)", re.MULTILINE)
_BORDER = pattern_of(r"^\|[ \t]*+|(?<![ \t])[ \t]*+\|[ \t]*+$", re.MULTILINE)  # of a table's row
_BETWEEN_CELLS = pattern_of(r"(?<![ \t])[ \t]++\|[ \t]++")
# A link whose address stands elsewhere; of numbers alone, they are citations.
NAMED_LINK = pattern_of(r"\[(?=[^\[\]\n]*[^\W\d_])([^\[\]\n]+)\]\[[^\[\]\n]*\]")


def without_marks(text: str) -> str:
    """A text without the marks of Markdown and HTML, for people to read."""
    if _MARK.search(text) is None:
        return text
    return _TEXT_MARKS.sub(lambda mark: mark["code"] or mark["text"] or mark["note"] or "", text)


def without_bullets(text: str) -> str:
    """A sentence of a document for people: without marks, bullets of a list, and bars of a table."""
    return _without_bars(_BULLET.sub("", without_marks(NAMED_LINK.sub(r"\1", text))))


def without_markdown(text: str) -> str:
    """An answer, or a part of one, where no Markdown is drawn: with points as bullets, and cells in a line."""
    return _without_bars(_BULLET.sub(r"\1• ", without_marks(text)))


def _without_bars(text: str) -> str:
    if "|" not in text:
        return text
    return _BETWEEN_CELLS.sub(" · ", _BORDER.sub("", _RULE_OF_TABLE.sub("", text)))


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
