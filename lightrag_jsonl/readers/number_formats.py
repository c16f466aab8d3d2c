"""Writes the values of Excel's cells as formatted."""

import re
import unicodedata
from datetime import datetime, time
from typing import Any

from lightrag_jsonl.text.patterns import pattern_of

LONGEST_UNIT = 8  # characters; longer texts in a format are not part of a number
MOST_DECIMALS = 15  # digits that a number of Excel has

_UNIT = pattern_of(r'\[\$([^\]-]+)[^\]]*\]|"([^"]*)"|([$€£¥])')
_PLACEHOLDERS = pattern_of(r"(?<![#0,?])[#0,?]*0(?:\.(0+))?")
_PADDED = pattern_of(r"0{2,}")


def cell_text(cell: Any) -> str:
    """The text of a cell of openpyxl."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number:
        return str(value)
    return number_text(value, cell.number_format or "General")


def number_text(value: float, format: str) -> str:
    """A number with the decimals, the percent sign, the zeros and the currency of a format."""
    section = format.split(";")[0]
    pattern = _UNIT.sub("", section)
    number = _PLACEHOLDERS.search(pattern)
    decimals = 0
    if number:
        decimals = min(MOST_DECIMALS, len(number[1] or ""))
    if "%" in pattern:
        return f"{value * 100:.{decimals}f}%"
    if _PADDED.fullmatch(pattern) and value == int(value):
        length = min(len(pattern), MOST_DECIMALS)
        return str(int(value)).zfill(length)
    text = _general_text(value)
    is_fraction = "E" in pattern.upper() or "/" in pattern
    if decimals and not is_fraction:
        text = f"{value:.{decimals}f}"
    return _with_unit(text, section)


def _general_text(value: float) -> str:
    """A number without the traces of binary fractions: 0.3, not 0.30000000000000004."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 10**MOST_DECIMALS:
        return str(int(value))
    return f"{value:.{MOST_DECIMALS}g}"


def _with_unit(text: str, section: str) -> str:
    """The number with the currency or unit of the format, on the same side."""
    match = _UNIT.search(section)
    if match is None:
        return text
    unit = match[1] or match[2] or match[3] or ""
    sign = unit.strip()
    if not sign or len(unit) > LONGEST_UNIT:
        return text
    without_units = _UNIT.sub(lambda literal: " " * len(literal[0]), section)
    digits = re.search("[0#?]", without_units)
    start = match.start()
    if digits is None or start < digits.start():
        is_currency = unicodedata.category(unit[-1]) == "Sc"
        return f"{sign}{text}" if is_currency else f"{sign} {text}"
    is_apart = section[start - 1] == " " or unit[0] == " "
    return f"{text} {sign}" if is_apart else f"{text}{sign}"
