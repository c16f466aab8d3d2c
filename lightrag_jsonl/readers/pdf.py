"""Reads PDF files: the text of each page, column by column."""

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Picture
from lightrag_jsonl.readers.arabic import has_arabic, ordered_text
from lightrag_jsonl.readers.limits import FileMeter
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

FEWEST_LINES = 4  # in a column
COLUMN = 0.25  # of the width of the text: lines of a column are at least so wide, unlike cells
NARROW_COLUMN = 0.13  # likewise, of the full lines of three and more columns
LONG_LINES = 0.9  # of the lines from one edge are no longer than a long line of its column
FULL_COLUMN_LINE = 0.7  # of a long line of a narrow column: the median line of a text
FEWEST_FULL = 8  # lines of a narrow column
COLUMN_SHARE = 0.15  # of the lines, at the edge of a column; other lines are indented
MOSTLY = 0.6  # of the lines that begin at the edges of narrow columns; others are indented
EDGE = 4.0  # points within which lines begin at the same edge
TOUCH = 2.0  # points by which neighbouring columns may overlap
LEAST_GAP = 0.5  # of a line's height, between neighbouring columns
SHARE_OF_INDENT = 0.12  # of the width: farther from the left edge, lines are not only indented
HEIGHT = 8.0  # points of a strip of letters
APART = 0.1  # points between an area and the letters beside it
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
                page, is_picture = _page(pdf, index)
                meter.add_characters(len(page.text))
                printed.append(page)
                if is_picture:
                    scanned.append(index + 1)
                if meter.sees:
                    pictures += _pictures(pdf, index, has_text=bool(page.text.strip()))
        finally:
            pdf.close()
    shown_pictures = add_pictures(meter, without_logos(pictures, picture_place))
    if not (any(page.text.strip() for page in printed) or shown_pictures):
        raise ConfigError(f"has no text: if its pages were scanned, {SCANNED_ADVICE}")
    if scanned and not meter.sees:
        meter.add_note(f"no text on {_page_list(scanned)}: a picture; {SCANNED_ADVICE}")
    pages = [
        _with_headings(text, titles.get(index, ()))
        for index, text in enumerate(without_running_lines(printed))
    ]
    title = confirmed_title(property_title, "\n".join(page.text for page in printed[:TITLE_PAGES]))
    return Document("", title=title, pages=tuple(pages), pictures=shown_pictures)


def _pictures(pdf: Any, index: int, *, has_text: bool) -> list[Picture]:
    """The pictures on a page, or the page itself if scanned or only drawn; empty for a blank page."""
    page = pdf[index]
    try:
        if has_text:
            textpage = page.get_textpage()
            try:
                charts = chart_areas(page, _line_boxes(textpage))
            finally:
                textpage.close()
            return pictures_on_page(page, index + 1, charts)
        is_blank = not any(True for _ in page.get_objects(max_depth=1))
        return [] if is_blank else [scanned_page(page, index + 1)]
    finally:
        page.close()


def _line_boxes(textpage: Any) -> list[Box]:
    return [Box(*textpage.get_rect(number)) for number in range(textpage.count_rects())]


def _page_list(numbers: Sequence[int]) -> str:
    """The numbers of pages, as "pages 3, 4, 9 and 12 more"."""
    first = ", ".join(map(str, numbers[:LISTED_PAGES]))
    more_count = len(numbers) - LISTED_PAGES
    return f"page{'s' * (len(numbers) > 1)} {first}" + (
        f" and {more_count:,} more" if more_count > 0 else ""
    )


def _page(pdf: Any, index: int) -> tuple[PrintedPage, bool]:
    """The text of a page with filled fields, and whether the page is a picture without text."""
    import pypdfium2.raw as pdfium

    page = pdf[index]
    textpage = page.get_textpage()
    try:
        lines = _line_boxes(textpage)
        columns = _in_columns(_divided_lines(lines, textpage), Box(*page.get_bbox()))
        parts = [_area_text(textpage, column) for column in columns]
        text = _repaired("\n".join(parts))
        text = "\n".join(filter(None, [text, *dict.fromkeys(form_values(page))]))
        margin_lines = [
            line
            for box in _margins(lines)
            for line in _repaired(_area_text(textpage, box)).split("\n")
        ]
        images = page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        is_picture = not text.strip() and any(images)
    finally:
        textpage.close()
        page.close()
    return PrintedPage(text, tuple(margin_lines)), is_picture


def _margins(lines: Sequence[Box]) -> list[Box]:
    """The areas of the outermost lines of a page, if divided by a gap from the body, and a point around each."""
    if not lines:
        return []
    height = median(line.top - line.bottom for line in lines)
    downwards = sorted(lines, key=lambda line: -line.top)
    areas = []
    for ordered, sign in ((downwards, 1), (sorted(lines, key=lambda line: line.bottom), -1)):
        outer = [ordered[0]]
        for line in ordered[1:]:
            gap = min(margin.bottom for margin in outer) - line.top
            if sign < 0:
                gap = line.bottom - max(margin.top for margin in outer)
            if gap > MARGIN_GAP * height:
                area = around(outer)
                areas.append(Box(area.left - 1, area.bottom - 1, area.right + 1, area.top + 1))
                break
            outer.append(line)
            if len(outer) > MOST_MARGIN_LINES:
                break
    return areas


def _area_text(textpage: Any, area: Box) -> str:
    text: str = textpage.get_text_bounded(area.left, area.bottom, area.right, area.top)
    if not has_arabic(text):
        return text
    return ordered_text(textpage, area.left, area.bottom, area.right, area.top)


def _divided_lines(lines: Sequence[Box], textpage: Any) -> list[Box]:
    """The lines, divided at the edges of columns: PDFium joins neighbouring lines."""
    edges = _frequent_edges(lines)
    begin = min((line.left for line in lines), default=0.0)
    width = max((line.right for line in lines), default=0.0) - begin
    inner_edges = sorted(edge for edge in edges if edge > begin + SHARE_OF_INDENT * width)
    if not any(line.left + EDGE < edge < line.right for line in lines for edge in inner_edges):
        return list(lines)
    letters = _letters_by_height(textpage)
    divided: list[Box] = []
    for line in lines:
        crossed = [edge for edge in inner_edges if line.left + EDGE < edge < line.right]
        heights = range(int(line.bottom // HEIGHT), int(line.top // HEIGHT) + 1) if crossed else ()
        nearby = [letter for height in heights for letter in letters.get(height, ())]
        divided += _divided_at(line, crossed, nearby)
    return divided


def _letters_by_height(textpage: Any) -> dict[int, list[Box]]:
    """The visible letters of a page in strips of `HEIGHT`, by the middle of each letter."""
    letters: dict[int, list[Box]] = defaultdict(list)
    for index in range(textpage.count_chars()):
        letter = Box(*textpage.get_charbox(index))
        if letter.right > letter.left:
            letters[int((letter.bottom + letter.top) / 2 // HEIGHT)].append(letter)
    return letters


def _divided_at(line: Box, edges: Iterable[float], letters: Iterable[Box]) -> list[Box]:
    """The parts of a line, divided where a gap between letters ends at an edge."""
    own_letters = sorted(letter for letter in letters if line.holds(letter))
    parts: list[Box] = []
    remainder = line
    for letter, following in pairwise(own_letters):
        is_gap = following.left - letter.right > LEAST_GAP * (line.top - line.bottom)
        if is_gap and any(abs(following.left - edge) <= EDGE for edge in edges):
            parts.append(Box(remainder.left, line.bottom, letter.right, line.top))
            remainder = Box(following.left, line.bottom, line.right, line.top)
    return [*parts, remainder]


def _frequent_edges(lines: Iterable[Box]) -> list[float]:
    """The positions where many lines begin."""
    counts = Counter(round(line.left) for line in lines)
    return [float(edge) for edge, count in counts.items() if count >= FEWEST_LINES]


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
    for is_wide, group in groupby(by_height, key=lambda line: _crosses(line, gutter)):
        group_lines = list(group)
        top = bottom
        bottom = min(line.bottom for line in group_lines)
        part = Box(area.left, bottom, area.right, top)
        if is_wide:
            parts.append(part)
            continue
        for column in _halves(part, group_lines, gutter):
            column_lines = [line for line in lines if column.holds(line)]
            if column_lines:
                parts += _in_columns(column_lines, column)
    return parts


def _crosses(line: Box, x: float) -> bool:
    return line.left < x - TOUCH and line.right > x + TOUCH


def _halves(area: Box, lines: Sequence[Box], gutter: float) -> tuple[Box, Box]:
    """The areas left and right of a gap; PDFium counts every letter touched by an area."""
    right_edge = max((line.right for line in lines if line.right <= gutter + TOUCH), default=gutter)
    left_edge = min((line.left for line in lines if line.left >= gutter - TOUCH), default=gutter)
    return (
        Box(area.left, area.bottom, min(gutter, left_edge - APART), area.top),
        Box(max(gutter, right_edge + APART), area.bottom, area.right, area.top),
    )


def _gutter(lines: Sequence[Box]) -> float | None:
    """The position of a gap between columns with alternating lines; None without such a gap."""
    if len(lines) < 2 * FEWEST_LINES:
        return None
    begin = min(line.left for line in lines)
    width = max(line.right for line in lines) - begin
    gap = min(
        _gap_candidates(lines, begin, width),
        key=lambda x: sum(_crosses(line, x) for line in lines),
    )
    left_lines = [line for line in lines if line.right <= gap + TOUCH]
    right_lines = [line for line in lines if line.left >= gap - TOUCH]
    shorter = min(left_lines, right_lines, key=len)
    crossing = len(lines) - len(left_lines) - len(right_lines)
    if len(shorter) < FEWEST_LINES or crossing > CROSSING * len(lines):
        return None
    if not (_are_columns(left_lines, width) and _are_columns(right_lines, width)):
        return None
    jumps = sum(_jumps_over(gap, line, following) for line, following in pairwise(lines))
    rows = len({round(line.bottom) for line in shorter})
    return gap if 2 * jumps >= rows else None


def _gap_candidates(lines: Sequence[Box], begin: float, width: float) -> list[float]:
    """Possible positions of a gap, the nearest to the middle first: steps of a percent, and the
    left edges of many lines, since neighbouring columns can touch.
    """
    positions = _frequent_edges(lines)
    positions += [begin + width * percent / 100 for percent in range(15, 86)]
    inside = [x for x in positions if begin + 0.1 * width < x < begin + 0.9 * width]
    return sorted(inside, key=lambda x: abs(x - (begin + width / 2)))


def _are_columns(lines: Sequence[Box], width: float) -> bool:
    """Whether lines belong to columns of a text: wide lines, or full lines of one length.

    The cells of a table are narrower, or of many lengths.
    """
    if median(line.right - line.left for line in lines) >= COLUMN * width:
        return True
    lengths_by_edge: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        lengths_by_edge[round(line.left / EDGE)].append(line.right - line.left)
    fewest = max(FEWEST_FULL, COLUMN_SHARE * len(lines))
    columns = [lengths for lengths in lengths_by_edge.values() if len(lengths) >= fewest]
    are_full = all(_is_full_column(lengths, width) for lengths in columns)
    return are_full and sum(map(len, columns)) >= MOSTLY * len(lines)


def _is_full_column(lengths: Sequence[float], width: float) -> bool:
    """Whether most lines from an edge are about as long as the long lines; titles may be longer."""
    longest = sorted(lengths)[int(LONG_LINES * len(lengths))]
    return median(lengths) >= max(FULL_COLUMN_LINE * longest, NARROW_COLUMN * width)


def _jumps_over(gap: float, line: Box, following: Box) -> bool:
    """Whether a line is followed by a line of the same height beyond the gap."""
    middle = (line.bottom + line.top) / 2
    is_beyond = line.right <= gap + TOUCH and following.left >= gap - TOUCH
    return is_beyond and following.bottom < middle < following.top


def _repaired(text: str) -> str:
    """The text with divided words and Chinese lines joined."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"(?<=[^\W\d_])[\x02\ufffe]\n?(?=[^\W\d_])", _hyphen, text)
    text = re.sub(r"[\x02\ufffe]", "-", text)
    lines = text.split("\n")
    is_vertical = len(lines) >= FEWEST_VERTICAL and median(map(len, lines)) <= VERTICAL_LINE
    full_length = 0 if is_vertical else FULL_LINE * max(map(len, lines))
    joined = lines[0]
    for previous, line in pairwise(lines):
        is_going_on = len(previous) >= full_length and is_cjk(previous[-1:]) and is_cjk(line[:1])
        joined += line if is_going_on else "\n" + line
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
            title = " ".join(entry.get_title().split())
            titles.setdefault(index, []).append((entry.level + 1, title))
    return titles


def _with_headings(text: str, titles: Iterable[tuple[int, str]]) -> str:
    """The text with marks before titles, also before a title after a number."""
    lines = text.split("\n")
    for level, title in titles:
        for index, line in enumerate(lines):
            words = " ".join(line.split())
            if title and words.endswith(title) and len(words) <= len(title) + LONGEST_NUMBER:
                lines[index] = f"\n{'#' * level} {words}\n"
                break
    return "\n".join(lines)
