"""Recognizes the thoughts that models write before their answers, and removes them."""

from __future__ import annotations

import re
from itertools import starmap
from typing import NamedTuple


class Pair(NamedTuple):
    """How a family of models marks thoughts: the marks that begin one, and a pattern for its end."""

    begin: tuple[str, ...]
    end: str


# Tags that documents may contain, too: they mark a thought only at the beginning of an answer.
_PLAIN_TAGS = {
    "thought": Pair(("thought",), r"</thought\s*>"),
    "reason": Pair(("reason", "reasoning"), r"</reason(?:ing)?\s*>"),
}
_OWN_TAGS = {  # DeepSeek, Qwen, GLM and most others; Seed-OSS; MiniMax M3, which mixes them
    "think": Pair(
        ("think", "thinking", "seed:think", "mm:think"), r"</(?:seed:|mm:)?think(?:ing)?\s*>"
    ),
}
_TOKENS = {  # special tokens, which have one spelling only
    "mistral": Pair(("[THINK]",), r"(?-i:\[/THINK\])"),
    "kimi": Pair(("◁think▷",), "◁/think▷"),
    "cohere": Pair(("<|START_THINKING|>",), r"<\|END_THINKING\|>"),
    "apertus": Pair(("<|inner_prefix|>",), r"<\|inner_suffix\|>"),
    "openthinker": Pair(("<|begin_of_thought|>",), r"<\|end_of_thought\|>"),
    "gemma": Pair(("<|channel>thought",), r"<channel\|>"),
    "gpt_oss": Pair(
        ("<|channel|>analysis<|message|>",),
        r"<\|channel\|>final(?: ?<\|constrain\|>[a-z]{1,10})?<\|message\|>",
    ),
}
_LONGEST_END = 80  # characters of an end mark, white space included, that may come in two pieces


def _tag(family: str, tags: Pair) -> str:
    return rf"(?P<{family}><(?:{'|'.join(tags.begin)})(?:\s[^<>]*)?>)"


def _token(family: str, tokens: Pair) -> str:
    return rf"(?P<{family}>(?-i:{'|'.join(map(re.escape, tokens.begin))}))"


def _start_of(mark: str) -> str:
    """A pattern for any beginning of the mark: a(?:b(?:c)?)?"""
    return "(?:".join(map(re.escape, mark)) + ")?" * (len(mark) - 1)


_TAGS = _OWN_TAGS | _PLAIN_TAGS
_ENDS = {
    family: re.compile(marks.end, re.IGNORECASE) for family, marks in (_TAGS | _TOKENS).items()
}
_OWN = "|".join([*starmap(_tag, _OWN_TAGS.items()), *starmap(_token, _TOKENS.items())])
_ANY = "|".join([_OWN, *starmap(_tag, _PLAIN_TAGS.items())])
_NAMES = [name for tags in _TAGS.values() for name in tags.begin]
_BEGINS = [f"<{name}" for name in _NAMES] + [
    token for tokens in _TOKENS.values() for token in tokens.begin
]
_BEGIN_OWN = re.compile(_OWN, re.IGNORECASE)
_BEGIN_ANY = re.compile(_ANY, re.IGNORECASE)
_OPENING = re.compile(rf"\s*(?:{_ANY})", re.IGNORECASE)
_UNDECIDED = re.compile(  # a text that may still become an opening mark
    rf"\s*(?:{'|'.join(map(_start_of, _BEGINS))}|<(?:{'|'.join(_NAMES)})\s[^<>]*)?", re.IGNORECASE
)
_LONE = "|".join(marks.end for marks in (_OWN_TAGS | _TOKENS).values())
LONE_END = re.compile(_LONE, re.IGNORECASE)  # may come alone, if the prompt began the thought
_SIGNS = ("</", "|>", "[/", "◁")  # every end mark contains one of these
_END_OF_LINE = re.compile(rf"(?:{_LONE})[ \t]*\r?\n", re.IGNORECASE)
_END_BEFORE_RECORDS = re.compile(rf'^[^{{}}\n"]*(?:{_LONE})', re.IGNORECASE | re.MULTILINE)


def begun(text: str, at: int, *, first: bool) -> tuple[int, re.Pattern[str]] | None:
    """If a thought begins at `at`: where its mark ends, and the pattern for the thought's end; else None.

    Tags that documents may contain, too, count only with `first`: if no content came before.
    """
    mark = (_BEGIN_ANY if first else _BEGIN_OWN).match(text, at)
    return None if mark is None else (mark.end(), _ends(mark))


def _ends(mark: re.Match[str]) -> re.Pattern[str]:
    return _ENDS[mark.lastgroup or ""]


class ThoughtFilter:
    """Passes on a text that comes in pieces, without the thoughts at its beginning."""

    __slots__ = ("_end", "_held", "_over", "_thought")

    def __init__(self) -> None:
        self._held = ""  # text that may turn out to be the mark of a thought
        self._end: re.Pattern[str] | None = None  # ends the current thought
        self._thought = False  # whether there was a thought
        self._over = False

    def take(self, piece: str) -> str:
        """Take the next piece; returns what is certainly not part of a thought."""
        if self._over:
            return piece
        self._held += piece
        while mark := self._end.search(self._held) if self._end else _OPENING.match(self._held):
            self._end, self._thought = None if self._end else _ends(mark), True
            self._held = self._held[mark.end() :]
        if self._end:
            self._held = self._held[-_LONGEST_END:]
            return ""
        if _UNDECIDED.fullmatch(self._held):
            return ""
        self._over = True
        return self.rest()

    def rest(self) -> str:
        """The text held back, to be taken after the last piece; "" inside a thought without an end."""
        held, self._held = self._held, ""
        if self._end:
            return ""
        return held.lstrip() if self._thought else held


def without_begun_thought(text: str) -> str:
    """A whole answer without the thoughts at its beginning; "" if they have no end."""
    thoughts = ThoughtFilter()
    return thoughts.take(text) + thoughts.rest()


def without_thought(text: str) -> str:
    """A prose answer without its thoughts, even if the prompt began the thought.

    In that case only the thought's end is in the answer, at the end of a line.
    """
    end = _lone_end(_END_OF_LINE, text)
    if end is not None and text[end:].strip():
        return text[end:].lstrip()
    return without_begun_thought(text)


def without_opening_thought(text: str) -> str:
    """An answer of records without a thought of which only the end is there, since the prompt began it.

    Lines keep their numbers. If no record follows that end, the answer is not changed.
    """
    end = _lone_end(_END_BEFORE_RECORDS, text)
    if end is None or "{" not in text[end:]:
        return text
    return "\n" * text.count("\n", 0, end) + text[end:]


def _lone_end(pattern: re.Pattern[str], text: str) -> int | None:
    """The end of a thought with which the text does not begin; None if there is none."""
    if not any(sign in text for sign in _SIGNS):
        return None
    end = pattern.search(text)
    if end is None or _OPENING.match(text) or _BEGIN_OWN.search(text, 0, end.end()):
        return None
    return end.end()
