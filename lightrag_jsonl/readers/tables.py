"""Reads tables: each row becomes a paragraph that repeats the header, so that it can stand alone."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from io import BytesIO, StringIO

from lightrag_jsonl.core.encoding import decoded
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.packed import open_zip

DELIMITERS = ",;\t|"


def read_csv(data: bytes) -> Document:
    """The rows of a CSV file; the delimiter is the one that its first line has most of."""
    text = decoded(data)
    header = text.lstrip().split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=header.count)
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        return Document("\n\n".join(described_rows(rows)))
    except csv.Error as error:
        where = f"cannot be read near line {rows.line_num}"
        raise ConfigError(f"{where}: {error}; perhaps a quotation mark is not closed") from error


def read_xlsx(data: bytes) -> Document:
    """The rows of a workbook, a page for each sheet, with the values last computed."""
    import openpyxl

    open_zip(data, ".xlsx").close()
    book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
    pages = []
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # which some programs write wrongly
        rows = ([_words(value) for value in row] for row in sheet.iter_rows(values_only=True))
        if found := list(described_rows(rows)):
            pages.append("\n\n".join([f"# {sheet.title}", *found]))
    return Document("", pages=tuple(pages))


def described_rows(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Each row as "Name: Ada; Born: 1815"; the names are those of the first row that has a value
    beyond the first column: what is above it are titles. They are those of the first row if none has.
    """
    words = ([" ".join(cell.split()) for cell in cells] for cells in rows)
    table = [row for row in words if any(row)]
    top = next((number for number, row in enumerate(table) if any(row[1:])), 0)
    yield from (row[0] for row in table[:top])
    header, *body = table[top:] or [[]]
    for row in body:
        names = [*header, *[""] * (len(row) - len(header))]
        pairs = zip(names, row, strict=False)
        yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)
    if header and not body:
        yield "; ".join(filter(None, header))


def _words(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)
