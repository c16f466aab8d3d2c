"""Removes the running headers, footers and page numbers of a paged text."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

FEWEST_PAGES = 3  # with the same line
DENSITY = 0.45  # of the pages from the first to the last such line; on facing pages they alternate
# beside a page number: "Patient 12" is the name of a page, "The annual report 12" is not
FEWEST_WORDS = 3

_PAGE_NUMBER = pattern_of(r"\d{1,5}")
_PAGE_WORDS = pattern_of(
    r"(?i)\b(?:pages?|pp?|pg|seite|s|página|pagina|pág|strona|str|sida|side|sivu|стр|страница|of|von|de|"
    r"di|sur|av|z|из)\b\.?|[第页頁共/|–—\-·•.\s()\[\]]|ページ|쪽"
)
_SIDE_NUMBER = pattern_of(
    r"(?:(?P<before>\d{1,5})[\s|·•–—-]++)?(?P<text>\D.*?)(?:(?<![\s|·•–—-])[\s|·•–—-]+(?P<after>\d{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class PrintedPage:
    """The text of a page, and the lines in the margins, apart from the body."""

    text: str
    margin_lines: tuple[str, ...] = ()


def without_running_lines(pages: Sequence[PrintedPage]) -> list[str]:
    """The texts of the pages without page numbers, and without lines repeated in the margins.

    The first of equal lines stays, to keep the title of a report.
    """
    lines_by_page = [page.text.split("\n") for page in pages]
    margins = [
        _places(lines, page.margin_lines) for lines, page in zip(lines_by_page, pages, strict=True)
    ]
    removed: dict[int, set[int]] = defaultdict(set)
    for places in _repeated(margins):
        for page_index, line in places[1:]:
            removed[page_index].add(line)
    for page_index, line in _page_numbers(margins):
        removed[page_index].add(line)
    texts = []
    for page_index, lines in enumerate(lines_by_page):
        visible = [text for line, text in enumerate(lines) if line not in removed[page_index]]
        text = "\n".join(visible)
        if not text.strip():
            text = pages[page_index].text
        texts.append(text)
    return texts


def _places(lines: Sequence[str], margin_lines: Iterable[str]) -> dict[int, str]:
    """The lines in the margins of a page, by index."""
    indices = {"".join(text.split()): index for index, text in enumerate(lines)}
    places: dict[int, str] = {}
    for text in margin_lines:
        letters = "".join(text.split())
        if letters and letters in indices:
            places[indices[letters]] = single_spaced(text)
    return places


def _repeated(margins: Sequence[dict[int, str]]) -> Iterable[list[tuple[int, int]]]:
    """The places (page, line) of each repeated line, without the page's number in the line."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for page, lines in enumerate(margins):
        for line, text in lines.items():
            places[_without_number(text)].append((page, line))
    for repeated in places.values():
        if _is_running(repeated):
            yield repeated


def _without_number(text: str) -> str:
    """A line without the number before or after the words, if the words are more than a name."""
    match = _SIDE_NUMBER.fullmatch(text)
    if match is None or len(match["text"].split()) < FEWEST_WORDS:
        return text
    return match["text"]


def _page_numbers(margins: Sequence[dict[int, str]]) -> list[tuple[int, int]]:
    """The places of lines with only the page's number and words such as "page"."""
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by the number of the first page
    for page, lines in enumerate(margins):
        for line, text in lines.items():
            number = _PAGE_NUMBER.search(text)
            without_numbers = _PAGE_NUMBER.sub("", text, count=2)
            words = _PAGE_WORDS.sub("", without_numbers)
            if number and not words:
                places[int(number[0]) - page].append((page, line))
    running: list[tuple[int, int]] = []
    for numbered in places.values():
        if _is_running(numbered):
            running += numbered
    return running


def _is_running(places: Iterable[tuple[int, int]]) -> bool:
    """Whether lines stand on several pages, and on most pages between the first and the last."""
    pages = {page for page, _ in places}
    if len(pages) < FEWEST_PAGES:
        return False
    span = max(pages) - min(pages) + 1
    return len(pages) >= DENSITY * span
