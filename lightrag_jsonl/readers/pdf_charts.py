"""Finds charts drawn with lines on a page of a PDF file, for a vision model."""

import ctypes
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from lightrag_jsonl.readers.pictures import Box, around, joined_areas, object_box

FEWEST_SLANTED = 8  # lines that are neither horizontal nor vertical: a curve, a pie, a diagram
FEWEST_BARS = 3  # of different heights
FEWEST_DOTS = 10  # circles without straight lines
BACKGROUND = 0.8  # of the page: an area as large is no part of a chart
STRAIGHT = 0.02  # of the longer side: a line that rises by less is horizontal
RULE = 3.0  # points: the thickness of the thickest rules of tables
MOST_SEGMENTS = 60  # of a path, which are looked at
MOST_PATHS = 1_000  # which are joined one by one; of a map or a large scatter plot, all are an area
LABEL_DISTANCE = 30.0  # points between a chart and its labels


class DrawnPath(NamedTuple):
    """A path of lines and curves on a page: the box, and the number of slanted segments."""

    box: Box
    slanted: int
    is_dot: bool
    is_bar: bool


def chart_areas(page: Any, lines: Sequence[Box]) -> list[Box]:
    """The areas of charts with labels; `lines` are the areas of the lines of text."""
    whole = Box(*page.get_bbox())
    largest_area = BACKGROUND * whole.area
    paths = [path for path in _paths(page) if path.box.area < largest_area]
    boxes = [path.box for path in paths]
    if len(boxes) > MOST_PATHS:
        areas = [around(boxes)]
    else:
        areas = joined_areas(boxes)
    charts: list[Box] = []
    for area in areas:
        paths_inside = [path for path in paths if area.holds(path.box)]
        if _is_chart(paths_inside):
            charts.append(_with_labels(area, lines))
    return charts


def _paths(page: Any) -> Iterator[DrawnPath]:
    import pypdfium2.raw as pdfium

    for item in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_PATH], max_depth=3):
        straight = 0
        slanted = 0
        curves = 0
        point = (0.0, 0.0)
        for index in range(min(pdfium.FPDFPath_CountSegments(item.raw), MOST_SEGMENTS)):
            segment = pdfium.FPDFPath_GetPathSegment(item.raw, index)
            kind = pdfium.FPDFPathSegment_GetType(segment)
            end = _end_point(segment)
            if kind == pdfium.FPDF_SEGMENT_LINETO:
                straight += 1
                slanted += _is_slanted(point, end)
            elif kind == pdfium.FPDF_SEGMENT_BEZIERTO:
                curves += 1
            point = end
        box = object_box(item)
        is_rule = min(box.width, box.height) < RULE
        is_rectangle = not (curves or slanted or is_rule)
        yield DrawnPath(
            box=box,
            slanted=0 if is_rule else slanted,  # the ends of rules may be cut at a slant
            is_dot=curves > 0 and straight == 0,
            is_bar=is_rectangle and _is_filled(item),
        )


def _is_filled(item: Any) -> bool:
    import pypdfium2.raw as pdfium

    fill = ctypes.c_int()
    stroke = ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(item.raw, fill, stroke)
    return bool(fill.value != pdfium.FPDF_FILLMODE_NONE)


def _end_point(segment: Any) -> tuple[float, float]:
    import pypdfium2.raw as pdfium

    x = ctypes.c_float()
    y = ctypes.c_float()
    pdfium.FPDFPathSegment_GetPoint(segment, x, y)
    return x.value, y.value


def _is_slanted(start: tuple[float, float], end: tuple[float, float]) -> bool:
    x, y = start
    end_x, end_y = end
    width = abs(end_x - x)
    height = abs(end_y - y)
    return min(width, height) > STRAIGHT * max(width, height)


def _is_chart(paths: Sequence[DrawnPath]) -> bool:
    """Whether paths show more than the lines, shades and frames of a table or a box."""
    slanted = sum(path.slanted for path in paths)
    dots = sum(path.is_dot for path in paths)
    boxes = [path.box for path in paths if path.is_bar]
    return slanted >= FEWEST_SLANTED or dots >= FEWEST_DOTS or _are_bars(boxes)


def _are_bars(boxes: Iterable[Box]) -> bool:
    """Whether boxes of the same width and of different lengths start at the same line."""
    lengths: dict[tuple[str, int, int], set[int]] = defaultdict(set)
    for box in boxes:
        width = round(box.width)
        height = round(box.height)
        lengths["standing", round(box.bottom), width].add(height)
        lengths["lying", round(box.left), height].add(width)
    return any(len(different) >= FEWEST_BARS for different in lengths.values())


def _with_labels(area: Box, lines: Iterable[Box]) -> Box:
    """The area with the short lines of text around the chart: titles, scales, legends."""
    near = Box(
        left=area.left - LABEL_DISTANCE,
        bottom=area.bottom - LABEL_DISTANCE,
        right=area.right + LABEL_DISTANCE,
        top=area.top + LABEL_DISTANCE,
    )
    labels = [line for line in lines if line.width < area.width and near.holds(line)]
    return around([area, *labels])
