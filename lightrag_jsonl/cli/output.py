"""How results are printed: plain text and aligned tables for people, JSON for programs."""

import json
import os
import shutil
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.index_reports import FileNote, SkippedFile
from lightrag_jsonl.core.types import Failure, Json, ModelTask
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import counted, sanitize, single_spaced
from lightrag_jsonl.tools.prices import READING_TASKS, cost_of_tasks

CELL_COLUMNS = 60  # in tables, but for the first column, which holds ids
LEAST_COLUMNS = 16  # of such a cell, where a terminal is too narrow for the table
GAP = "  "  # between columns
LONGEST_LIST = 3  # items; of a longer list in a field, the number is shown
SHOWN_REASONS = 20
PURGED = "purged from this index earlier; --restore-purged brings it back"
SHOWN_PATHS = 3  # of the files with one reason
_CONTROL_CHARACTERS = pattern_of("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but for line ends and tabs


def emit(words: str | bytes, *, err: bool = False) -> None:
    """Print words without control characters, for the terminal's safety; bytes unchanged."""
    if isinstance(words, bytes):
        click.echo(words, nl=False, err=err)
    elif words:
        click.echo(printable(words), err=err)


class Unconfirmed(click.ClickException):
    """A question was asked where nobody can answer; the usage of the command would not help."""

    exit_code = 2


def confirm(question: str) -> None:
    """Ask a person to confirm; without a terminal, `Unconfirmed` names the option for it."""
    try:
        is_agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)  # the question ends without a line break
        raise Unconfirmed("nobody can answer here: confirm with --yes") from None
    if not is_agreed:
        raise click.Abort


def emit_json(value: object) -> None:
    """Print a value as JSON."""
    ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
    click.echo(json.dumps(to_json(value), ensure_ascii=ascii_only, indent=2))


def to_json(value: object) -> Json:
    """The value as plain JSON: dataclasses by field, dates in ISO form, non-finite numbers null."""
    try:
        text = msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:  # the name of a file need not be UTF-8
        builtins = msgspec.to_builtins(value, enc_hook=str)
        text = msgspec.json.encode(json.loads(sanitize(json.dumps(builtins, ensure_ascii=False))))
    plain: Json = json.loads(text)
    return plain


def json_lines(values: Iterable[object]) -> bytes:
    """The values as JSON Lines."""
    lines = (json.dumps(to_json(value), ensure_ascii=False) + "\n" for value in values)
    return "".join(lines).encode()


def printable(text: str) -> str:
    """The text with control characters, except line ends and tabs, replaced by U+FFFD."""
    return _CONTROL_CHARACTERS.sub("\ufffd", text.replace("\r\n", "\n"))


def in_words(value: object) -> str:
    """A value for people: a text unchanged, records as a table, an object with a field a line."""
    if isinstance(value, str):
        return value
    plain = to_json(value)
    if isinstance(plain, dict):
        lines = list(_distinct_lines(_fields(plain)))
        return _field_lines(lines)
    if isinstance(plain, list):
        return table(plain)
    return _cell(plain)


def table(records: Iterable[object], *columns: str, most_columns: int | None = None) -> str:
    """Columns of records (or all columns), aligned below the names; "" for no records.

    In a terminal, or with `most_columns` on screen, the table is no wider, if the first column leaves room:
    empty columns are left out, long cells cut, and columns left out from the right.
    """
    rows = [row for row in map(to_json, records) if isinstance(row, dict)]
    if not rows:
        return ""
    names = columns or tuple(rows[0])
    lines = [[name.replace("_", " ") for name in names]]
    for row in rows:
        cells = [one_line(_cell(row[name])) for name in names]
        cut_cells = [one_line(cell, CELL_COLUMNS) for cell in cells[1:]]
        lines.append(cells[:1] + cut_cells)
    limit = most_columns or terminal_columns()
    if limit is not None:
        lines = _fitted(lines, limit)
    return _aligned(lines)


def _fitted(lines: Sequence[list[str]], columns: int) -> list[list[str]]:
    """The lines of a table, the first with the names, in a number of columns on screen."""
    columns_of_cells = [
        list(cells)
        for cells in zip(*lines, strict=True)
        if any(cells[1:])  # an empty column says nothing
    ]
    while len(columns_of_cells) > 1:
        widths = [max(map(width, cells)) for cells in columns_of_cells]
        gaps = len(GAP) * (len(columns_of_cells) - 1)
        excess = sum(widths) + gaps - columns
        if excess <= 0:
            break
        widest = max(range(1, len(columns_of_cells)), key=widths.__getitem__)
        if widths[widest] <= LEAST_COLUMNS:
            columns_of_cells.pop()
            continue
        limit = max(LEAST_COLUMNS, widths[widest] - excess)
        columns_of_cells[widest] = [one_line(cell, limit) for cell in columns_of_cells[widest]]
    return [list(cells) for cells in zip(*columns_of_cells, strict=True)]


def _distinct_lines(fields: Iterable[tuple[str, str, str]]) -> Iterator[list[str]]:
    """A label and a text for each field that has a text; repeated lines are left out, and a label
    used before with another text gets the object's name, too.
    """
    texts_by_label: dict[str, str] = {}
    for parent, name, text in fields:
        if not text or texts_by_label.get(name) == text:
            continue
        label = f"{parent} {name}".strip() if name in texts_by_label else name
        texts_by_label[label] = text
        yield [label, text]


def _fields(record: Mapping[str, Json], parent: str = "") -> Iterator[tuple[str, str, str]]:
    """The fields, each with the object's name, the field's name and the text; long lists as a
    number, objects in objects on separate lines.
    """
    for name, value in record.items():
        if isinstance(value, list):
            has_objects = any(isinstance(item, dict) for item in value[:1])
            if has_objects or len(value) > LONGEST_LIST:
                value = len(value)
        if isinstance(value, dict):
            objects = {key: item for key, item in value.items() if isinstance(item, dict)}
            own_items = {key: item for key, item in value.items() if key not in objects}
            yield parent, name, _cell(own_items)
            yield from _fields(objects, parent=f"{parent} {name}".strip())
        else:
            yield parent, name.replace("_", " "), one_line(_cell(value))


def _cell(value: Json) -> str:
    """A value on one line; of an object, only items that are not zero or empty."""
    if isinstance(value, dict):
        items = [f"{name} {_cell(item)}" for name, item in value.items() if item]
        return ", ".join(items)
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return value or ""


def _field_lines(rows: Sequence[Sequence[str]]) -> str:
    """Labels with texts, the texts below each other where the terminal breaks them."""
    label_width = max([width(label) for label, _ in rows], default=0)
    indent = " " * label_width + GAP
    lines = _aligned(rows).split("\n") if rows else []
    return "\n".join([wrapped(line, indent=indent) for line in lines])


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells: list[str] = []
        for cell, column_width in zip(row, widths, strict=True):
            padding = " " * (column_width - width(cell))
            cells.append(cell + padding)
        lines.append(GAP.join(cells).rstrip())
    return "\n".join(lines)


def one_line(text: str, limit: int | None = None) -> str:
    """The text with white space collapsed, cut to at most `limit` columns on screen."""
    text = single_spaced(text)
    if limit is None or width(text) <= limit:
        return text
    while width(text) >= limit:
        text = text[: min(limit, len(text) - 1)]
    return text + "…"


def width(text: str) -> int:
    """The columns a text takes on a terminal: two for a Chinese character, none for an accent."""
    visible = [char for char in text if unicodedata.category(char) not in ("Cf", "Me", "Mn")]
    wide_characters = sum(unicodedata.east_asian_width(char) in "WF" for char in visible)
    return len(visible) + wide_characters


def terminal_columns() -> int | None:
    """The width of the terminal at stdout; None for a file or a pipe."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def wrapped(text: str, *, indent: str = "") -> str:
    """A printable text in lines as wide as the terminal; `indent` begins further lines."""
    lines = LineWrap(terminal_columns(), indent=indent)
    return printable(lines.feed(text) + lines.end())


class LineWrap:
    """Breaks a text in pieces into lines, between words and between Chinese characters.

    Without `columns` the text is unchanged.
    """

    def __init__(self, columns: int | None, *, indent: str = "") -> None:
        self._columns = columns
        self._indent = indent
        self._column = 0
        self._gap = ""  # the spaces before the word
        self._word = ""  # which may go on in the next piece

    def feed(self, piece: str) -> str:
        """The next piece in lines; a word at the end is kept until the word is complete."""
        if self._columns is None:
            return piece
        return "".join(map(self._next, piece))

    def end(self) -> str:
        """The last word."""
        return self._placed_word()

    def _next(self, char: str) -> str:
        if char == "\n":
            line = self._placed_word() + char
            self._column = 0
            self._gap = ""
            return line
        if char.isspace():
            line = self._placed_word()
            self._gap += char
            return line
        if is_cjk(char):
            line = self._placed_word()
            self._word = char
            return line
        self._word += char  # punctuation, too, which begins no line
        return ""

    def _placed_word(self) -> str:
        if not self._word:
            return ""
        word = self._word
        gap = self._gap
        self._word = ""
        self._gap = ""
        is_too_wide = self._column + width(gap + word) > (self._columns or 0)
        if is_too_wide and self._column > len(self._indent):
            self._column = width(self._indent + word)
            return f"\n{self._indent}{word}"
        self._column += width(gap + word)
        return gap + word


def shown_path(path: str) -> str:
    """The shortest path of a file: relative below the current folder."""
    folder = f"{Path.cwd()}{os.sep}"
    return path.removeprefix(folder)


def cost_words(usage: Usage) -> str:
    """A cost in words, with the input tokens cached by a server."""
    calls = counted(usage.calls, "calls")
    input_tokens = counted(usage.input_tokens, "input tokens")
    output_tokens = counted(usage.output_tokens, "output tokens")
    if usage.cached_tokens:
        input_tokens += f" ({usage.cached_tokens:,} cached)"
    return f"{calls}, {input_tokens}, {output_tokens}"


def money_words(rag: LightRAG, usage: Usage, tasks: Collection[ModelTask] = READING_TASKS) -> str:
    """The price of a usage, after a comma; "" unless a single model of known price does the tasks."""
    cost = cost_of_tasks(usage, rag.engine.client, tasks)
    if cost is None:
        return ""
    return f", {cost.amount:,.4f} {cost.currency}"


def priced_words(rag: LightRAG, usage: Usage, tasks: Collection[ModelTask] = READING_TASKS) -> str:
    """A cost in words, with its price where that is known."""
    return f"{cost_words(usage)}{money_words(rag, usage, tasks)}"


def agreed_cost(
    rag: LightRAG, work: str, usage: Usage, tasks: Collection[ModelTask], *, is_agreed: bool
) -> str:
    """The estimated cost of work in words, once somebody has agreed to it."""
    cost = priced_words(rag, usage, tasks)
    if not is_agreed:
        confirm(f"{work}: about {cost}?")
    return cost


def failure_notes(failures: Sequence[Failure], folder: object) -> Iterator[str]:
    """Failures in words, and how to retry: a line for each reason; files with the same reason have
    separate lines unless there are too many.
    """
    has_room = len(failures) <= SHOWN_REASONS
    failures_by_reason: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        reason = failure.reason if has_room else _reason_without_path(failure)
        failures_by_reason[reason].append(failure)
    groups = sorted(failures_by_reason.values(), key=len, reverse=True)
    for first, *similar in groups[:SHOWN_REASONS]:
        path = shown_path(first.document_id)
        where = one_line(f"{path} {first.chunk_id or ''}")
        reason = one_line(_reason_without_path(first))
        yield f"failed: {where}{_and_more(len(similar))}: {reason}"
    unlisted = sum(len(group) for group in groups[SHOWN_REASONS:])
    if unlisted:
        yield f"failed: {unlisted:,} more, in the report (--json)"
    if any(failure.chunk_id for failure in failures):
        yield f"retry the failed chunks: lightrag-jsonl retry -w {folder}"


def _and_more(count: int) -> str:
    """How many more there are than the listed ones; "" for none."""
    if count <= 0:
        return ""
    return f" (and {count:,} more)"


def _reason_without_path(failure: Failure) -> str:
    """The reason of a failure, without the path of the file at the beginning."""
    path = failure.document_id
    for start in (f"{path} is ", f"{path} ", f"{path}, "):
        if failure.reason.startswith(start):
            return failure.reason.removeprefix(start)
    return failure.reason


def skipped_notes(skipped: Sequence[SkippedFile]) -> Iterator[str]:
    """The skipped files in folders, a line for each reason."""
    yield from _grouped_notes("skipped", [(item.path, item.reason) for item in skipped])


def purged_notes(purged: Sequence[str]) -> Iterator[str]:
    """A line on the documents that stay out, since they were purged from the index."""
    yield from _grouped_notes("left out", [(id, PURGED) for id in purged])


def file_notes(notes: Sequence[FileNote]) -> Iterator[str]:
    """The parts of files missing from the texts, a line for each reason."""
    yield from _grouped_notes("note", [(note.path, note.text) for note in notes])


def _grouped_notes(kind: str, reasons: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Paths with reasons: a line for each reason, with a few of the paths."""
    paths_by_reason: dict[str, list[str]] = defaultdict(list)
    for path, reason in reasons:
        paths_by_reason[reason].append(one_line(shown_path(path)))
    groups = list(paths_by_reason.items())
    for reason, paths in groups[:SHOWN_REASONS]:
        listed = ", ".join(paths[:SHOWN_PATHS])
        further = _and_more(len(paths) - SHOWN_PATHS)
        yield f"{kind}: {listed}{further}: {one_line(reason)}"
    if len(groups) > SHOWN_REASONS:
        unlisted = sum(len(paths) for _, paths in groups[SHOWN_REASONS:])
        yield f"{kind}: {unlisted:,} more, in the report (--json)"
