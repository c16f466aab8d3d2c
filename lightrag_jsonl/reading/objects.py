"""One JSON object in a text: finding its end line by line, and decoding it."""

from __future__ import annotations

import json
import math
import re
from enum import Enum

from lightrag_jsonl.text import is_unicode
from lightrag_jsonl.types import Json, Record

MAX_DEPTH = 200

# Zero-width characters, NUL and RS mean nothing outside strings.
INVISIBLE = "\x00\x1e\ufeff\u200b-\u200d\u2060"
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'
SCALAR = r"(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.+-])"
# The beginning of a number or a word, left by a cut at the end of a text.
_CUT_SCALAR = (
    r"(?:-?(?:0|[1-9][0-9]*)(?:\.|(?:\.[0-9]+)?[eE][+-]?)"
    r"|-|t|tr|tru|f|fa|fal|fals|n|nu|nul)\Z"
)
_TOKEN = re.compile(
    rf"(?P<mark>[{{}}\[\]:,])|{STRING}(?:(?P<string>\")|(?P<half>\\?\Z))"
    rf"|(?P<scalar>{SCALAR})|(?P<cut>{_CUT_SCALAR})",
    re.DOTALL,
)
_SPACE = re.compile(rf"[ \t\r\n{INVISIBLE}]*")
_STRING_GOES_ON = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+(?:(?P<string>")|\\?\Z)', re.DOTALL)

# The transitions: from state and token to the next state. Brackets also change the stack.
_NEXT = {
    ("start", "{"): "key or }",
    ("key or }", "string"): ":",
    ("key or }", "}"): ",",
    ("key", "string"): ":",
    (":", ":"): "value",
    ("value", "string"): ",",
    ("value", "scalar"): ",",
    ("value", "{"): "key or }",
    ("value", "["): "value or ]",
    ("value or ]", "string"): ",",
    ("value or ]", "scalar"): ",",
    ("value or ]", "{"): "key or }",
    ("value or ]", "["): "value or ]",
    ("value or ]", "]"): ",",
    (",", "}"): ",",
    (",", "]"): ",",
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_OUTSIDE_INVISIBLE = re.compile(rf'({STRING}")|[{INVISIBLE}]', re.DOTALL)
_CONTROL = re.compile("[\x00\x1e]")
_JSON_SPACE = " \t\n\r"

_CLOSER = {"{": "}", "[": "]"}
_AFTER_COMMA = {"}": "key", "]": "value"}


class State(Enum):
    """How far an object has been read."""

    OPEN = "open"
    CLOSED = "closed"
    BROKEN = "broken"
    TOO_DEEP = "too deep"


class Outline:
    """Follows one object over any number of lines; strings may contain raw line breaks.

    It is strict about structure, numbers and words, and ignores escapes inside strings. Its cost is
    linear in the text, without recursion.
    """

    __slots__ = ("_expected", "_in_string", "_stack", "state")

    def __init__(self) -> None:
        self.state = State.OPEN
        self._stack: list[str] = []
        self._expected = "start"
        self._in_string = False

    def read(self, text: str, at: int = 0) -> int:
        """Read a line from `at` on; returns where the object closed or broke, or the line's end."""
        if self._in_string:
            match = _STRING_GOES_ON.match(text, at)
            if match is None or not match["string"]:
                return len(text)
            self._in_string = False
            self._step("string")
            at = match.end()
        while self.state is State.OPEN:
            space = _SPACE.match(text, at)
            at = space.end() if space else at
            if at == len(text):
                break
            match = _TOKEN.match(text, at)
            kind = match.lastgroup if match else None
            if match is None or kind is None:
                self.state = State.BROKEN
            elif kind == "half":
                self._open_string()
                at = match.end() if self.state is State.OPEN else at
            else:
                self._step(match.group() if kind == "mark" else kind)
                at = at if self.state in (State.BROKEN, State.TOO_DEEP) else match.end()
        return at

    def _open_string(self) -> None:
        if (self._expected, "string") in _NEXT:
            self._in_string = True
        else:
            self.state = State.BROKEN

    def _step(self, token: str) -> None:
        if token == "," and self._expected == ",":
            self._expected = _AFTER_COMMA[self._stack[-1]]
            return
        if token == "cut" and (self._expected, "scalar") in _NEXT:
            self._expected = "nothing"
            return
        expected = _NEXT.get((self._expected, token))
        if expected is None or (token in "}]" and self._stack[-1] != token):
            self.state = State.BROKEN
            return
        self._expected = expected
        if token in _CLOSER:
            self._stack.append(_CLOSER[token])
            if len(self._stack) > MAX_DEPTH:
                self.state = State.TOO_DEEP
        elif token in "}]":
            self._stack.pop()
            if not self._stack:
                self.state = State.CLOSED


def decode(text: str) -> Record | None:
    """The object that `text` is, by JSON's own rules, or None.

    Of a repeated key the last value counts; a lone surrogate becomes U+FFFD. NaN, Infinity, and
    numbers that neither float nor int can hold are refused.
    """
    return _decode(text, _STRICT)


def decode_closed(text: str) -> Record | None:
    """The object whose end was found by an `Outline`, or None.

    It allows more than `decode`: raw control characters in strings are kept, and zero-width
    characters between tokens, and NUL and RS anywhere, are dropped.
    """
    text = _OUTSIDE_INVISIBLE.sub(lambda match: match.group(1) or "", text)
    return _decode(_CONTROL.sub("", text), _LENIENT)


def _decode(text: str, decoder: json.JSONDecoder) -> Record | None:
    text = text.strip(_JSON_SPACE)
    try:
        value, end = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or not isinstance(value, dict):
        return None
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        return {clean(key): _clean_value(item) for key, item in value.items()}
    return value


def clean(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD."""
    return text if is_unicode(text) else _SURROGATE.sub("\ufffd", text)


def _clean_value(value: Json) -> Json:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_value(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _clean_value(item) for key, item in value.items()}
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_STRICT = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
_LENIENT = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant, strict=False)
