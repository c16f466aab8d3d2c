"""Marks the headings of PDF files: those in the table of contents, and those tagged as headings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from lightrag_jsonl.readers.markdown import markdown_heading
from lightrag_jsonl.readers.pdf_forms import written_text
from lightrag_jsonl.text.strings import single_spaced

LONGEST_NUMBER = 12  # characters before the title of a heading, as in "Chapter 12: "
MOST_HEADING_LINES = 3
MARKED_LINE = "\n"  # begins a line that is marked as a heading
DEEPEST_TAG = 40  # tags within each other; a damaged file may hold itself
# The levels of tags (ISO 32000-1, 14.8.4.3); "Title" is the title of the document.
HEADING_TAGS = {"Title": 1, "H": 1, "H1": 1, "H2": 2, "H3": 3, "H4": 4, "H5": 5, "H6": 6}

Levels: TypeAlias = dict[str, int]  # of headings, by their words


def listed_headings(pdf: Any) -> dict[int, Levels]:
    """The headings in the table of contents, by the index of the page."""
    levels_by_page: dict[int, Levels] = defaultdict(dict)
    for entry in pdf.get_toc(max_depth=6):
        target = entry.get_dest()
        index = target.get_index() if target else None
        title = single_spaced(entry.get_title())
        if index is not None and title:
            levels_by_page[index][title] = entry.level + 1
    return levels_by_page


def tagged_headings(page: Any, textpage: Any) -> Levels:
    """The headings of a page that the file itself calls headings, as word processors write them."""
    import pypdfium2.raw as pdfium

    tree = pdfium.FPDF_StructTree_GetForPage(page.raw)
    if not tree:
        return {}
    try:
        headings = [
            heading
            for index in range(pdfium.FPDF_StructTree_CountChildren(tree))
            for heading in _headings_in(pdfium.FPDF_StructTree_GetChildAtIndex(tree, index))
        ]
    finally:
        pdfium.FPDF_StructTree_Close(tree)
    if not headings:
        return {}
    texts = _texts_by_mark(page, textpage)
    levels: Levels = {}
    for level, marks in headings:
        title = single_spaced("".join([texts.get(mark, "") for mark in marks]))
        if title:
            levels[title] = level
    return levels


def with_headings(text: str, levels: Mapping[str, int]) -> str:
    """The text with marks before headings, also before a heading after a number or of several lines."""
    lines = text.split("\n")
    for title, level in levels.items():
        place = _place_of(title, lines)
        if place is not None:
            words = single_spaced(" ".join(lines[place]))
            lines[place] = [f"{MARKED_LINE}{markdown_heading(words, level)}\n"]
    return "\n".join(lines)


def _place_of(title: str, lines: list[str]) -> slice | None:
    """The first lines with nothing but the title, and perhaps a number before it in the same line."""
    letters = "".join(title.split())
    for begin, first_line in enumerate(lines):
        if first_line.startswith(MARKED_LINE):
            continue
        longest_number = min(LONGEST_NUMBER, len("".join(first_line.split())) - 1)
        joined = ""
        for end in range(begin, min(begin + MOST_HEADING_LINES, len(lines))):
            joined += "".join(lines[end].split())
            number_length = len(joined) - len(letters)
            if number_length > longest_number:
                break
            if joined.endswith(letters):
                return slice(begin, end + 1)
    return None


def _headings_in(element: Any, depth: int = 0) -> Iterator[tuple[int, list[int]]]:
    """The level of each heading in an element of the tree, and the marks of its text."""
    import pypdfium2.raw as pdfium

    if not element or depth > DEEPEST_TAG:
        return
    level = HEADING_TAGS.get(written_text(partial(pdfium.FPDF_StructElement_GetType, element)))
    if level is not None:
        yield level, [*_marks_in(element)]
        return
    for child in _children(element):
        yield from _headings_in(child, depth + 1)


def _marks_in(element: Any, depth: int = 0) -> Iterator[int]:
    """The marks of an element's own text, then of the text of its children."""
    import pypdfium2.raw as pdfium

    for index in range(pdfium.FPDF_StructElement_GetMarkedContentIdCount(element)):
        yield pdfium.FPDF_StructElement_GetMarkedContentIdAtIndex(element, index)
    if depth <= DEEPEST_TAG:
        for child in _children(element):
            yield from _marks_in(child, depth + 1)


def _children(element: Any) -> Iterator[Any]:
    import pypdfium2.raw as pdfium

    for index in range(pdfium.FPDF_StructElement_CountChildren(element)):
        child = pdfium.FPDF_StructElement_GetChildAtIndex(element, index)
        if child:
            yield child


def _texts_by_mark(page: Any, textpage: Any) -> dict[int, str]:
    """The marked texts of a page."""
    import pypdfium2.raw as pdfium

    texts: dict[int, str] = defaultdict(str)
    for text_object in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_TEXT], max_depth=3):
        mark = pdfium.FPDFPageObj_GetMarkedContentID(text_object.raw)
        if mark >= 0:
            write = partial(pdfium.FPDFTextObj_GetText, text_object.raw, textpage.raw)
            texts[mark] += written_text(write)
    return texts
