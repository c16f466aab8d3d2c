"""Reads texts, tables and presentations in OpenDocument, the format of LibreOffice."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from zipfile import BadZipFile

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import (
    comment_line,
    list_mark,
    markdown_heading,
    markdown_table,
)
from lightrag_jsonl.readers.open_document_numbers import (
    OFFICE_NAMESPACE,
    TABLE_NAMESPACE,
    TEXT_NAMESPACE,
    ListNumbers,
)
from lightrag_jsonl.readers.slides import numbered_slide, shared_pages
from lightrag_jsonl.readers.tables import TableRow, described_rows
from lightrag_jsonl.readers.titles import confirmed_title, heading_title
from lightrag_jsonl.readers.xml_elements import is_damaged, local_name, whole_number, xml_root
from lightrag_jsonl.text.strings import single_spaced
from lightrag_jsonl.text.strings import words as word_set

MANIFEST_FILE = "META-INF/manifest.xml"
CONTENT = "content.xml"
XLINK = "{http://www.w3.org/1999/xlink}href"
DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
REPETITION = re.compile(rb'number-(?:columns|rows)-repeated="(\d{1,9})')
TITLE_FRAME = "{*}frame[@{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}class='title']"
CELLS = (f"{TABLE_NAMESPACE}table-cell", f"{TABLE_NAMESPACE}covered-table-cell")
SPACES = (f"{TEXT_NAMESPACE}s", f"{TEXT_NAMESPACE}tab", f"{TEXT_NAMESPACE}line-break")
VALUES = ("value", "date-value", "time-value", "boolean-value", "string-value")
SIGNS_IN_TEXT = {"tab": "\t", "line-break": "\n"}  # by element
MOST_SPACES = 100  # in a row, of which a file can state any number
UNSEEN_ELEMENTS = word_set(
    "tracked-changes forms sequence-decls variable-decls user-field-decls desc event-listeners scripts ruby-text"
    " settings plugin master-page page-number"
)
_LAYOUT = re.compile(r"[ \t\r\n]+")  # in XML, a single space


def read_odt(data: bytes, meter: FileMeter) -> Document:
    """The text of a document, with headings, lists, notes and tables as in Markdown."""
    package = _Package(data, ".odt", meter)
    meter.add_cells(package.repetitions)
    paragraphs: list[str] = []
    for paragraph in _OpenText(package, meter).blocks(package.body):
        meter.add_characters(len(paragraph))
        paragraphs.append(paragraph)
    text = "\n\n".join(paragraphs)
    return Document(text, title=confirmed_title(package.title, text) or heading_title(text))


def read_ods(data: bytes, meter: FileMeter) -> Document:
    """The rows of a workbook, a page for each sheet, with the comments below."""
    package = _Package(data, ".ods", meter)
    reader = _OpenText(package, meter)
    pages: list[str] = []
    for sheet in package.body.iter(f"{TABLE_NAMESPACE}table"):
        meter.add_pages(1)
        paragraphs = list(described_rows(_sheet_rows(sheet, meter), meter))
        for drawing in sheet.iter(f"{OFFICE_NAMESPACE}annotation", f"{TABLE_NAMESPACE}shapes"):
            paragraphs += reader.blocks([drawing])
        if paragraphs:
            name = sheet.get(f"{TABLE_NAMESPACE}name", "")
            pages.append("\n\n".join([f"# {name}", *paragraphs]))
    return Document("", pages=tuple(pages), title=package.title or None)


def read_odp(data: bytes, meter: FileMeter) -> Document:
    """The texts and notes of a presentation; pages and headings are those of `read_pptx`."""
    package = _Package(data, ".odp", meter)
    meter.add_cells(package.repetitions)
    reader = _OpenText(package, meter)
    texts = []
    for number, slide in enumerate(package.body.iter("{*}page"), 1):
        meter.add_pages(1)
        title_frame = slide.find(TITLE_FRAME)
        title_texts = [] if title_frame is None else reader.blocks([title_frame])
        blocks = reader.blocks(shape for shape in slide if shape is not title_frame)
        text = numbered_slide(number, single_spaced(" ".join(title_texts)), blocks)
        meter.add_characters(len(text))
        texts.append(text)
    title = confirmed_title(package.title, "\n".join(texts))
    return Document("", pages=tuple(shared_pages(texts)), title=title)


class _Package:
    """The opened file; `ConfigError` for other files, for a password, and beyond the limits.

    `repetitions` counts the cells that the content states to be repeated.
    """

    def __init__(self, data: bytes, kind: str, meter: FileMeter) -> None:
        self._meter = meter
        with open_zip(data, kind) as archive:
            self._archive = archive
            self._names = frozenset(archive.namelist())
            if b"encryption-data" in self._part(MANIFEST_FILE):
                raise ConfigError("is encrypted: save it without a password")
            content = self._part(CONTENT)
            self.repetitions = sum(map(int, REPETITION.findall(content)))
            self.root = self._xml_root(CONTENT, content)
            self.styles = self._xml_root("styles.xml")
            meta = self._xml_root("meta.xml")
            self.objects = {
                name.removesuffix(f"/{CONTENT}"): self._xml_root(name)
                for name in sorted(self._names)
                if name.endswith(f"/{CONTENT}")
            }
        self.body: Any = None
        if self.root is not None:
            self.body = self.root.find(f".//{OFFICE_NAMESPACE}body")
        if self.body is None:
            raise ConfigError(f"is not a valid {kind} file: it has no content")
        self.title = ""
        if meta is not None:
            self.title = single_spaced(meta.findtext(f".//{DUBLIN_CORE}title"))

    def _part(self, name: str) -> bytes:
        """The bytes of a part; nothing for a missing or, with a note, for a damaged one."""
        if name not in self._names:
            return b""
        try:
            return self._archive.read(name)
        except (BadZipFile, EOFError, RuntimeError) as error:
            self._meter.add_note(f"the part {name} is damaged: {error}")
            return b""

    def _xml_root(self, name: str, content: bytes | None = None) -> Any | None:
        """The root of a part, as far as it can be read; None for a part that is no XML."""
        if content is None:
            content = self._part(name)
        root = xml_root(content)
        is_whole = root is not None and not is_damaged(root)
        if content.strip() and not is_whole:
            self._meter.add_note(f"the part {name} is damaged")
        return root


class _OpenText:
    """Turns the elements of a document into texts, in order."""

    def __init__(self, package: _Package, meter: FileMeter) -> None:
        self._objects = dict(package.objects)
        self._numbers = ListNumbers(package.root, package.styles)
        self._meter = meter
        self._note_count = 0

    def blocks(self, container: Iterable[Any]) -> Iterator[str]:
        """The texts of the paragraphs, lists and tables in a body, a cell, a frame or a note."""
        for element in container:
            name = local_name(element)
            if name in ("p", "h"):
                yield from self._paragraph(element)
            elif name == "list":
                yield from self._list(element, "", 1)
            elif name == "table":
                yield markdown_table(self._table_rows(element))
            elif name == "object":
                yield from self._object(element)
            elif name == "annotation":
                yield self._comment(element)
            elif name and name not in UNSEEN_ELEMENTS:
                yield from self.blocks(element)

    def _paragraph(self, paragraph: Any, mark: str = "") -> Iterator[str]:
        """The text of a paragraph or a heading, then text boxes, notes and comments."""
        asides: list[Any] = []
        text = "".join(self._pieces(paragraph, asides)).strip()
        if text and local_name(paragraph) == "h":
            level = whole_number(paragraph.get(f"{TEXT_NAMESPACE}outline-level"), 1)
            number = self._numbers.heading_number(paragraph, level)
            yield markdown_heading(single_spaced(f"{number} {text}"), level)
        elif text:
            yield f"{mark}{text}"
        for aside in asides:
            if isinstance(aside, str):
                yield aside
            else:
                yield from self.blocks([aside])

    def _pieces(self, element: Any, asides: list[Any]) -> Iterator[str]:
        """The texts in a paragraph; what stands beside the text is added to the list."""
        yield _LAYOUT.sub(" ", element.text or "")
        for child in element:
            name = local_name(child)
            if name == "s":
                spaces = whole_number(child.get(f"{TEXT_NAMESPACE}c"), 1)
                yield " " * min(spaces, MOST_SPACES)
            elif name in SIGNS_IN_TEXT:
                yield SIGNS_IN_TEXT[name]
            elif name == "note":
                yield self._note_mark(child, asides)
            elif name in ("frame", "annotation", "custom-shape", "g", "text-box", "p"):
                formula = self._formula(child)
                if not formula:
                    asides.append(child)
                yield formula
            elif name and name not in UNSEEN_ELEMENTS:
                yield from self._pieces(child, asides)
            yield _LAYOUT.sub(" ", child.tail or "")

    def _note_mark(self, note: Any, asides: list[Any]) -> str:
        """The mark of a note, as in Markdown; the text of the note is added to the list."""
        self._note_count += 1
        mark = f"[^{self._note_count}]"
        words = " ".join(self.blocks(note.iterchildren(f"{TEXT_NAMESPACE}note-body")))
        asides.append(f"{mark}: {words}")
        return mark

    def _comment(self, annotation: Any) -> str:
        words = " ".join(self.blocks(annotation))
        return comment_line(words, author=annotation.findtext(f"{DUBLIN_CORE}creator"))

    def _list(self, element: Any, style: str, level: int) -> Iterator[str]:
        """The items, each with the number or a bullet; a list in a list has its style."""
        style = element.get(f"{TEXT_NAMESPACE}style-name") or style
        self._numbers.begin(element, style, level)
        for item in element:
            mark = ""
            if local_name(item) == "list-item":
                start = item.get(f"{TEXT_NAMESPACE}start-value")
                number = self._numbers.next_number(style, level, start)
                mark = list_mark(level - 1, number or "-")
            for block in item:
                name = local_name(block)
                if name == "list":
                    yield from self._list(block, style, level + 1)
                elif name == "p":
                    yield from self._paragraph(block, mark)
                    mark = ""
                else:
                    yield from self.blocks([block])

    def _table_rows(self, table: Any) -> Iterator[list[str]]:
        for row in _table_children(table, "table-row"):
            cells: list[str] = []
            for cell in row.iterchildren(*CELLS):
                text = " ".join(self.blocks(cell))
                columns = _repetitions(cell, "columns") if text else 1
                cells += [text] * columns
            copies = _repetitions(row, "rows") if any(cells) else 1
            for _ in range(copies):
                yield cells

    def _formula(self, frame: Any) -> str:
        """The formula in a frame, as typed by its writer; "" for other frames."""
        for reference in frame.iter("{*}object"):
            root = self._objects.get(_object_name(reference))
            if root is not None and local_name(root) == "math":
                source = root.findtext(".//{*}annotation")
                return single_spaced(source or " ".join(root.itertext("*")))
        return ""

    def _object(self, reference: Any) -> Iterator[str]:
        """The texts and numbers of a chart, a table or a text in the document, each once."""
        root = self._objects.pop(_object_name(reference), None)
        if root is not None:
            yield from self.blocks(root)


def _object_name(reference: Any) -> str:
    address = str(reference.get(XLINK, ""))
    return address.removeprefix("./").rstrip("/")


def _table_children(table: Any, name: str) -> Iterator[Any]:
    """The rows of a table, also in groups."""
    for child in table:
        if local_name(child) == name:
            yield child
        elif local_name(child) in ("table-rows", "table-header-rows", "table-row-group"):
            yield from _table_children(child, name)


def _sheet_rows(sheet: Any, meter: FileMeter) -> Iterator[TableRow]:
    """The rows of a sheet; a run of blank rows, as at the end of every sheet, counts as one."""
    for row in _table_children(sheet, "table-row"):
        cells: list[str] = []
        blank_cells = 0
        for cell in row.iterchildren(*CELLS):
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
    return whole_number(element.get(f"{TABLE_NAMESPACE}number-{kind}-repeated"), 1)


def _cell_text(cell: Any) -> str:
    """The text of a cell, or else the value."""
    lines: list[str] = []
    for paragraph in cell.iterchildren(f"{TEXT_NAMESPACE}p"):
        for space in paragraph.iter(*SPACES):
            space.text = " "
        lines.append("".join(paragraph.itertext()))
    values = (cell.get(f"{OFFICE_NAMESPACE}{name}") for name in VALUES)
    return "\n".join(lines) or next(filter(None, values), "")
