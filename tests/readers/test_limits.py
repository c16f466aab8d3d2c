"""Prepared files: each is refused at a limit that the reason names, or read as what it holds."""

import io
import zipfile

import pytest

pytest.importorskip("docx")
pytest.importorskip("openpyxl")
pytest.importorskip("trafilatura")

import docx
import openpyxl
import pptx

from lightrag_jsonl import ConfigError, FileLimits
from lightrag_jsonl.readers import tables
from tests.readers.files import epub, lines, pdf, read, replaced, saved, zipped

SMALL = FileLimits(characters=1_000, cells=1_000, pages=10)
SHEET = "xl/worksheets/sheet1.xml"
STYLES = "word/styles.xml"


def refused(data: bytes, name: str, limits: FileLimits = SMALL) -> str:
    """The reason why a file is not read."""
    with pytest.raises(ConfigError) as caught:
        read(data, name, limits=limits)
    return str(caught.value)


def workbook(*rows: tuple[object, ...]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return saved(book)


def style(name: str, base: str) -> bytes:
    """A style of paragraphs that is based on another one."""
    return (
        f'<w:style w:type="paragraph" w:styleId="{name}"><w:name w:val="{name}"/>'
        f'<w:basedOn w:val="{base}"/></w:style>'
    ).encode()


def letter(*styles: bytes) -> bytes:
    """A Word file with a heading, a paragraph of the style `Own`, and further styles."""
    made = docx.Document()
    made.add_heading("Report", 1)
    made.add_paragraph("张骞出使西域。")
    more = b"".join(styles)
    data = replaced(
        saved(made), STYLES, lambda part: part.replace(b"</w:styles>", more + b"</w:styles>")
    )
    own = b'<w:p><w:pPr><w:pStyle w:val="Own"/></w:pPr><w:r><w:t>Ada</w:t></w:r></w:p><w:sectPr'
    return replaced(data, "word/document.xml", lambda part: part.replace(b"<w:sectPr", own, 1))


@pytest.mark.slow
def test_styles_based_on_each_other_are_no_headings() -> None:
    """A circle of styles ends, also one of a style with itself."""
    for styles in (
        (style("Own", "B"), style("B", "C"), style("C", "B")),
        (style("Own", "Own"),),
        (style("Own", "absent"),),
    ):
        assert read(letter(*styles), "a.docx").text == "# Report\n\n张骞出使西域。\n\nAda"


@pytest.mark.slow
def test_a_style_inherits_the_level_of_a_heading() -> None:
    """Through a chain of any length."""
    chain = [style(f"C{number}", f"C{number + 1}") for number in range(3_000)]
    styles = (style("Own", "C0"), *chain, style("C3000", "Heading2"))
    assert read(letter(*styles), "a.docx").text.endswith("\n\n## Ada")


def test_a_row_beyond_the_last_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before all blank rows above it have been gone through; a short sheet shows it as a long one does."""
    monkeypatch.setattr(tables, "LONGEST_SHEET", 10_000)
    data = replaced(
        workbook(("Name", "Born"), ("Ada", 1815)),
        SHEET,
        lambda part: part.replace(b'<row r="2"', b'<row r="2000000000"'),
    )
    words = refused(data, "a.xlsx", FileLimits())
    assert "a.xlsx has more than 10,000 rows" in words


@pytest.mark.slow
def test_blank_cells_count() -> None:
    """A cell in the last column makes its row as wide, whatever the file's size."""
    rows = b"".join(
        f'<row r="{number}"><c r="XFD{number}"><v>1</v></c></row>'.encode()
        for number in range(3, 100)
    )
    data = replaced(
        workbook(("Name", "Born"), ("Ada", 1815)),
        SHEET,
        lambda part: part.replace(b"</sheetData>", rows + b"</sheetData>"),
    )
    words = refused(data, "a.xlsx")
    assert "more than 1,000 cells: split it" in words and "FileLimits.cells" in words
    assert read(data, "a.xlsx").pages == ("# Sheet\n\nName: Ada; Born: 1815" + "\n\n1" * 97,)


def test_a_repeated_header_counts_as_often_as_it_is_repeated() -> None:
    """In CSV files and in workbooks; so does a text that many cells share."""
    header = "姓" * 50
    rows = [(f"n{number}", "x") for number in range(50)]
    table = "\n".join(f"{left},{right}" for left, right in [(header, "b"), *rows]).encode()
    assert len(table.decode()) < SMALL.characters
    for data, name in ((table, "a.csv"), (workbook((header, "b"), *rows), "a.xlsx")):
        assert "more than 1,000 characters: split it" in refused(data, name)
    shared = workbook(("Name", "Note"), *[("Ada", "词" * 100)] * 20)
    assert "more than 1,000 characters" in refused(shared, "a.xlsx")


def test_a_chapter_is_read_once() -> None:
    """However often the spine and the manifest of an e-book name its file."""
    book = epub({"a": "<p>第一章</p>", "b": "<p>Two</p>"})
    spine = b'<spine><itemref idref="a"/><itemref idref="c"/>'
    items = b'<item id="c" href="text/a.xhtml#part"/></manifest>'

    def change(part: bytes) -> bytes:
        return part.replace(b"</manifest>", items).replace(b"<spine>", spine)

    assert read(replaced(book, "OEBPS/book.opf", change), "a.epub").pages == ("第一章", "Two")


@pytest.mark.slow
def test_every_kind_has_a_limit_of_characters_and_pages() -> None:
    """Long texts and many pages of each format are refused."""
    text = "word " * 400
    deck = pptx.Presentation()
    for _ in range(11):
        deck.slides.add_slide(deck.slide_layouts[1]).shapes.title.text = "T"
    made = docx.Document()
    made.add_paragraph(text)
    book = openpyxl.Workbook()
    for number in range(11):
        book.create_sheet(f"s{number}").append(["x"])
    for data, name, limit in (
        (saved(made), "a.docx", "characters"),
        (f"<p>{text}</p>".encode(), "a.html", "characters"),
        (epub({"a": f"<p>{text}</p>"}), "a.epub", "characters"),
        (pdf(lambda page: lines(page, [text[:60]] * 40)), "a.pdf", "characters"),
        (saved(deck), "a.pptx", "pages"),
        (saved(book), "a.xlsx", "pages"),
        (epub({f"c{number}": "<p>x</p>" for number in range(11)}), "a.epub", "pages"),
        (pdf(lambda page: [page.showPage() for _ in range(11)]), "a.pdf", "pages"),
    ):
        assert f"{name} has more than {getattr(SMALL, limit):,} {limit}" in refused(data, name)


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.epub"])
def test_archives_in_archives_are_not_opened(name: str) -> None:
    """A part that is itself a compressed file is not text."""
    inner = zipped({"word/document.xml": b"Ada" * 1_000, "secret.txt": b"secret"})
    data = {
        "a.docx": letter(style("Own", "Normal")),
        "a.xlsx": workbook(("Name", "Born"), ("Ada", 1815)),
        "a.pptx": saved(pptx.Presentation()),
        "a.epub": epub({"a": "<p>Ada</p>"}),
    }[name]
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("inner.docx", inner)
    try:
        document = read(stream.getvalue(), name)
    except ConfigError as error:  # the presentation has no slide
        assert "a.pptx is empty" in str(error)
    else:
        assert "secret" not in document.text + "".join(document.pages or ())


@pytest.mark.parametrize("page", ["<div>" * 30_000, "<b>x" * 20_000, "<table><tr><td>" * 1_000])
def test_deeply_nested_pages_end(page: str) -> None:
    """They are read or refused, in a time that does not grow without bound."""
    try:
        assert read(f"<html><body><p>Ada met Bob.</p>{page}", "a.html").text
    except ConfigError as error:
        assert "a.html" in str(error)


@pytest.mark.parametrize("field", ["seconds", "memory", "characters", "cells", "pages"])
def test_limits_are_positive(field: str) -> None:
    """A wrong value is named."""
    for wrong in (0, -1, "many"):
        with pytest.raises(ConfigError, match=field):
            FileLimits(**{field: wrong})  # type: ignore[arg-type]
