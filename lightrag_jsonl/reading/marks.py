"""Skips what may stand before records: thoughts, fences, bullets, invisible characters."""

from __future__ import annotations

import re

from lightrag_jsonl.reading.objects import INVISIBLE
from lightrag_jsonl.reading.thoughts import LONE_END, begun

_BLANK = re.compile(rf"[\s{INVISIBLE}]*")
_FENCE = re.compile(r"`{3,}|~{3,}")
_AFTER_FENCE = re.compile(r'[{\[](?=\s*(?:["{}\[\]]|\Z))')
_BULLET = re.compile(r"(?:[-*+•·–—①-⑳]|[(（]?\d{1,6}[.)、:．）：]?)\s*(?=[{\[])")


class Marks:
    """Skips what is not a record; `thinking` is the line on which an open thought began, or 0."""

    __slots__ = ("_blank", "_end", "thinking")

    def __init__(self) -> None:
        self.thinking = 0
        self._end: re.Pattern[str] | None = None  # ends the open thought
        self._blank = 0  # the number of blank lines at the beginning

    def skip(self, text: str, number: int) -> int:
        """Where the content of line `number` begins; the line's end if it has none."""
        first = number == self._blank + 1
        at = self._skip_thoughts(text, number, first)
        if first and at == len(text):
            self._blank = number
        if _FENCE.match(text, at):
            content = _AFTER_FENCE.search(text, at)
            at = content.start() if content else len(text)
        return after(_BULLET, text, at)

    def _skip_thoughts(self, text: str, number: int, first: bool) -> int:
        at = 0
        while True:
            if self._end is not None:
                end = self._end.search(text, at)
                if end is None:
                    return len(text)
                self._end, self.thinking = None, 0
                at = end.end()
            at = after(_BLANK, text, at)
            if stray := LONE_END.match(text, at):
                at = stray.end()
            elif mark := begun(text, at, first=first):
                at, self._end = mark
                self.thinking = number
            else:
                return at


def is_fence(text: str) -> bool:
    """Whether a stripped line begins with a code fence."""
    return _FENCE.match(text) is not None


def skip_bullet(text: str) -> int:
    """Where the content of a stripped line begins, after its bullet or number."""
    return after(_BULLET, text, 0)


def after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of the pattern at `at`; `at` itself if it does not match."""
    match = pattern.match(text, at)
    return match.end() if match else at
