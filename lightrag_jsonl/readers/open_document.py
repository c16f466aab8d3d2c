"""Reads texts, tables and presentations of LibreOffice and other programs that write OpenDocument."""

from io import BytesIO
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import without_blank_runs
from lightrag_jsonl.readers.tables import TableRow, described_rows

MANIFEST = "META-INF/manifest.xml"


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
    for sheet in file.body.tables:
        meter.add_pages(1)
        rows: list[TableRow] = []
        for row in sheet.rows:
            cells = [_cell_text(cell) for cell in row.cells]
            meter.add_cells(len(cells))
            rows.append(TableRow(cells))
        paragraphs = list(described_rows(rows, meter))
        if paragraphs:
            pages.append("\n\n".join([f"# {sheet.name}", *paragraphs]))
    return Document("", pages=tuple(pages), title=file.meta.title or None)


def read_odp(data: bytes, meter: FileMeter) -> Document:
    """The texts of a presentation, a page for each slide, with its notes."""
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
    """The opened package, if it is one, is within the limits, and has no password."""
    with open_zip(data, kind) as package:
        manifest = package.read(MANIFEST) if MANIFEST in package.namelist() else b""
    if b"encryption-data" in manifest:
        raise ConfigError("is encrypted: save it without a password")
    import odfdo

    return odfdo.Document(BytesIO(data))


def _cell_text(cell: Any) -> str:
    """What a cell shows; of a cell without a text, its value."""
    displayed_text = "\n".join(item.inner_text for item in cell.get_elements("text:p"))
    if displayed_text:
        return displayed_text
    return "" if cell.value is None else str(cell.value)
