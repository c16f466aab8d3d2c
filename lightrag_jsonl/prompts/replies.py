"""Reads the one JSON value in a model's reply."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import NoReturn, cast

from lightrag_jsonl.errors import ResponseError
from lightrag_jsonl.jsonl import parse_jsonl
from lightrag_jsonl.reading.thoughts import LONE_END, without_begun_thought
from lightrag_jsonl.schemas import Schema
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Json

_SHOWN = 300  # characters of a bad reply that are shown in an error
_OPENING = (  # a bracket that begins JSON or ends the text, unlike brackets in prose
    r"\{\s*(?:[\"}]|\Z)|\[\s*(?:[\]\[{\"\d-]|true\b|false\b|null\b|\Z)"
)
_OPENING_OR_END = re.compile(rf"(?P<end>(?i:{LONE_END.pattern}))|{_OPENING}")
_INVISIBLE = " \t\r\n\ufeff\u200b\u200c\u200d\u2060\x00"


def read_json(
    text: str,
    *,
    schema: Schema | None = None,
    normalize: Callable[[Json], Json] | None = None,
) -> Json:
    """The JSON value in `text`: alone, in a code fence, after a thought or between words.

    If there are several values, the longest counts. A value that breaks off is never completed.
    `normalize` is applied before the schema. `ResponseError` shows the text, or the path of the
    fault.
    """
    try:
        value = _clean(_value(text))
    except (ValueError, RecursionError) as error:
        message = f"the reply is not JSON ({error}): {_shown(text)}"
        raise ResponseError(message, text=text) from error
    if normalize is not None:
        value = normalize(value)
    if schema is not None and (trouble := schema.error(value)):
        message = f"the reply does not fit its schema: {trouble}: {_shown(text)}"
        raise ResponseError(message, text=text)
    return value


def _value(text: str) -> Json:
    """The whole text, or else the longest value in it, or else its only object that can be repaired."""
    stripped = text.strip(_INVISIBLE)
    try:
        return _whole(stripped)
    except (ValueError, RecursionError):
        pass
    said = without_begun_thought(stripped)
    try:
        if stripped and not said:
            raise ValueError("its thinking has no end")
        return _longest(said)
    except ValueError:
        read = parse_jsonl(said)
        if len(read.records) != 1 or read.truncated:
            raise
        if any(rejection.reason not in ("repaired", "multiline") for rejection in read.rejections):
            raise
        return cast(Json, read.records[0])


def _whole(text: str) -> Json:
    value, end = _decoder().raw_decode(text)
    if end != len(text):
        raise ValueError("text after the value")
    return cast(Json, value)


def _longest(text: str) -> Json:
    """The longest object or array in the text; a value that breaks off makes the reply unreadable.

    What comes before the end of a thought that the prompt began does not count.
    """
    decoder = _decoder()
    found: list[tuple[int, Json]] = []
    position = 0
    while (mark := _OPENING_OR_END.search(text, position)) is not None:
        if mark["end"] is not None:
            found.clear()
            position = mark.end()
            continue
        try:
            value, position = decoder.raw_decode(text, mark.start())
            found.append((position - mark.start(), value))
        except (ValueError, RecursionError):
            position = _end_of_thought(text, mark.start())
            if position < 0:
                raise
            found.clear()
    if not found:
        raise ValueError("no object and no array in it")
    return max(found, key=lambda item: item[0])[1]


def _end_of_thought(text: str, start: int) -> int:
    """The end of the thought that contains a broken value at `start`; -1 if there is none.

    An end mark after an odd number of quotes may be inside an unclosed string.
    """
    end = LONE_END.search(text, start)
    return -1 if end is None or text.count('"', start, end.start()) % 2 else end.end()


def _decoder() -> json.JSONDecoder:
    """Strict JSON, except that strings may contain raw line breaks; NaN and too large numbers are refused."""
    return json.JSONDecoder(strict=False, parse_constant=_refuse, parse_float=_finite)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


def _clean(value: Json) -> Json:
    """The value with lone surrogates replaced, so that it can be stored."""
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {sanitize(key): _clean(item) for key, item in value.items()}
    return value


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
