"""Finds the `[n]` by which an answer cites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPEN, _CLOSE = r"[\[［【]", r"[\]］】]"
_DASH = r"[-‐-―−~～－]"
_NUMBER = r"\d{1,18}"  # what 64 bits hold
_ITEM = rf"{_NUMBER}(?:\s*{_DASH}\s*{_NUMBER})?"
MARKER = re.compile(
    rf"{_OPEN}\s*(?P<numbers>{_ITEM}(?:\s*[,，、;；]\s*{_ITEM})*)\s*{_CLOSE}"
    r"(?!\((?:https?:|#))"  # a link's text is no citation
)
_RANGE = re.compile(rf"({_NUMBER})(?:\s*{_DASH}\s*({_NUMBER}))?")
_LONGEST_RANGE = 100  # longer ranges count as their two ends: so many items are never shown


@dataclass(frozen=True, slots=True)
class Marker:
    """One citation mark in the answer: `text[start:end]`, and the numbers it contains."""

    start: int
    end: int
    numbers: tuple[int, ...]


def markers(text: str) -> tuple[Marker, ...]:
    """Every `[n]`, `[n, m]`, `[n-m]` of the text, in square, full-width or lenticular brackets."""
    return tuple(
        Marker(found.start(), found.end(), tuple(dict.fromkeys(_numbers(found["numbers"]))))
        for found in MARKER.finditer(text)
    )


def _numbers(written: str) -> Iterator[int]:
    for first, last in _RANGE.findall(written):
        start = int(first)
        end = int(last) if last else start
        if 0 <= end - start < _LONGEST_RANGE:
            yield from range(start, end + 1)
        else:
            yield from (start, end)
