"""How results are printed: plain text and aligned tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click
import msgspec

from lightrag_jsonl.core.types import Failure, Json
from lightrag_jsonl.indexing.progress import Progress, ProgressCallback

CELL_COLUMNS = 60  # of a table's cells but the first ones, which are mostly ids
SHOWN_REASONS = 20


class Exact(str):
    """A text that is printed without a change, unlike texts for people."""


def emit(text: str, *, err: bool = False) -> None:
    """Print a text that is not empty, for people: control characters could steer a terminal."""
    if text:
        shown = text.removesuffix("\n") if isinstance(text, Exact) else printable(text)
        click.echo(shown, err=err)


def emit_json(value: object) -> None:
    """Print a value as JSON."""
    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    click.echo(json.dumps(to_json(value), ensure_ascii=ascii_only, indent=2))


def to_json(value: object) -> Json:
    """The value as plain JSON: dataclasses by field, dates in ISO form, non-finite numbers null."""
    plain: Json = json.loads(msgspec.json.encode(value, enc_hook=str))
    return plain


def json_lines(values: Iterable[object]) -> Exact:
    """The values as JSON Lines."""
    return Exact("".join(json.dumps(to_json(one), ensure_ascii=False) + "\n" for one in values))


def printable(text: str) -> str:
    """The text with control characters, except line ends and tabs, replaced by U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(char) == "Cc" and char not in "\n\t" else char
        for char in text.replace("\r\n", "\n")
    )


# ── words ───────────────────────────────────────────────────────────────────────


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
    numbers = {
        at for at, name in enumerate(names) if all(isinstance(row[name], int | float) for row in rows)
    }
    cells = [
        [one_line(_cell(row[name]), CELL_COLUMNS if at else None) for at, name in enumerate(names)]
        for row in rows
    ]
    return _aligned([[name.replace("_", " ") for name in names], *cells], numbers)


def _fields(record: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """The fields with their texts; those of nested objects on one line, or on lines of their own."""
    for name, value in record.items():
        if isinstance(value, dict):
            yield name, _cell({n: v for n, v in value.items() if not isinstance(v, dict)})
            yield from _fields({n: v for n, v in value.items() if isinstance(v, dict)})
        else:
            yield name.replace("_", " "), one_line(_cell(value))


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


def _aligned(rows: Sequence[Sequence[str]], to_the_right: Iterable[int] = ()) -> str:
    """Rows in columns, whose widths are those on a terminal."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        spaces = [" " * (full - width(cell)) for cell, full in zip(row, widths, strict=True)]
        padded = [
            space + cell if at in to_the_right else cell + space
            for at, (cell, space) in enumerate(zip(row, spaces, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 chunk", "1,204 chunks"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


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
    return sum(
        0 if unicodedata.category(char) in ("Cf", "Me", "Mn")
        else 2 if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


# ── progress and failures ───────────────────────────────────────────────────────


@contextmanager
def progress_bar(unit: str = "chunks") -> Iterator[ProgressCallback | None]:
    """A progress bar on stderr; None if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=0, unit=f" {unit}", file=sys.stderr, leave=False) as bar:

        def show(progress: Progress) -> None:
            bar.total = progress.chunks_known
            steps = progress.steps.items()
            words = [f"{name} {done:,}/{known:,}" for name, (done, known) in steps]
            bar.set_description_str(", ".join(words), refresh=False)
            bar.update(progress.chunks_done - bar.n)

        yield show


def failure_notes(working_dir: object, failures: Sequence[Failure]) -> list[str]:
    """Failures in words, grouped by reason, and what can be done about them."""
    by_reason: dict[str, list[Failure]] = {}
    for failure in failures:
        by_reason.setdefault(failure.reason, []).append(failure)
    notes = [f"{counted(len(failures), 'failure')}:"] if failures else []
    for reason, alike in list(by_reason.items())[:SHOWN_REASONS]:
        first = " ".join(filter(None, (alike[0].document_id, alike[0].chunk_id)))
        others = f" (and {len(alike) - 1:,} more)" if alike[1:] else ""
        notes.append(f"  {one_line(first)}{others}: {one_line(reason)}")
    if len(by_reason) > SHOWN_REASONS:
        notes.append(f"  … and {len(by_reason) - SHOWN_REASONS:,} more reasons (see --json)")
    if any(failure.chunk_id for failure in failures):
        notes.append(f"ask again for the chunks: lightrag-jsonl retry -w {working_dir}")
    return notes
