"""Reads presentations of PowerPoint."""

from collections.abc import Iterable, Iterator
from typing import Any

from lightrag_jsonl.core.errors import described
from lightrag_jsonl.core.types import Document, Picture
from lightrag_jsonl.readers.drawings import drawing_text
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_heading, markdown_table
from lightrag_jsonl.readers.ooxml import opened_package
from lightrag_jsonl.readers.pictures import (
    add_pictures,
    picture_bytes,
    slide_pictures,
    without_logos,
)
from lightrag_jsonl.readers.slide_lists import PRESENTATION, shape_text, table_cells
from lightrag_jsonl.readers.titles import confirmed_title
from lightrag_jsonl.text.cjk import is_cjk
from lightrag_jsonl.text.strings import single_spaced

SLIDE_PAGE_BYTES = 2_000  # of UTF-8: neighbouring slides share a page up to this length
SLIDE_NUMBER = f"{PRESENTATION}nvPr/{PRESENTATION}ph[@type='sldNum']"


def read_pptx(data: bytes, meter: FileMeter) -> Document:
    """The text, tables, charts, diagrams and notes of slides, each below "Slide 7: Costs".

    A slide is a page. Short neighbouring slides, too little for a chunk each, share the page of the
    first slide; the pages of the later slides stay blank.
    """
    import pptx

    presentation = opened_package(pptx.Presentation, data, ".pptx", meter)
    texts = []
    pictures: list[Picture] = []
    height = presentation.slide_height.pt if presentation.slide_height else 0.0
    for number, slide in enumerate(presentation.slides, 1):
        meter.add_pages(1)
        if meter.sees:
            pictures += slide_pictures(slide.shapes, number, height, meter)
        text = _slide_text(slide, number, meter)
        meter.add_characters(len(text))
        texts.append(text)
    title = confirmed_title(presentation.core_properties.title, "\n".join(texts))
    shown_pictures = add_pictures(meter, without_logos(pictures, picture_bytes))
    return Document("", title=title, pages=tuple(shared_pages(texts)), pictures=shown_pictures)


def shared_pages(texts: Iterable[str]) -> list[str]:
    """A page for each slide, with the texts of short following slides."""
    pages: list[str] = []
    first_index = 0
    page_bytes = 0
    for index, text in enumerate(texts):
        pages.append("")
        if not text:
            continue
        text_bytes = len(text.encode("utf-8", "replace"))
        if page_bytes == 0 or page_bytes + text_bytes > SLIDE_PAGE_BYTES:
            first_index = index
            page_bytes = 0
        else:
            pages[first_index] += "\n\n"
        pages[first_index] += text
        page_bytes += text_bytes
    return pages


def _slide_text(slide: Any, number: int, meter: FileMeter) -> str:
    """The heading and blocks of a slide; nothing for a blank one."""
    title = slide.shapes.title
    if title is not None and not title.has_text_frame:  # a picture in its place
        title = None
    shapes = list(slide.shapes)
    heading = ""
    if title is not None:
        shapes = [shape for shape in shapes if shape != title]
        heading = single_spaced(title.text_frame.text)
    blocks = [block.strip("\n\v").rstrip() for block in _shape_texts(shapes, meter)]
    if slide.has_notes_slide:
        notes = slide.notes_slide.notes_text_frame
        if notes is not None:
            blocks.append(notes.text.strip())
    return numbered_slide(number, heading, filter(None, blocks))


def numbered_slide(number: int, title: str, blocks: Iterable[str]) -> str:
    """The blocks of a slide below its number and title, in Chinese if the slide has Chinese characters; nothing
    for a blank one.
    """
    text = "\n\n".join(blocks)
    if not title and not text:
        return ""
    is_chinese = any(map(is_cjk, f"{title}{text}"))
    name = f"幻灯片 {number}" if is_chinese else f"Slide {number}"
    if title:
        name += f": {title}"
    heading = markdown_heading(name, 1)
    return f"{heading}\n\n{text}" if text else heading


def _shape_texts(shapes: Iterable[Any], meter: FileMeter) -> Iterator[str]:
    """The texts of shapes from top to bottom, also in groups."""
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        try:
            yield from list(_texts_of_shape(shape, meter))
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # by python-pptx
            meter.add_note(f"a shape of a slide cannot be read: {described(error)}")


def _texts_of_shape(shape: Any, meter: FileMeter) -> Iterator[str]:
    if hasattr(shape, "shapes"):
        yield from _shape_texts(shape.shapes, meter)
    elif shape.element.find(f".//{SLIDE_NUMBER}") is not None:
        return
    elif shape.has_text_frame:
        yield shape_text(shape)
    elif getattr(shape, "has_table", False):
        yield markdown_table(table_cells(shape))
    else:
        yield drawing_text(shape.element, shape.part, meter)
