"""Reads PDF files: the text of each page, column by column."""

import re
import threading
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Picture
from lightrag_jsonl.readers.arabic import has_arabic, ordered_text
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_heading
from lightrag_jsonl.readers.pdf_charts import chart_areas
from lightrag_jsonl.readers.pdf_forms import form_values
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
from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.strings import single_spaced

FEWEST_LINES = 4  # in a column
COLUMN = 0.25  # of the width of the text: lines of a column are at least so wide, unlike cells
CROSSING = 0.3  # of the lines at most: titles and figures may be as wide as several columns
LONGEST_NUMBER = 12  # characters before the title of a heading, as in "Chapter 12: "
VERTICAL_LINE = 2  # characters of a line where PDFium reads vertical writing
FEWEST_VERTICAL = 8  # lines of vertical writing
FULL_LINE = 0.8  # of the longest line: a Chinese line of this length goes on in the next line

MARGIN_GAP = 1.2  # of a line's height, between a running line and the text
MOST_MARGIN_LINES = 6  # and their parts: title, number and date can stand apart in one line
LISTED_PAGES = 20  # in a note
TITLE_PAGES = 3  # at the beginning, where the title of a document stands

SCANNED_ADVICE = f"recognize its text (OCR) first, or {SEEING_ADVICE}"

_pdfium_lock = threading.Lock()  # PDFium is not made for threads


def read_pdf(data: bytes, meter: FileMeter) -> Document:
    """The pages of a PDF file; headings from the table of contents are marked as in Markdown.

    Filled fields follow the text of the page. Running headers, footers and page numbers are left
    out; scanned pages are noted. `ConfigError` for broken and encrypted files, and for files
    without text: scanned pages need OCR, or a vision model.
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
            titles = _titles(pdf)
            property_title = pdf.get_metadata_value("Title")
            printed: list[PrintedPage] = []
            scanned = []
            pictures: list[Picture] = []
            for index in range(len(pdf)):
                page, is_picture, page_pictures = _page(pdf, index, sees=meter.sees)
                meter.add_characters(len(page.text))
                printed.append(page)
                pictures += page_pictures
                if is_picture:
                    scanned.append(index + 1)
        finally:
            pdf.close()
    shown_pictures = add_pictures(meter, without_logos(pictures, picture_place))
    has_text = any(page.text.strip() for page in printed)
    if not has_text and not shown_pictures:
        raise ConfigError(f"has no text: if its pages were scanned, {SCANNED_ADVICE}")
    if scanned and not meter.sees:
        meter.add_note(f"no text on {_page_list(scanned)}: a picture; {SCANNED_ADVICE}")
    pages = [
        _with_headings(text, titles.get(index, ()))
        for index, text in enumerate(without_running_lines(printed))
    ]
    beginning = "\n".join(page.text for page in printed[:TITLE_PAGES])
    title = confirmed_title(property_title, beginning)
    return Document("", title=title, pages=tuple(pages), pictures=shown_pictures)


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


def _page(pdf: Any, index: int, *, sees: bool) -> tuple[PrintedPage, bool, list[Picture]]:
    """The text of a page with filled fields, whether the page is a picture without text, and, for who
    sees, its pictures.
    """
    import pypdfium2.raw as pdfium

    page = pdf[index]
    textpage = page.get_textpage()
    try:
        lines = _line_boxes(textpage)
        columns = _in_columns(lines, Box(*page.get_bbox()))
        column_texts = [_area_text(textpage, column) for column in columns]
        filled_fields = dict.fromkeys(form_values(page))
        text = _repaired("\n".join(column_texts))
        text = "\n".join(filter(None, [text, *filled_fields]))
        margin_lines: list[str] = []
        for margin in _margins(lines):
            margin_text = _repaired(_area_text(textpage, margin))
            margin_lines += margin_text.split("\n")
        images = page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        has_text = bool(text.strip())
        is_picture = not has_text and any(images)
        pictures: list[Picture] = []
        if sees:
            pictures = _pictures(page, index + 1, lines, has_text=has_text)
    finally:
        textpage.close()
        page.close()
    return PrintedPage(text, tuple(margin_lines)), is_picture, pictures


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


def _repaired(text: str) -> str:
    """The text with divided words and Chinese lines joined."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"(?<=[^\W\d_])[\x02\ufffe]\n?(?=[^\W\d_])", _hyphen, text)
    text = re.sub(r"[\x02\ufffe]", "-", text)
    lines = text.split("\n")
    lengths = [len(line) for line in lines]
    is_vertical = len(lines) >= FEWEST_VERTICAL and median(lengths) <= VERTICAL_LINE
    full_length = 0 if is_vertical else FULL_LINE * max(lengths)
    joined = lines[0]
    for previous, line in pairwise(lines):
        is_chinese = is_cjk(previous[-1:]) and is_cjk(line[:1])
        if not is_chinese or len(previous) < full_length:
            joined += "\n"
        joined += line
    return joined


def _hyphen(match: re.Match[str]) -> str:
    """Nothing between the halves of a word; a hyphen before a name, as in "Jean-Paul"."""
    return "-" if match.string[match.end()].isupper() else ""


def _titles(pdf: Any) -> dict[int, list[tuple[int, str]]]:
    """The levels and titles of the table of contents, by the index of the page."""
    titles: dict[int, list[tuple[int, str]]] = {}
    for entry in pdf.get_toc(max_depth=6):
        target = entry.get_dest()
        index = target.get_index() if target else None
        if index is not None:
            title = single_spaced(entry.get_title())
            titles.setdefault(index, []).append((entry.level + 1, title))
    return titles


def _with_headings(text: str, titles: Iterable[tuple[int, str]]) -> str:
    """The text with marks before titles, also before a title after a number."""
    lines = text.split("\n")
    for level, title in titles:
        if not title:
            continue
        for index, line in enumerate(lines):
            words = single_spaced(line)
            number = words.removesuffix(title)
            if number != words and len(number) <= LONGEST_NUMBER:
                lines[index] = f"\n{markdown_heading(words, level)}\n"
                break
    return "\n".join(lines)
