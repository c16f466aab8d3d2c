"""What may stand before an answer, or the objects of a line: thoughts, fences, bullets, invisible characters."""

from __future__ import annotations

import re

from lightrag_jsonl.reading.objects import INVISIBLE

_BLANK = re.compile(rf"[\s{INVISIBLE}]*")
_THINK = re.compile(r"<(?:think|thinking)\b[^<>]*>", re.IGNORECASE)
_THINK_END = re.compile(r"</(?:think|thinking)\s*>", re.IGNORECASE)
_LONE_END = re.compile(rf'^[^{{}}\n"]*{_THINK_END.pattern}', re.IGNORECASE | re.MULTILINE)
_OPENING = re.compile(rf"\s*{_THINK.pattern}", re.IGNORECASE)
_UNDECIDED = re.compile(  # as far as this a text may go on to be an opening
    r"\s*(?:<(?:t|th|thi|thin|thinki|thinkin|think(?:ing)?(?:\s[^<>]*)?)?)?", re.IGNORECASE
)
_END_OF_LINE = re.compile(rf"{_THINK_END.pattern}[ \t]*\r?\n", re.IGNORECASE)
_LONGEST_END = 40  # characters of an end that may come in two pieces, white space in it included
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


class ThoughtFilter:
    """Passes on a text that comes in pieces, but for the thoughts that it begins with."""

    __slots__ = ("_held", "_over", "_thinking", "_thought")

    def __init__(self) -> None:
        self._held = ""  # what may yet turn out to be the mark of a thought
        self._thinking = False
        self._thought = False  # there was one
        self._over = False

    def take(self, piece: str) -> str:
        """Take the next piece; gives back what is known to be no thought."""
        if self._over:
            return piece
        self._held += piece
        while mark := (_THINK_END.search if self._thinking else _OPENING.match)(self._held):
            self._thinking, self._thought = not self._thinking, True
            self._held = self._held[mark.end() :]
        if self._thinking:
            self._held = self._held[-_LONGEST_END:]
            return ""
        if _UNDECIDED.fullmatch(self._held):
            return ""
        self._over = True
        return self.rest()

    def rest(self) -> str:
        """What was held back, once no further piece comes; nothing of a thought without an end."""
        held, self._held = self._held, ""
        if self._thinking:
            return ""
        return held.lstrip() if self._thought else held


def without_thought(text: str) -> str:
    """A whole answer in prose without the thoughts that it begins with; "" where they have no end.

    Where the prompt began the thought, only its end is there, at the end of a line.
    """
    if "<" not in text:
        return text
    end = _END_OF_LINE.search(text)
    if end is not None and not _THINK.search(text, 0, end.end()) and text[end.end() :].strip():
        return text[end.end() :].lstrip()
    thoughts = ThoughtFilter()
    return thoughts.take(text) + thoughts.rest()


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
