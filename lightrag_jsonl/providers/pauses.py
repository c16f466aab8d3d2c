"""The pause that a server asks for before the next request: in headers, or in the body of a refusal."""

import re
import time
from collections.abc import Mapping
from datetime import datetime

from lightrag_jsonl.core.retrying import LONGEST_PAUSE
from lightrag_jsonl.text.patterns import pattern_of

_RETRY_DELAY = pattern_of(r'"retryDelay"\s*:\s*"([0-9]{1,9}(?:\.[0-9]{1,9})?)s"')
_UNITS = r"milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d"
_RETRY_SENTENCE = pattern_of(
    r"\b(?:try(?:ing)?[ ]again|retry(?:ing)?)[ ](?:in|after)[ ](?:about[ ])?"
    rf"((?:[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?\s?(?:{_UNITS})[ ]?(?:and[ ])?){{1,4}})(?![A-Za-z])",
    re.IGNORECASE,
)
_AMOUNT = pattern_of(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)\s?({_UNITS})", re.IGNORECASE)
_DURATION = pattern_of(rf"(?:{_AMOUNT.pattern}\s?){{1,5}}", re.IGNORECASE)  # "6m0s", "120ms"
_PLAIN_NUMBER = pattern_of(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", re.ASCII)
_RESET_HEADER = pattern_of(r"rate-?limit.*reset", re.IGNORECASE)
_NOTHING_LEFT = pattern_of(r"0+(?:\.0+)?")
_FIRST_EPOCH = 1e9  # seconds since 1970 in the year 2001; a larger number is no duration
_FIRST_EPOCH_MS = 1e12

_SECONDS_PER_UNIT: Mapping[str, float] = {
    **dict.fromkeys(["millisecond", "milliseconds", "ms"], 0.001),
    **dict.fromkeys(["second", "seconds", "sec", "secs", "s"], 1.0),
    **dict.fromkeys(["minute", "minutes", "min", "mins", "m"], 60.0),
    **dict.fromkeys(["hour", "hours", "h"], 3600.0),
    **dict.fromkeys(["day", "days", "d"], 86400.0),
}


def pause_named(headers: Mapping[str, str], body: str) -> float | None:
    """The pause in seconds before the next request; None if the server names no time.

    `Retry-After` counts most, then the body. The times of reset of limits come last: the times are
    for whole budgets, so that a shorter pause often suffices, and such a pause is at most
    `LONGEST_PAUSE`.
    """
    pause = pause_asked_for(headers)
    if pause is None:
        pause = pause_in_body(body)
    if pause is None:
        reset = seconds_to_reset(headers)
        pause = None if reset is None else min(reset, LONGEST_PAUSE)
    return pause


def pause_asked_for(headers: Mapping[str, str]) -> float | None:
    """The pause in the headers `Retry-After` (RFC 9110, section 10.2.3) and `retry-after-ms` (Azure's)."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _PLAIN_NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1_000
    return _seconds_until(headers.get("retry-after", ""))


def seconds_to_reset(headers: Mapping[str, str]) -> float | None:
    """The time until the exhausted limits are reset, or else until the last reset.

    The headers are `x-ratelimit-reset-requests` and the like, each with a header of `remaining`.
    """
    seconds_by_header: dict[str, float] = {}
    for name, value in headers.items():
        seconds = _seconds_until(value) if _RESET_HEADER.search(name) else None
        if seconds is not None:
            seconds_by_header[name.lower()] = seconds
    used_up = [
        seconds
        for name, seconds in seconds_by_header.items()
        if _NOTHING_LEFT.fullmatch(headers.get(name.replace("reset", "remaining"), ""))
    ]
    return max(used_up or seconds_by_header.values(), default=None)


def pause_in_body(text: str) -> float | None:
    """The pause in seconds, if named in the body of a refusal.

    Gemini's `RetryInfo` has a field `retryDelay` ("5s", a protobuf Duration); OpenAI, Groq, Azure
    and vLLM's gateways write "try again in 1m5.1s" or "retry after 5 seconds".
    """
    delay = _RETRY_DELAY.search(text)
    if delay is not None:
        return float(delay[1])
    sentence = _RETRY_SENTENCE.search(text)
    return None if sentence is None else _duration(sentence[1])


def _seconds_until(value: str) -> float | None:
    """The seconds in a header's value: a number, a duration ("6m0s"), or a time, also since 1970."""
    value = value.strip()
    if _PLAIN_NUMBER.fullmatch(value):
        number = float(value)
        if number < _FIRST_EPOCH:
            return number
        moment = number if number < _FIRST_EPOCH_MS else number / 1_000
        return max(0.0, moment - time.time())
    if _DURATION.fullmatch(value):
        return _duration(value)
    return _seconds_until_date(value)


def _seconds_until_date(value: str) -> float | None:
    """The seconds until a date of HTTP or of ISO 8601 (Anthropic's); None for other texts."""
    from email.utils import parsedate_to_datetime

    try:
        date = datetime.fromisoformat(value) if value[4:5] == "-" else parsedate_to_datetime(value)
        return max(0.0, date.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _duration(text: str) -> float:
    amounts = _AMOUNT.findall(text)
    return sum(float(number) * _SECONDS_PER_UNIT[unit.lower()] for number, unit in amounts)
