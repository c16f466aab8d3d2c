"""Tables as people make them: forms, notes above and beside, damaged styles, charts."""

import re

import pytest

pytest.importorskip("openpyxl")

import openpyxl
import pptx
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from tests.readers.files import read, read_content, replaced, saved


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


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("Boat,Crew\nPetrel,4\n\nPort,Lamps\nLeith,9\n利斯,3",
         ["Boat: Petrel; Crew: 4", "Port: Leith; Lamps: 9", "Port: 利斯; Lamps: 3"]),
        ("Boat,Crew\nPetrel,4\n\nTern,7", ["Boat: Petrel; Crew: 4", "Boat: Tern; Crew: 7"]),
        ("Boat,Crew\n\nPetrel,4\nTern,7", ["Boat: Petrel; Crew: 4", "Boat: Tern; Crew: 7"]),
        ("Boat,Crew\nPetrel,4\n\nDora,keeper\nCid,cook", ["Boat: Petrel; Crew: 4", "Dora; keeper", "Cid; cook"]),
        ("Boat,Crew\nPetrel,4\n\nSource: the log", ["Boat: Petrel; Crew: 4", "Source: the log"]),
        ("Boat,Crew\nPetrel,4\nBoat,Crew\nTern,7", ["Boat: Petrel; Crew: 4", "Boat: Tern; Crew: 7"]),
        ("Dora,31,Leith\nCid,40,Hull", ["Dora; 31; Leith", "Cid; 40; Hull"]),
        ("2024-01-05,12.5,Leith\n2024-01-06,13.0,Hull", ["2024-01-05; 12.5; Leith", "2024-01-06; 13.0; Hull"]),
        ("艾达,12,利斯\n鲍勃,14,赫尔", ["艾达; 12; 利斯", "鲍勃; 14; 赫尔"]),
        ("Port,1,2,3\nLeith,4,5,6", ["Port: Leith; 1: 4; 2: 5; 3: 6"]),
        ("Port,2023,2024\nLeith,4,5", ["Port: Leith; 2023: 4; 2024: 5"]),
    ],
)  # fmt: skip
def test_no_row_has_the_names_of_another_table(table: str, rows: list[str]) -> None:
    """Tables under each other have their own headers, and values without a header have no names."""
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
    content = read_content(damaged, "a.xlsx")

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
