"""Reads PDF files: the text of each page, column by column."""

import re
import threading
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter

FEWEST_LINES = 4  # in a column
COLUMN = 0.25  # of the width of the text: lines of a column are at least so wide, unlike cells
CROSSING = 0.3  # of the lines at most: titles and figures may be as wide as several columns
LONGEST_NUMBER = 12  # characters before the title of a heading, as in "Chapter 12: "
FULL_LINE = 0.8  # of the longest line: a Chinese line of this length goes on in the next line

_pdfium_lock = threading.Lock()  # PDFium is not made for threads


def read_pdf(data: bytes, meter: FileMeter) -> Document:
    """The pages of a PDF file; headings in its table of contents are marked as in Markdown.

    `ConfigError` for broken and encrypted files, and for files without text: scanned pages need OCR.
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
            titles = _titles(pdf)
            pages = []
            for index in range(len(pdf)):
                text = _page(pdf, index, titles.get(index, ()))
                meter.add_characters(len(text))
                pages.append(text)
        finally:
            pdf.close()
    if not any(map(str.strip, pages)):
        raise ConfigError("has no text: if its pages were scanned, recognize the text (OCR) first")
    return Document("", pages=tuple(pages))


class Box(NamedTuple):
    """A rectangle on a page, in points from its lower left corner."""

    left: float
    bottom: float
    right: float
    top: float


def _page(pdf: Any, index: int, titles: Sequence[tuple[int, str]]) -> str:
    page = pdf[index]
    text = page.get_textpage()
    try:
        lines = [Box(*text.get_rect(number)) for number in range(text.count_rects())]
        columns = _in_columns(lines, Box(*page.get_bbox()))
        parts = [
            text.get_text_bounded(column.left, column.bottom, column.right, column.top)
            for column in columns
        ]
    finally:
        text.close()
        page.close()
    return _with_headings(_repaired("\n".join(parts)), titles)


def _in_columns(lines: Sequence[Box], area: Box) -> list[Box]:
    """The parts of an area in reading order: the area itself, unless its columns are interleaved.

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
        for column in (Box(area.left, bottom, gutter, top), Box(gutter, bottom, area.right, top)):
            column_lines = [line for line in lines if _holds(column, line)]
            if column_lines:
                parts += _in_columns(column_lines, column)
    return parts


def _gutter(lines: Sequence[Box]) -> float | None:
    """The position of a gap between columns with alternating lines; None without such a gap."""
    if len(lines) < 2 * FEWEST_LINES:
        return None
    begin = min(line.left for line in lines)
    width = max(line.right for line in lines) - begin
    positions = [begin + width * percent / 100 for percent in range(25, 76)]
    middle_first = sorted(positions, key=lambda x: abs(x - (begin + width / 2)))
    gap = min(middle_first, key=lambda x: sum(line.left < x < line.right for line in lines))
    left_widths = [line.right - line.left for line in lines if line.right <= gap]
    right_widths = [line.right - line.left for line in lines if line.left >= gap]
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


def _holds(area: Box, line: Box) -> bool:
    x = (line.left + line.right) / 2
    y = (line.bottom + line.top) / 2
    return area.left <= x <= area.right and area.bottom <= y <= area.top


def _repaired(text: str) -> str:
    """The text with divided words made one, and with Chinese lines joined."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"(?<=[^\W\d_])[\x02\ufffe]\n?(?=[^\W\d_])", _hyphen, text)
    text = re.sub(r"[\x02\ufffe]", "-", text)
    lines = text.split("\n")
    full_length = FULL_LINE * max(map(len, lines))
    joined = lines[0]
    for previous, line in pairwise(lines):
        is_going_on = len(previous) >= full_length and is_cjk(previous[-1:]) and is_cjk(line[:1])
        joined += line if is_going_on else "\n" + line
    return joined


def _hyphen(match: re.Match[str]) -> str:
    """Nothing between the halves of a word; a hyphen before a name, as in "Jean-Paul"."""
    return "-" if match.string[match.end()].isupper() else ""


def _titles(pdf: Any) -> dict[int, list[tuple[int, str]]]:
    """The levels and titles of the table of contents, by the index of their page."""
    titles: dict[int, list[tuple[int, str]]] = {}
    for entry in pdf.get_toc(max_depth=6):
        target = entry.get_dest()
        index = target.get_index() if target else None
        if index is not None:
            title = " ".join(entry.get_title().split())
            titles.setdefault(index, []).append((entry.level + 1, title))
    return titles


def _with_headings(text: str, titles: Iterable[tuple[int, str]]) -> str:
    """The text with marks before lines that are titles, or end with a title after a number."""
    lines = text.split("\n")
    for level, title in titles:
        for index, line in enumerate(lines):
            words = " ".join(line.split())
            if title and words.endswith(title) and len(words) <= len(title) + LONGEST_NUMBER:
                lines[index] = f"\n{'#' * level} {words}\n"
                break
    return "\n".join(lines)
