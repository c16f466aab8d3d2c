"""Reads Rich Text Format by striprtf."""

import re

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import without_blank_runs
from lightrag_jsonl.text.patterns import pattern_of

HEADER = b"{\\rtf"
PICTURE = b"\\pict"
BROKEN_DATA = pattern_of(r"\\bin(?!\d)")  # without the length that it must have
CHARACTER_NUMBER = pattern_of(r"\\u-?(\d++)")
MOST_DIGITS = 5  # of the number of a character in 16 bits
UNKNOWN_CHARACTER = r"\u65533"
TITLE = pattern_of(r"\{\\info\b.*?\{\\title\s+([^{}\\]+)\}", re.DOTALL)


def read_rtf(data: bytes, meter: FileMeter) -> Document:
    """The text, a line for each paragraph; pictures are noted."""
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(HEADER):
        raise ConfigError("is not an RTF file")
    source = data.decode("latin-1")  # characters beyond ASCII are written as numbers
    if PICTURE in data:
        meter.add_note("pictures are left out")
    source = CHARACTER_NUMBER.sub(_possible_number, BROKEN_DATA.sub("", source))
    title = TITLE.search(source, 0, 20_000)
    words = rtf_to_text(source, errors="replace")
    # Characters beyond the first 65,536 are written as two halves.
    whole_words = words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = without_blank_runs(whole_words)
    meter.add_characters(len(text))
    return Document(text, title=title[1].strip() if title else None)


def _possible_number(match: re.Match[str]) -> str:
    """The number of a character; that of U+FFFD in place of a number beyond 16 bits."""
    digits = match[1]
    is_possible = len(digits) <= MOST_DIGITS and int(digits) < 1 << 16
    return match[0] if is_possible else UNKNOWN_CHARACTER
