"""Reads web pages, and e-books, with chapters in the form of web pages."""

import posixpath
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import plain_scripts
from lightrag_jsonl.readers.page_blocks import (
    PageBlock,
    main_blocks,
    page_blocks,
    page_root,
    remove_menus,
)
from lightrag_jsonl.readers.xml_elements import elements_named, xml_root
from lightrag_jsonl.text.strings import single_spaced

LARGE_PAGE = 1 << 20  # characters; trafilatura's time grows with the square of a page's length
SHORT_ARTICLE = 250  # characters; below, trafilatura gives up the page's structure
MARKUP_SHARE = 1.5  # of an article to the text of its page without menus
FEWEST_NOTED = 500  # characters beside the main text
LONGEST_EXAMPLE = 60  # characters, in the note

_DECLARATION = re.compile(
    rb"""<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]+)|<meta[^>]{0,300}?\bcharset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
DECLARATION_BYTES = 4_096  # at the beginning of a page; browsers look at 1,024
ENCRYPTION = "META-INF/encryption.xml"


def declared_encoding(data: bytes) -> str:
    """The encoding declared by a page of HTML or XML, or ""."""
    match = _DECLARATION.search(data, 0, DECLARATION_BYTES)
    if match is None:
        return ""
    name = match[1] or match[2]
    return name.decode()


def read_html(data: bytes, meter: FileMeter) -> Document:
    """The main text of a web page, without menus and the like; headings as in Markdown.

    Trafilatura finds the main text, and `main_blocks` finds its blocks on the page. If much else is
    on the page, a note says so.
    """
    import trafilatura

    text = plain_scripts(meter.decode(data, declared=declared_encoding(data)))
    metadata = trafilatura.extract_metadata(text, extensive=False)
    article = ""
    if len(text) <= LARGE_PAGE:
        article = trafilatura.extract(text, output_format="markdown", include_comments=False) or ""
    content = _main_text(text, article, meter)
    meter.add_characters(len(content))
    return Document(content, title=metadata.title, date=metadata.date)


def _main_text(page: str, article: str, meter: FileMeter) -> str:
    whole_page = html_text(page, with_menus=False)
    if len(article) < SHORT_ARTICLE or len(article) > MARKUP_SHARE * len(whole_page):
        return whole_page  # the latter with the menus
    chosen, left_out_blocks = main_blocks(page_root(page), article)
    content = _joined(chosen)
    length = sum(len(block.text) for block in left_out_blocks)
    if length > max(FEWEST_NOTED, len(content) / 10):
        longest = max(left_out_blocks, key=lambda block: len(block.text))
        example = single_spaced(longest.text)[:LONGEST_EXAMPLE]
        meter.add_note(
            f"{length:,} characters beside the main text are left out, such as {example!r}"
        )
    return content


def html_text(page: str, *, with_menus: bool = True) -> str:
    """All text of a page, with blank lines between blocks, and headings as in Markdown.

    Without menus, lists of links are left out, unless the page has hardly any other text.
    """
    root = page_root(page)
    if root is None:
        return ""
    if not with_menus:
        remove_menus(root)
    return _joined(page_blocks(root))


def _joined(blocks: Iterable[PageBlock | str]) -> str:
    return "\n\n".join(block if isinstance(block, str) else block.text for block in blocks)


def read_epub(data: bytes, meter: FileMeter) -> Document:
    """The chapters of an e-book, each as a page, in reading order. `ConfigError` with DRM.

    A file named several times is a chapter at the first place.
    """
    with open_zip(data, ".epub") as book:
        roots = elements_named(_xml(book, "META-INF/container.xml"), "rootfile")
        package = roots[0].get("full-path", "") if roots else ""
        opf = _xml(book, package)
        items = {item.get("id"): item.get("href", "") for item in elements_named(opf, "item")}
        names = set(book.namelist())
        locked = ""
        if ENCRYPTION in names:
            locked = book.read(ENCRYPTION).decode("utf-8", "replace")
        pages: dict[str, str] = {}
        for reference in elements_named(opf, "itemref"):
            address = unquote(items.get(reference.get("idref"), ""))
            href, _, _ = address.partition("#")
            if not href:
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
            if f'"{path}"' in locked:
                raise ConfigError("is encrypted (DRM)")
            if path in names and path not in pages:
                meter.add_pages(1)
                chapter = book.read(path)
                text = meter.decode(chapter, declared=declared_encoding(chapter))
                pages[path] = html_text(plain_scripts(text))
                meter.add_characters(len(pages[path]))
    title = next((element.text for element in elements_named(opf, "title")), None)
    return Document("", title=title, pages=tuple(filter(None, pages.values())))


def _xml(book: ZipFile, path: str) -> Any:
    try:
        root = xml_root(book.read(path))
    except KeyError as error:
        raise ConfigError(f"is not an .epub file: it has no {path or 'package'}") from error
    if root is None:
        raise ConfigError(f"is not an .epub file: {path} is not XML")
    return root
