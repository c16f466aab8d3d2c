"""What may stand before the objects of a line: thoughts, fences, bullets and invisible characters."""

from __future__ import annotations

import re

from lightrag_jsonl.reading.objects import INVISIBLE

_BLANK = re.compile(rf"[\s{INVISIBLE}]*")
_THINK = re.compile(r"<(?:think|thinking)\b[^<>]*>", re.IGNORECASE)
_THINK_END = re.compile(r"</(?:think|thinking)\s*>", re.IGNORECASE)
_LONE_END = re.compile(rf'^[^{{}}\n"]*{_THINK_END.pattern}', re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"`{3,}|~{3,}")
_AFTER_FENCE = re.compile(r'[{\[](?=\s*(?:["{}\[\]]|\Z))')
_BULLET = re.compile(r"(?:[-*+•·–—①-⑳]|[(（]?\d{1,6}[.)、:．）：]?)\s*(?=[{\[])")


class Marks:
    """Skips what is no output; `thinking` is the line an open thought began on, or 0."""

    __slots__ = ("thinking",)

    def __init__(self) -> None:
        self.thinking = 0

    def skip(self, text: str, number: int) -> int:
        """Where the content of line `number` begins; its end where there is none."""
        at = self._skip_thoughts(text, number)
        if _FENCE.match(text, at):
            content = _AFTER_FENCE.search(text, at)
            at = content.start() if content else len(text)
        return after(_BULLET, text, at)

    def _skip_thoughts(self, text: str, number: int) -> int:
        at = 0
        while True:
            if self.thinking:
                end = _THINK_END.search(text, at)
                if end is None:
                    return len(text)
                self.thinking = 0
                at = end.end()
            at = after(_BLANK, text, at)
            if stray := _THINK_END.match(text, at):
                at = stray.end()
            elif start := _THINK.match(text, at):
                at = start.end()
                self.thinking = number
            else:
                return at


def without_opening_thought(text: str) -> str:
    """A whole answer without a thought that only its end tells of, since the prompt began it.

    Lines keep their numbers. Where nothing comes after that end, nothing was meant by it.
    """
    if "</" not in text:
        return text
    end = _LONE_END.search(text)
    if end is None or _THINK.search(text, 0, end.end()) or "{" not in text[end.end() :]:
        return text
    return "\n" * text.count("\n", 0, end.end()) + text[end.end() :]


def is_fence(text: str) -> bool:
    """Whether a stripped line begins with a code fence."""
    return _FENCE.match(text) is not None


def skip_bullet(text: str) -> int:
    """Where a stripped line goes on after its bullet or number."""
    return after(_BULLET, text, 0)


def after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of the pattern at `at`, or `at` where it does not match."""
    match = pattern.match(text, at)
    return match.end() if match else at
