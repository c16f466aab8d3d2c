"""Marks the paragraphs of lists in Word documents, as "2.1", "(c)" or "-": the text has no such marks."""

import re
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from lightrag_jsonl.readers.markdown import list_mark
from lightrag_jsonl.readers.xml_elements import whole_number
from lightrag_jsonl.text.strings import words

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
LIST_LEVELS = 9  # by the specification
LARGEST_NUMBER = 10_000_000  # a prepared file can begin anywhere
CHINESE_FORMATS = words(
    "chineseCounting chineseCountingThousand ideographDigital japaneseCounting taiwaneseCounting"
)
_DIGITS = "〇一二三四五六七八九"
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
    (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ListLevel:
    """The numbering of a list's level: "decimal" as "%1.%2", from `start`; only digits if `is_legal`."""

    format: str = "decimal"
    pattern: str = ""
    start: int = 1
    is_legal: bool = False


@dataclass(slots=True)
class ListDefinition:
    """A list: the levels, and the numbers of the paragraphs so far."""

    levels: dict[int, ListLevel] = field(default_factory=dict)
    levels_by_style: dict[str, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    def next_number(self, level: int, start: int | None = None) -> str:
        """The number of the next paragraph of a level; "" for a bullet."""
        own = self.levels[level]
        if start is None:
            start = self.counts.get(level, own.start - 1) + 1
        self.counts = {upper: count for upper, count in self.counts.items() if upper < level}
        self.counts[level] = start
        if own.format in ("bullet", "none"):
            return ""

        def part(match: re.Match[str]) -> str:
            index = int(match[1]) - 1
            shape = self.levels.get(index, ListLevel())
            count = self.counts.get(index, shape.start)
            if own.is_legal and shape.format != "decimalZero":
                return written_number(count, "decimal")
            return written_number(count, shape.format)

        return re.sub(r"%([1-9])", part, own.pattern).strip()


class ParagraphNumbers:
    """The numbers of paragraphs, asked for in the order of the document."""

    def __init__(self, numbering: Any | None, styles: Any) -> None:
        self._definitions: dict[str, ListDefinition] = {}
        self._definition_ids: dict[str, str] = {}  # by the id of a list in the document
        self._starts: dict[str, dict[int, int]] = {}  # of lists that begin anew
        if numbering is not None:
            self._read(numbering)
        self._styles = {style.get(f"{W}styleId"): style for style in styles.iter(f"{W}style")}

    def next_mark(self, paragraph: Any, style_id: str | None, *, is_heading: bool) -> str:
        """What stands before a paragraph of a list, or "", and before a heading the number; the list counts on."""
        list_id, level = self._list_of(paragraph, style_id)
        definition = self._definition(list_id)
        if definition is None or level not in definition.levels:
            return ""
        for restarted, start in self._starts.pop(list_id, {}).items():
            definition.counts[restarted] = start - 1
        number = definition.next_number(level)
        if definition.levels[level].format == "bullet" and not is_heading:
            return list_mark(level)
        return list_mark(0 if is_heading else level, number) if number else ""

    def _definition(self, list_id: str) -> ListDefinition | None:
        definition_id = self._definition_ids.get(list_id, "")
        return self._definitions.get(definition_id)

    def _read(self, numbering: Any) -> None:
        for abstract in numbering.iter(f"{W}abstractNum"):
            definition = ListDefinition()
            for element in abstract.iter(f"{W}lvl"):
                _add_level(definition, element)
            self._definitions[abstract.get(f"{W}abstractNumId", "")] = definition
        for number in numbering.iter(f"{W}num"):
            list_id = number.get(f"{W}numId", "")
            self._definition_ids[list_id] = child_value(number, "abstractNumId")
            starts: dict[int, int] = {}
            for override in number.iter(f"{W}lvlOverride"):
                if override.find(f"{W}startOverride") is not None:
                    level = whole_number(override.get(f"{W}ilvl"))
                    starts[level] = whole_number(child_value(override, "startOverride"), 1)
            if starts:
                self._starts[list_id] = starts

    def _list_of(self, paragraph: Any, style_id: str | None) -> tuple[str, int]:
        """The list and the level of a paragraph: the paragraph's own, or else the style's."""
        list_id, level = _numbering_of(paragraph)
        visited: set[str] = set()
        while not list_id and style_id and style_id not in visited and style_id in self._styles:
            visited.add(style_id)
            style = self._styles[style_id]
            list_id, level = _numbering_of(style)
            definition = self._definition(list_id)
            if definition is not None:
                level = definition.levels_by_style.get(style_id, level)
            style_id = child_value(style, "basedOn")
        return list_id, level


def _numbering_of(element: Any) -> tuple[str, int]:
    """The list and the level in the properties of a paragraph or a style; "" without a list."""
    properties = element.find(f"{W}pPr/{W}numPr")
    if properties is None:
        return "", 0
    list_id = child_value(properties, "numId")
    if not list_id:
        return "", 0
    return list_id, whole_number(child_value(properties, "ilvl"))


def _add_level(definition: ListDefinition, element: Any) -> None:
    level = whole_number(element.get(f"{W}ilvl"))
    definition.levels[level] = ListLevel(
        format=child_value(element, "numFmt") or "decimal",
        pattern=child_value(element, "lvlText"),
        start=whole_number(child_value(element, "start"), 1),
        is_legal=_is_on(element, "isLgl"),
    )
    if style := child_value(element, "pStyle"):
        definition.levels_by_style[style] = level


def written_number(number: int, format: str) -> str:
    """A number in a format of Word's lists; in digits for an unknown format."""
    if not 0 < number <= LARGEST_NUMBER:
        return str(number)
    if format in ("lowerLetter", "upperLetter") and number <= 26 * LIST_LEVELS:
        round_of_alphabet, index = divmod(number - 1, len(ascii_lowercase))
        letters = ascii_lowercase[index] * (round_of_alphabet + 1)
        return letters.upper() if format == "upperLetter" else letters
    if format in ("lowerRoman", "upperRoman") and number < 4_000:
        roman = _roman(number)
        return roman.upper() if format == "upperRoman" else roman
    if format in CHINESE_FORMATS and number < 100:
        return _chinese(number)
    if format == "decimalZero":
        return f"{number:02}"
    return str(number)


def _roman(number: int) -> str:
    letters = []
    for value, letter in _ROMAN:
        count, number = divmod(number, value)
        letters.append(letter * count)
    return "".join(letters)


def _chinese(number: int) -> str:
    """A number below a hundred in Chinese: 七, 十二, 三十."""
    tens, units = divmod(number, 10)
    if not tens:
        return _DIGITS[units]
    text = "十" if tens == 1 else f"{_DIGITS[tens]}十"
    if units:
        text += _DIGITS[units]
    return text


def child_value(element: Any, name: str) -> str:
    """The value of a property; "" for a missing property."""
    child = element.find(f"{W}{name}")
    if child is None:
        return ""
    return str(child.get(f"{W}val", ""))


def _is_on(element: Any, name: str) -> bool:
    """Whether a property is there and not switched off."""
    child = element.find(f"{W}{name}")
    if child is None:
        return False
    return child.get(f"{W}val", "1") not in ("0", "false", "off")
