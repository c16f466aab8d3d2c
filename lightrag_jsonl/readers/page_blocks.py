"""Cuts a page of HTML into blocks of text, and chooses the blocks of the main text."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any

from lightrag_jsonl.readers.markdown import markdown_table
from lightrag_jsonl.readers.xml_elements import check_depth
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
BLOCK_TAGS = frozenset(
    ["p", "div", "li", "ul", "ol", "dl", "dt", "dd", "blockquote", "pre", "table", "tr", "section", "article",
     "figure", "figcaption", "br", "hr", "body", "main", "header", "footer", "nav", "aside", "details", "summary",
     "address", "caption", "fieldset", "form", "option", "tbody", "thead", "center", *HEADINGS]
)  # fmt: skip
TAGS_WITHOUT_TEXT = frozenset(
    ["head", "script", "style", "template", "svg", "math", "rt", "rp", "noscript"]
)
CELLS = ("td", "th")
BLOCKS_IN_CELLS = frozenset(["p", "div", "br", "tr", "tbody", "thead"])  # of tables with values
ANCHOR_SIGNS = frozenset("¶#§🔗")  # of links from a heading to itself

SHORTEST_PAGE = 60  # characters; with less text besides, a page of links is what it consists of
FEWEST_LINKS = 4  # in a menu
LINK_SHARE = 0.75  # of the characters of a menu; references in a text have a quarter
LONGEST_LABEL = 60  # characters; a menu has no longer text that is no link

ASIDE_TAGS = frozenset(
    ["nav", "menu", "aside", "footer", "form", "button", "dialog", "select", "label", "iframe", "figcaption"]
)  # fmt: skip
ASIDE_NAMES = pattern_of(
    r"(?i)(?:^|[\s_-])(?:share|sharing|social|related|recommend(?:ed|ations)?|promo|newsletter|subscribe|signup|"
    r"advert(?:isement)?s?|ads?|sponsor(?:ed)?|comments?|disqus|sidebar|breadcrumbs?|tags?|cookies?|popup|modal|"
    r"pagination|pager|footer|nav|navbar|navigation|menu|byline|caption|credits?|widget|skip|toolbar|rating|"
    r"copyright|login|search|print|metadata|sr-only|visually-hidden|screen-reader)(?:$|[\s_-])"
)
HIDDEN_STYLE = pattern_of(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
PIECE = 12  # letters that are compared at a time
MATCHING_SHARE = 0.7  # of a block's pieces that the article has, too
REGION_SHARE = 0.9  # of the article's letters in the element that is its place
FULL_REGION = (
    0.6  # of the letters of an element; above, the element is the article, to its last word,
)
MOST_ASIDES = 0.02  # unless more of its letters are asides


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A text of a page, such as a paragraph, with the HTML element, and whether the text is an aside."""

    text: str
    element: Any
    is_aside: bool = False

    @property
    def is_listed(self) -> bool:
        """Whether the block is a heading, a point of a list, a term, a table or code."""
        if self.is_heading or self.text.startswith(("- ", "| ", "```")):
            return True
        return any(
            element.tag in ("dl", "li", "table")
            for element in (self.element, *self.element.iterancestors())
        )

    @property
    def is_heading(self) -> bool:
        """Whether the block is marked as a heading."""
        return self.text.startswith("#") and any(map(self.text.startswith, HEADINGS.values()))


def page_root(page: str) -> Any:
    """The root element of a page of HTML; None for a page without any element, as of comments alone.
    `ConfigError` for one that is nested too deeply.
    """
    import lxml.html

    content = page.encode("utf-8", "replace")
    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)  # 2,048 levels instead of 256
    try:
        root = lxml.html.document_fromstring(content, parser=parser)
    except lxml.etree.ParserError:
        return None
    check_depth(parser)
    return root


def page_blocks(root: Any) -> list[PageBlock]:
    """The blocks of a page in order, headings and lists marked as in Markdown."""
    from lxml import etree

    blocks: list[PageBlock] = []
    pieces: list[str] = []
    menus = _menus(root)
    owner = root
    mark = ""
    asides = 0  # elements that are no main text, around the place

    def end_block() -> None:
        nonlocal mark
        words = "".join(pieces).strip(" \t\n|")
        pieces.clear()
        if words:
            blocks.append(PageBlock(mark + words, owner, is_aside=asides > 0))
            mark = ""

    walker = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walker:
        tag = element.tag if isinstance(element.tag, str) else ""
        if event == "start":
            if tag in TAGS_WITHOUT_TEXT or _is_anchor(element):
                walker.skip_subtree()
                continue
            if tag in BLOCK_TAGS:
                end_block()
                owner = element
                mark = HEADINGS.get(tag) or ("- " if tag == "li" else mark)
            if element in menus or _is_aside(element):
                end_block()
                asides += 1
            if tag == "pre" or (tag == "table" and _is_table_of_values(element)):
                text = _preformatted(element) if tag == "pre" else _table_block(element)
                if text:
                    blocks.append(PageBlock(text, element, is_aside=asides > 0))
                walker.skip_subtree()
                continue
            pieces.append(collapsed(element.text))
        else:
            if event == "end":
                if tag in BLOCK_TAGS:
                    end_block()
                    owner = element.getparent() if element is not root else root
                    mark = "" if tag in HEADINGS or tag == "li" else mark
                elif tag in CELLS:
                    pieces.append(" | ")
                if element in menus or _is_aside(element):
                    end_block()
                    asides -= 1
            if element is not root:
                pieces.append(collapsed(element.tail))
    end_block()
    return blocks


def collapsed(text: str | None) -> str:
    """The text with one blank for each run of blanks."""
    if not text:
        return ""
    words = single_spaced(text)
    if not words:
        return " "
    if text[0].isspace():
        words = f" {words}"
    if text[-1].isspace():
        words += " "
    return words


def _preformatted(element: Any) -> str:
    """The text of a `pre`, with several lines in a fence."""
    text = str(element.text_content()).strip("\n").rstrip()
    return f"```\n{text}\n```" if "\n" in text else text


def _is_table_of_values(table: Any) -> bool:
    """Whether a table has several columns of cells with a text each, and is not for the layout."""
    for element in table.iterdescendants():
        if element.tag in BLOCK_TAGS and element.tag not in BLOCKS_IN_CELLS:
            return False
    rows = list(table.iter("tr"))
    return len(rows) > 1 and any(len(_row_cells(row)) > 1 for row in rows)


def _row_cells(row: Any) -> list[Any]:
    return [cell for cell in row if cell.tag in CELLS]


def _table_block(table: Any) -> str:
    rows: list[list[str]] = []
    for row in table.iter("tr"):
        cells = [single_spaced(" ".join(cell.itertext("*"))) for cell in _row_cells(row)]
        if any(cells):
            rows.append(cells)
    return markdown_table(rows)


def _is_anchor(element: Any) -> bool:
    """Whether an element is a sign beside a heading, with a link to the same heading."""
    if element.tag != "a" or len(element):
        return False
    return (element.text or "").strip() in ANCHOR_SIGNS


# ── what is no main text ────────────────────────────────────────────────────────


def remove_menus(root: Any) -> None:
    """Remove navigation, and blocks of mostly links, unless hardly any text would remain."""
    menus = _menus(root)
    outermost = [menu for menu in menus if menus.isdisjoint(menu.iterancestors())]
    length = _text_length(root)
    text_length = length - sum(_text_length(menu) for menu in outermost)
    if text_length < SHORTEST_PAGE:
        return
    for menu in outermost:
        menu.drop_tree()


def _menus(root: Any) -> set[Any]:
    return {element for element in root.iter("nav", "menu", "ul", "ol", "div") if _is_menu(element)}


def _is_menu(element: Any) -> bool:
    """Whether a block is navigation, or has several links and little text besides."""
    if element.tag == "nav":
        return True
    links = element.findall(".//a")
    if len(links) < FEWEST_LINKS:
        return False
    if sum(map(_text_length, links)) <= LINK_SHARE * _text_length(element):
        return False
    return not any(
        _unlinked_length(block) > LONGEST_LABEL for block in element.iter("p", "div", "li", "td")
    )


def _unlinked_length(element: Any) -> int:
    """The letters of an element's own text, outside links and blocks."""
    texts = [element.text or "", *(child.tail or "" for child in element)]
    return _letter_count("".join(texts))


def _text_length(element: Any) -> int:
    return _letter_count(element.text_content())


def _letter_count(text: str) -> int:
    return sum(map(len, text.split()))


def _is_aside(element: Any) -> bool:
    """Whether an element is hidden, or an aside by name or form."""
    if not isinstance(element.tag, str):
        return False
    if element.tag in ASIDE_TAGS:
        return True
    if element.tag in ("html", "body", "main", "article"):
        return False
    attributes = element.attrib
    if "hidden" in attributes or HIDDEN_STYLE.search(attributes.get("style", "")):
        return True
    names = " ".join(attributes.get(key, "") for key in ("class", "id", "role"))
    if ASIDE_NAMES.search(names) and element.tag not in HEADINGS:
        return True
    return element.tag in ("p", "li", "div") and _is_link_alone(element)


def _is_link_alone(element: Any) -> bool:
    """Whether a paragraph is nothing but a link, such as "Read more"."""
    links = element.findall("a")
    return bool(links) and len(links) == len(element) and not _unlinked_length(element)


# ── the main text ───────────────────────────────────────────────────────────────


def main_blocks(root: Any, article: str) -> tuple[list[PageBlock | str], list[PageBlock]]:
    """The blocks of a page's main text, and the blocks of the rest, as told by the `article`.

    The main text has every line of the article, the headings, lists and loose texts between these
    lines on the page, and the whole of an element that is mostly article. A line in another form on
    the page becomes a text of its own.
    """
    blocks = page_blocks(root)
    lines = [line for line in article.split("\n") if _letters_of_block(line)]
    in_article = _in_article(blocks, lines)
    region = _region(root, compress(blocks, in_article))
    inside = [
        region is block.element or region in block.element.iterancestors() for block in blocks
    ]
    indexes = [number for number, is_there in enumerate(in_article) if is_there and inside[number]]
    if not indexes:
        return [article], blocks
    first = indexes[0]
    last = indexes[-1]
    is_full = _is_full(list(compress(blocks, inside)), list(compress(in_article, inside)))
    if is_full:
        first = inside.index(True)
        last = len(inside) - 1 - inside[::-1].index(True)
    chosen = [
        is_inside
        and (is_there or (first <= number <= last and not block.is_aside and (is_full or block.is_listed)))
        for number, (block, is_there, is_inside) in enumerate(zip(blocks, in_article, inside, strict=True))
    ]  # fmt: skip
    for number in reversed(range(len(blocks) - 1)):
        if blocks[number].is_heading and not blocks[number].is_aside and not in_article[number]:
            chosen[number] = chosen[number + 1]
    content = _with_missing_lines(blocks, chosen, lines)
    left_out_blocks = [block for number, block in enumerate(blocks) if not chosen[number]]
    return content, left_out_blocks


def _in_article(blocks: list[PageBlock], lines: list[str]) -> list[bool]:
    """Whether the article has each block, counting repetitions."""
    line_keys = [_letters_of_block(line) for line in lines]
    pieces = {piece for key in line_keys for piece in _loose_pieces(key)}
    article = "\n".join(line_keys)
    counts = Counter(line_keys)
    text_counts: Counter[str] = Counter()
    in_article: list[bool] = []
    for block in blocks:
        letters = _letters_of_block(block.text)
        text_counts[letters] += 1
        is_there = _matches(letters, pieces, counts)
        is_repeated = text_counts[letters] > 1 and text_counts[letters] > article.count(letters)
        in_article.append(is_there and not is_repeated)
    return in_article


def _letters_of_block(text: str) -> str:
    """The letters and digits of a text, for comparisons."""
    return "".join(filter(str.isalnum, text)).casefold()


def _loose_pieces(letters: str) -> Iterator[str]:
    """The runs of letters that are compared; a short text is a piece as a whole."""
    last_start = max(len(letters) - PIECE, 0)
    for start in range(last_start + 1):
        yield letters[start : start + PIECE]


def _matches(letters: str, pieces: Container[str], line_keys: Container[str]) -> bool:
    """Whether the article has the letters of a block, or most of them."""
    if len(letters) < 2 * PIECE:
        return letters in line_keys
    block_pieces = list(_loose_pieces(letters))
    matching = sum(piece in pieces for piece in block_pieces)
    return matching >= MATCHING_SHARE * len(block_pieces)


def _region(root: Any, blocks: Iterable[PageBlock]) -> Any:
    """The smallest element with nearly all letters of the blocks."""
    lengths: Counter[Any] = Counter()
    for block in blocks:
        length = len(_letters_of_block(block.text))
        for element in (block.element, *block.element.iterancestors()):
            lengths[element] += length
    least_length = REGION_SHARE * lengths[root]
    region = root
    while least_length > 0:
        inner = next((child for child in region if lengths[child] >= least_length), None)
        if inner is None:
            break
        region = inner
    return region


def _is_full(blocks: list[PageBlock], in_article: list[bool]) -> bool:
    """Whether the article covers most of the blocks, with hardly an aside in between."""
    total = _text_lengths(blocks)
    asides = _text_lengths(block for block in blocks if block.is_aside)
    covered = _text_lengths(compress(blocks, in_article))
    return covered >= FULL_REGION * (total - asides) and asides <= MOST_ASIDES * total


def _text_lengths(blocks: Iterable[PageBlock]) -> int:
    return sum(len(block.text) for block in blocks)


def _with_missing_lines(
    blocks: list[PageBlock], chosen: list[bool], lines: list[str]
) -> list[PageBlock | str]:
    """The chosen blocks and the missing lines, each after the preceding line."""
    places: dict[str, int] = {}
    text = ""
    for number, block in enumerate(blocks):
        if chosen[number]:
            letters = _letters_of_block(block.text)
            text += letters
            for piece in _loose_pieces(letters):
                places.setdefault(piece, number)
    missing: dict[int, list[str]] = {}
    place = -1
    for line in lines:
        letters = _letters_of_block(line)
        if letters in text or (len(letters) >= 2 * PIECE and _matches(letters, places, ())):
            place = places.get(letters[:PIECE], place)
        else:
            missing.setdefault(place, []).append(line)
    content: list[PageBlock | str] = [*missing.get(-1, ())]
    for number, block in enumerate(blocks):
        if chosen[number]:
            content.append(block)
        content += missing.get(number, ())
    return content
