"""Marks the headings of PDF files: those in the table of contents, and those tagged as headings."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from lightrag_jsonl.readers.markdown import markdown_heading
from lightrag_jsonl.readers.pdf_forms import written_text
from lightrag_jsonl.text.strings import single_spaced

LONGEST_NUMBER = 12  # characters before the title of a heading, as in "Chapter 12: "
MOST_HEADING_LINES = 3
MARKED_LINE = "\n"  # stands for a line that is marked as a heading, in no line
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
        tops = [
            pdfium.FPDF_StructTree_GetChildAtIndex(tree, index)
            for index in range(pdfium.FPDF_StructTree_CountChildren(tree))
        ]
        headings = [*_headings_in(_elements(tops))]
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
    letters_of_lines = ["".join(line.split()) for line in lines]
    for title, level in levels.items():
        letters = "".join(title.split())
        place = _place_of(letters, letters_of_lines, longest_number=0)
        if place is None:
            place = _place_of(letters, letters_of_lines, longest_number=LONGEST_NUMBER)
        if place is not None:
            words = single_spaced(" ".join(lines[place]))
            lines[place] = [f"\n{markdown_heading(words, level)}\n"]
            letters_of_lines[place] = [MARKED_LINE]
    return "\n".join(lines)


def _place_of(title: str, lines: Sequence[str], *, longest_number: int) -> slice | None:
    """The first lines with nothing but the title, and perhaps a number before it in the same line; all without
    spaces.
    """
    for begin, first_line in enumerate(lines):
        joined = ""
        for end in range(begin, min(begin + MOST_HEADING_LINES, len(lines))):
            joined += lines[end]
            number_length = len(joined) - len(title)
            if number_length > longest_number or number_length >= len(first_line):
                break
            if joined.endswith(title):
                return slice(begin, end + 1)
    return None


def _headings_in(elements: Iterable[Any]) -> Iterator[tuple[int, list[int]]]:
    """The level of each heading among elements of the tree, and the marks of its text."""
    import pypdfium2.raw as pdfium

    for element in elements:
        tag = written_text(partial(pdfium.FPDF_StructElement_GetType, element))
        if tag in HEADING_TAGS:
            marks = [
                pdfium.FPDF_StructElement_GetMarkedContentIdAtIndex(part, index)
                for part in _elements([element])
                for index in range(pdfium.FPDF_StructElement_GetMarkedContentIdCount(part))
            ]
            yield HEADING_TAGS[tag], marks


def _elements(tops: Sequence[Any]) -> Iterator[Any]:
    """Elements of the tree and those within, in the order of the text."""
    import pypdfium2.raw as pdfium

    waiting = [*reversed(tops)]
    while waiting:
        element = waiting.pop()
        if not element:
            continue
        yield element
        last = pdfium.FPDF_StructElement_CountChildren(element) - 1
        for index in range(last, -1, -1):
            waiting.append(pdfium.FPDF_StructElement_GetChildAtIndex(element, index))


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
