"""Reads documents of Word, and slides of PowerPoint."""

import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.packed import open_zip

SHORT = 2_000  # bytes of UTF-8: so much of neighbouring slides is put together
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "p": "\n", "noBreakHyphen": "-"}  # by element
_HEADING = re.compile(r"(?i)heading ([1-6])$")


def read_docx(data: bytes, meter: FileMeter) -> Document:
    """Paragraphs and tables in the order of the body, headings marked as in Markdown.

    Inserted text counts, deleted text does not. Page numbers are not stored in such a file.
    """
    import docx

    open_zip(data, ".docx").close()
    opened = docx.Document(BytesIO(data))
    levels = _heading_levels(opened.styles)
    blocks = opened.element.body.xpath(
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
        return "\n".join(_table(rows))
    text = _paragraphs(block)
    if level := text and levels.get(block.style or "", 0):
        return f"{'#' * level} {' '.join(text.split())}"
    return text


def _paragraphs(element: Any) -> str:
    """The text in an element of WordprocessingML, without copies for older programs."""
    wanted = " or ".join(f"self::w:{name}" for name in ("t", *_SIGNS))
    pieces = []
    for node in element.xpath(f".//*[{wanted}][not(ancestor::w:del)]"):
        if any(above.tag.endswith("}Fallback") for above in node.iterancestors()):
            continue
        pieces.append(_SIGNS.get(node.tag.rpartition("}")[2]) or node.text or "")
    return "".join(pieces).strip()


def _heading_levels(styles: Iterable[Any]) -> dict[str, int]:
    """The level of each style by its id: 1 to 6 for headings and what is based on them, or else 0.

    Each style is looked at once, however long the chains are, and even if they are circles.
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


def _table(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The rows of a table as in Markdown."""
    for row in rows:
        yield "| " + " | ".join(" ".join(cell.split()) for cell in row) + " |"


def read_pptx(data: bytes, meter: FileMeter) -> Document:
    """The text, tables and notes of slides, each below a heading "Slide 7: Costs".

    A slide is a page. Short neighbouring slides, which would be too little for a chunk each, are
    put together on the page of the first one; the pages of the others stay blank.
    """
    import pptx

    open_zip(data, ".pptx").close()
    pages: list[str] = []
    first = size = 0
    for index, slide in enumerate(pptx.Presentation(BytesIO(data)).slides):
        meter.add_pages(1)
        title = slide.shapes.title
        heading = " ".join(title.text_frame.text.split()) if title is not None else ""
        others = [shape for shape in slide.shapes if title is None or shape != title]
        blocks = list(filter(None, map(str.strip, _shapes(others))))
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
            blocks += filter(None, [frame.text.strip()])
        pages.append("")
        if not (heading or blocks):
            continue
        is_chinese = any(map(is_cjk, "".join([heading, *blocks])))
        name = f"幻灯片 {index + 1}" if is_chinese else f"Slide {index + 1}"
        text = "\n\n".join([f"# {name}: {heading}" if heading else f"# {name}", *blocks])
        meter.add_characters(len(text))
        length = len(text.encode("utf-8", "replace"))
        if not size or size + length > SHORT:
            first, size = index, 0
        pages[first] += "\n\n" * bool(size) + text
        size += length
    return Document("", pages=tuple(pages))


def _shapes(shapes: Iterable[Any]) -> Iterator[str]:
    """The texts of shapes from top to bottom, those in groups included."""
    for shape in sorted(shapes, key=lambda one: (one.top or 0, one.left or 0)):
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        elif shape.has_text_frame:
            yield shape.text_frame.text.replace("\v", "\n")
        elif getattr(shape, "has_table", False):
            rows = shape.table.rows
            yield "\n".join(_table([[cell.text for cell in row.cells] for row in rows]))
