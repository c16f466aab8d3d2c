"""Reads tables: each row becomes a paragraph with the names of the columns."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import zip_longest
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.merged_cells import FilledRows, merged_ranges
from lightrag_jsonl.readers.number_formats import cell_text
from lightrag_jsonl.readers.ooxml import usual_package, without_styles
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

DELIMITERS = ",;\t|"
LONGEST_SHEET = 1_048_576  # rows, by the specification of Excel; blank ones come one by one
MOST_HEADER_ROWS = 3

_YEAR_CELL = pattern_of(r"(?:1[5-9]|20)\d\d")


@dataclass(frozen=True, slots=True)
class TableRow:
    """The texts of a row's cells; `has_groups` if a cell spans several columns."""

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

    Numbers are written as formatted, and each cell of a merged range has the value. In a workbook
    with damaged styles, the styles are ignored.
    """
    package = usual_package(data, ".xlsx", meter)
    try:
        return _read_workbook(package, meter)
    except (TypeError, ValueError, LookupError, AttributeError):  # by openpyxl, for any wrong style
        document = _read_damaged_workbook(package, meter)
    meter.add_note("the styles of the workbook are damaged: numbers and dates have no formats")
    return document


def _read_damaged_workbook(package: bytes, meter: FileMeter) -> Document:
    """The rows of a workbook without its styles; `ConfigError` if that does not help."""
    try:
        return _read_workbook(without_styles(package), meter)
    except KeyError as error:
        raise ConfigError(f"is not a valid .xlsx file: {error.args[0]}") from error


def _read_workbook(package: bytes, meter: FileMeter) -> Document:
    import openpyxl

    ranges = merged_ranges(package)
    book = openpyxl.load_workbook(
        BytesIO(package), read_only=True, data_only=True, keep_links=False
    )
    pages = []
    for sheet in book.worksheets:
        meter.add_pages(1)
        sheet.reset_dimensions()  # which some programs write wrongly
        filled = FilledRows(ranges.get(sheet.title, ()), meter)
        paragraphs = list(described_rows(_filled_rows(sheet, filled, meter), meter))
        if paragraphs:
            pages.append("\n\n".join([f"# {sheet.title}", *paragraphs]))
    return Document("", pages=tuple(pages))


def _filled_rows(sheet: Any, filled: FilledRows, meter: FileMeter) -> Iterator[TableRow]:
    """The texts of a sheet, with the value of a merged range in each of its cells."""
    for number, row in _counted(sheet.iter_rows(), meter):
        cells = filled.fill(number, [cell_text(cell) for cell in row])
        yield TableRow(cells, filled.has_groups)


def _counted(
    rows: Iterable[tuple[object, ...]], meter: FileMeter
) -> Iterator[tuple[int, tuple[object, ...]]]:
    """The numbered rows, with the cells counted first: a file can state any number of cells."""
    for number, row in enumerate(rows, 1):
        if number > LONGEST_SHEET:
            raise ConfigError(f"has more than {LONGEST_SHEET:,} rows, which no sheet can have")
        meter.add_cells(len(row))
        yield number, row


def described_rows(rows: Iterable[TableRow], meter: FileMeter) -> Iterator[str]:
    """Each row as "Name: Ada; Born: 1815".

    Blank rows divide a sheet into parts. The header of a part is the first row with several values;
    rows above are titles. A header with groups goes on in the next row: "2024 Sales: 12". Two
    columns of names and values have no header. A part that goes on with the table above has the
    same names. A part that has no header and does not fit the table above is written without names.
    The names of columns without any value come last.
    """
    parts = list(_table_parts(rows, meter))
    has_columns = any(_value_count(row) > 1 for part in parts for row in part)
    table = _Table([], [])
    is_first = True
    for part in parts:
        top = _title_count(part) if has_columns else 0
        for row in part[:top]:
            yield " ".join(filter(None, row.cells))
        part = part[top:]
        if not part:
            continue
        if table.names and part[0].cells == table.names:
            part = part[1:]
        elif not table.goes_on_in(part):
            yield from table.unused_names()
            table = _Table([], part)
            if _has_names_and_values(part):
                for row in part:
                    yield _name_and_value(row.cells)
                continue
            has_header = _has_header(part, is_first=is_first)
            is_first = False
            if has_header:
                length = _header_length(part)
                table = _Table(_joined_header(part[:length]), part[length:])
                part = part[length:]
        else:
            table.rows += part
        for row in part:
            if row.cells != table.names:  # again, at the top of a printed page
                yield table.described(row, meter)
    yield from table.unused_names()


def _table_parts(rows: Iterable[TableRow], meter: FileMeter) -> Iterator[list[TableRow]]:
    """The runs of rows between blank rows, without trailing blank cells."""
    part: list[TableRow] = []
    for row in rows:
        meter.add_characters(sum(map(len, row.cells)))
        cells = [single_spaced(cell) for cell in row.cells]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            part.append(TableRow(cells, row.has_groups))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _value_count(row: TableRow) -> int:
    return sum(map(bool, row.cells))


def _title_count(part: list[TableRow]) -> int:
    """The number of rows above the first row with several values."""
    for number, row in enumerate(part):
        if _value_count(row) > 1:
            return number
    return len(part)


class _Table:
    """The names of columns, and the rows below."""

    def __init__(self, names: list[str], rows: list[TableRow]) -> None:
        self.names = names
        self.rows = rows
        self._used_columns: set[int] = set()

    def described(self, row: TableRow, meter: FileMeter) -> str:
        """The row as "Name: Ada; Born: 1815"; values without a name stand alone."""
        fields: list[str] = []
        for column, cell in enumerate(row.cells):
            if not cell:
                continue
            self._used_columns.add(column)
            name = self.names[column] if column < len(self.names) else ""
            meter.add_characters(len(name))
            fields.append(f"{name}: {cell}" if name else cell)
        return "; ".join(fields)

    def unused_names(self) -> Iterator[str]:
        """The names of columns without any value, in a line."""
        names = [name for column, name in enumerate(self.names) if column not in self._used_columns]
        if any(names):
            yield "; ".join(filter(None, names))

    def goes_on_in(self, part: list[TableRow]) -> bool:
        """Whether the rows below a blank row belong to the table.

        A header without rows takes rows no wider than the header. Otherwise the rows must have
        numbers, and only numbers, in a column of numbers: words alone tell nothing.
        """
        if not self.names:
            return False
        if not self.rows:
            return max(len(row.cells) for row in part) <= len(self.names)
        columns = range(len(self.names))
        numeric = [column for column in columns if _is_numeric(self.rows, column)]
        filled = [column for column in numeric if _values_in(part, column)]
        return bool(filled) and all(_is_numeric(part, column) for column in filled)


def _values_in(rows: list[TableRow], column: int) -> list[str]:
    """The values in a column, without blank cells."""
    cells = [row.cells[column] for row in rows if len(row.cells) > column]
    return [cell for cell in cells if cell]


def _is_numeric(rows: list[TableRow], column: int) -> bool:
    """Whether a column has numbers and nothing else."""
    values = _values_in(rows, column)
    return bool(values) and all(map(_is_number, values))


def _has_header(part: list[TableRow], *, is_first: bool) -> bool:
    """Whether the first row of a part has the names of the columns.

    A row with a number above numbers is no header, but for years or 1, 2, 3; nor is a row with a
    value repeated in the column. In a part below another part, names must stand above numbers:
    words alone tell nothing.
    """
    first = part[0]
    rows = [row for row in part if row.cells != first.cells]
    if first.has_groups or not rows:
        return is_first or first.has_groups
    numbers = [cell for cell in first.cells if _is_number(cell)]
    ordinals = [str(number) for number in range(1, len(numbers) + 1)]
    is_series = numbers == ordinals or all(map(_YEAR_CELL.match, numbers))
    has_numbers_below = False
    for column, cell in enumerate(first.cells):
        if cell and cell in _values_in(rows, column):
            return False
        is_numeric = _is_numeric(rows, column)
        if is_numeric and _is_number(cell) and not is_series:
            return False
        has_numbers_below = has_numbers_below or is_numeric
    return is_first or has_numbers_below


def _has_names_and_values(table: list[TableRow]) -> bool:
    """Whether two columns are names with a colon, or the first value is a number, but no year."""
    if not table or len(table[0].cells) != 2:
        return False
    if any(len(row.cells) > 2 for row in table):
        return False
    names = [row.cells[0] for row in table if len(row.cells) == 2]
    with_colon = sum(name.endswith((":", "：")) for name in names)
    if 2 * with_colon > len(names):
        return True
    _, first_value = table[0].cells
    return _is_number(first_value) and not _YEAR_CELL.fullmatch(first_value)


def _name_and_value(cells: list[str]) -> str:
    """A row of two columns as "Name: Ada"."""
    name = cells[0].rstrip(":： ")
    return ": ".join(filter(None, [name, *cells[1:]]))


def _header_length(table: list[TableRow]) -> int:
    """The number of rows in the header: the rows with groups, and the row of words below."""
    length = 1
    for row in table[1 : min(MOST_HEADER_ROWS, len(table) - 1)]:
        has_groups_above = table[length - 1].has_groups
        if not has_groups_above or any(map(_is_number, row.cells)):
            break
        length += 1
    return length


def _is_number(cell: str) -> bool:
    has_digits = any(map(str.isdecimal, cell))
    return has_digits and not any(map(str.isalpha, cell))


def _joined_header(rows: list[TableRow]) -> list[str]:
    """The names of the columns: the distinct words above each column."""
    names: list[str] = []
    for column in zip_longest(*(row.cells for row in rows), fillvalue=""):
        distinct_words = dict.fromkeys(filter(None, column))
        names.append(" ".join(distinct_words))
    return names
