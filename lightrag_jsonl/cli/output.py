"""How results are printed: plain text and aligned tables for people, JSON for programs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import click

from lightrag_jsonl.cli.options import as_json
from lightrag_jsonl.types import Json, Usage

GAP = "  "
KEPT_CONTROLS = frozenset("\n\t")


class Reply(NamedTuple):
    """A command's result: a value for JSON, the same in words for people, and the exit status."""

    value: object
    words: object
    status: int = 0


def replying(command: Callable[..., Reply]) -> Callable[..., None]:
    """Give a command the option --json, and print its reply as JSON or in words."""

    @as_json
    @functools.wraps(command)
    def replied(*setup: object, as_json: bool, **given: Any) -> None:
        reply = command(*setup, **given)
        if as_json:
            emit_json(reply.value)
        else:
            say(reply.words)
        if reply.status:
            raise click.exceptions.Exit(reply.status)

    return replied


def emit_json(value: object, *, indent: int | None = 2) -> None:
    """Print a JSON value to stdout; with `indent=None` on one line, as in JSONL."""
    plain = "utf" not in (sys.stdout.encoding or "").lower()
    click.echo(json.dumps(to_json(value), ensure_ascii=plain, indent=indent, allow_nan=False))


def to_json(value: object) -> Json:
    """The value as plain JSON: dataclasses by field, dates in ISO form, paths as text, non-finite
    numbers as null.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Iterable):
        return [to_json(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def say(text: object = "", *, err: bool = False) -> None:
    """Print text for people; control characters, which could steer a terminal, are replaced.

    Errors in writing to stderr are ignored, so that they do not end the work.
    """
    with contextlib.suppress(OSError) if err else contextlib.nullcontext():
        click.echo(printable(str(text)), err=err)


def printable(text: str) -> str:
    """The text with control characters, except line ends and tabs, replaced by U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(char) == "Cc" and char not in KEPT_CONTROLS else char
        for char in text.replace("\r\n", "\n")
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 chunk", "1,204 chunks"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def told_usage(usage: Usage) -> str:
    """The cost of model calls, in one line."""
    cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
    return (
        f"model: {counted(usage.calls, 'call')}, {usage.input_tokens:,} tokens in{cached}, "
        f"{usage.output_tokens:,} out"
    )


# ── tables ──────────────────────────────────────────────────────────────────────


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """The rows as text in columns aligned on screen; columns of numbers are right-aligned."""
    values = list(rows)
    lines = [[one_line(str(cell)) for cell in row] for row in values]
    if header:
        lines.insert(0, list(header))
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    right = [
        bool(values) and all(isinstance(row[column], int | float) for row in values)
        for column in range(len(widths))
    ]
    return "\n".join(
        GAP.join(pad(cell, widths[i], right=right[i]) for i, cell in enumerate(line)).rstrip()
        for line in lines
    )


def width(text: str) -> int:
    """The columns a text takes on a terminal: two for a Chinese character, none for an accent."""
    return sum(_columns(char) for char in text)


def pad(text: str, wide: int, *, right: bool = False) -> str:
    """The text padded with spaces to a width on screen."""
    space = " " * max(0, wide - width(text))
    return space + text if right else text + space


def one_line(text: str, limit: int | None = None) -> str:
    """The text with white space collapsed, cut to at most `limit` columns on screen."""
    text = " ".join(text.split())
    if limit is None or width(text) <= limit:
        return text
    kept, used = [], 1
    for char in text:
        used += _columns(char)
        if used > limit:
            break
        kept.append(char)
    return "".join(kept) + "…"


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
