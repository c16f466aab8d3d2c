"""What can be known of the text of a PDF file: the shown characters, the divided words, and the depth of points in a list."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from math import inf
from statistics import median
from typing import Any

from lightrag_jsonl.readers.markdown import INDENT
from lightrag_jsonl.readers.pictures import Box
from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import BULLETS

VERTICAL_LINE = 2  # characters of a line where PDFium reads vertical writing
FEWEST_VERTICAL = 8  # lines of vertical writing
FULL_LINE = 0.8  # of the longest line: a Chinese line of this length goes on in the next line

CHARACTERS_LOOKED_AT = 200  # of a page, at equal distances
# What a font without names of characters still shows as text: the codes of ASCII and Latin-1, as in old files of TeX.
WRITTEN_CODES = range(0x20, 0x100)

SAME_DEPTH = 3.0  # points, by which the marks of one list may stand apart
DEEPEST_STEP = (
    72.0  # points from a mark to those of a list below it; what is further right is beside it
)

_MARK_OF_POINT = pattern_of(
    rf"^[^\S\n]*(?P<mark>[-–*·](?=\s)|[{BULLETS}])(?=[^\n]*\w)", re.MULTILINE
)
_DIVIDED_WORD = pattern_of(
    r"(?<![^\W\d_])(?P<before>[^\W\d_]++)[\x02\ufffe]\n?(?P<after>[^\W\d_]++)"
)
_HYPHENATED_WORD = pattern_of(r"[^\W\d_]++(?:-[^\W\d_]++)*+")
_HYPHEN = pattern_of(r"[\x02\ufffe]")


def is_readable(textpage: Any) -> bool:
    """Whether at least half of the characters of a page are no mere numbers of glyphs.

    PDFium tells which characters the fonts do not name, and gives their codes in place of these. Pages of formulas
    have up to a fifth of such numbers (brackets, arrows) beside words that can be read.
    """
    import pypdfium2.raw as pdfium

    count = textpage.count_chars()
    drawn_count = 0
    glyph_count = 0
    for index in range(0, count, max(1, count // CHARACTERS_LOOKED_AT)):
        code = pdfium.FPDFText_GetUnicode(textpage.raw, index)
        if code == ord(" ") or pdfium.FPDFText_IsGenerated(textpage.raw, index) == 1:
            continue
        drawn_count += 1
        is_unnamed = pdfium.FPDFText_HasUnicodeMapError(textpage.raw, index) == 1
        glyph_count += is_unnamed and code not in WRITTEN_CODES
    return 2 * glyph_count <= drawn_count


def with_nested_lists(text: str, textpage: Any) -> str:
    """The text of a page, with the points of lists indented as on the page."""
    marks = list(_MARK_OF_POINT.finditer(text))
    places = _places_of_marks(textpage) if len(marks) > 1 else []
    marks_on_page = [mark for mark, _ in places]
    if [mark["mark"] for mark in marks] != marks_on_page:  # columns have another order
        return text
    parts: list[str] = []
    end = 0
    for mark, depth in zip(marks, _depths([place for _, place in places]), strict=True):
        parts += [text[end : mark.start()], INDENT * depth, mark["mark"]]
        end = mark.end()
    return "".join([*parts, text[end:]])


def _places_of_marks(textpage: Any) -> list[tuple[str, Box]]:
    """The marks of points in the order of the text, and their places on the page."""
    import pypdfium2.raw as pdfium

    places = []
    for mark in _MARK_OF_POINT.finditer(textpage.get_text_range()):
        index = pdfium.FPDFText_GetCharIndexFromTextIndex(textpage.raw, mark.start("mark"))
        if pdfium.FPDFText_GetUnicode(textpage.raw, index) == ord(mark["mark"]):
            places.append((mark["mark"], Box(*textpage.get_charbox(index))))
    return places


def _depths(places: Iterable[Box]) -> Iterator[int]:
    """In how many lists each mark stands beside the outermost: below a mark, and a little further right."""
    lefts: list[float] = []  # of those lists, the outermost first
    lowest = inf
    for place in places:
        is_beside = place.bottom > lowest or (lefts and place.left > lefts[-1] + DEEPEST_STEP)
        if is_beside:
            lefts.clear()
        while lefts and place.left < lefts[-1] - SAME_DEPTH:
            lefts.pop()
        if not lefts or place.left > lefts[-1] + SAME_DEPTH:
            lefts.append(place.left)
        lowest = place.bottom
        yield len(lefts) - 1


def whole_words(texts: Iterable[str]) -> frozenset[str]:
    """The words of a file in small letters, without those that a line divides."""
    undivided = [_DIVIDED_WORD.sub(" ", text).lower() for text in texts]
    return frozenset(word for text in undivided for word in _HYPHENATED_WORD.findall(text))


def repaired_lines(text: str, words: frozenset[str]) -> str:
    """The text with divided words and Chinese lines joined; `words` are the undivided ones of the file."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _DIVIDED_WORD.sub(partial(_joined_word, words=words), text)
    text = _HYPHEN.sub("-", text)
    lines = text.split("\n")
    lengths = [len(line.lstrip()) for line in lines]
    is_vertical = len(lines) >= FEWEST_VERTICAL and median(lengths) <= VERTICAL_LINE
    full_length = 0 if is_vertical else FULL_LINE * max(lengths)
    joined = lines[0]
    for (previous, line), length in zip(pairwise(lines), lengths, strict=False):
        is_chinese = is_cjk(previous[-1:]) and is_cjk(line[:1])
        if not is_chinese or length < full_length:
            joined += "\n"
        joined += line
    return joined


def _joined_word(match: re.Match[str], words: frozenset[str]) -> str:
    """The word that a line divides: with its hyphen before a name ("Jean-Paul"), or if the file has it so
    elsewhere, or else has both halves as words and not the whole.
    """
    before = match["before"]
    after = match["after"]
    whole = before + after
    hyphenated = f"{before}-{after}"
    are_words = {before.lower(), after.lower()} <= words
    is_compound = whole.lower() not in words and (hyphenated.lower() in words or are_words)
    return hyphenated if after[0].isupper() or is_compound else whole
