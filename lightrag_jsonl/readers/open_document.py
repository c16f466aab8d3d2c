"""Reads texts, tables and presentations in OpenDocument, the format of LibreOffice."""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import without_blank_runs
from lightrag_jsonl.readers.tables import TableRow, described_rows

MANIFEST_FILE = "META-INF/manifest.xml"
CONTENT = "content.xml"
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
REPETITION = re.compile(rb'number-(?:columns|rows)-repeated="(\d{1,9})')
VALUES = ("value", "date-value", "time-value", "boolean-value", "string-value")


def read_odt(data: bytes, meter: FileMeter) -> Document:
    """The text of a document, with headings, lists, notes and tables as in Markdown."""
    file = _opened(data, ".odt", meter)
    text = without_blank_runs(file.to_markdown())
    meter.add_characters(len(text))
    return Document(text, title=file.meta.title or None)


def read_ods(data: bytes, meter: FileMeter) -> Document:
    """The rows of a workbook, a page for each sheet."""
    file = _opened(data, ".ods", meter)
    pages: list[str] = []
    content = _content_root(data)
    for sheet in content.iter(f"{TABLE_NAMESPACE}table"):
        meter.add_pages(1)
        paragraphs = list(described_rows(_sheet_rows(sheet, meter), meter))
        if paragraphs:
            pages.append("\n\n".join([f"# {sheet.get(f'{TABLE_NAMESPACE}name', '')}", *paragraphs]))
    return Document("", pages=tuple(pages), title=file.meta.title or None)


def read_odp(data: bytes, meter: FileMeter) -> Document:
    """The texts of a presentation, a page for each slide with the notes."""
    file = _opened(data, ".odp", meter)
    pages: list[str] = []
    for number, slide in enumerate(file.body.get_draw_pages(), 1):
        meter.add_pages(1)
        paragraphs = [" ".join(item.inner_text.split()) for item in slide.get_elements(".//text:p")]
        text = "\n\n".join(filter(None, [f"# Slide {number}", *paragraphs]))
        meter.add_characters(len(text))
        pages.append(text)
    return Document("", pages=tuple(pages), title=file.meta.title or None)


def _opened(data: bytes, kind: str, meter: FileMeter) -> Any:
    """The opened package; `ConfigError` for other files, for a password, and beyond the limits."""
    with open_zip(data, kind) as package:
        names = package.namelist()
        manifest = package.read(MANIFEST_FILE) if MANIFEST_FILE in names else b""
        if b"encryption-data" in manifest:
            raise ConfigError("is encrypted: save it without a password")
        content = package.read(CONTENT) if CONTENT in names and kind != ".ods" else b""
    meter.add_cells(sum(map(int, REPETITION.findall(content))))
    import odfdo

    return odfdo.Document(BytesIO(data))


def _content_root(data: bytes) -> Any:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    with open_zip(data, ".ods") as package:
        return etree.fromstring(package.read(CONTENT), parser)


def _sheet_rows(sheet: Any, meter: FileMeter) -> Iterator[TableRow]:
    """The rows of a sheet; a run of blank rows, as at the end of every sheet, counts as one."""
    for row in sheet.iter(f"{TABLE_NAMESPACE}table-row"):
        cells: list[str] = []
        blank_cells = 0
        for cell in row.iterchildren(
            f"{TABLE_NAMESPACE}table-cell", f"{TABLE_NAMESPACE}covered-table-cell"
        ):
            text = _cell_text(cell)
            count = _repetitions(cell, "columns")
            if not text:
                blank_cells += count
                continue
            meter.add_cells(blank_cells + count)
            cells += [""] * blank_cells + [text] * count
            blank_cells = 0
        count = _repetitions(row, "rows") if cells else 1
        meter.add_cells((count - 1) * len(cells))
        for _ in range(count):
            yield TableRow(cells)


def _repetitions(element: Any, kind: str) -> int:
    text = element.get(f"{TABLE_NAMESPACE}number-{kind}-repeated", "1")
    return int(text) if text.isdecimal() else 1


def _cell_text(cell: Any) -> str:
    """The text of a cell, or else the value."""
    lines: list[str] = []
    for paragraph in cell.iterchildren(f"{TEXT}p"):
        for space in paragraph.iter(f"{TEXT}s", f"{TEXT}tab", f"{TEXT}line-break"):
            space.text = " "
        lines.append("".join(paragraph.itertext()))
    values = (cell.get(f"{OFFICE}{name}") for name in VALUES)
    return "\n".join(lines) or next(filter(None, values), "")
