"""Numbers the lists and headings of OpenDocument, whose numbers stand in styles."""

from typing import Any, NamedTuple

from lightrag_jsonl.readers.word_numbers import written_number
from lightrag_jsonl.readers.xml_elements import whole_number

OFFICE_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
STYLE_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
FORMATS = {
    "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman",
    "一, 二, 三, ...": "chineseCounting",
}  # fmt: skip
OUTLINE = "\n"  # the style of headings; no other style has this name


class _Level(NamedTuple):
    """A level of a list; without a format, the level has bullets."""

    format: str
    prefix: str
    suffix: str
    start: int
    shown_levels: int


class ListNumbers:
    """Counts the items of lists by style and level."""

    def __init__(self, *roots: Any) -> None:
        self._levels: dict[tuple[str, int], _Level] = {}
        self._counts: dict[tuple[str, int], int] = {}
        for root in roots:
            for name in ("list-style", "outline-style"):
                for style in root.iter(f"{TEXT_NAMESPACE}{name}") if root is not None else ():
                    is_outline = name == "outline-style"
                    self._read(
                        style, OUTLINE if is_outline else style.get(f"{STYLE_NAMESPACE}name", "")
                    )

    def begin(self, element: Any, style: str, level: int) -> None:
        """Begin a list; one that goes on with an earlier list keeps the count."""
        goes_on = element.get(f"{TEXT_NAMESPACE}continue-numbering") == "true"
        if not goes_on and not element.get(f"{TEXT_NAMESPACE}continue-list"):
            self._counts.pop((style, level), None)

    def next_number(self, style: str, level: int, start: str | None = None) -> str:
        """The number of the next item; "" for a bullet."""
        shape = self._levels.get((style, level))
        if shape is None or not shape.format:
            return ""
        count = self._counts.get((style, level), shape.start - 1) + 1
        self._counts[style, level] = whole_number(start, count)
        for deeper in [key for key in self._counts if key[0] == style and key[1] > level]:
            del self._counts[deeper]
        numbers: list[str] = []
        for upper_level in range(max(level - shape.shown_levels, 0) + 1, level + 1):
            upper = self._levels.get((style, upper_level))
            if upper is not None and upper.format:
                number = self._counts.get((style, upper_level), upper.start)
                numbers.append(written_number(number, FORMATS.get(upper.format, "decimal")))
        return f"{shape.prefix}{'.'.join(numbers)}{shape.suffix}".strip()

    def heading_number(self, heading: Any, level: int) -> str:
        """The number of the next heading of a level; "" for headings without numbers."""
        if heading.get(f"{TEXT_NAMESPACE}is-list-header") == "true":
            return ""
        return self.next_number(OUTLINE, level, heading.get(f"{TEXT_NAMESPACE}start-value"))

    def _read(self, style: Any, name: str) -> None:
        for element in style:
            level = whole_number(element.get(f"{TEXT_NAMESPACE}level"), 1)
            self._levels[name, level] = _Level(
                format=element.get(f"{STYLE_NAMESPACE}num-format", ""),
                prefix=element.get(f"{STYLE_NAMESPACE}num-prefix", ""),
                suffix=element.get(f"{STYLE_NAMESPACE}num-suffix", ""),
                start=whole_number(element.get(f"{TEXT_NAMESPACE}start-value"), 1),
                shown_levels=whole_number(element.get(f"{TEXT_NAMESPACE}display-levels"), 1),
            )
