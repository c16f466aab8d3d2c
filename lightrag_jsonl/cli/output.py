"""How results are printed: plain text and aligned tables for people, JSON for programs."""

import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click
import msgspec

from lightrag_jsonl.core.types import Failure, FileNote, Json, SkippedFile
from lightrag_jsonl.core.usage import Usage

CELL_COLUMNS = 60  # of a table's cells but the first ones, which are mostly ids
LISTED = 3  # items of a list that are shown in a field
SHOWN_REASONS = 20


def emit(words: str | bytes, *, err: bool = False) -> None:
    """Print words without control characters, which could control a terminal; bytes unchanged."""
    if isinstance(words, bytes):
        click.echo(words, nl=False, err=err)
    elif words:
        click.echo(printable(words), err=err)


def emit_json(value: object) -> None:
    """Print a value as JSON."""
    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    click.echo(json.dumps(to_json(value), ensure_ascii=ascii_only, indent=2))


def to_json(value: object) -> Json:
    """The value as plain JSON: dataclasses by field, dates in ISO form, non-finite numbers null."""
    plain: Json = json.loads(msgspec.json.encode(value, enc_hook=str))
    return plain


def json_lines(values: Iterable[object]) -> bytes:
    """The values as JSON Lines."""
    lines = (json.dumps(to_json(value), ensure_ascii=False) + "\n" for value in values)
    return "".join(lines).encode()


def printable(text: str) -> str:
    """The text with control characters, except line ends and tabs, replaced by U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(char) == "Cc" and char not in "\n\t" else char
        for char in text.replace("\r\n", "\n")
    )


def in_words(value: object) -> str:
    """A value for people: a text as it is, records as a table, an object with a field a line."""
    if isinstance(value, str):
        return value
    plain = to_json(value)
    if isinstance(plain, dict):
        return _aligned([[name, text] for name, text in _fields(plain) if text])
    return table(plain) if isinstance(plain, list) else _cell(plain)


def table(records: Iterable[object], *columns: str) -> str:
    """These columns of records (or all), aligned under their names; "" for no records."""
    rows = [row for record in records if isinstance(row := to_json(record), dict)]
    if not rows:
        return ""
    names = columns or tuple(rows[0])
    lines = [[name.replace("_", " ") for name in names]]
    for row in rows:
        first, *others = (one_line(_cell(row[name])) for name in names)
        lines.append([first, *(one_line(cell, CELL_COLUMNS) for cell in others)])
    return _aligned(lines)


def _fields(record: Mapping[str, Json]) -> Iterator[list[str]]:
    """The fields with their texts; long lists as a number, objects in objects on own lines."""
    for name, value in record.items():
        if isinstance(value, list) and (len(value) > LISTED or isinstance([*value, 0][0], dict)):
            value = len(value)
        if isinstance(value, dict):
            inner = {n: v for n, v in value.items() if isinstance(v, dict)}
            yield [name, _cell({n: v for n, v in value.items() if n not in inner})]
            yield from _fields(inner)
        else:
            yield [name.replace("_", " "), one_line(_cell(value))]


def _cell(value: Json) -> str:
    """A value on one line; of an object only what is not zero or empty."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(item)}" for name, item in value.items() if item)
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else value or ""


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def one_line(text: str, limit: int | None = None) -> str:
    """The text with white space collapsed, cut to at most `limit` columns on screen."""
    text = " ".join(text.split())
    if limit is None or width(text) <= limit:
        return text
    while width(text) >= limit:
        text = text[: min(limit, len(text) - 1)]
    return text + "…"


def width(text: str) -> int:
    """The columns a text takes on a terminal: two for a Chinese character, none for an accent."""
    shown = [char for char in text if unicodedata.category(char) not in ("Cf", "Me", "Mn")]
    return len(shown) + sum(unicodedata.east_asian_width(char) in "WF" for char in shown)


def cost_words(usage: Usage) -> str:
    """An estimated cost in words."""
    tokens = f"{usage.input_tokens:,} input tokens, {usage.output_tokens:,} output tokens"
    return f"{usage.calls:,} calls, {tokens}"


def failure_notes(failures: Sequence[Failure], folder: object) -> Iterator[str]:
    """Failures in words, each reason once, and what can be done about them."""
    reasons = Counter(failure.reason for failure in failures)
    first = {failure.reason: failure for failure in reversed(failures)}
    for reason, count in reasons.most_common(SHOWN_REASONS):
        where = " ".join(filter(None, (first[reason].document_id, first[reason].chunk_id)))
        others = f" (and {count - 1:,} more)" if count > 1 else ""
        yield f"failed: {one_line(where)}{others}: {one_line(reason)}"
    if any(failure.chunk_id for failure in failures):
        yield f"retry the failed chunks: lightrag-jsonl retry -w {folder}"


def skipped_notes(skipped: Sequence[SkippedFile]) -> Iterator[str]:
    """The files of folders that were not read, and why."""
    for item in skipped[:SHOWN_REASONS]:
        yield f"skipped: {one_line(item.path)}: {item.reason}"
    if len(skipped) > SHOWN_REASONS:
        yield f"skipped: {len(skipped) - SHOWN_REASONS:,} more"


def file_notes(notes: Sequence[FileNote]) -> Iterator[str]:
    """Which parts of files are not in their texts."""
    for note in notes[:SHOWN_REASONS]:
        yield f"note: {one_line(note.path)}: {one_line(note.text)}"
    if len(notes) > SHOWN_REASONS:
        yield f"note: {len(notes) - SHOWN_REASONS:,} more, in the report (--json)"
