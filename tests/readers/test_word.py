"""Word files: numbers of lists, content controls, text boxes, notes, and rarer kinds of files."""

import io
import zipfile

import pytest

pytest.importorskip("docx")

import docx
import openpyxl
import pptx
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from lightrag_jsonl.readers.word_numbers import written_number
from tests.readers.files import read, replaced, saved, zipped

NAMES = nsdecls("w")
BODY = "word/document.xml"
TYPES = "[Content_Types].xml"
CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def with_body(*blocks: str) -> bytes:
    """A Word file with these blocks of WordprocessingML."""
    made = docx.Document()
    for block in blocks:
        xml = (
            block.replace(">", f" {NAMES}>", 1)
            if not block.startswith("<w:p>")
            else block.replace("<w:p>", f"<w:p {NAMES}>", 1)
        )
        made.element.body.insert(len(made.element.body) - 1, parse_xml(xml))
    return saved(made)


def listed(text: str, level: int, list_id: int = 77) -> str:
    return paragraph(
        text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>'
    )


def level(number: int, format: str, pattern: str, start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="{start}"/><w:numFmt w:val="{format}"/>'
        f'<w:lvlText w:val="{pattern}"/></w:lvl>'
    )


def with_lists(data: bytes, levels: str, more: str = "") -> bytes:
    """The file with a list of these levels, whose id is 77."""
    abstract = f'<w:abstractNum w:abstractNumId="77">{levels}</w:abstractNum>'
    number = f'<w:num w:numId="77"><w:abstractNumId w:val="77"/></w:num>{more}'

    def change(part: bytes) -> bytes:
        before, mark, after = part.partition(b"<w:num ")
        text = before + abstract.encode() + mark + after
        return text.replace(b"</w:numbering>", number.encode() + b"</w:numbering>")

    return replaced(data, "word/numbering.xml", change)


def test_paragraphs_have_the_numbers_of_their_list() -> None:
    """Levels begin anew below each number, and are indented; Chinese numbers are written so."""
    levels = (
        level(0, "chineseCountingThousand", "第%1条")
        + level(1, "decimal", "%1.%2")
        + level(2, "lowerLetter", "(%3)", start=2)
        + level(3, "bullet", "•")
    )
    texts = [
        ("Delivery", 0),
        ("Pumps", 1),
        ("Valves", 1),
        ("steel", 2),
        ("dot", 3),
        ("付款", 0),
        ("Days", 1),
    ]
    data = with_lists(with_body(*[listed(text, number) for text, number in texts]), levels)
    assert read(data, "a.docx").text.split("\n\n") == [
        *(
            "第一条 Delivery",
            "  一.1 Pumps",
            "  一.2 Valves",
            "    (b) steel",
            "      - dot",
            "第二条 付款",
            "  二.1 Days",
        )
    ]


def test_a_list_can_begin_anew() -> None:
    """Another list of the same definition goes on, unless it says where it begins."""
    restart = (
        '<w:num w:numId="78"><w:abstractNumId w:val="77"/><w:lvlOverride w:ilvl="0">'
        '<w:startOverride w:val="5"/></w:lvlOverride></w:num>'
    )
    blocks = [listed("a", 0), listed("b", 0), listed("c", 0, 78), listed("d", 0, 78)]
    data = with_lists(with_body(*blocks), level(0, "upperRoman", "%1."), restart)
    assert read(data, "a.docx").text == "I. a\n\nII. b\n\nV. c\n\nVI. d"


def test_a_heading_has_its_number() -> None:
    """After the mark of its level."""
    made = docx.Document()
    made.add_heading("Scope", 1)
    data = with_lists(saved(made), level(0, "decimal", "§ %1"))
    number = b'<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="77"/></w:numPr>'
    data = replaced(data, BODY, lambda part: part.replace(b"<w:pPr>", number, 1))
    assert read(data, "a.docx").text == "# § 1 Scope"


@pytest.mark.parametrize(
    ("number", "format", "text"),
    [
        (4, "lowerRoman", "iv"),
        (1994, "upperRoman", "MCMXCIV"),
        (28, "upperLetter", "BB"),
        (10, "chineseCounting", "十"),
        (42, "japaneseCounting", "四十二"),
        (7, "decimalZero", "07"),
        (0, "lowerLetter", "0"),
        (10**9, "upperLetter", "1000000000"),
    ],
)
def test_numbers_are_written_as_their_list_says(number: int, format: str, text: str) -> None:
    """A number that has no such form is written in digits, and none is long."""
    assert written_number(number, format) == text


def control(content: str) -> str:
    return f"<w:sdt><w:sdtPr/><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def test_content_controls_are_read_wherever_they_stand() -> None:
    """Around paragraphs, rows, cells and words, also inside each other."""
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    row = f"<w:tr>{cell.format('Name')}{control(cell.format('张三'))}</w:tr>"
    table = f"<w:tbl><w:tblPr/><w:tblGrid/>{row}{control(row.replace('Name', 'Mate'))}</w:tbl>"
    words = f"<w:p><w:r><w:t>in </w:t></w:r>{control('<w:r><w:t>Leith</w:t></w:r>')}</w:p>"
    data = with_body(control(control(paragraph("Form"))), table, words)
    assert read(data, "a.docx").text == "Form\n\n| Name | 张三 |\n| Mate | 张三 |\n\nin Leith"


def test_a_text_box_follows_its_paragraph() -> None:
    """Once, although a copy for older programs is in the file."""
    box = "<w:txbxContent><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:txbxContent>"
    markup = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    drawing = (
        f"<w:r><mc:AlternateContent {markup}><mc:Choice>{box.format('Inside')}</mc:Choice>"
        f"<mc:Fallback>{box.format('Inside')}</mc:Fallback></mc:AlternateContent></w:r>"
    )
    data = with_body(
        f"<w:p><w:r><w:t>Before </w:t></w:r>{drawing}<w:r><w:t>after.</w:t></w:r></w:p>"
    )
    assert read(data, "a.docx").text == "Before after.\n\nInside"


def test_notes_follow_the_paragraph_that_refers_to_them() -> None:
    """Numbered in their order; a note that refers to itself ends."""
    reference = '<w:r><w:{0}Reference w:id="{1}"/></w:r>'
    data = with_body(
        f"<w:p><w:r><w:t>Pumps last</w:t></w:r>{reference.format('footnote', 7)}"
        f"<w:r><w:t> ten years</w:t></w:r>{reference.format('endnote', 7)}</w:p>",
        paragraph("Next."),
    )
    parts = {}
    for kind in ("footnote", "endnote"):
        text = "in sea water" if kind == "footnote" else "海水中"
        note = paragraph(text).replace("</w:p>", reference.format(kind, 7) + "</w:p>")
        parts[f"word/{kind}s.xml"] = (
            f'<w:{kind}s {NAMES}><w:{kind} w:id="7">{note}</w:{kind}></w:{kind}s>'
        )
    relation = (
        '<Relationship Id="n{0}" Target="{0}s.xml" Type="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships/{0}s"/>'
    )
    added = relation.format("footnote") + relation.format("endnote")
    data = replaced(
        data,
        "word/_rels/document.xml.rels",
        lambda part: part.replace(b"</Relationships>", added.encode() + b"</Relationships>"),
    )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        whole = zipped({**{name: archive.read(name) for name in archive.namelist()}, **parts})
    assert read(whole, "a.docx").text == (
        "Pumps last[^1] ten years[^2]\n\n[^1]: in sea water\n\n[^2]: 海水中\n\nNext."
    )


def letter() -> bytes:
    made = docx.Document()
    made.add_heading("Report", 1)
    made.add_paragraph("张骞出使西域。")
    return saved(made)


@pytest.mark.parametrize(
    ("name", "main_type"),
    [
        ("a.docm", "application/vnd.ms-word.document.macroEnabled.main+xml"),
        ("a.dotm", "application/vnd.ms-word.template.macroEnabledTemplate.main+xml"),
        (
            "a.dotx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
        ),
    ],
)
def test_templates_and_files_with_macros_are_read(name: str, main_type: str) -> None:
    """As documents."""
    usual = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    data = replaced(letter(), TYPES, lambda part: part.replace(usual, main_type.encode()))
    assert main_type.encode() not in usual and read(data, name).text == "# Report\n\n张骞出使西域。"


@pytest.mark.parametrize("name", ["a.pptm", "a.ppsx", "a.potx", "a.xlsm", "a.xltx", "a.xltm"])
def test_shows_and_workbooks_with_macros_are_read(name: str) -> None:
    """And templates of both."""
    if name.startswith("a.p"):
        deck = pptx.Presentation()
        deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Fleet"
        kinds = {
            "a.pptm": b"vnd.ms-powerpoint.presentation.macroEnabled.main",
            "a.ppsx": b"vnd.openxmlformats-officedocument.presentationml.slideshow.main",
            "a.potx": b"vnd.openxmlformats-officedocument.presentationml.template.main",
        }
        usual = b"vnd.openxmlformats-officedocument.presentationml.presentation.main"
        data = replaced(saved(deck), TYPES, lambda part: part.replace(usual, kinds[name]))
    else:
        book = openpyxl.Workbook()
        book.active.append(["Fleet"])
        kinds = {
            "a.xlsm": b"vnd.ms-excel.sheet.macroEnabled.main",
            "a.xltx": b"vnd.openxmlformats-officedocument.spreadsheetml.template.main",
            "a.xltm": b"vnd.ms-excel.template.macroEnabled.main",
        }
        usual = b"vnd.openxmlformats-officedocument.spreadsheetml.sheet.main"
        data = replaced(saved(book), TYPES, lambda part: part.replace(usual, kinds[name]))
    assert "Fleet" in "".join(read(data, name).pages or ())


def strict(data: bytes) -> bytes:
    """A package with the names of ISO/IEC 29500 Strict."""
    usual = b"http://schemas.openxmlformats.org/%s/2006/"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    kinds = ("wordprocessingml", "spreadsheetml", "presentationml", "drawingml", "officeDocument")
    for name, part in parts.items():
        for kind in kinds:
            part = part.replace(
                usual % kind.encode(), f"http://purl.oclc.org/ooxml/{kind}/".encode()
            )
        parts[name] = part
    return zipped(parts)


def test_strict_packages_are_read() -> None:
    """Of all three programs."""
    assert read(strict(letter()), "a.docx").text == "# Report\n\n张骞出使西域。"
    book = openpyxl.Workbook()
    book.active.append(["Name", "Born"])
    book.active.append(["Ada", 1815])
    assert read(strict(saved(book)), "a.xlsx").pages == ("# Sheet\n\nName: Ada; Born: 1815",)
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Fleet"
    assert read(strict(saved(deck)), "a.pptx").pages == ("# Slide 1: Fleet",)


def test_a_chart_follows_its_paragraph() -> None:
    """As a table of its categories and series."""
    made = docx.Document()
    chart = Part(
        PackURI("/word/charts/chart1.xml"),
        "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
        (
            f'<c:chartSpace xmlns:c="{CHART}" xmlns:a="{DRAWING}"><c:chart><c:plotArea><c:pie3DChart>'
            "<c:ser><c:tx><c:v>Ships</c:v></c:tx>"
            '<c:cat><c:strLit><c:pt idx="0"><c:v>Leith</c:v></c:pt></c:strLit></c:cat>'
            '<c:val><c:numLit><c:pt idx="0"><c:v>7</c:v></c:pt></c:numLit></c:val>'
            "</c:ser></c:pie3DChart></c:plotArea></c:chart></c:chartSpace>"
        ).encode(),
        made.part.package,
    )
    relation = made.part.relate_to(chart, f"{RELATIONS}/chart")
    made.element.body.insert(
        0,
        parse_xml(
            f'<w:p {NAMES} xmlns:a="{DRAWING}" xmlns:c="{CHART}" xmlns:r="{RELATIONS}">'
            "<w:r><w:t>Ships by port</w:t><w:drawing><a:graphic><a:graphicData>"
            f'<c:chart r:id="{relation}"/>'
            "</a:graphicData></a:graphic></w:drawing></w:r></w:p>"
        ),
    )
    text = read(saved(made), "a.docx").text
    assert text == "Ships by port\n\n|  | Ships |\n| Leith | 7 |"
