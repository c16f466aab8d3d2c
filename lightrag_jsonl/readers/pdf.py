"""Reads PDF files: the text of each page, column by column."""

import threading
from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from msgspec import Struct

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Picture
from lightrag_jsonl.readers.arabic import has_arabic, ordered_text
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.pdf_charts import chart_areas
from lightrag_jsonl.readers.pdf_forms import form_values
from lightrag_jsonl.readers.pdf_headings import (
    Levels,
    listed_headings,
    tagged_headings,
    with_headings,
)
from lightrag_jsonl.readers.pdf_text import (
    is_readable,
    repaired_lines,
    whole_words,
    with_nested_lists,
)
from lightrag_jsonl.readers.pictures import (
    SEEING_ADVICE,
    Box,
    add_pictures,
    around,
    picture_place,
    pictures_on_page,
    scanned_page,
    without_logos,
)
from lightrag_jsonl.readers.running_lines import PrintedPage, without_running_lines
from lightrag_jsonl.readers.titles import confirmed_title

FEWEST_LINES = 4  # in a column
COLUMN = 0.25  # of the width of the text: lines of a column are at least so wide, unlike cells
CROSSING = 0.3  # of the lines at most: titles and figures may be as wide as several columns

MARGIN_GAP = 1.2  # of a line's height, between a running line and the text
MOST_MARGIN_LINES = 6  # and their parts: title, number and date can stand apart in one line
LISTED_PAGES = 20  # in a note
TITLE_PAGES = 3  # at the beginning, where the title of a document stands

SCANNED_ADVICE = f"recognize its text (OCR) first, or {SEEING_ADVICE}"
UNKNOWN_CHARACTERS = "the fonts do not say which characters they show"

_pdfium_lock = threading.Lock()  # PDFium is not made for threads


class PdfPage(Struct, frozen=True, kw_only=True):
    """A page as the file has it; words may be divided at the ends of lines."""

    text: str
    filled_fields: tuple[str, ...]
    margins: tuple[str, ...]
    headings: Levels
    is_readable: bool
    is_picture: bool
    pictures: list[Picture]


def read_pdf(data: bytes, meter: FileMeter) -> Document:
    """The pages of a PDF file; headings in the table of contents, and those tagged so, are marked as in Markdown.

    Filled fields follow the text of the page. Running headers, footers and page numbers are left
    out; scanned pages, and pages whose fonts do not say which characters they show, are noted. `ConfigError`
    for broken and encrypted files, and for files without text: such pages need OCR, or a vision model.
    """
    import pypdfium2

    with _pdfium_lock:
        try:
            pdf = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if "password" in str(error).lower():
                raise ConfigError("is encrypted: save it without its password") from error
            raise ConfigError(f"is not a valid PDF file: {error}") from error
        try:
            meter.add_pages(len(pdf))
            if pdf.get_formtype():
                pdf.init_forms()
            headings = listed_headings(pdf)
            property_title = pdf.get_metadata_value("Title")
            pages: list[PdfPage] = []
            for index in range(len(pdf)):
                page = _page(pdf, index, sees=meter.sees)
                meter.add_characters(sum(map(len, [page.text, *page.filled_fields])))
                pages.append(page)
        finally:
            pdf.close()
    pictures = [picture for page in pages for picture in page.pictures]
    shown_pictures = add_pictures(meter, without_logos(pictures, picture_place))
    printed = _printed_pages(pages)
    has_text = any(page.text.strip() for page in printed)
    unreadable = [number for number, page in enumerate(pages, start=1) if not page.is_readable]
    if not has_text and not shown_pictures:
        cause = f"{UNKNOWN_CHARACTERS};" if unreadable else "if its pages were scanned,"
        raise ConfigError(f"has no text: {cause} {SCANNED_ADVICE}")
    if not meter.sees:
        scanned = [number for number, page in enumerate(pages, start=1) if page.is_picture]
        if scanned:
            meter.add_note(f"no text on {_page_list(scanned)}: a picture; {SCANNED_ADVICE}")
        if unreadable:
            where = _page_list(unreadable)
            meter.add_note(f"no text on {where}: {UNKNOWN_CHARACTERS}; {SCANNED_ADVICE}")
    texts = [
        with_headings(text, headings.get(index, {}) | pages[index].headings)
        for index, text in enumerate(without_running_lines(printed))
    ]
    beginning = "\n".join(page.text for page in printed[:TITLE_PAGES])
    title = confirmed_title(property_title, beginning)
    return Document("", title=title, pages=tuple(texts), pictures=shown_pictures)


def _printed_pages(pages: Sequence[PdfPage]) -> list[PrintedPage]:
    """The repaired texts of the pages, filled fields below, and the lines in their margins."""
    words = whole_words(page.text for page in pages)
    printed = []
    for page in pages:
        text = repaired_lines(page.text, words)
        text = "\n".join(filter(None, [text, *page.filled_fields]))
        margin_lines = [
            line for margin in page.margins for line in repaired_lines(margin, words).split("\n")
        ]
        printed.append(PrintedPage(text, tuple(margin_lines)))
    return printed


def _pictures(page: Any, number: int, lines: Sequence[Box], *, has_text: bool) -> list[Picture]:
    """The pictures on a page, or the page itself if scanned or only drawn; empty for a blank page."""
    if has_text:
        return pictures_on_page(page, number, chart_areas(page, lines))
    first_object = next(page.get_objects(max_depth=1), None)
    if first_object is None:
        return []
    return [scanned_page(page, number)]


def _line_boxes(textpage: Any) -> list[Box]:
    return [Box(*textpage.get_rect(number)) for number in range(textpage.count_rects())]


def _page_list(numbers: Sequence[int]) -> str:
    """The numbers of pages, as "pages 3, 4, 9 and 12 more"."""
    noun = "page" if len(numbers) == 1 else "pages"
    listed = ", ".join(map(str, numbers[:LISTED_PAGES]))
    more_count = len(numbers) - LISTED_PAGES
    if more_count > 0:
        return f"{noun} {listed} and {more_count:,} more"
    return f"{noun} {listed}"


def _page(pdf: Any, index: int, *, sees: bool) -> PdfPage:
    """A page as the file has it; with pictures for who `sees`."""
    import pypdfium2.raw as pdfium

    page = pdf[index]
    textpage = page.get_textpage()
    try:
        lines = _line_boxes(textpage)
        filled_fields = dict.fromkeys(form_values(page))
        readable = is_readable(textpage)
        text = ""
        if readable:
            columns = _in_columns(lines, Box(*page.get_bbox()))
            text = "\n".join(_area_text(textpage, column) for column in columns)
            text = with_nested_lists(text, textpage)
        if not any(map(str.isalnum, text)):  # bullets beside drawn words
            text = ""
        has_text = bool(text or filled_fields)
        images = page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        return PdfPage(
            text=text,
            filled_fields=tuple(filled_fields),
            margins=tuple(_area_text(textpage, margin) for margin in _margins(lines)),
            headings=tagged_headings(page, textpage),
            is_readable=readable,
            is_picture=readable and not has_text and any(images),
            pictures=_pictures(page, index + 1, lines, has_text=has_text) if sees else [],
        )
    finally:
        textpage.close()
        page.close()


def _margins(lines: Sequence[Box]) -> list[Box]:
    """The areas of the outermost lines of a page, if divided by a gap from the body, and a point around each."""
    if not lines:
        return []
    least_gap = MARGIN_GAP * median(line.height for line in lines)
    downwards = sorted(lines, key=lambda line: -line.top)
    upwards = sorted(lines, key=lambda line: line.bottom)
    margins = []
    for ordered in (downwards, upwards):
        outer = [ordered[0]]
        for line in ordered[1 : MOST_MARGIN_LINES + 1]:
            margin = around(outer)
            gap = margin.bottom - line.top
            if ordered is upwards:
                gap = line.bottom - margin.top
            if gap > least_gap:
                margins.append(
                    Box(
                        left=margin.left - 1,
                        bottom=margin.bottom - 1,
                        right=margin.right + 1,
                        top=margin.top + 1,
                    )
                )
                break
            outer.append(line)
    return margins


def _area_text(textpage: Any, area: Box) -> str:
    text: str = textpage.get_text_bounded(area.left, area.bottom, area.right, area.top)
    if not has_arabic(text):
        return text
    return ordered_text(textpage, area.left, area.bottom, area.right, area.top)


def _in_columns(lines: Sequence[Box], area: Box) -> list[Box]:
    """The parts of an area in reading order: the area itself, unless the columns are interleaved.

    PDF files keep text in the order of drawing, mostly column by column. Where lines were drawn
    across columns, the lines as wide as all columns divide the area.
    """
    gutter = _gutter(lines)
    if gutter is None:
        return [area]
    parts: list[Box] = []
    by_height = sorted(lines, key=lambda line: -line.top)
    bottom = area.top
    for is_wide, group in groupby(by_height, key=lambda line: line.left < gutter < line.right):
        top = bottom
        bottom = min(line.bottom for line in group)
        if is_wide:
            parts.append(Box(area.left, bottom, area.right, top))
            continue
        left_column = Box(area.left, bottom, gutter, top)
        right_column = Box(gutter, bottom, area.right, top)
        for column in (left_column, right_column):
            column_lines = [line for line in lines if column.holds(line)]
            if column_lines:
                parts += _in_columns(column_lines, column)
    return parts


def _gutter(lines: Sequence[Box]) -> float | None:
    """The position of a gap between columns with alternating lines; None without such a gap."""
    if len(lines) < 2 * FEWEST_LINES:
        return None
    begin = min(line.left for line in lines)
    width = max(line.right for line in lines) - begin
    middle = begin + width / 2
    positions = [begin + width * percent / 100 for percent in range(25, 76)]
    middle_first = sorted(positions, key=lambda x: abs(x - middle))
    gap = min(middle_first, key=lambda x: sum(line.left < x < line.right for line in lines))
    left_widths = [line.width for line in lines if line.right <= gap]
    right_widths = [line.width for line in lines if line.left >= gap]
    shorter = min(len(left_widths), len(right_widths))
    crossing = len(lines) - len(left_widths) - len(right_widths)
    if shorter < FEWEST_LINES or crossing > CROSSING * len(lines):
        return None
    if min(median(left_widths), median(right_widths)) < COLUMN * width:
        return None
    jumps = sum(_jumps_over(gap, line, following) for line, following in pairwise(lines))
    return gap if 2 * jumps >= shorter else None


def _jumps_over(gap: float, line: Box, following: Box) -> bool:
    """Whether a line is followed by a line of the same height beyond the gap."""
    middle = (line.bottom + line.top) / 2
    return line.right <= gap <= following.left and following.bottom < middle < following.top
