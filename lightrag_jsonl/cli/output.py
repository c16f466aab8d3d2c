"""How results are printed: plain text and aligned tables for people, JSON for programs."""

from __future__ import annotations

import functools
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from lightrag_jsonl.cli.options import as_json
from lightrag_jsonl.core.types import Failure, Json
from lightrag_jsonl.core.usage import Usage

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.progress import Progress, ProgressCallback

GAP = "  "
ALLOWED_CONTROLS = frozenset("\n\t")
INCOMPLETE = 3  # the exit status if some texts could not be read
SHOWN_FAILURES = 20


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
            emit(reply.words)
        if reply.status:
            raise click.exceptions.Exit(reply.status)

    return replied


def emit_json(value: object, *, indent: int | None = 2) -> None:
    """Print a JSON value to stdout; with `indent=None` on one line, as in JSONL."""
    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    click.echo(json.dumps(to_json(value), ensure_ascii=ascii_only, indent=indent))


def to_json(value: object) -> Json:
    """The value as plain JSON: dataclasses by field, dates in ISO form, non-finite numbers null."""
    plain: Json = json.loads(msgspec.json.encode(value, enc_hook=str))
    return plain


def emit(text: object = "", *, err: bool = False) -> None:
    """Print text for people, with control characters replaced, which could steer a terminal."""
    click.echo(printable(str(text)), err=err)


def printable(text: str) -> str:
    """The text with control characters, except line ends and tabs, replaced by U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(char) == "Cc" and char not in ALLOWED_CONTROLS else char
        for char in text.replace("\r\n", "\n")
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 chunk", "1,204 chunks"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_usage(usage: Usage) -> str:
    """The cost of model calls, in one line."""
    cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
    return (
        f"model: {counted(usage.calls, 'call')}, {usage.input_tokens:,} tokens in{cached}, "
        f"{usage.output_tokens:,} out"
    )


def table(rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> str:
    """Rows in aligned columns, numbers to the right; widths are those on a terminal."""
    lines = [
        [f"{cell:,}" if isinstance(cell, int) else one_line(str(cell)) for cell in row]
        for row in rows
    ]
    if header:
        lines.insert(0, list(header))
    if not lines:
        return ""
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    right = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(widths))]
    return "\n".join(
        GAP.join(_pad(cell, widths[i], right[i]) for i, cell in enumerate(line)).rstrip()
        for line in lines
    )


def _pad(text: str, columns: int, right: bool) -> str:
    space = " " * max(0, columns - width(text))
    return space + text if right else text + space


def width(text: str) -> int:
    """The columns a text takes on a terminal: two for a Chinese character, none for an accent."""
    return sum(_columns(char) for char in text)


def one_line(text: str, limit: int | None = None) -> str:
    """The text with white space collapsed, cut to at most `limit` columns on screen."""
    text = " ".join(text.split())
    if limit is None or width(text) <= limit:
        return text
    kept, used = "", 1
    for char in text:
        used += _columns(char)
        if used > limit:
            break
        kept += char
    return kept + "…"


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


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


def emit_failures(working_dir: object, failures: Sequence[Failure]) -> None:
    """Print failures to stderr, grouped by reason, and what can be done about them."""
    if not failures:
        return
    emit(f"{counted(len(failures), 'failure')}:", err=True)
    by_reason: dict[str, list[Failure]] = {}
    for failure in failures:
        by_reason.setdefault(failure.reason, []).append(failure)
    for reason, alike in list(by_reason.items())[:SHOWN_FAILURES]:
        first = ", ".join(filter(None, (alike[0].document_id, alike[0].chunk_id)))
        others = f" (and {len(alike) - 1:,} more)" if alike[1:] else ""
        emit(f"  {one_line(first)}{others}: {one_line(reason)}", err=True)
    if len(by_reason) > SHOWN_FAILURES:
        emit(f"  … and {len(by_reason) - SHOWN_FAILURES:,} more reasons (see --json)", err=True)
    if any(failure.chunk_id for failure in failures):
        emit(f"ask again for the chunks: lightrag-jsonl retry -w {working_dir}", err=True)
