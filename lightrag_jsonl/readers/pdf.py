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
LONGEST_TITLE = 12  # characters: what a heading may have before its title in the table of contents
FULL = 0.8  # of the longest line: a Chinese line so long goes on in the next one

_one_at_a_time = threading.Lock()  # PDFium is not made for threads


def read_pdf(data: bytes, meter: FileMeter) -> Document:
    """The pages of a PDF file; headings in its table of contents are marked as in Markdown.

    `ConfigError` if it is broken or encrypted, or if it has no text: pages that were scanned need
    OCR first.
    """
    import pypdfium2

    with _one_at_a_time:
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
        found = [text.get_text_bounded(*box) for box in columns]
    finally:
        text.close()
        page.close()
    return _with_headings(_repaired("\n".join(found)), titles)


def _in_columns(lines: Sequence[Box], area: Box) -> list[Box]:
    """The parts of an area in reading order: the area itself, unless its columns are interleaved.

    PDF files keep text in the order in which it was drawn, mostly column by column. Where it was
    drawn across columns, the area is divided between the lines that are as wide as all columns.
    """
    gutter = _gutter(lines)
    if gutter is None:
        return [area]
    found: list[Box] = []
    by_height = sorted(lines, key=lambda line: -line.top)
    bottom = area.top
    for is_wide, group in groupby(by_height, key=lambda line: line.left < gutter < line.right):
        top, bottom = bottom, min(line.bottom for line in group)
        if is_wide:
            found.append(Box(area.left, bottom, area.right, top))
        else:
            left = Box(area.left, bottom, gutter, top)
            right = Box(gutter, bottom, area.right, top)
            for part in (left, right):
                inside = [line for line in lines if _holds(part, line)]
                found += _in_columns(inside, part) if inside else ()
    return found


def _gutter(lines: Sequence[Box]) -> float | None:
    """Where an area has a gap between columns whose lines alternate; None if it has none."""
    if len(lines) < 2 * FEWEST_LINES:
        return None
    begin, end = min(line.left for line in lines), max(line.right for line in lines)
    places = [begin + (end - begin) * percent / 100 for percent in range(25, 76)]
    middle_first = sorted(places, key=lambda x: abs(x - (begin + end) / 2))
    x = min(middle_first, key=lambda x: sum(one.left < x < one.right for one in lines))
    left = [one.right - one.left for one in lines if one.right <= x]
    right = [one.right - one.left for one in lines if one.left >= x]
    few = min(len(left), len(right))
    if few < FEWEST_LINES or len(lines) - len(left) - len(right) > CROSSING * len(lines):
        return None
    if min(median(left), median(right)) < COLUMN * (end - begin):
        return None
    jumps = sum(
        one.right <= x <= other.left and other.bottom < (one.bottom + one.top) / 2 < other.top
        for one, other in pairwise(lines)
    )
    return x if 2 * jumps >= few else None


def _holds(area: Box, line: Box) -> bool:
    x, y = (line.left + line.right) / 2, (line.bottom + line.top) / 2
    return area.left <= x <= area.right and area.bottom <= y <= area.top


def _repaired(text: str) -> str:
    """Words that were divided at the end of a line made one, and Chinese lines joined."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"(?<=[^\W\d_])[\x02\ufffe]\n?(?=[^\W\d_])", _hyphen, text)
    text = re.sub(r"[\x02\ufffe]", "-", text)
    lines = text.split("\n")
    full = FULL * max(map(len, lines))
    joined = lines[0]
    for before, line in pairwise(lines):
        is_going_on = len(before) >= full and is_cjk(before[-1:]) and is_cjk(line[:1])
        joined += line if is_going_on else "\n" + line
    return joined


def _hyphen(found: re.Match[str]) -> str:
    """Nothing between the halves of a word; a hyphen before a name, as in "Jean-Paul"."""
    return "-" if found.string[found.end()].isupper() else ""


def _titles(pdf: Any) -> dict[int, list[tuple[int, str]]]:
    """The entries of the table of contents, by the index of their page, with their levels."""
    found: dict[int, list[tuple[int, str]]] = {}
    for entry in pdf.get_toc(max_depth=6):
        target = entry.get_dest()
        index = target.get_index() if target else None
        if index is not None:
            title = " ".join(entry.get_title().split())
            found.setdefault(index, []).append((entry.level + 1, title))
    return found


def _with_headings(text: str, titles: Iterable[tuple[int, str]]) -> str:
    """The text with the lines marked that are titles, or end with one after a number."""
    lines = text.split("\n")
    for level, title in titles:
        for index, line in enumerate(lines):
            words = " ".join(line.split())
            if title and words.endswith(title) and len(words) <= len(title) + LONGEST_TITLE:
                lines[index] = f"\n{'#' * level} {words}\n"
                break
    return "\n".join(lines)
