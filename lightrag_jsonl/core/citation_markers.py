"""Markers of citations in answers: [1], [2, 5], 【3-4】."""

import re

_NUMBER = r"\d{1,18}"  # what 64 bits hold
_NUMBERS = rf"{_NUMBER}(?:\s*[-‐-―−~～－]\s*{_NUMBER})?"
CITATION_MARKER = re.compile(  # [1], [2, 5], 【3-4】; not \[1], which is escaped
    rf"(?<!\\)[\[［【]\s*(?P<numbers>{_NUMBERS}(?:\s*[,，、;；]\s*{_NUMBERS})*)\s*[\]］】]"
    r"(?!\((?:https?:|#))"  # a link's text is no citation
)
_RANGE = re.compile(r"(\d+)(?:\s*[-‐-―−~～－]\s*(\d+))?")
_LONGEST_RANGE = 100  # longer ranges count as their two ends: so many items are never shown
_CODE_OR_MARKER = re.compile(rf"(?P<code>```|`|\n)|{CITATION_MARKER.pattern}")


def split_citations(text: str, code: str = "") -> tuple[list[str | re.Match[str]], str]:
    """A text cut at its citations, and the code of Markdown ("", "`" or "```") that is open at its
    end, as `code` is at its beginning: `rows[1]` cites nothing, but a number alone in backticks does.
    """
    pieces: list[str | re.Match[str]] = []
    end = 0
    for match in _CODE_OR_MARKER.finditer(text):
        start = match.start()
        mark = match["code"]
        if mark and (code != "```" or mark == code):  # which nothing else closes
            code = "" if mark in ("\n", code) else mark
        elif not mark and (not code or (code == "`" and text[max(start - 1, 0) : start] == "`")):
            pieces += [text[end:start], match]
            end = match.end()
    return [*pieces, text[end:]], code


def marked_numbers(marker: re.Match[str]) -> tuple[int, ...]:
    """The numbers in a `CITATION_MARKER`: [1], [2, 5], [3-6]."""
    numbers: dict[int, None] = {}
    for first, last in _RANGE.findall(marker["numbers"]):
        start = int(first)
        end = int(last or first)
        is_short = 0 <= end - start < _LONGEST_RANGE
        numbers.update(dict.fromkeys(range(start, end + 1) if is_short else (start, end)))
    return tuple(numbers)
