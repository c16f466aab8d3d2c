"""Tables as people make them: forms, notes above and beside, damaged styles, charts."""

import re
from pathlib import PurePath

import pytest

pytest.importorskip("openpyxl")

import openpyxl
import pptx
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from lightrag_jsonl.readers import read_file
from tests.readers.files import read, replaced, saved


def rows_of(text: str) -> list[str]:
    return read(text, "a.csv").text.split("\n\n")


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("Name:,Ada\nBorn:,1815\nPort:,Leith", ["Name: Ada", "Born: 1815", "Port: Leith"]),
        ("姓名：,艾达\n城市：,利斯", ["姓名: 艾达", "城市: 利斯"]),
        ("Depth,12.5\nWidth,3", ["Depth: 12.5", "Width: 3"]),
        ("Year,1815\nNorth,12", ["Year: North; 1815: 12"]),
        ("Name,Port\nAda,Leith", ["Name: Ada; Port: Leith"]),
        ("Costs of 1815\n,in pounds\nPart,Price\nPump,4", ["Costs of 1815", "in pounds",
                                                         "Part: Pump; Price: 4"]),
        ("Part,Price,Only for spare parts\nPump,4,", ["Part: Pump; Price: 4",
                                                    "Only for spare parts"]),
        ("Part,Price", ["Part; Price"]),
    ],
)  # fmt: skip
def test_no_cell_is_lost_or_taken_for_a_header(table: str, rows: list[str]) -> None:
    """Forms have names and values; notes above a table and empty columns stay texts."""
    assert rows_of(table) == rows


def test_damaged_styles_cost_only_themselves() -> None:
    """The values are read, and a note says what is missing."""
    book = openpyxl.Workbook()
    book.active.append(["Part", "Share"])
    book.active.append(["Pump", 0.125])
    book.active["B2"].number_format = "0.0%"
    whole = saved(book)
    damaged = replaced(
        whole,
        "xl/styles.xml",
        lambda part: re.sub(rb"<fills.*?</fills>", b'<fills count="1"><fill/></fills>', part),
    )
    content = read_file(damaged, PurePath("a.xlsx"))

    assert read(whole, "a.xlsx").pages == ("# Sheet\n\nPart: Pump; Share: 12.5%",)
    assert content.document.pages == ("# Sheet\n\nPart: Pump; Share: 0.125",)
    assert "styles of the workbook are damaged" in content.notes[0]


def test_charts_of_any_kind_are_tables() -> None:
    """Also those that python-pptx does not know, such as bars in space; in their formats."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    data = CategoryChartData(number_format="0%")
    data.categories = ["Leith", "Dover"]
    data.add_series("Share", (0.4, 0.6))
    slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, 0, 4_000_000, 3_000_000, data)
    chart = slide.shapes[0].chart.part.partname.lstrip("/")
    in_space = replaced(saved(deck), chart, lambda part: part.replace(b"barChart", b"bar3DChart"))

    table = "|  | Share |\n| Leith | 40% |\n| Dover | 60% |"
    assert read(in_space, "a.pptx").pages == (f"# Slide 1\n\n{table}",)
