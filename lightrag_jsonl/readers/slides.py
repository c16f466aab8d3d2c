"""Reads presentations of PowerPoint."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import zip_longest
from typing import Any

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_table
from lightrag_jsonl.readers.ooxml import usual_package
from lightrag_jsonl.readers.titles import confirmed_title

PAGE_BYTES = 2_000  # of UTF-8: neighbouring slides share a page up to this length
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def read_pptx(data: bytes, meter: FileMeter) -> Document:
    """The text, tables, charts, diagrams and notes of slides, each below "Slide 7: Costs".

    A slide is a page. Short neighbouring slides, too little for a chunk each, share the page of the
    first slide; the pages of the others stay blank.
    """
    import pptx

    presentation = pptx.Presentation(BytesIO(usual_package(data, ".pptx")))
    texts = []
    for number, slide in enumerate(presentation.slides, 1):
        meter.add_pages(1)
        text = _slide_text(slide, number, meter)
        meter.add_characters(len(text))
        texts.append(text)
    title = confirmed_title(presentation.core_properties.title, "\n".join(texts))
    return Document("", title=title, pages=tuple(_shared_pages(texts)))


def _shared_pages(texts: Iterable[str]) -> list[str]:
    """A page for each slide, with the texts of the short slides that follow the first one."""
    pages: list[str] = []
    first_index = 0
    page_bytes = 0
    for index, text in enumerate(texts):
        pages.append("")
        if not text:
            continue
        text_bytes = len(text.encode("utf-8", "replace"))
        if page_bytes == 0 or page_bytes + text_bytes > PAGE_BYTES:
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
    heading = "" if title is None else " ".join(title.text_frame.text.split())
    shapes = [shape for shape in slide.shapes if title is None or shape != title]
    blocks = [block.strip() for block in _shape_texts(shapes, meter)]
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        blocks.append(frame.text.strip())
    blocks = [block for block in blocks if block]
    if not heading and not blocks:
        return ""
    is_chinese = any(map(is_cjk, "".join([heading, *blocks])))
    name = f"幻灯片 {number}" if is_chinese else f"Slide {number}"
    title_line = f"# {name}: {heading}" if heading else f"# {name}"
    return "\n\n".join([title_line, *blocks])


def _shape_texts(shapes: Iterable[Any], meter: FileMeter) -> Iterator[str]:
    """The texts of shapes from top to bottom, also in groups."""
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if hasattr(shape, "shapes"):
            yield from _shape_texts(shape.shapes, meter)
        elif shape.has_text_frame:
            yield shape.text_frame.text.replace("\v", "\n")
        elif getattr(shape, "has_table", False):
            yield markdown_table([[cell.text for cell in row.cells] for row in shape.table.rows])
        elif getattr(shape, "has_chart", False):
            yield _chart_text(shape.chart, meter)
        else:
            yield _diagram_text(shape)


def _chart_text(chart: Any, meter: FileMeter) -> str:
    """The title of a chart, and a table of its categories and series."""
    title = (
        chart.chart_title.text_frame.text
        if chart.has_title and chart.chart_title.has_text_frame
        else ""
    )
    blocks = [title.strip()] if title.strip() else []
    for plot in chart.plots:
        series = list(plot.series)
        categories = [str(category) for category in plot.categories]
        meter.add_cells(len(series) * len(categories))
        columns = [[_number_text(value) for value in line.values] for line in series]
        rows = zip_longest(categories, *columns, fillvalue="")
        header = ["", *(line.name for line in series)]
        blocks.append(markdown_table([header, *rows]))
    return "\n\n".join(blocks)


def _number_text(value: float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else str(value)


def _diagram_text(shape: Any) -> str:
    """The texts of a SmartArt diagram, one a line; nothing for other shapes."""
    from lxml import etree

    relations = shape.element.find(f".//{DIAGRAM}relIds")
    part_id = None if relations is None else relations.get(f"{RELATION}dm")
    if part_id is None or part_id not in shape.part.rels:
        return ""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    model = etree.fromstring(shape.part.related_part(part_id).blob, parser)
    points = (
        "".join(text.text or "" for text in point.iter(f"{DRAWING}t"))
        for point in model.iter(f"{DIAGRAM}pt")
    )
    return "\n".join(point for point in points if point.strip())
