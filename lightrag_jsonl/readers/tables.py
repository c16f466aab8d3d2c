"""Reads tables: each row becomes a paragraph with the names of its columns."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import zip_longest

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.merged_cells import FilledRows, merged_ranges
from lightrag_jsonl.readers.number_formats import cell_text
from lightrag_jsonl.readers.ooxml import usual_package

DELIMITERS = ",;\t|"
LONGEST_SHEET = 1_048_576  # rows, by the specification of Excel; blank ones come one by one
MOST_HEADER_ROWS = 3


@dataclass(frozen=True, slots=True)
class TableRow:
    """The texts of a row's cells; `has_groups` if one of them spans several columns."""

    cells: list[str]
    has_groups: bool = False


def read_csv(data: bytes, meter: FileMeter) -> Document:
    """The rows of a CSV file; the delimiter is the most frequent candidate in the first line."""
    text = meter.decode(data)
    header = text.lstrip().split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=header.count)
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        return Document("\n\n".join(described_rows(map(TableRow, rows), meter)))
    except csv.Error as error:
        where = f"cannot be read near line {rows.line_num}"
        raise ConfigError(f"{where}: {error}; perhaps a quotation mark is not closed") from error


def read_xlsx(data: bytes, meter: FileMeter) -> Document:
    """The rows of a workbook, a page for each sheet, with the values last computed.

    Numbers are written in their formats, and each cell of a merged range has its value.
    """
    import openpyxl

    package = usual_package(data, ".xlsx")
    ranges = merged_ranges(package)
    book = openpyxl.load_workbook(BytesIO(package), read_only=True, data_only=True)
    pages = []
    for sheet in book.worksheets:
        meter.add_pages(1)
        sheet.reset_dimensions()  # which some programs write wrongly
        filled = FilledRows(ranges.get(sheet.title, ()), meter)
        rows = (
            TableRow(filled.fill(number, [cell_text(cell) for cell in row]), filled.has_groups)
            for number, row in _counted(sheet.iter_rows(), meter)
        )
        paragraphs = list(described_rows(rows, meter))
        if paragraphs:
            pages.append("\n\n".join([f"# {sheet.title}", *paragraphs]))
    return Document("", pages=tuple(pages))


def _counted(
    rows: Iterable[tuple[object, ...]], meter: FileMeter
) -> Iterator[tuple[int, tuple[object, ...]]]:
    """The rows with their numbers, their cells counted first: a file can state any number of them."""
    for number, row in enumerate(rows, 1):
        if number > LONGEST_SHEET:
            raise ConfigError(f"has more than {LONGEST_SHEET:,} rows, which no sheet can have")
        meter.add_cells(len(row))
        yield number, row


def described_rows(rows: Iterable[TableRow], meter: FileMeter) -> Iterator[str]:
    """Each row as "Name: Ada; Born: 1815".

    The header is the first row with a value beyond the first column, or else the first row; rows
    above the header are titles. A header with groups goes on in the next row: "2024 Sales: 12".
    """
    table: list[TableRow] = []
    for row in rows:
        meter.add_characters(sum(map(len, row.cells)))
        cells = [" ".join(cell.split()) for cell in row.cells]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            table.append(TableRow(cells, row.has_groups))
    top = next((number for number, row in enumerate(table) if any(row.cells[1:])), 0)
    yield from (row.cells[0] for row in table[:top])
    length = _header_length(table[top:])
    header = _joined_header(table[top : top + length])
    body = table[top + length :]
    for row in body:
        pairs = zip_longest(header, row.cells, fillvalue="")
        fields = [(name, cell) for name, cell in pairs if cell]
        meter.add_characters(sum(len(name) for name, _ in fields))
        yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in fields)
    if header and not body:
        yield "; ".join(filter(None, header))


def _header_length(table: list[TableRow]) -> int:
    """How many rows the header has: those with groups, and the row of words below them."""
    length = 1
    while (
        length < min(MOST_HEADER_ROWS, len(table) - 1)
        and table[length - 1].has_groups
        and not any(_is_number(cell) for cell in table[length].cells)
    ):
        length += 1
    return length


def _is_number(cell: str) -> bool:
    digits = sum(letter.isdecimal() for letter in cell)
    return digits > 0 and not any(letter.isalpha() for letter in cell)


def _joined_header(rows: list[TableRow]) -> list[str]:
    """The names of the columns: what stands above each of them, once."""
    columns = zip_longest(*(row.cells for row in rows), fillvalue="")
    return [" ".join(dict.fromkeys(filter(None, column))) for column in columns]
