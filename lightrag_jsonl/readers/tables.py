"""Reads tables: each row becomes a paragraph with the names of its columns."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import zip_longest

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.merged_cells import FilledRows, merged_ranges
from lightrag_jsonl.readers.number_formats import cell_text
from lightrag_jsonl.readers.ooxml import usual_package, without_styles

DELIMITERS = ",;\t|"
LONGEST_SHEET = 1_048_576  # rows, by the specification of Excel; blank ones come one by one
MOST_HEADER_ROWS = 3

_YEAR_CELL = re.compile(r"(?:1[5-9]|20)\d\d")


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

    Numbers are written in their formats, and each cell of a merged range has its value. A workbook
    with damaged styles is read without them.
    """
    package = usual_package(data, ".xlsx")
    try:
        return _read_workbook(package, meter)
    except (TypeError, ValueError, LookupError, AttributeError):  # by openpyxl, for any wrong style
        document = _read_workbook(without_styles(package), meter)
    meter.add_note("the styles of the workbook are damaged: numbers and dates have no formats")
    return document


def _read_workbook(package: bytes, meter: FileMeter) -> Document:
    import openpyxl

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

    The header is the first row with several values, or else the first row; rows above the header are
    titles. A header with groups goes on in the next row: "2024 Sales: 12". Two columns of names and
    values have no header. The names of columns without any value come last.
    """
    table: list[TableRow] = []
    for row in rows:
        meter.add_characters(sum(map(len, row.cells)))
        cells = [" ".join(cell.split()) for cell in row.cells]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            table.append(TableRow(cells, row.has_groups))
    counts = [len([cell for cell in row.cells if cell]) for row in table]
    top = next((number for number, count in enumerate(counts) if count > 1), 0)
    yield from (" ".join(filter(None, row.cells)) for row in table[:top])
    if _has_names_and_values(table[top:]):
        yield from (_name_and_value(row.cells) for row in table[top:])
        return
    length = _header_length(table[top:])
    header = _joined_header(table[top : top + length])
    used_columns: set[int] = set()
    for row in table[top + length :]:
        columns = [column for column, cell in enumerate(row.cells) if cell]
        used_columns.update(columns)
        names = [header[column] if column < len(header) else "" for column in columns]
        meter.add_characters(sum(map(len, names)))
        yield "; ".join(
            f"{name}: {row.cells[column]}" if name else row.cells[column]
            for name, column in zip(names, columns, strict=True)
        )
    unused_names = [name for column, name in enumerate(header) if column not in used_columns]
    if any(unused_names):
        yield "; ".join(filter(None, unused_names))


def _has_names_and_values(table: list[TableRow]) -> bool:
    """Whether two columns are names with a colon, or the first value is a number, but no year."""
    if not table or len(table[0].cells) != 2 or max(len(row.cells) for row in table) != 2:
        return False
    names = [row.cells[0] for row in table if len(row.cells) == 2]
    with_colon = sum(name.endswith((":", "：")) for name in names)
    first_value = table[0].cells[1]
    is_year = _YEAR_CELL.fullmatch(first_value) is not None
    return 2 * with_colon > len(names) or (_is_number(first_value) and not is_year)


def _name_and_value(cells: list[str]) -> str:
    """A row of two columns as "Name: Ada"."""
    name = cells[0].rstrip(":： ")
    return ": ".join(filter(None, [name, *cells[1:]]))


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
