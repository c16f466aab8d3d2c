"""Fills the merged cells of Excel's sheets: only the first cell of a range has the value."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, NamedTuple
from zipfile import ZipFile

from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.xml_elements import elements_named, xml_root

WORKBOOK = "xl/workbook.xml"
LAST_COLUMN = 16_384  # by the specification of Excel
MOST_RANGES = 200_000  # of a sheet; further ones stay as they are
_MERGED = re.compile(
    rb"<(?:\w+:)?mergeCell\s[^>]*?ref=\"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})\""
)


class CellRange(NamedTuple):
    """A rectangle of cells; rows and columns count from 1."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


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
        end = cells.first_column
        has_others = any(row[:first]) or any(row[cells.last_column :])
        if has_others and cells.last_column > cells.first_column:
            self.has_groups = True
            end = min(cells.last_column, LAST_COLUMN)
        missing = end - len(filled)
        if missing > 0:
            self._meter.add_cells(missing)
            filled += [""] * missing
        copies = end - first
        self._meter.add_characters(len(text) * copies)
        filled[first:end] = [text] * copies


def merged_ranges(package: bytes) -> Mapping[str, list[CellRange]]:
    """The merged ranges of each sheet, by title."""
    with ZipFile(BytesIO(package)) as archive:
        names = set(archive.namelist())
        relations = f"xl/_rels/{posixpath.basename(WORKBOOK)}.rels"
        if WORKBOOK not in names or relations not in names:
            return {}
        targets: dict[str | None, str] = {}
        for relation in _part_elements(archive.read(relations), "Relationship"):
            path = posixpath.join("/xl", relation.get("Target", ""))
            targets[relation.get("Id")] = posixpath.normpath(path)
        ranges: dict[str, list[CellRange]] = {}
        for sheet in _part_elements(archive.read(WORKBOOK), "sheet"):
            relation_ids = (text for name, text in sheet.attrib.items() if name.endswith("}id"))
            path = targets.get(next(relation_ids, None), "").lstrip("/")
            if path in names:
                ranges[sheet.get("name", "")] = _sheet_ranges(archive.read(path))
        return ranges


def _sheet_ranges(part: bytes) -> list[CellRange]:
    ranges = []
    for match in _MERGED.finditer(part):
        cells = CellRange(
            first_row=int(match[2]),
            first_column=_column_number(match[1]),
            last_row=int(match[4]),
            last_column=_column_number(match[3]),
        )
        ranges.append(cells)
        if len(ranges) == MOST_RANGES:
            break
    return ranges


def _column_number(letters: bytes) -> int:
    """The number of a column, from 1 for A."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _part_elements(part: bytes, name: str) -> list[Any]:
    root = xml_root(part)
    if root is None:
        return []
    return elements_named(root, name)
