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
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return number_text(value, cell.number_format or "General")


def number_text(value: float, format: str) -> str:
    """A number with the decimals, the percent sign, the zeros and the currency of a format."""
    section = format.split(";")[0]
    pattern = _UNIT.sub("", section)
    number = _PLACEHOLDERS.search(pattern)
    decimals = min(MOST_DECIMALS, len(number[1] or "")) if number else None
    if "%" in pattern:
        return f"{value * 100:.{decimals or 0}f}%"
    if _PADDED.fullmatch(pattern) and value == int(value):
        return str(int(value)).zfill(min(len(pattern), MOST_DECIMALS))
    is_fixed = decimals and "E" not in pattern.upper() and "/" not in pattern
    text = f"{value:.{decimals}f}" if is_fixed else _general_text(value)
    return _with_unit(text, section)


def _general_text(value: float) -> str:
    """A number without the traces of binary fractions: 0.3, not 0.30000000000000004."""
    if isinstance(value, int):
        return str(value)
    is_whole = value.is_integer() and abs(value) < 10**MOST_DECIMALS
    return str(int(value)) if is_whole else f"{value:.{MOST_DECIMALS}g}"


def _with_unit(text: str, section: str) -> str:
    """The number with the currency or unit of the format, on the same side."""
    match = _UNIT.search(section)
    unit = "" if match is None else (match[1] or match[2] or match[3] or "")
    if match is None or not unit.strip() or len(unit) > LONGEST_UNIT:
        return text
    digits = re.search("[0#?]", _UNIT.sub(lambda literal: " " * len(literal[0]), section))
    is_before = digits is None or match.start() < digits.start()
    if is_before:
        is_sign = unicodedata.category(unit[-1]) == "Sc"
        return f"{unit.strip()}{text}" if is_sign else f"{unit.strip()} {text}"
    gap = " " if section[match.start() - 1] == " " or unit[0] == " " else ""
    return f"{text}{gap}{unit.strip()}"
