"""Puts the letters of Arabic ligatures in PDF files in order.

PDFium turns a line from right to left around, and with the line the letters of each ligature:
"lam-alef" becomes "alef-lam", another word.
"""

import ctypes
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from lightrag_jsonl.text.patterns import pattern_of

ALEFS = "\u0622\u0623\u0625\u0627"
LAM = "\u0644"
_ARABIC = pattern_of("[\u0600-\u06ff\u0750-\u077f]")
_SHAPED = pattern_of("[\ufb50-\ufdff\ufe70-\ufefc]+")  # letters as they are drawn in a word


class PlacedLetter(NamedTuple):
    """A letter, the place of the glyph, and whether PDFium added the letter, as between words."""

    letter: str
    x: float
    y: float
    is_added: bool


def has_arabic(text: str) -> bool:
    """Whether there are Arabic letters in a text."""
    return bool(_ARABIC.search(text) or _SHAPED.search(text))


def plain_letters(text: str) -> str:
    """The text with plain letters in place of their shapes within words."""
    return _SHAPED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def ordered_text(textpage: Any, left: float, bottom: float, right: float, top: float) -> str:
    """The text in an area of a page, with the letters of each ligature in order."""
    letters = _letters_in(_placed_letters(textpage), left, bottom, right, top)
    glyphs: list[list[str]] = []
    for _, group in groupby(letters, key=lambda placed: (placed.x, placed.y, placed.is_added)):
        glyphs.append([placed.letter for placed in group])
    ligatures = [glyph for glyph in glyphs if len(glyph) > 1 and has_arabic("".join(glyph))]
    if not any(glyph[0] == LAM and glyph[1] in ALEFS for glyph in ligatures):
        for glyph in ligatures:
            glyph.reverse()
    return plain_letters("".join(map("".join, glyphs)))


def _placed_letters(textpage: Any) -> Iterator[PlacedLetter]:
    import pypdfium2.raw as pdfium

    x = ctypes.c_double()
    y = ctypes.c_double()
    for index in range(textpage.count_chars()):
        pdfium.FPDFText_GetCharOrigin(textpage.raw, index, x, y)
        code = pdfium.FPDFText_GetUnicode(textpage.raw, index)
        if 0 < code < 0x110000:
            is_added = pdfium.FPDFText_IsGenerated(textpage.raw, index) == 1
            yield PlacedLetter(letter=chr(code), x=x.value, y=y.value, is_added=is_added)


def _letters_in(
    letters: Iterator[PlacedLetter], left: float, bottom: float, right: float, top: float
) -> Iterator[PlacedLetter]:
    """The letters in an area, and the letters that PDFium added after them."""
    is_inside = False
    for placed in letters:
        if not placed.is_added:
            is_inside = left <= placed.x <= right and bottom <= placed.y <= top
        if is_inside:
            yield placed
