"""Recognizes the thinking that models write before their answers, and removes it."""

import re
import sys

_MARKS = (  # how thinking begins and ends; documents may hold the last, too
    (r"<(?:seed:|mm:)?think(?:ing)?(?:\s[^<>]*)?>", r"</(?:seed:|mm:)?think(?:ing)?\s*>"),  # most
    (r"\[THINK\]", r"\[/THINK\]"),  # Mistral
    ("◁think▷", "◁/think▷"),  # Kimi
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Cohere
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),  # OpenThinker
    (r"<\|channel>thought", r"<channel\|>"),  # Gemma
    (r"<\|channel\|>analysis<\|message\|>", r"<\|channel\|>final.{0,30}?<\|message\|>"),  # gpt-oss
    (r"<(?:thought|reason|reasoning)(?:\s[^<>]*)?>", r"</(?:thought|reason|reasoning)\s*>"),
)
_LONGEST_MARK = 80  # characters, white space included, that may come in two pieces
_PAIRS = [(re.compile(rf"\s*(?:{a})", re.I), re.compile(b, re.I)) for a, b in _MARKS]
_OWN_PAIRS = _PAIRS[:-1]  # with marks that only models write
_BEGIN = re.compile("|".join([begin for begin, _ in _MARKS[:-1]]), re.I)
_ENDS = "|".join(end for _, end in _MARKS[:-1])
_END_OF_LINE = re.compile(rf"(?:{_ENDS})[ \t]*\r?\n", re.I)
_END_BEFORE_RECORDS = re.compile(  # inside a record's strings it cannot be
    rf'^[^{{}}\n"]*(?:{_ENDS})|(?:{_ENDS})(?=\s*\{{\s*"[^"\n]*"\s*:)', re.I | re.M
)

PROMPTED_END = re.compile(_ENDS, re.I)  # is alone in the answer if the prompt began the thinking


def thinking_at(
    text: str, at: int, end: int = sys.maxsize, *, first: bool
) -> tuple[int, re.Pattern[str]] | None:
    """If thinking begins at `at`, before `end`: where its mark ends, and the pattern of its end.

    Tags that documents may contain, too, count only with `first`: if no content came before.
    """
    for begin, ending in _PAIRS if first else _OWN_PAIRS:
        if mark := begin.match(text, at, end):
            return mark.end(), ending
    return None


class ThinkingFilter:
    """Passes on a text that comes in pieces, without the thinking at its beginning."""

    def __init__(self) -> None:
        self._held = ""  # text that may turn out to be the mark of thinking
        self._end: re.Pattern[str] | None = None  # ends the current thinking
        self._found = self._over = False

    def feed(self, piece: str) -> str:
        """Take the next piece; returns what is certainly not part of the thinking."""
        if self._over:
            return piece
        self._held += piece
        while True:
            if self._end is None:
                begun = thinking_at(self._held, 0, first=True)
                if begun is None:
                    break
                position, self._end = begun
            elif mark := self._end.search(self._held):
                position, self._end = mark.end(), None
            else:
                self._held = self._held[-_LONGEST_MARK:]
                return ""
            self._held, self._found = self._held[position:], True
        start = self._held.lstrip()
        if not start or (start[0] in "<[◁" and len(start) < _LONGEST_MARK):
            return ""
        self._over = True
        return self.rest()

    def rest(self) -> str:
        """What is held back after the last piece; "" inside thinking without an end."""
        held, self._held = self._held, ""
        if self._end is not None:
            return ""
        return held.lstrip() if self._found else held


def without_thinking(text: str) -> str:
    """A prose answer without the thinking at its beginning; "" if that has no end.

    If the prompt began it, only its end is in the answer, at the end of a line.
    """
    end = _prompted_end(_END_OF_LINE, text)
    if end and text[end:].strip():
        return text[end:].lstrip()
    thinking = ThinkingFilter()
    return thinking.feed(text) + thinking.rest()


def without_prompted_thinking(text: str) -> str:
    """An answer of records without thinking that the prompt began; lines keep their numbers.

    If no record follows the thinking's end, the answer is not changed.
    """
    end = _prompted_end(_END_BEFORE_RECORDS, text)
    return "\n" * text.count("\n", 0, end) + text[end:] if "{" in text[end:] else text


def _prompted_end(pattern: re.Pattern[str], text: str) -> int:
    """The end of thinking whose beginning is not in the text; 0 if there is none."""
    end = pattern.search(text)
    if end is None or thinking_at(text, 0, first=True) or _BEGIN.search(text, 0, end.end()):
        return 0
    return end.end()
