"""Reads charts and SmartArt diagrams in the files of Office."""

from itertools import zip_longest
from typing import Any

from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_table
from lightrag_jsonl.readers.number_formats import number_text
from lightrag_jsonl.readers.xml_elements import xml_root
from lightrag_jsonl.text.strings import single_spaced

CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
RELATIONSHIP = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
LARGEST_INDEX = 100_000  # of a point; a prepared file can name any


def drawing_text(element: Any, part: Any, meter: FileMeter) -> str:
    """The chart or the diagram in an element of a package's part; "" without a drawing."""
    chart = _related_root(element.find(f".//{CHART}chart"), "id", part)
    if chart is not None:
        return _chart_text(chart, meter)
    diagram = _related_root(element.find(f".//{DIAGRAM}relIds"), "dm", part)
    if diagram is not None:
        return _diagram_text(diagram)
    return ""


def _related_root(reference: Any, attribute: str, part: Any) -> Any | None:
    """The root of the part named by an element's reference; None for a missing part or no XML."""
    if reference is None:
        return None
    part_id = reference.get(f"{RELATIONSHIP}{attribute}")
    if part_id not in part.rels:
        return None
    relation = part.rels[part_id]
    if relation.is_external:
        return None
    return xml_root(relation.target_part.blob)


def _chart_text(chart: Any, meter: FileMeter) -> str:
    """The title of a chart, and a table of categories and series for each plot."""
    blocks: list[str] = []
    title = chart.find(f"{CHART}chart/{CHART}title")
    if title is not None:
        text = "".join(title.itertext(f"{DRAWING}t", f"{CHART}v"))
        blocks.append(single_spaced(text))
    for plot in chart.iterfind(f".//{CHART}plotArea/*"):
        series = plot.findall(f"{CHART}ser")
        if series:
            blocks.append(_plot_table(series, meter))
    return "\n\n".join(filter(None, blocks))


def _plot_table(series: list[Any], meter: FileMeter) -> str:
    names = [_first_text(line.find(f"{CHART}tx")) for line in series]
    categories: list[str] = []
    for line in series:
        points = _points(line, ("cat", "xVal"), meter)
        categories = max(categories, points, key=len)
    columns = [_points(line, ("val", "yVal"), meter) for line in series]
    rows = zip_longest(categories, *columns, fillvalue="")
    return markdown_table([["", *names], *rows])


def _points(series: Any, names: tuple[str, ...], meter: FileMeter) -> list[str]:
    """The texts of the points of a series in order, numbers as formatted."""
    texts: dict[int, str] = {}
    for name in names:
        for cache in series.iterfind(f"{CHART}{name}//{CHART}pt/.."):
            is_text = cache.tag == f"{CHART}strCache"
            format = cache.findtext(f"{CHART}formatCode") or "General"
            for point in cache.iterfind(f"{CHART}pt"):
                index = point.get("idx", "")
                if index.isdecimal() and int(index) < LARGEST_INDEX:
                    value = point.findtext(f"{CHART}v") or ""
                    text = value if is_text else _formatted_value(value, format)
                    texts.setdefault(int(index), text)
    length = max(texts, default=-1) + 1
    meter.add_cells(length)
    return [texts.get(index, "") for index in range(length)]


def _formatted_value(value: str, format: str) -> str:
    try:
        return number_text(float(value), format)
    except (ValueError, OverflowError):
        return value


def _first_text(element: Any) -> str:
    """The text of the first value in an element."""
    if element is None:
        return ""
    return element.findtext(f".//{CHART}v") or ""


def _diagram_text(diagram: Any) -> str:
    """The texts of a diagram, each on a line."""
    lines: list[str] = []
    for point in diagram.iter(f"{DIAGRAM}pt"):
        line = "".join(text.text or "" for text in point.iter(f"{DRAWING}t"))
        if line.strip():
            lines.append(line)
    return "\n".join(lines)
