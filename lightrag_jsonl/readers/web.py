"""Reads web pages, and e-books, made of chapters that are web pages."""

import posixpath
import re
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import plain_scripts
from lightrag_jsonl.readers.xml_elements import elements_named

LARGE_PAGE = 1 << 20  # characters; trafilatura's time grows with the square of a page's length
SHORT_ARTICLE = 250  # characters; below, trafilatura gives up the page's structure
MARKUP_SHARE = 1.5  # of an article with addresses and marks to the plain text of its page
SHORTEST_PAGE = 60  # characters; with less text besides, a page of links is what it consists of
FEWEST_LINKS = 4  # in a menu
LINK_SHARE = 0.75  # of the characters of a menu; references in a text have a quarter
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
BLOCKS = frozenset(
    ["p", "div", "li", "ul", "ol", "dl", "dt", "dd", "blockquote", "pre", "table", "tr", "section",
     "article", "figure", "figcaption", "br", "hr"]
)  # fmt: skip
NO_TEXT = frozenset(["head", "script", "style", "template", "svg", "math", "rt", "rp"])


_DECLARATION = re.compile(
    rb"""<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]+)|<meta[^>]{0,300}?\bcharset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
DECLARATION_BYTES = 4_096  # at the beginning of a page; browsers look at 1,024


def declared_encoding(data: bytes) -> str:
    """The encoding that a page of HTML or XML declares, or nothing."""
    match = _DECLARATION.search(data, 0, DECLARATION_BYTES)
    return (match[1] or match[2]).decode() if match else ""


def read_html(data: bytes, meter: FileMeter) -> Document:
    """The main text of a web page, without menus and the like; headings as in Markdown."""
    import trafilatura

    text = plain_scripts(meter.decode(data, declared=declared_encoding(data)))
    metadata = trafilatura.extract_metadata(text, extensive=False)
    whole_page = html_text(text, with_menus=False)
    article = ""
    if len(text) <= LARGE_PAGE:
        article = trafilatura.extract(text, output_format="markdown", include_comments=False) or ""
    is_short = len(article) < max(SHORT_ARTICLE, len(whole_page) / 10)
    if is_short or len(article) > MARKUP_SHARE * len(whole_page):  # too long: with its menus
        article = whole_page
    meter.add_characters(len(article))
    return Document(article, title=metadata.title, date=metadata.date)


def html_text(page: str, *, with_menus: bool = True) -> str:
    """All text of a page, with blank lines between blocks, and headings as in Markdown.

    Without menus, lists that consist of links are left out, unless the page is little else.
    """
    import lxml.html

    if not page.strip():
        return ""
    content = page.encode("utf-8", "replace")
    root = lxml.html.document_fromstring(content, parser=lxml.html.HTMLParser(encoding="utf-8"))
    if not with_menus:
        _remove_menus(root)
    for element in list(root.iter()):
        tag = element.tag
        if not isinstance(tag, str) or tag in NO_TEXT:
            element.text = None
            for child in list(element) if isinstance(tag, str) else ():
                element.remove(child)
        elif tag != "pre":
            element.text = _collapsed(element.text)
        element.tail = _collapsed(element.tail)
        if tag in HEADINGS or tag in BLOCKS:
            mark = HEADINGS.get(str(tag), "")
            element.text = "\n\n" + mark + (element.text or "").lstrip()
            element.tail = "\n\n" + (element.tail or "").lstrip()
        elif tag in ("td", "th"):
            element.tail = " | " + (element.tail or "")
    lines = [line.strip(" \t|") for line in root.text_content().split("\n")]
    return "\n\n".join(filter(None, lines))


def _remove_menus(root: Any) -> None:
    """Remove navigation, and blocks that are mostly links, unless little else would be left."""
    menus = [
        element for element in root.iter("nav", "menu", "ul", "ol", "div") if _is_menu(element)
    ]
    inside = set(menus)
    outermost = [menu for menu in menus if inside.isdisjoint(menu.iterancestors())]
    length = _text_length(root)
    text_length = length - sum(_text_length(menu) for menu in outermost)
    if text_length < SHORTEST_PAGE:
        return
    for menu in outermost:
        menu.drop_tree()


def _is_menu(element: Any) -> bool:
    """Whether a block is navigation, or has several links and little text besides."""
    if element.tag == "nav":
        return True
    links = element.findall(".//a")
    if len(links) < FEWEST_LINKS:
        return False
    return sum(map(_text_length, links)) > LINK_SHARE * _text_length(element)


def _text_length(element: Any) -> int:
    return len("".join(element.text_content().split()))


def _collapsed(text: str | None) -> str | None:
    if not text:
        return text
    words = " ".join(text.split())
    return " " * text[0].isspace() + words + " " * (text[-1].isspace() and bool(words))


def read_epub(data: bytes, meter: FileMeter) -> Document:
    """The chapters of an e-book, each a page, in reading order. `ConfigError` with DRM.

    A file named several times is a chapter at its first place.
    """
    with open_zip(data, ".epub") as book:
        roots = elements_named(_xml(book, "META-INF/container.xml"), "rootfile")
        package = roots[0].get("full-path", "") if roots else ""
        opf = _xml(book, package)
        items = {item.get("id"): item.get("href", "") for item in elements_named(opf, "item")}
        names = set(book.namelist())
        encrypted = "META-INF/encryption.xml"
        locked = book.read(encrypted).decode("utf-8", "replace") if encrypted in names else ""
        pages: dict[str, str] = {}
        for reference in elements_named(opf, "itemref"):
            href = unquote(items.get(reference.get("idref"), "")).partition("#")[0]
            path = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
            if href and f'"{path}"' in locked:
                raise ConfigError("is encrypted (DRM)")
            if href and path in names and path not in pages:
                meter.add_pages(1)
                pages[path] = _chapter(book.read(path), meter)
                meter.add_characters(len(pages[path]))
    title = next((element.text for element in elements_named(opf, "title")), None)
    return Document("", title=title, pages=tuple(filter(None, pages.values())))


def _chapter(data: bytes, meter: FileMeter) -> str:
    return html_text(plain_scripts(meter.decode(data, declared=declared_encoding(data))))


def _xml(book: ZipFile, path: str) -> Any:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    try:
        root = etree.fromstring(book.read(path), parser)
    except KeyError as error:
        raise ConfigError(f"is not an .epub file: it has no {path or 'package'}") from error
    if root is None:
        raise ConfigError(f"is not an .epub file: {path} is not XML")
    return root
