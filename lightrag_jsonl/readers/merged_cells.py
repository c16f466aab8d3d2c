"""Fills the merged cells of Excel's sheets: only the first cell of a range has the value."""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from lightrag_jsonl.readers.limits import FileMeter

LAST_COLUMN = 16_384  # by the specification of Excel
MOST_RANGES = 200_000  # of a sheet; further ones stay as they are
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=\"([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})\"")


class CellRange(NamedTuple):
    """A rectangle of cells; rows and columns count from 1."""

    first_column: int
    first_row: int
    last_column: int
    last_row: int


class FilledRows:
    """Fills the rows of a sheet, given in order.

    A value is repeated in each column of the range only where the row has other values, since a
    title above a table also spans the columns. `has_groups` says whether the last row had such a
    range.
    """

    def __init__(self, ranges: Iterable[CellRange], meter: FileMeter) -> None:
        self.has_groups = False
        self._meter = meter
        self._beginning: dict[int, list[CellRange]] = defaultdict(list)
        for cells in ranges:
            self._beginning[cells.first_row].append(cells)
        self._open: dict[CellRange, str] = {}

    def fill(self, number: int, row: list[str]) -> list[str]:
        """The row with the values of the merged ranges across the row."""
        self.has_groups = False
        for cells in [cells for cells in self._open if cells.last_row < number]:
            del self._open[cells]
        for cells in self._beginning.pop(number, ()):
            index = cells.first_column - 1
            self._open[cells] = row[index] if index < len(row) else ""
        if not self._open:
            return row
        filled = list(row)
        for cells, text in self._open.items():
            if text:
                self._fill_range(filled, row, cells, text)
        return filled

    def _fill_range(self, filled: list[str], row: list[str], cells: CellRange, text: str) -> None:
        first = cells.first_column - 1
        has_others = any(row[:first]) or any(row[cells.last_column :])
        is_group = cells.last_column > cells.first_column and has_others
        self.has_groups = self.has_groups or is_group
        end = min(cells.last_column, LAST_COLUMN) if is_group else cells.first_column
        if end > len(filled):
            self._meter.add_cells(end - len(filled))
            filled.extend([""] * (end - len(filled)))
        self._meter.add_characters(len(text) * (end - first))
        filled[first:end] = [text] * (end - first)


def merged_ranges(sheet: Any) -> list[CellRange]:
    """The merged ranges of a sheet that openpyxl reads row by row, which tells nothing of them."""
    from openpyxl.utils.cell import range_boundaries

    with sheet._get_source() as part:
        matches = islice(_MERGED.finditer(part.read()), MOST_RANGES)
        return [CellRange(*range_boundaries(match[1].decode())) for match in matches]
