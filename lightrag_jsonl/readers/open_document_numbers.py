"""Numbers the lists and headings of OpenDocument, whose numbers stand in styles."""

from collections import defaultdict
from typing import Any

from lightrag_jsonl.readers.word_numbers import LIST_LEVELS, ListDefinition, ListLevel
from lightrag_jsonl.readers.xml_elements import whole_number

OFFICE_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
STYLE_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
FORMATS = {
    "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman",
    "一, 二, 三, ...": "chineseCounting",
}  # fmt: skip
BULLET = "none"
OUTLINE = "\n"  # the style of headings; no other style has this name


class ListNumbers:
    """Counts the items of lists by style and level, which begins at 1."""

    def __init__(self, *roots: Any) -> None:
        self._lists: defaultdict[str, ListDefinition] = defaultdict(ListDefinition)
        for root in roots:
            if root is None:
                continue
            for style in root.iter(f"{TEXT_NAMESPACE}list-style"):
                self._read(style, style.get(f"{STYLE_NAMESPACE}name", ""))
            for style in root.iter(f"{TEXT_NAMESPACE}outline-style"):
                self._read(style, OUTLINE)

    def begin(self, element: Any, style: str, level: int) -> None:
        """Begin a list; one that goes on with an earlier list keeps the count."""
        goes_on = element.get(f"{TEXT_NAMESPACE}continue-numbering") == "true"
        if not goes_on and not element.get(f"{TEXT_NAMESPACE}continue-list"):
            self._lists[style].counts.pop(level - 1, None)

    def next_number(self, style: str, level: int, start: str | None = None) -> str:
        """The number of the next item; "" for a bullet."""
        definition = self._lists[style]
        index = level - 1
        shape = definition.levels.get(index)
        if shape is None or shape.format == BULLET:
            return ""
        number = whole_number(start, -1)
        if number < 0:
            return definition.next_number(index)
        return definition.next_number(index, number)

    def heading_number(self, heading: Any, level: int) -> str:
        """The number of the next heading of a level; "" for headings without numbers."""
        if heading.get(f"{TEXT_NAMESPACE}is-list-header") == "true":
            return ""
        return self.next_number(OUTLINE, level, heading.get(f"{TEXT_NAMESPACE}start-value"))

    def _read(self, style: Any, name: str) -> None:
        levels = self._lists[name].levels
        for element in style:
            level = whole_number(element.get(f"{TEXT_NAMESPACE}level"), 1)
            format = element.get(f"{STYLE_NAMESPACE}num-format", "")
            if format and level <= LIST_LEVELS:
                format = FORMATS.get(format, "decimal")
            else:
                format = BULLET
            shown_levels = whole_number(element.get(f"{TEXT_NAMESPACE}display-levels"), 1)
            numbers: list[str] = []
            for upper in range(max(level - shown_levels, 0) + 1, level):
                shape = levels.get(upper - 1)
                if shape is not None and shape.format != BULLET:
                    numbers.append(f"%{upper}")
            numbers.append(f"%{level}")
            prefix = element.get(f"{STYLE_NAMESPACE}num-prefix", "")
            suffix = element.get(f"{STYLE_NAMESPACE}num-suffix", "")
            levels[level - 1] = ListLevel(
                format=format,
                pattern=prefix + ".".join(numbers) + suffix,
                start=whole_number(element.get(f"{TEXT_NAMESPACE}start-value"), 1),
            )
