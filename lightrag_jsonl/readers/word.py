"""Reads documents of Word."""

import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_table

_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "p": "\n", "noBreakHyphen": "-"}  # by element
_HEADING = re.compile(r"(?i)heading ([1-6])$")


def read_docx(data: bytes, meter: FileMeter) -> Document:
    """Paragraphs and tables in the order of the body, headings marked as in Markdown.

    Inserted text counts, deleted text does not. Page numbers are not stored in such a file.
    """
    import docx

    open_zip(data, ".docx").close()
    document = docx.Document(BytesIO(data))
    levels = _heading_levels(document.styles)
    blocks = document.element.body.xpath(
        ".//*[self::w:p or self::w:tbl][not(ancestor::w:tbl)][not(ancestor::w:p)]"
    )
    texts = []
    for block in blocks:
        text = _block(block, levels)
        meter.add_characters(len(text))
        if text:
            texts.append(text)
    return Document("\n\n".join(texts))


def _block(block: Any, levels: Mapping[str, int]) -> str:
    if block.tag.endswith("}tbl"):
        rows = [[_paragraphs(cell) for cell in row.tc_lst] for row in block.tr_lst]
        return markdown_table(rows)
    text = _paragraphs(block)
    if level := text and levels.get(block.style or "", 0):
        return f"{'#' * level} {' '.join(text.split())}"
    return text


def _paragraphs(element: Any) -> str:
    """The text in an element of WordprocessingML, without copies for older programs."""
    names = " or ".join(f"self::w:{name}" for name in ("t", *_SIGNS))
    pieces = []
    for node in element.xpath(f".//*[{names}][not(ancestor::w:del)]"):
        if any(above.tag.endswith("}Fallback") for above in node.iterancestors()):
            continue
        pieces.append(_SIGNS.get(node.tag.rpartition("}")[2]) or node.text or "")
    return "".join(pieces).strip()


def _heading_levels(styles: Iterable[Any]) -> dict[str, int]:
    """The level of each style by its id: 1 to 6 for headings and styles based on them, or else 0.

    Each style is visited once, however long the chains, and even if they are circles.
    """
    levels: dict[str, int] = {}
    bases: dict[str, str | None] = {}
    for style in styles:
        bases[style.style_id] = getattr(style.element, "basedOn_val", None)
        if level := _level(style.name or ""):
            levels[style.style_id] = level
    for style_id in bases:
        chain: dict[str, None] = {}
        base: str | None = style_id
        while base is not None and base in bases and base not in levels and base not in chain:
            chain[base] = None
            base = bases[base]
        level = levels.get(base, 0) if base is not None else 0
        levels.update(dict.fromkeys(chain, level))
    return levels


def _level(name: str) -> int:
    """The level of a heading's style, 1 for the title; 0 for the names of other styles."""
    if name == "Title":
        return 1
    heading = _HEADING.match(name)
    return int(heading[1]) if heading else 0
