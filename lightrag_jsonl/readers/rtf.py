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
TITLE = pattern_of(r"\{\\info\b.*?\{\\title\s+([^{}\\]+)\}", re.DOTALL)


def read_rtf(data: bytes, meter: FileMeter) -> Document:
    """The text, a line for each paragraph; pictures are noted."""
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(HEADER):
        raise ConfigError("is not an RTF file")
    source = data.decode("latin-1")  # characters beyond ASCII are written as numbers
    if PICTURE in data:
        meter.add_note("pictures are left out")
    source = BROKEN_DATA.sub("", source)
    title = TITLE.search(source, 0, 20_000)
    text = without_blank_runs(rtf_to_text(source, errors="replace"))
    meter.add_characters(len(text))
    return Document(text, title=title[1].strip() if title else None)
