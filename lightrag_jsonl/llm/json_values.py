"""Decodes JSON in a model's text: one object, which may be cut or broken, or a reply's one value."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

from lightrag_jsonl.core.errors import ResponseError
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Json, Record
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.llm.thinking import without_thinking

MAX_DEPTH = 200  # levels of nesting in a record
_SHOWN = 300  # characters of a bad reply that are shown in an error
_INVISIBLE = "[\ufeff\u200b-\u200d\u2060]"  # zero-width characters mean nothing outside strings
_STRING_OR_INVISIBLE = re.compile(rf'("[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"?)|{_INVISIBLE}')
_VALUE = re.compile(  # a bracket that begins JSON or ends the text, unlike those in prose
    r"\{\s*(?:[\"}]|\Z)|\[\s*(?:[\]\[{\"\d-]|true\b|false\b|null\b|\Z)"
)
# A closing quote is followed by one of these; any other quote is inside a string. The repetition
# in `_STRING` is not possessive, since Python before 3.11.5 has a bug there.
_CLOSED = r"(?=[ \t\r]*(?:[,:}\]\n]|\Z))"
_STRING = re.compile(
    rf'"([^"\\]*+(?:(?:\\.|"(?!{_CLOSED}))[^"\\]*+)*)(?:"{_CLOSED}(\s*:)?|(\Z))', re.DOTALL
)
# A string where JSON allows one, to the end of its line if its closing quote is missing; or a brace
_STRING_OR_BRACE = re.compile(
    r'(?:[{\[,:]|^)[ \t\r]*"[^"\\\n]*+'
    rf'(?:(?:\\.|"(?!{_CLOSED}))[^"\\\n]*+)*(?:"|\\?(?=\n|\Z))|[{{}}]',
    re.MULTILINE,
)
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)

ObjectState = Literal["whole", "open", "broken", "too deep"]


class ParsedObject(NamedTuple):
    """How an object was read. `end` is the position after a whole one, or where one is broken."""

    state: ObjectState
    end: int
    record: Record | None = None


def parse_object(text: str, start: int = 0) -> ParsedObject:
    """The object that begins at `start`; it is "open" if the text ends inside it.

    Strings may hold raw line breaks. Of a repeated key the last value counts; a lone surrogate
    becomes U+FFFD. NaN, Infinity and numbers that neither float nor int can hold make it broken.
    """
    try:
        record, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        is_open = error.pos >= len(text) or error.msg.startswith("Unterminated string")
        return ParsedObject("open" if is_open else "broken", error.pos)
    except RecursionError:
        return ParsedObject("too deep", start)
    except ValueError:
        return ParsedObject("broken", start)
    brackets = text.count("{", start, end) + text.count("[", start, end)
    if brackets > MAX_DEPTH and _depth(record) > MAX_DEPTH:
        return ParsedObject("too deep", end)
    escaped = text.find("\\u", start, end) >= 0
    return ParsedObject("whole", end, _clean(record) if escaped else record)


def object_end(text: str, depth: int = 0) -> tuple[int, int]:
    """Look for the end of a broken object, with `depth` braces already open.

    Returns (the position after its closing brace, 0), or (-1, the number of braces still open).
    """
    for match in _STRING_OR_BRACE.finditer(text):
        mark = match.group()[0]
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth <= 0:
                return match.end(), 0
    return -1, depth


def repaired_object(text: str) -> Record | None:
    """The record that a closed object with unescaped quotes inside its values means.

    Nothing is completed: this changes how text is quoted, and gives up if a quote can be read in
    two ways.
    """
    with contextlib.suppress(ValueError):
        text = _STRING.sub(_escaped, text)
        parsed = parse_object(text)
        return parsed.record if parsed.end == len(text) else None
    return None


def _escaped(string: re.Match[str]) -> str:
    """A string with its inner quotes escaped; `ValueError` if one may be the end of another."""
    text = string[1]
    quotes = [found.start() for found in _ESCAPE_OR_QUOTE.finditer(text) if found[0] == '"']
    if string[3] is not None:
        raise ValueError("a string without an end")
    if not quotes:
        return string[0]
    before = {text[max(0, at - 9) : at].rstrip(" \t")[-1:] for at in quotes}
    if string[2] or before & {"{", "["} or (before & {",", ":"} and len(quotes) % 2):
        raise ValueError("a quote that can be read in two ways")
    inner = _ESCAPE_OR_QUOTE.sub(lambda found: '\\"' if found[0] == '"' else found[0], text)
    return f'"{inner}"'


def without_invisible(text: str) -> str:
    """The text without zero-width characters, except inside strings."""
    if text.isascii() or not re.search(_INVISIBLE, text):
        return text
    return _STRING_OR_INVISIBLE.sub(lambda found: found[1] or "", text)


def read_json(
    text: str,
    *,
    schema: Schema | None = None,
    normalize: Callable[[Json], Json] | None = None,
) -> Json:
    """The JSON value in a reply: alone, in a code fence, after thinking or between words.

    If there are several values, the longest counts. A value that breaks off is never completed.
    `normalize` is applied before the schema. `ResponseError` shows the text, or the path of the
    fault.
    """
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    try:
        value: Json = _clean(_find_value(without_invisible(text.replace("\0", "")).strip()))
    except (ValueError, RecursionError) as error:
        raise ResponseError(f"the reply is not JSON ({error}): {shown}", text=text) from error
    if normalize is not None:
        value = normalize(value)
    if schema is not None and (fault := schema.error(value)):
        message = f"the reply does not fit its schema: {fault}: {shown}"
        raise ResponseError(message, text=text)
    return value


def _find_value(text: str) -> Json:
    """The whole text, or else the longest object or array in it."""
    with contextlib.suppress(ValueError, RecursionError):
        return cast(Json, _DECODER.decode(text))
    text, position, longest = without_thinking(text), 0, 0
    value: Json = None
    while mark := _VALUE.search(text, position):
        found, position = _DECODER.raw_decode(text, mark.start())
        if position - mark.start() > longest:
            value, longest = found, position - mark.start()
    if not longest:
        raise ValueError("no object and no array in it")
    return value


def _depth(value: Json) -> int:
    """How deeply objects and arrays are nested in a value."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [x for item in level for x in (item.values() if isinstance(item, dict) else item)]
    return depth


def _clean(value: Any) -> Any:
    """The value with lone surrogates replaced, so that it can be written as UTF-8."""
    return json.loads(sanitize(json.dumps(value, ensure_ascii=False)))


def _finite(digits: str) -> float:
    """A number that floats can hold; NaN and Infinity are no JSON."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is no finite number")
    return number


_DECODER = json.JSONDecoder(strict=False, parse_constant=_finite, parse_float=_finite)
