"""Finds the title of a file, in a heading or in the file's properties."""

import re

from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

BEGINNING = 4_000  # characters, in which a document says what it is called
FEWEST_TITLE_WORDS = 2
FEWEST_TITLE_CHARACTERS = 4  # characters
LONGEST_TITLE = 200  # characters

_MARKDOWN_HEADING = pattern_of(r"^(#{1,6})[ \t]+(\S.*?)[ \t]*#*$", re.MULTILINE)
_FENCED = pattern_of(
    r"^[ \t]*(`{3,}(?!`)|~{3,}(?!~))[^\n]*\n.*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE
)
_LINK = pattern_of(r"!?\[([^\[\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])")
_EMPHASIS = pattern_of(r"[*`]+|(?<!\w)_+|_+(?!\w)|\{#[^}\n]*\}|<[^<>\n]*>")
_WORDS = pattern_of(r"\w+")


def heading_title(text: str) -> str | None:
    """The first heading of a text of Markdown, if no other heading has so high a level; or None."""
    headings = _MARKDOWN_HEADING.findall(_FENCED.sub("", text))
    levels = [len(marks) for marks, _ in headings]
    if not levels or levels[0] != 1 or levels.count(1) > 1:
        return None
    _, heading = headings[0]
    title = _EMPHASIS.sub("", _LINK.sub(r"\1", heading))
    return single_spaced(title)[:LONGEST_TITLE] or None


def confirmed_title(title: str | None, text: str) -> str | None:
    """The title in a file's properties, if the beginning of the text has the same words; or None.

    Programs write names of files and templates into the properties, such as "Microsoft Word -
    draft3.doc".
    """
    title = single_spaced(title)
    words = _WORDS.findall(title.casefold())
    has_words = len(words) >= FEWEST_TITLE_WORDS
    has_characters = sum(map(is_cjk, title)) >= FEWEST_TITLE_CHARACTERS
    if not (has_words or has_characters) or len(title) > LONGEST_TITLE:
        return None
    beginning = "".join(_WORDS.findall(text[:BEGINNING].casefold()))
    return title if "".join(words) in beginning else None
