"""Reads tables: each row becomes a paragraph with the names of its columns."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from io import BytesIO, StringIO
from itertools import zip_longest

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter

DELIMITERS = ",;\t|"
LONGEST_SHEET = 1_048_576  # rows, by the specification of Excel; blank ones come one by one


def read_csv(data: bytes, meter: FileMeter) -> Document:
    """The rows of a CSV file; the delimiter is the most frequent candidate in the first line."""
    text = meter.decode(data)
    header = text.lstrip().split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=header.count)
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        return Document("\n\n".join(described_rows(rows, meter)))
    except csv.Error as error:
        where = f"cannot be read near line {rows.line_num}"
        raise ConfigError(f"{where}: {error}; perhaps a quotation mark is not closed") from error


def read_xlsx(data: bytes, meter: FileMeter) -> Document:
    """The rows of a workbook, a page for each sheet, with the values last computed."""
    import openpyxl

    open_zip(data, ".xlsx").close()
    book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
    pages = []
    for sheet in book.worksheets:
        meter.add_pages(1)
        sheet.reset_dimensions()  # which some programs write wrongly
        rows = (_cell_texts(row) for row in _counted(sheet.iter_rows(values_only=True), meter))
        paragraphs = list(described_rows(rows, meter))
        if paragraphs:
            pages.append("\n\n".join([f"# {sheet.title}", *paragraphs]))
    return Document("", pages=tuple(pages))


def _counted(rows: Iterable[Sequence[object]], meter: FileMeter) -> Iterator[Sequence[object]]:
    """The rows, their cells counted first: a file can state a row or column of any number."""
    for number, row in enumerate(rows, 1):
        if number > LONGEST_SHEET:
            raise ConfigError(f"has more than {LONGEST_SHEET:,} rows, which no sheet can have")
        meter.add_cells(len(row))
        yield row


def described_rows(rows: Iterable[Sequence[str]], meter: FileMeter) -> Iterator[str]:
    """Each row as "Name: Ada; Born: 1815".

    The header is the first row with a value beyond the first column, or else the first row; rows
    above the header are titles.
    """
    table: list[Sequence[str]] = []
    for row in rows:
        meter.add_characters(sum(map(len, row)))
        cells = [" ".join(cell.split()) for cell in row]
        if any(cells):
            table.append(cells)
    top = next((number for number, row in enumerate(table) if any(row[1:])), 0)
    yield from (row[0] for row in table[:top])
    header, *body = table[top:] or [[]]
    for row in body:
        fields = [(name, cell) for name, cell in zip_longest(header, row, fillvalue="") if cell]
        meter.add_characters(sum(len(name) for name, _ in fields))
        yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in fields)
    if header and not body:
        yield "; ".join(filter(None, header))


def _cell_texts(row: Sequence[object]) -> list[str]:
    """The texts of a row's cells, without the blank cells at its end."""
    texts = [_cell_text(value) for value in row]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)
