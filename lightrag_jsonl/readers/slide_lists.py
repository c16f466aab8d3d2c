"""Marks the points of lists on slides of PowerPoint, whose bullets stand in paragraphs, placeholders or styles."""

from collections.abc import Iterator
from typing import Any, Final

from lightrag_jsonl.readers.drawings import DRAWING
from lightrag_jsonl.readers.markdown import list_mark
from lightrag_jsonl.readers.word_numbers import written_number
from lightrag_jsonl.readers.xml_elements import local_name, whole_number

PRESENTATION: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
MARKS: Final = frozenset(["buNone", "buChar", "buAutoNum", "buBlip"])
WITHOUT_BODY: Final = frozenset(["title", "ctrTitle", "dt", "ftr", "sldNum", "hdr"])  # placeholders
NUMBER_FORMATS: Final = {
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
}
NUMBER_MARKS: Final = {"Period": "{}.", "ParenR": "{})", "ParenBoth": "({})"}


def shape_text(shape: Any) -> str:
    """The paragraphs of a shape, each on a line, with the bullets and numbers of lists, indented by level."""
    return _marked_text(shape.text_frame, shape.element.find(f"{PRESENTATION}txBody"), shape)


def table_cells(shape: Any) -> Iterator[list[str]]:
    """The rows of a table, with the bullets and numbers of lists in the cells."""
    rows = shape.element.iter(f"{DRAWING}tr")
    for row, row_element in zip(shape.table.rows, rows, strict=True):
        cells = zip(row.cells, row_element.iterfind(f"{DRAWING}tc"), strict=True)
        yield [
            _marked_text(cell.text_frame, element.find(f"{DRAWING}txBody"), shape)
            for cell, element in cells
        ]


def _marked_text(frame: Any, body: Any, shape: Any) -> str:
    """The paragraphs of a text frame, whose element is `body`, in a shape."""
    numbers: dict[int, tuple[str, int]] = {}  # of each level, the format and the last number
    lines = []
    elements = body.iterfind(f"{DRAWING}p")
    for paragraph, element in zip(frame.paragraphs, elements, strict=True):
        text = paragraph.text.replace("\v", "\n")
        level = paragraph.level
        mark = _mark_of(element, level, shape) if text.strip() else None
        kind = "" if mark is None else local_name(mark)
        if mark is not None and kind == "buAutoNum":
            format = mark.get("type", "")
            last_format, last = numbers.get(level, ("", 0))
            goes_on = last_format == format
            number = last + 1 if goes_on else whole_number(mark.get("startAt"), 1)
            numbers[level] = (format, number)
            text = list_mark(level, _list_number(number, format)) + text
        elif kind in ("buChar", "buBlip"):
            text = list_mark(level) + text
        if text.strip():
            # Ends the numbers of lower levels, and without a number those of its level
            kept_levels = range(level + 1 if kind == "buAutoNum" else level)
            numbers = {upper: numbers[upper] for upper in kept_levels if upper in numbers}
        lines.append(text)
    return "\n".join(lines)


def _mark_of(paragraph: Any, level: int, shape: Any) -> Any | None:
    """The element for the mark of a paragraph, or for none: the paragraph's own, or the nearest inherited one."""
    for properties in _paragraph_properties(paragraph, level, shape):
        for element in properties:
            if local_name(element) in MARKS:
                return element
    return None


def _paragraph_properties(paragraph: Any, level: int, shape: Any) -> Iterator[Any]:
    """The properties of a paragraph: its own, and those of its level in the shape, the layout and the master."""
    yield from paragraph.iterfind(f"{DRAWING}pPr")
    name = f"{DRAWING}lvl{level + 1}pPr"
    styles = [shape.element.find(f".//{DRAWING}lstStyle")]
    place = shape.element.find(f".//{PRESENTATION}nvPr/{PRESENTATION}ph")
    if place is not None and place.get("type") not in WITHOUT_BODY:
        layout = shape.part.slide.slide_layout
        master = layout.slide_master
        styles += [
            _style_in(layout, "idx", place.get("idx", "0")),
            _style_in(master, "type", "body"),
            master.element.find(f".//{PRESENTATION}txStyles/{PRESENTATION}bodyStyle"),
        ]
    for style in styles:
        if style is not None:
            yield from style.iterfind(name)


def _style_in(sheet: Any, attribute: str, value: str) -> Any | None:
    """The styles of the levels in the placeholder of a layout or a master with an attribute."""
    for shape in sheet.element.iter(f"{PRESENTATION}sp"):
        place = shape.find(f".//{PRESENTATION}nvPr/{PRESENTATION}ph")
        if place is not None and place.get(attribute, "0") == value:
            return shape.find(f".//{DRAWING}lstStyle")
    return None


def _list_number(number: int, type: str) -> str:
    """A number in a format of PowerPoint, such as "alphaLcParenR"; with a point for unknown formats."""
    for ending, mark in NUMBER_MARKS.items():
        if type.endswith(ending):
            format = NUMBER_FORMATS.get(type.removesuffix(ending), "decimal")
            return mark.format(written_number(number, format))
    return f"{number}."
