"""Finds the headings of a text, and the headings, also of the columns of a table, above each position."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lightrag_jsonl.core.types import HEADING_SEPARATOR, Page
from lightrag_jsonl.text.markup import without_marks
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import cut

LONGEST_HEADING = 80  # characters of a line that begins a chapter, and of any stored heading
LONGEST_TABLE_HEADER = 120  # characters; a longer one is cut
LONGEST_BARE_TITLE = 20  # characters of a line whose title follows a Chinese number without a space
LEVELS = {  # below those of Markdown
    **dict.fromkeys(("book", "part", "volume", *"卷部篇集編编"), 7),
    **dict.fromkeys(("chapter", "stave", "canto", "act", *"章回幕"), 8),
    **dict.fromkeys(("section", "scene", *"节節"), 9),
}
HEADING_LINE = pattern_of(
    r"""^[^\S\n]*(?:
        (?P<fence>`{3,}|~{3,}).*
      | (?P<marks>\#{1,6})[^\S\n]+(?P<title>\S.*?)(?:[^\S\n]\#+)?\s*
      | (?P<english>(?i:book|part|volume|chapter|stave|canto|act|section|scene))[^\S\n]+
            (?:\d+|(?:[Tt]he[ ])?[A-Za-z]+(?:-[A-Za-z]+)?)\b(?P<after>.*)
      | 第[〇○零一二三四五六七八九十百千两\d]+(?P<unit>[卷部篇集編编章回幕节節])(?P<rest>.*)
    )$""",
    re.MULTILINE | re.VERBOSE,
)
TABLE = pattern_of(  # at least three rows, each on a line between bars, as readers write tables
    r"^[^\S\n]*\|(?P<header>.*)\|[^\S\n]*(?P<rows>(?:\n[^\S\n]*\|.*){2,})", re.MULTILINE
)
NO_TITLE = pattern_of(  # a sentence, or a line in a list of chapters, with a page number
    r"[。！？；!?]$|[，,。].*[，,。]|[a-z]\.$|(?:(?<!\s)\s{2,}|(?<![.…·])[.…·]{2,}\s*)\d+$"
)


class Heading(NamedTuple):
    """A heading that begins at `start`, in characters; headings of lower levels stand above it."""

    start: int
    level: int
    title: str


class TablePlace(NamedTuple):
    """The rows of a table below its header, from `start` to `end`, in characters of a page."""

    page: int
    start: int
    end: int
    header: str


class Outline:
    """The headings of a document's pages, and the headers of the tables there."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._tables: list[TablePlace] = []
        self._places = [(0, 0)]  # number of the page, and start of a heading on the page
        self._paths = [""]  # of the headings in force from each place on
        titles_by_level: dict[int, str] = {}
        for page in pages:
            self._tables += find_tables(page)
            for heading in find_headings(page.text):
                titles_by_level = {
                    level: title
                    for level, title in titles_by_level.items()
                    if level < heading.level
                }
                titles_by_level[heading.level] = heading.title
                self._places.append((page.number, heading.start))
                self._paths.append(HEADING_SEPARATOR.join(titles_by_level.values()))

    def path_at(self, page_number: int, position: int) -> str:
        """The headings above a position, as "Report › Costs"; in the rows of a table also the header of
        the table, as "Report › Costs › Item | Price".
        """
        path = self._paths[bisect_right(self._places, (page_number, position)) - 1]
        place = (page_number, position)
        table = bisect_right(self._tables, place, key=lambda table: table[:2]) - 1
        if table >= 0:
            page, _, end, header = self._tables[table]
            if page == page_number and position < end:
                return HEADING_SEPARATOR.join(filter(None, (path, header)))
        return path


def find_tables(page: Page) -> Iterator[TablePlace]:
    """The tables of a page in order: where the rows below the header begin and end, and the header."""
    for match in TABLE.finditer(page.text):
        cells = [" ".join(cell.split()) for cell in match["header"].split("|")]
        header = " | ".join(filter(None, cells))
        if header.strip("|-: "):
            cut_header = cut(header, LONGEST_TABLE_HEADER)
            yield TablePlace(page.number, match.start("rows"), match.end("rows"), cut_header)


def find_headings(text: str) -> Iterator[Heading]:
    """Headings in order: `# …` outside code fences, "CHAPTER I", "Stave One", 第一回, 第三章 …"""
    fence = ""
    for match in HEADING_LINE.finditer(text):
        line = match[0].strip()
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        if match["fence"]:
            fence = _fence_after(fence, match["fence"])
        elif fence:
            continue
        elif match["marks"]:
            title = without_marks(match["title"])[:LONGEST_HEADING].strip()
            yield Heading(start, len(match["marks"]), title)
        elif _begins_chapter(match, text, line):
            level = LEVELS[(match["unit"] or match["english"]).casefold()]
            yield Heading(start, level, " ".join(line.split()))


def _fence_after(open_fence: str, fence: str) -> str:
    """The code fence in force after a line with a fence; "" if that line closes the open one."""
    if not open_fence:
        return fence
    return "" if fence.startswith(open_fence) else open_fence


def _begins_chapter(match: re.Match[str], text: str, line: str) -> bool:
    """Whether a number, perhaps with a title, stands apart; in English after a blank line."""
    if len(line) > LONGEST_HEADING or NO_TITLE.search(line):
        return False
    if match["unit"]:
        return _is_chinese_heading(match["unit"], match["rest"].rstrip(), line)
    title = match["after"].strip()
    is_apart = not title or title[0] in ".:：—–-" or line.isupper()
    return is_apart and line[0].isupper() and _follows_blank_line(match, text)


def _is_chinese_heading(unit: str, title: str, line: str) -> bool:
    is_bare_title = unit in "章篇编編" and len(line) <= LONGEST_BARE_TITLE
    return not title or is_bare_title or title[0] in ":：、.．" or title[0].isspace()


def _follows_blank_line(match: re.Match[str], text: str) -> bool:
    line_end = max(match.start() - 1, 0)
    line_start = text.rfind("\n", 0, line_end) + 1
    return not text[line_start : match.start()].strip()
