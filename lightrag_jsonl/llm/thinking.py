"""Recognizes and removes the thinking of models before their answers."""

import re
import sys
from typing import NamedTuple

from lightrag_jsonl.text.patterns import pattern_of

_MARK_PATTERNS = (  # how thinking begins and ends; documents may hold the last pair, too
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
ONLY_THINKING = (
    'the model spent the whole answer on thinking: turn thinking off with reasoning_effort = "none" '
    "(LIGHTRAG_JSONL_REASONING_EFFORT=none), or in extra_body with enable_thinking = false (DashScope, "
    "SiliconFlow; for vLLM and SGLang in chat_template_kwargs), or leave more room (max_extract_tokens)"
)
_LONGEST_MARK = 80  # characters, white space included, that may come in two pieces


class ThinkingMarks(NamedTuple):
    """The patterns of the marks around thinking."""

    begin: re.Pattern[str]
    end: re.Pattern[str]


_MARK_PAIRS = [
    ThinkingMarks(begin=pattern_of(begin, re.I), end=pattern_of(end, re.I))
    for begin, end in _MARK_PATTERNS
]
_WHITE_SPACE = pattern_of(r"\s*")
_MODEL_PAIRS = _MARK_PAIRS[:-1]  # with marks that only models write
_ANY_BEGIN = pattern_of("|".join([begin for begin, _ in _MARK_PATTERNS[:-1]]), re.I)
_ENDS = "|".join(end for _, end in _MARK_PATTERNS[:-1])
_MARKS_BEGIN = ("<", "[", "◁")  # each mark begins so
_ENDS_BEGIN = ("<", "[/", "◁/")  # each mark at an end begins so, which is found faster
_END_BEFORE_NEW_LINE = pattern_of(rf"(?:{_ENDS})[ \t]*\r?\n", re.I)
_END_BEFORE_RECORDS = pattern_of(  # inside a record's strings it cannot be
    rf'^[^{{}}\n"]*(?:{_ENDS})|(?:{_ENDS})(?=\s*\{{\s*"[^"\n]*"\s*:)', re.I | re.M
)

PROMPTED_END = pattern_of(_ENDS, re.I)  # is alone in the answer if the prompt began the thinking


def thinking_at(
    text: str, at: int, end: int = sys.maxsize, *, first: bool
) -> tuple[int, re.Pattern[str]] | None:
    """For thinking between `at` and `end`: the end of the first mark, the pattern of the last mark.

    Marks of the kind found in documents, too, count only with `first`: if no content came before.
    """
    blank = _WHITE_SPACE.match(text, at, end)
    start = at if blank is None else blank.end()
    for marks in _MARK_PAIRS if first else _MODEL_PAIRS:
        if mark := marks.begin.match(text, start, end):
            return mark.end(), marks.end
    return None


class ThinkingFilter:
    """Passes on a text in pieces, without the thinking at the beginning."""

    def __init__(self) -> None:
        self._blank_pieces: list[str] = []  # white space before any text
        self._pending = ""  # text that may turn out to be the mark of thinking
        self._end: re.Pattern[str] | None = None  # ends the current thinking
        self._had_thinking = False
        self._is_over = False

    def feed(self, piece: str) -> str:
        """Take the next piece; returns the text certainly outside the thinking."""
        if self._is_over:
            return piece
        if self._end is None and not self._pending and (not piece or piece.isspace()):
            self._blank_pieces.append(piece)
            return ""
        self._pending = "".join([*self._blank_pieces, self._pending, piece])
        self._blank_pieces.clear()
        self._skip_marks()
        if self._end is not None:
            self._pending = self._pending[-_LONGEST_MARK:]
            return ""
        start = self._pending.lstrip()
        if not start or (start.startswith(_MARKS_BEGIN) and len(start) < _LONGEST_MARK):
            return ""
        self._is_over = True
        return self.rest()

    def _skip_marks(self) -> None:
        """Skip the marks at the beginning of the text, each of a beginning or an end of thinking."""
        position = 0
        while True:
            if self._end is None:
                thinking = thinking_at(self._pending, position, first=True)
                if thinking is None:
                    break
                position, self._end = thinking
                self._had_thinking = True
            else:
                mark = self._end.search(self._pending, position)
                if mark is None:
                    break
                position = mark.end()
                self._end = None
        self._pending = self._pending[position:]

    def rest(self) -> str:
        """The pending text after the last piece; "" inside thinking without an end."""
        text = "".join([*self._blank_pieces, self._pending])
        self._blank_pieces.clear()
        self._pending = ""
        if self._end is not None:
            return ""
        return text.lstrip() if self._had_thinking else text


def without_thinking(text: str) -> str:
    """A prose answer without the thinking at the beginning; "" if the thinking has no end.

    If the prompt began the thinking, only the end is in the answer, at the end of a line.
    """
    end = _prompted_end(_END_BEFORE_NEW_LINE, text)
    if end and text[end:].strip():
        return text[end:].lstrip()
    if not text.lstrip().startswith(_MARKS_BEGIN):
        return text
    thinking = ThinkingFilter()
    return thinking.feed(text) + thinking.rest()


def is_only_thinking(text: str) -> bool:
    """Whether an answer begins with unended thinking."""
    thinking = thinking_at(text, 0, first=True)
    if thinking is None:
        return False
    start, end = thinking
    return end.search(text, start) is None


def without_prompted_thinking(text: str) -> str:
    """An answer of records without thinking begun by the prompt; line numbers stay the same.

    If no record follows the thinking's end, the answer is not changed.
    """
    end = _prompted_end(_END_BEFORE_RECORDS, text)
    return "\n" * text.count("\n", 0, end) + text[end:] if "{" in text[end:] else text


def _prompted_end(pattern: re.Pattern[str], text: str) -> int:
    """The end of thinking without a beginning in the text; 0 without such an end."""
    if not any(beginning in text for beginning in _ENDS_BEGIN):
        return 0
    end = pattern.search(text)
    if end is None or thinking_at(text, 0, first=True) or _ANY_BEGIN.search(text, 0, end.end()):
        return 0
    return end.end()
