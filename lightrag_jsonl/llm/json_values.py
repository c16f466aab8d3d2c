"""Decodes JSON in a model's text: one object, which may be cut or broken, or a reply's one value."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

from lightrag_jsonl.core.errors import ResponseError
from lightrag_jsonl.core.types import Json, Record
from lightrag_jsonl.llm.repair import object_end, requoted
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.llm.thinking import PROMPTED_END, without_leading_thinking

MAX_DEPTH = 200  # levels of nesting in a record
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 300  # characters of a bad reply that are shown in an error
_INVISIBLE = "[\ufeff\u200b-\u200d\u2060]"  # zero-width characters mean nothing outside strings
_STRING_OR_INVISIBLE = re.compile(rf'("[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"?)|{_INVISIBLE}')
_VALUE_OR_END = re.compile(  # a bracket that begins JSON or ends the text, unlike those in prose
    rf"(?P<end>(?i:{PROMPTED_END.pattern}))|\{{\s*(?:[\"}}]|\Z)"
    r"|\[\s*(?:[\]\[{\"\d-]|true\b|false\b|null\b|\Z)"
)


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


def repaired_object(text: str, *, dialect: bool = False) -> Record | None:
    """The record that a closed object with broken quoting means, or None; see `requoted`."""
    text = requoted(text, dialect=dialect) or ""
    parsed = parse_object(text)
    return parsed.record if text and parsed.end == len(text) else None


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
    """The whole text, or else the longest object or array in it.

    What comes before the end of thinking that the prompt began does not count, even if it is
    broken. An end mark after an odd number of quotes may be inside an unclosed string.
    """
    with contextlib.suppress(ValueError, RecursionError):
        return cast(Json, _DECODER.decode(text))
    text = without_leading_thinking(text)
    found: list[tuple[int, Json]] = []
    position = 0
    while (mark := _VALUE_OR_END.search(text, position)) is not None:
        start, position = mark.span()
        if mark["end"] is not None:
            found.clear()
            continue
        try:
            value, position = _value_at(text, start)
            found.append((position - start, value))
        except (ValueError, RecursionError):
            end = PROMPTED_END.search(text, start)
            if end is None or text.count('"', start, end.start()) % 2:
                raise
            found, position = [], end.end()
    if not found:
        raise ValueError("no object and no array in it")
    return max(found, key=lambda item: item[0])[1]


def _value_at(text: str, start: int) -> tuple[Json, int]:
    """The value that begins at `start`, repaired if it is a closed object, and its end."""
    try:
        return cast(tuple[Json, int], _DECODER.raw_decode(text, start))
    except ValueError:
        end = object_end(text, start)[0] if text[start] == "{" else -1
        record = repaired_object(text[start:end]) if end > 0 else None
        if record is None:
            raise
        return record, end


def _depth(value: Json) -> int:
    """How deeply objects and arrays are nested in a value."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [x for item in level for x in (item.values() if isinstance(item, dict) else item)]
    return depth


def _clean(value: Any) -> Any:
    """The value with lone surrogates replaced, so that it can be written as UTF-8."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _clean(item) for key, item in value.items()}
    return value


def _finite(digits: str) -> float:
    """A number that floats can hold; NaN and Infinity are no JSON."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is no finite number")
    return number


_DECODER = json.JSONDecoder(strict=False, parse_constant=_finite, parse_float=_finite)
