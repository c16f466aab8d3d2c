"""Marks the points of lists on slides of PowerPoint, whose bullets stand in paragraphs, placeholders or styles."""

from collections.abc import Iterable, Iterator
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
    body = shape.element.find(f"{PRESENTATION}txBody")
    return _marked_text(shape.text_frame, body, _inherited_styles(shape))


def table_cells(shape: Any) -> Iterator[list[str]]:
    """The rows of a table, with the bullets and numbers of lists in the cells."""
    rows = shape.element.iter(f"{DRAWING}tr")
    for row, row_element in zip(shape.table.rows, rows, strict=True):
        cells = zip(row.cells, row_element.iterfind(f"{DRAWING}tc"), strict=True)
        yield [
            _marked_text(cell.text_frame, element.find(f"{DRAWING}txBody"), ())
            for cell, element in cells
        ]


def _marked_text(frame: Any, body: Any, inherited_styles: Iterable[Any]) -> str:
    """The paragraphs of a text frame, whose element is `body`."""
    styles = [*body.iterfind(f"{DRAWING}lstStyle"), *inherited_styles]
    numbers: dict[int, tuple[str, int]] = {}  # of each level, the format and the last number
    lines = []
    elements = body.iterfind(f"{DRAWING}p")
    for paragraph, element in zip(frame.paragraphs, elements, strict=True):
        text = paragraph.text.replace("\v", "\n")
        level = paragraph.level
        mark = _mark_of(element, level, styles) if text.strip() else None
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


def _mark_of(paragraph: Any, level: int, styles: Iterable[Any]) -> Any | None:
    """The element for the mark of a paragraph, or for none: the paragraph's own, or else that of its level in the
    nearest style.
    """
    level_name = f"{DRAWING}lvl{level + 1}pPr"
    of_styles = [properties for style in styles for properties in style.iterfind(level_name)]
    for properties in (*paragraph.iterfind(f"{DRAWING}pPr"), *of_styles):
        for element in properties:
            if local_name(element) in MARKS:
                return element
    return None


def _inherited_styles(shape: Any) -> list[Any]:
    """The styles of levels that a placeholder for text has from the layout and the master, the nearest first."""
    place = shape.element.find(f".//{PRESENTATION}nvPr/{PRESENTATION}ph")
    if place is None or place.get("type") in WITHOUT_BODY:
        return []
    layout = shape.part.slide.slide_layout
    master = layout.slide_master
    body_style = f".//{PRESENTATION}txStyles/{PRESENTATION}bodyStyle"
    return [
        *_styles_in(layout, "idx", place.get("idx", "0")),
        *_styles_in(master, "type", "body"),
        *master.element.iterfind(body_style),
    ]


def _styles_in(sheet: Any, attribute: str, value: str) -> Iterator[Any]:
    """The styles of levels in the placeholders of a layout or a master with an attribute."""
    for shape in sheet.element.iter(f"{PRESENTATION}sp"):
        place = shape.find(f".//{PRESENTATION}nvPr/{PRESENTATION}ph")
        if place is not None and place.get(attribute, "0") == value:
            yield from shape.iterfind(f".//{DRAWING}lstStyle")


def _list_number(number: int, type: str) -> str:
    """A number in a format of PowerPoint, such as "alphaLcParenR"; with a point for unknown formats."""
    for ending, mark in NUMBER_MARKS.items():
        if type.endswith(ending):
            format = NUMBER_FORMATS.get(type.removesuffix(ending), "decimal")
            return mark.format(written_number(number, format))
    return f"{number}."
