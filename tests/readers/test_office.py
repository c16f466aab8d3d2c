"""Word, PowerPoint and Excel files, and the traps that such archives of XML can hold."""

import datetime
import io
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("docx")
pytest.importorskip("pptx")
pytest.importorskip("openpyxl")

import docx
import openpyxl
import pptx
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls

from lightrag_jsonl import ConfigError, Document, FileLimits, LightRAG
from lightrag_jsonl.readers import compression
from tests.readers.files import read, replaced, saved, zipped


def letter() -> docx.document.Document:
    """A Word file with headings around a table."""
    made = docx.Document()
    made.add_heading("Report", 0)
    made.add_heading("Costs 费用", 1)
    table = made.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Ada", "12"
    made.add_heading("Later", 2)
    made.add_paragraph("张骞出使西域。")
    return made


def test_word_keeps_the_order_of_the_body() -> None:
    """Headings are those of Markdown, and a table stands between the paragraphs around it."""
    assert read(saved(letter()), "a.docx") == Document(
        "# Report\n\n# Costs 费用\n\n| Ada | 12 |\n\n## Later\n\n张骞出使西域。", title="a"
    )


REVIEWED = (
    b"<w:r><w:t>kept </w:t></w:r><w:ins><w:r><w:t>added</w:t></w:r></w:ins>"
    b"<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
)
SIGNS = (
    b"<w:r><w:t>well</w:t><w:noBreakHyphen/><w:t>known</w:t><w:tab/><w:t>1</w:t><w:br/>"
    b"<w:t>2</w:t></w:r>"
)


@pytest.mark.parametrize(
    ("xml", "text"), [(REVIEWED, "kept added"), (SIGNS, "well-known\t1\n2")], ids=["edits", "signs"]
)
def test_word_reads_insertions_and_signs_and_not_deletions(xml: bytes, text: str) -> None:
    """What a reviewer added is text, what they removed is none; a hyphen that does not break a line,
    a tab and a line's end do not join the words around.
    """
    body, more = "word/document.xml", b"<w:p>" + xml + b"</w:p><w:sectPr"
    data = replaced(saved(letter()), body, lambda part: part.replace(b"<w:sectPr", more, 1))
    assert read(data, "a.docx").text.endswith(f"张骞出使西域。\n\n{text}")


def test_external_entities_are_not_read(tmp_path: Path) -> None:
    """A Word file cannot make the reader open another file."""
    secret = tmp_path / "secret"
    secret.write_text("the password", encoding="utf-8")
    entity = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'.encode()

    def changed(part: bytes) -> bytes:
        head, mark, body = part.partition(b"<w:document")
        return head + entity + mark + body.replace("张骞".encode(), b"&e;")

    text = read(replaced(saved(letter()), "word/document.xml", changed), "a.docx").text
    assert "password" not in text and "Costs" in text


@pytest.mark.slow
def test_short_slides_share_a_page_and_long_ones_do_not(tmp_path: Path) -> None:
    """The page of a slide has its number; short ones stand on that of the first of them."""
    deck = pptx.Presentation()
    for number in range(1, 7):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"Topic {number}"
        slide.placeholders[1].text = f"Point {number}." if number < 4 else "很长的内容。" * 150
    slide.notes_slide.notes_text_frame.text = "The speaker mentions Kyoto."
    pages = read(saved(deck), "deck.pptx").pages or ()
    assert pages[0].startswith("# Slide 1: Topic 1\n\n- Point 1.\n\n# Slide 2: Topic 2")
    assert pages[1:3] == ("", "") and pages[4].startswith("# 幻灯片 5: Topic 5\n\n- 很长的内容。")
    assert pages[5].endswith("The speaker mentions Kyoto.")
    (tmp_path / "deck.pptx").write_bytes(saved(deck))
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(tmp_path / "deck.pptx")
        found = rag.retrieve("Point", mode="naive").chunks
        assert {chunk.page for chunk in found} == {1, 4, 5, 6}
        assert {chunk.page for chunk in found if "Point 3." in chunk.text} == {1}


def test_rows_of_a_workbook_repeat_its_header() -> None:
    """A sheet is a page; dates, numbers and Chinese are as people write them; blank rows go."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "People"
    for row in (
        (),
        ("Name", "Born", "Shoes"),
        ("Ada", datetime.datetime(1815, 12, 10), 3.0),
        (None, None, None),
        ("张三", None, 2.5, "unnamed"),
    ):
        sheet.append(row)
    book.create_sheet("Empty")
    book.create_sheet("One").append(["only a header"])
    assert read(saved(book), "a.xlsx").pages == (
        "# People\n\nName: Ada; Born: 1815-12-10; Shoes: 3\n\nName: 张三; Shoes: 2.5; unnamed",
        "# One\n\nonly a header",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '姓名;城市\n张三;北京\n李四;"上海;浦东"\n',
            "姓名: 张三; 城市: 北京\n\n姓名: 李四; 城市: 上海;浦东",
        ),
        ("a\tb\r\n1\t2\r\n", "a: 1; b: 2"),
        ('a,b\n"two\nlines",1', "a: two lines; b: 1"),
    ],
)
def test_rows_of_csv(text: str, expected: str) -> None:
    """Whatever the delimiter, and in the encoding that Excel writes in China."""
    assert read(text.encode("gb18030"), "a.csv").text == expected


def test_a_quotation_mark_that_is_not_closed_is_named() -> None:
    """It would swallow the rest of the file as one cell."""
    with pytest.raises(ConfigError, match=r"a\.csv cannot be read near line 2.*quotation mark"):
        read(b'a,b\n1,"' + b"x" * 200_000, "a.csv")


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.epub"])
def test_broken_files_say_so(name: str) -> None:
    """Cut off, not what their suffix says, protected by a password, or empty."""
    old = b"\xd0\xcf\x11\xe0" + bytes(600)
    for data, words in (
        (b"", "no"),
        (saved(letter())[:900], "no"),
        (zipped({"a": "b"}), "no|cannot be read"),
        (old, "encrypted, or of an older format"),
    ):
        with pytest.raises(ConfigError, match=f"{name} (is )?({words})"):
            read(data, name)


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.epub"])
def test_bombs_are_not_uncompression(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that unpacks to a very large one is refused before it is opened."""
    bomb = zipped({"word/document.xml": bytes(compression.UNSUSPICIOUS + 1)})
    assert len(bomb) < 100_000
    with pytest.raises(ConfigError, match="unpacks to"):
        read(bomb, name)
    monkeypatch.setattr(compression, "LARGEST", 10_000)
    with pytest.raises(ConfigError, match="more than 10,000"):
        read(saved(letter()), name)


def test_an_archive_cannot_lie_about_its_sizes() -> None:
    """A part unpacks to what the directory states, which is what is checked, or the file is broken."""
    honest = zipped({"word/document.xml": bytes(1 << 20)})
    place = honest.rindex(b"PK\x01\x02") + 24
    lying = honest[:place] + (10).to_bytes(4, "little") + honest[place + 4 :]
    with compression.open_zip(lying, ".docx") as opened, pytest.raises(zipfile.BadZipFile):
        opened.read("word/document.xml")
    with zipfile.ZipFile(io.BytesIO(lying)) as opened:
        assert opened.infolist()[0].file_size == 10


def sheet(rows: list[tuple[object, ...]], *merged: str) -> str:
    """The text of a workbook with these rows and merged ranges."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    (page,) = read(saved(book), "a.xlsx").pages or ()
    return page.removeprefix("# Sheet\n\n")


def test_merged_cells_are_filled() -> None:
    """Down and across, unless the range is all that is in its row."""
    rows: list[tuple[object, ...]] = [
        ("Fleet of 1815", None, None),
        ("Port", "Ship", "Mate"),
        ("Leith", "Petrel", "Ada"),
        (None, "Heron", "Bo"),
        ("大连", "Tern", None),
        ("Gone home", None, None),
    ]
    text = sheet(rows, "A1:C1", "A3:A4", "B5:C5", "A6:C6")
    assert text.split("\n\n") == [
        "Fleet of 1815",
        "Port: Leith; Ship: Petrel; Mate: Ada",
        "Port: Leith; Ship: Heron; Mate: Bo",
        "Port: 大连; Ship: Tern; Mate: Tern",
        "Port: Gone home",
    ]


def test_two_header_rows_are_one() -> None:
    """Where the upper one has groups of columns; a row of values below it is none."""
    head: list[tuple[object, ...]] = [
        ("港口", "2023", None, "2024", None),
        (None, "In", "Out", "In", "Out"),
    ]
    rows = [*head, ("Leith", 12, 3, 14, 4)]
    text = "港口: Leith; 2023 In: 12; 2023 Out: 3; 2024 In: 14; 2024 Out: 4"
    assert sheet(rows, "A1:A2", "B1:C1", "D1:E1") == text
    one_row: list[tuple[object, ...]] = [head[0], ("Leith", 12, 3, 14, 4)]
    assert sheet(one_row, "B1:C1", "D1:E1") == "港口: Leith; 2023: 12; 2023: 3; 2024: 14; 2024: 4"


def test_ranges_of_a_prepared_file_end() -> None:
    """However wide and many they are."""
    ranges = [f"B{row}:XFD1048576" for row in range(2, 40)]
    rows: list[tuple[object, ...]] = [("a", "b"), *[(f"n{number}", "x") for number in range(60)]]
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.active.merge_cells("A1:B1")
    part = "xl/worksheets/sheet1.xml"
    added = "".join(f'<mergeCell ref="{cells}"/>' for cells in ranges).encode()
    data = replaced(
        saved(book), part, lambda xml: xml.replace(b"</mergeCells>", added + b"</mergeCells>")
    )
    limits = FileLimits(cells=10_000, characters=100_000)
    with pytest.raises(ConfigError, match="more than"):
        read(data, "a.xlsx", limits=limits)


@pytest.mark.parametrize(
    ("value", "format", "text"),
    [
        (0.125, "0.0%", "12.5%"),
        (0.07, "0%", "7%"),
        (1234.5, "#,##0.00", "1234.50"),
        (1234.5, '"$"#,##0.00', "$1234.50"),
        (12, "#,##0.00 [$€-407]", "12.00 €"),
        (3.25, '0.0 "kg"', "3.2 kg"),
        (42, "00000", "00042"),
        (0.1 + 0.2, "General", "0.3"),
        (2.5, "0", "2.5"),
        (1e21, "0.00E+00", "1e+21"),
        (-5, "0;(0)", "-5"),
        (7.0, "General", "7"),
        (3, '0"' + "x" * 40 + '"', "3"),
    ],
)
def test_numbers_are_written_in_their_format(value: float, format: str, text: str) -> None:
    """Percent, decimals, currency, units and zeros; no digit that nobody typed."""
    book = openpyxl.Workbook()
    book.active.append(["Name", "Value"])
    book.active.append(["Ada", value])
    book.active["B2"].number_format = format
    assert read(saved(book), "a.xlsx").pages == (f"# Sheet\n\nName: Ada; Value: {text}",)


def test_charts_of_slides_are_tables() -> None:
    """With the title, the categories and the series of each."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    data = CategoryChartData()
    data.categories = ["Leith", "大连"]
    data.add_series("Ships", (40, 7.5))
    data.add_series("Mates", (12, None))
    shape = slide.shapes.add_chart(XL_CHART_TYPE.LINE, 0, 0, 4_000_000, 3_000_000, data)
    shape.chart.has_title = True
    shape.chart.chart_title.text_frame.text = "Ships by port"
    assert read(saved(deck), "a.pptx").pages == (
        "# 幻灯片 1\n\nShips by port\n\n|  | Ships | Mates |\n| Leith | 40 | 12 |\n| 大连 | 7.5 |  |",
    )


def test_lists_on_slides_have_their_bullets_and_numbers() -> None:
    """Indented by level: bullets of the layout or of the paragraph, and none where none is shown."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Lamp"
    points = [
        ("Parts", 0, ""),
        ("lens", 1, ""),
        ("of glass", 2, ""),
        ("Read the manual", 0, "buNone"),
        ("Light it", 0, "buAutoNum type='alphaLcParenR' startAt='3'"),
        ("Dim it", 0, "buAutoNum type='alphaLcParenR' startAt='3'"),
        ("清洗", 0, "buAutoNum type='arabicPeriod'"),
    ]
    frame = slide.placeholders[1].text_frame
    for number, (text, level, mark) in enumerate(points):
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.text = text
        paragraph.level = level
        if mark:
            properties = paragraph._p.get_or_add_pPr()
            properties.append(parse_xml(f"<a:{mark} {nsdecls('a')}/>"))
    slide.shapes.add_textbox(0, 9_000_000, 9, 9).text_frame.text = "Seen at sea\nand on land"
    table_shape = slide.shapes.add_table(1, 2, 0, 9_900_000, 9, 9)
    place = parse_xml(f"<p:ph idx='1' {nsdecls('p')}/>")  # whose points have bullets, unlike cells
    table_shape.element.find(".//{*}nvPr").append(place)
    table = table_shape.table
    table.cell(0, 0).text = "Oil"
    table.cell(0, 1).text = "whale\nrape"
    for paragraph in table.cell(0, 1).text_frame.paragraphs:
        paragraph._p.get_or_add_pPr().append(parse_xml(f"<a:buChar char='•' {nsdecls('a')}/>"))
    cover = deck.slides.add_slide(deck.slide_layouts[0])
    cover.placeholders[1].text_frame.text = "A subtitle"

    pages = read(saved(deck), "deck.pptx").pages or ()

    assert "\n\n".join(page for page in pages if page) == (
        "# Slide 1: Lamp\n\n"
        "- Parts\n  - lens\n    - of glass\nRead the manual\nc) Light it\nd) Dim it\n1. 清洗\n\n"
        "Seen at sea\nand on land\n\n"
        "| Oil | - whale - rape |\n\n"
        "# Slide 2\n\nA subtitle"
    ).replace("Slide", "幻灯片", 1)
