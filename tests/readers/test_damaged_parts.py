"""Files of Office from many programs: one bad part costs the part, and formulas and legal numbers are read."""

import base64
import io
import zipfile

import pytest

pytest.importorskip("docx")

import docx
import openpyxl
import pptx
from docx.oxml import parse_xml

from lightrag_jsonl import ConfigError
from tests.readers.files import read, read_content, replaced, saved

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def letter(*paragraphs: str) -> bytes:
    made = docx.Document()
    for text in paragraphs:
        made.add_paragraph(text)
    return saved(made)


def test_a_picture_that_is_missing_costs_itself() -> None:
    """In texts and presentations; a note names the part."""
    made = docx.Document()
    made.add_paragraph("Dora lights the lamp 灯.")
    made.add_picture(io.BytesIO(PIXEL))
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Lamps"
    slide.shapes.add_picture(io.BytesIO(PIXEL), 0, 0)
    for data, name, relations in (
        (saved(made), "a.docx", "word/_rels/document.xml.rels"),
        (saved(deck), "a.pptx", "ppt/slides/_rels/slide1.xml.rels"),
    ):
        broken = replaced(data, relations, lambda part: part.replace(b"image1.png", b"gone.png"))
        content = read_content(broken, name)
        text = content.document.text + "".join(content.document.pages or ())
        assert "Dora lights the lamp 灯." in text or "# Slide 1: Lamps" in text
        assert "media/gone.png" in content.notes[0]


def test_a_part_that_is_no_xml_costs_itself() -> None:
    """The text has what can be read, and a note names the part; without a main part there is no text."""
    data = letter("Dora lights the lamp.", "灯灭了。")
    marked = replaced(data, "word/settings.xml", lambda part: b"no XML at all")
    cut = replaced(data, "word/document.xml", lambda part: part[: part.index("灭".encode())])
    assert read(marked, "a.docx").text == "Dora lights the lamp.\n\n灯灭了。"
    content = read_content(cut, "a.docx")
    assert content.document.text == "Dora lights the lamp.\n\n灯"
    assert content.notes == ("the part word/document.xml is damaged",)
    with pytest.raises(ConfigError, match=r"its main part is damaged"):
        read(replaced(data, "word/document.xml", lambda part: b"no XML at all"), "a.docx")


@pytest.mark.parametrize("part", ["[Content_Types].xml", "_rels/.rels", "main"])
def test_a_package_without_a_needed_part_is_named(part: str) -> None:
    """In words, and not with the error of a library."""
    deck = pptx.Presentation()
    book = openpyxl.Workbook()
    for data, name, main_part in (
        (letter("Dora lights the lamp."), "a.docx", "word/document.xml"),
        (saved(deck), "a.pptx", "ppt/presentation.xml"),
        (saved(book), "a.xlsx", "xl/workbook.xml"),
    ):
        if (name, part) == ("a.xlsx", "_rels/.rels"):
            continue  # which reading does not need
        with pytest.raises(ConfigError, match="is not a valid") as caught:
            read(without(data, main_part if part == "main" else part), name)
        assert "KeyError" not in str(caught.value)


def without(data: bytes, part: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as package, zipfile.ZipFile(target, "w") as copy:
        for name in package.namelist():
            if name != part:
                copy.writestr(name, package.read(name))
    return target.getvalue()


def test_comments_of_word_are_read_and_headers_are_noted() -> None:
    """A comment follows its paragraph with its writer; a header that the text repeats is no loss."""
    made = docx.Document()
    run = made.add_paragraph("It burned once.").runs[0]
    made.add_comment(run, text="Which year?", author="Cid 小林")
    made.add_paragraph("码头 Log")
    made.sections[0].header.paragraphs[0].text = "码头 Log"
    made.sections[0].footer.paragraphs[0].text = "Finch & Sons, Leith"
    content = read_content(saved(made), "a.docx")
    assert content.document.text == (
        "It burned once.\n\nComment by Cid 小林: Which year?\n\n码头 Log"
    )
    assert content.notes == ("headers and footers left out: Finch & Sons, Leith",)


def test_a_link_to_another_workbook_costs_nothing() -> None:
    """Its part may be missing."""
    book = openpyxl.Workbook()
    book.active.append(["Boat", "Crew"])
    book.active.append(["Petrel", 4])
    link = (
        b'<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
        b'externalLink" Target="externalLinks/externalLink1.xml"/></Relationships>'
    )
    data = replaced(
        saved(book),
        "xl/_rels/workbook.xml.rels",
        lambda part: part.replace(b"</Relationships>", link),
    )
    assert read(data, "a.xlsx").pages == ("# Sheet\n\nBoat: Petrel; Crew: 4",)


def test_a_view_that_no_program_knows_costs_nothing() -> None:
    """How windows lie, and a word of another program for a sheet that is shown, are no content."""
    book = openpyxl.Workbook()
    book.active.append(["Boat", "Crew"])
    book.active.append(["Petrel", 4])
    data = replaced(
        saved(book),
        "xl/workbook.xml",
        lambda part: part.replace(b'visibility="visible"', b'visibility=""').replace(
            b'state="visible"', b'state="show"'
        ),
    )
    assert read(data, "a.xlsx").pages == ("# Sheet\n\nBoat: Petrel; Crew: 4",)


def test_a_style_without_a_type_is_a_style() -> None:
    """The others keep their levels."""
    made = docx.Document()
    made.add_heading("Quay", 2)
    made.add_paragraph("Dora lights the lamp.")
    data = replaced(
        saved(made),
        "word/styles.xml",
        lambda part: part.replace(
            b'<w:style w:type="paragraph" w:styleId="Heading8"', b'<w:style w:styleId="Heading8"'
        ),
    )
    assert read(data, "a.docx").text == "## Quay\n\nDora lights the lamp."


def test_a_slide_with_a_picture_for_its_title_is_read() -> None:
    """And the slides around it."""
    deck = pptx.Presentation()
    for words in ("The lamp", "灯"):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.placeholders[1].text = words
    with_picture = deck.slides.add_slide(deck.slide_layouts[8])
    placed = with_picture.placeholders[1].insert_picture(io.BytesIO(PIXEL))
    title = with_picture.shapes.title._element
    title.getparent().remove(title)
    mark = placed._element.nvPicPr.nvPr[0]
    mark.set("type", "title")
    mark.attrib.pop("idx", None)
    text = "".join(read(saved(deck), "a.pptx").pages or ())
    assert "The lamp" in text and "灯" in text


def run(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (f"<m:f><m:num>{run('p+q')}</m:num><m:den>{run('3')}</m:den></m:f>", "(p+q)/3"),
        (f"<m:sSup><m:e>{run('x')}</m:e><m:sup>{run('2')}</m:sup></m:sSup>", "x^2"),
        (f"<m:sSub><m:e>{run('v')}</m:e><m:sub>{run('i')}</m:sub></m:sSub>{run('=7')}", "v_i=7"),
        (f"<m:rad><m:radPr/><m:deg/><m:e>{run('y')}</m:e></m:rad>", "sqrt(y)"),
        (f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{run('i=1')}</m:sub><m:sup>{run('n')}</m:sup>"
         f"<m:e>{run('a')}</m:e></m:nary>", "∑_(i=1)^n a"),
        (f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{run('长')}</m:e></m:d>", "[长]"),
    ],
)  # fmt: skip
def test_formulas_stand_in_their_sentences(formula: str, text: str) -> None:
    """As people type them."""
    made = docx.Document()
    paragraph = made.add_paragraph("The length is ")
    paragraph._p.append(parse_xml(f"<m:oMath {MATH}>{formula}</m:oMath>"))
    paragraph.add_run(" at noon.")
    assert read(saved(made), "a.docx").text == f"The length is {text} at noon."


def test_legal_numbers_are_digits() -> None:
    """Below an article that is numbered in letters, Section 2.1 is what everybody cites."""
    made = docx.Document()
    numbering = made.part.numbering_part.element
    levels = (
        '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="upperLetter"/><w:lvlText w:val="Part %1"/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerRoman"/><w:isLgl/><w:lvlText w:val="§ %1.%2"/></w:lvl>'
    )
    numbering.insert(
        0, parse_xml(f'<w:abstractNum {WORD} w:abstractNumId="70">{levels}</w:abstractNum>')
    )
    numbering.append(parse_xml(f'<w:num {WORD} w:numId="70"><w:abstractNumId w:val="70"/></w:num>'))
    for text, level in (("Lamps", 0), ("Oil.", 1), ("Boats", 0), ("Oars.", 1)):
        properties = made.add_paragraph(text)._p.get_or_add_pPr()
        properties.append(
            parse_xml(f'<w:numPr {WORD}><w:ilvl w:val="{level}"/><w:numId w:val="70"/></w:numPr>')
        )
    assert read(saved(made), "a.docx").text.split("\n\n") == [
        "Part A Lamps",
        "  § 1.1 Oil.",
        "Part B Boats",
        "  § 2.1 Oars.",
    ]
