"""PDF files: pages, columns, Chinese, divided words, and those that cannot be read."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")

from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from lightrag_jsonl import ConfigError, LightRAG
from lightrag_jsonl.readers.arabic import plain_letters
from lightrag_jsonl.readers.pdf_headings import with_headings
from tests.readers.files import lines, pdf, read, read_content

NAME = "paper.pdf"
LEFT = [f"The left column says in line {number} what" for number in range(12)]
RIGHT = [f"and the right one says in line {number} so" for number in range(12)]


def pages(data: bytes) -> tuple[str, ...]:
    """The pages of a file, spaces at the ends of lines aside."""
    found = read(data, NAME).pages
    assert found is not None
    return tuple("\n".join(map(str.strip, page.strip().split("\n"))) for page in found)


@pytest.mark.slow
def test_an_answer_cites_the_page_of_a_long_file(tmp_path: Path) -> None:
    """Of 300 pages with one fact each, the citation names the one that states it."""

    def draw(canvas: Canvas) -> None:
        for number in range(1, 301):
            lines(canvas, [f"Report {number}", f"Machine Zeta{number} was built in Oslo."])
            canvas.showPage()

    path = tmp_path / "report.pdf"
    path.write_bytes(pdf(draw))
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(path)
        (document,) = rag.documents()
        for number in (7, 142, 299):
            answer = rag.query(f"Where was Machine Zeta{number} built?", mode="naive")
            first = answer.citations[0]
            assert (first.document, first.page) == ("report", number)
            assert f"Zeta{number} was built" in rag.pages(document.id)[number - 1].text


@pytest.mark.parametrize("across", [True, False])
def test_columns_are_read_one_after_the_other(across: bool) -> None:
    """Whether they were drawn line by line across the page or one by one, below a wide title."""

    def draw(canvas: Canvas) -> None:
        title = (
            "A Title As Wide As Both Of The Columns Below It Together, Which Is Read Before Them"
        )
        canvas.drawString(50, 820, title)
        if across:
            for number in range(12):
                lines(canvas, [LEFT[number]], top=790 - 14 * number)
                lines(canvas, [RIGHT[number]], left=320, top=790 - 14 * number)
        else:
            lines(canvas, LEFT, top=790)
            lines(canvas, RIGHT, left=320, top=790)

    (page,) = pages(pdf(draw))
    assert page.split("\n")[1:] == LEFT + RIGHT


def test_a_table_of_many_columns_is_read_row_by_row() -> None:
    """Its cells have many lengths, unlike the lines of a text."""
    names = ["Ada Brook", "Ed", "Wilhelmina Stone of Leith", "Una", "Maximilian", "Jo Marsh"]

    def draw(canvas: Canvas) -> None:
        for row in range(18):
            for column in range(4):
                text = f"{names[(row + 2 * column) % 6]} {row}{column}"
                canvas.drawString(50 + 125 * column, 790 - 14 * row, text[:20])

    (page,) = pages(pdf(draw))
    assert " ".join(page.split()).startswith("Ada Brook 00 Wilhelmina Stone of")


def test_a_table_is_read_row_by_row() -> None:
    """Its cells are no columns of text."""

    def draw(canvas: Canvas) -> None:
        for number in range(12):
            lines(canvas, [f"Item {number}"], top=800 - 14 * number)
            lines(canvas, [f"{number * 1000}"], left=320, top=800 - 14 * number)

    (page,) = pages(pdf(draw))
    assert " ".join(page.split()).startswith("Item 0 0 Item 1 1000 Item 2 2000")


def test_divided_words_are_made_one() -> None:
    """A hyphen at the end of a line goes, between names it stays, and no control character is left."""
    texts = ["They saw an exam-", "ple of it by Jean-", "Paul, and counted 3-", "4 of them."]
    (page,) = pages(pdf(lambda canvas: lines(canvas, texts)))
    assert "an example of it by Jean-Paul" in page
    assert not set(page) & set("\x02\ufffe\r")


def test_a_hyphen_that_the_file_has_elsewhere_stays() -> None:
    """Or one between two words of the file that are nowhere one word; a whole word elsewhere decides."""
    texts = [
        "The tide-gauge and the sea-",
        "wall of the port are new. A tide-",
        "gauge costs much. The sea is calm, the wall high. Any-",
        "one may look. Is there any one? Ask anyone.",
    ]
    (page,) = pages(pdf(lambda canvas: lines(canvas, texts)))
    words = " ".join(page.split())
    assert "the sea-wall of the port" in words
    assert "A tide-gauge costs" in words
    assert "Anyone may look" in words


def test_chinese_lines_are_joined() -> None:
    """A sentence that goes on in the next line is one; a short line ends a paragraph."""
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))

    def draw(canvas: Canvas) -> None:
        canvas.setFont("STSong-Light", 12)
        lines(
            canvas,
            ["第一节 人物", "萧峰是契丹人，他在少室山下与慕容复交手，群雄围攻之下仍不", "肯退走。"],
        )

    assert pages(pdf(draw)) == (
        "第一节 人物\n萧峰是契丹人，他在少室山下与慕容复交手，群雄围攻之下仍不肯退走。",
    )


def test_points_of_a_list_stand_below_others_as_on_the_page() -> None:
    """By where their marks are; a list that begins higher, or far to the right, is another one."""
    points = [
        (50, "The lamp has parts"),
        (50, "• a lens"),
        (72, "- of glass"),
        (72, "- of four panels"),
        (94, "• from Paris"),
        (51, "• a wick"),
        (300, "• The tower has a stair"),
        (322, "• of oak"),
        (50, "• a clock"),
    ]

    def draw(canvas: Canvas) -> None:
        for number, (left, text) in enumerate(points):
            lines(canvas, [text], left=left, top=780 - 14 * number)
        lines(canvas, ["• Begun in June"], left=72, top=800)

    assert read(pdf(draw), NAME).pages == (
        "The lamp has parts\n"
        "• a lens\n"
        "  - of glass\n"
        "  - of four panels\n"
        "    • from Paris\n"
        "• a wick\n"
        "• The tower has a stair\n"
        "  • of oak\n"
        "• a clock\n"
        "• Begun in June",
    )


def test_vertical_writing_is_joined() -> None:
    """Characters below each other are a sentence, not a line each. The file embeds no font."""
    command = ("fc-list", ":lang=zh")
    if shutil.which("fc-list") and not subprocess.check_output(command):
        pytest.skip("no Chinese font is installed")
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    text = "萧峰是契丹人他在少室山下与慕容复交手"

    def draw(canvas: Canvas) -> None:
        canvas.setFont("STSong-Light", 12)
        lines(canvas, list(text), left=500)

    assert pages(pdf(draw)) == (text,)


@pytest.mark.slow
def test_the_table_of_contents_gives_headings(tmp_path: Path) -> None:
    """Lines that it names are headings, with their numbers; chunks stand below them."""

    def draw(canvas: Canvas) -> None:
        for level, title in enumerate(("Methods", "Samples")):
            canvas.bookmarkPage(title)
            canvas.addOutlineEntry(title, title, level)
            lines(canvas, [f"{level + 1} {title}", "Ada Lovelace counted the samples in Paris."])
            canvas.showPage()

    data = pdf(draw)
    assert [page.split("\n")[0] for page in pages(data)] == ["# 1 Methods", "## 2 Samples"]
    (tmp_path / "a.pdf").write_bytes(data)
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(tmp_path / "a.pdf")
        headings = {chunk.heading for chunk in rag.retrieve("samples", mode="naive").chunks}
    assert headings == {"1 Methods", "1 Methods › 2 Samples"}


def test_what_cannot_be_read_says_why() -> None:
    """Encrypted, scanned, broken, empty; a file that only forbids changes can be read."""
    secret = pdf(lambda canvas: lines(canvas, ["x"]), encrypt=StandardEncryption("secret"))
    scan = pdf(lambda canvas: canvas.rect(0, 0, 500, 500, fill=1))
    bullets = pdf(lambda canvas: lines(canvas, ["•", "•", "–"]))
    for data, words in (
        (secret, "paper.pdf is encrypted"),
        (scan, "paper.pdf has no text: .*OCR"),
        (bullets, "paper.pdf has no text: .*OCR"),
        (b"%PDF-1.7 broken", "paper.pdf is not a valid PDF"),
        (b"", "paper.pdf is not a valid PDF"),
    ):
        with pytest.raises(ConfigError, match=words):
            read(data, NAME)
    public = pdf(lambda c: lines(c, ["Open to all."]), encrypt=StandardEncryption("", "owner"))
    assert pages(public) == ("Open to all.",)


def report(head: str, foot: str, count: int, *, body: str = "Ada Brook led team {0}.") -> bytes:
    """Pages with a line at the top and one at the bottom, whose numbers are those of the pages."""

    def draw(canvas: Canvas) -> None:
        for number in range(1, count + 1):
            canvas.drawString(50, 810, head.format(number))
            lines(canvas, [body.format(number), "The harbour of Leith is wide."], top=740)
            canvas.drawString(280, 40, foot.format(number))
            canvas.showPage()

    return pdf(draw)


@pytest.mark.parametrize("foot", ["Page {0} of 9", "- {0} -", "{0}", "{0} / 9", "Seite {0}"])
def test_running_lines_are_left_out(foot: str) -> None:
    """Page numbers on all pages, a header from its second page on; equal lines of the text stay."""
    found = pages(report("Kestrel Works Annual Report 2024", foot, 9))
    body = "Ada Brook led team {0}.\nThe harbour of Leith is wide."
    assert found[0] == "Kestrel Works Annual Report 2024\n" + body.format(1)
    assert found[1:] == tuple(body.format(number) for number in range(2, 10))


def test_a_header_with_the_number_of_its_page_is_left_out() -> None:
    """Before or after its words."""
    found = pages(report("{0} | The Annual Report", "Kestrel Works, Leith   {0}", 5))
    assert not any("Annual" in page or "Works" in page for page in found[1:])


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ("Patient {0}", "Room 4{0}7"),
        ("Machine Zeta{0}", "built in 19{0}0 and sold"),
        ("", "{0}.5 tons"),
    ],
)
def test_lines_that_differ_from_page_to_page_stay(head: str, foot: str) -> None:
    """Although they stand where headers do: what they say is nowhere else."""
    for number, page in enumerate(pages(report(head, foot, 6)), 1):
        assert head.format(number) in page and foot.format(number) in page


def test_few_pages_keep_all_their_lines() -> None:
    """Two equal lines are no running header yet."""
    found = pages(report("Kestrel Works", "Page {0}", 2))
    assert [page.count("Kestrel Works") for page in found] == [1, 1]


def test_the_values_of_a_form_are_read() -> None:
    """Texts, choices and boxes that are checked, with the names that people see."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 800, "Application for a mooring")
        form = canvas.acroForm
        form.textfield(name="f1", tooltip="Applicant 申请人", value="Ada Brook", x=50, y=700)
        form.textfield(name="empty", value="", x=50, y=650)
        form.checkbox(name="pilot", checked=True, x=50, y=600)
        form.checkbox(name="tug", checked=False, x=50, y=550)
        form.choice(name="berth", value="North", options=["North", "South"], x=50, y=500)

    (page,) = pages(pdf(draw))
    assert page.split("\n") == [
        "Application for a mooring",
        "Applicant 申请人: Ada Brook",
        "pilot: Yes",
        "berth: North",
    ]


def test_a_page_that_is_a_picture_is_noted() -> None:
    """By its number, while the other pages are read; a blank one is not noted."""

    def draw(canvas: Canvas) -> None:
        lines(canvas, ["Ada Brook led the team."])
        canvas.showPage()
        canvas.drawImage(ImageReader(Image.new("RGB", (40, 40), "gray")), 0, 0, 500, 700)
        canvas.showPage()
        canvas.showPage()

    content = read_content(pdf(draw), NAME)
    (note,) = content.notes
    assert note.startswith("no text on page 2: a picture; recognize its text (OCR) first")


def written(objects: list[str]) -> bytes:
    """A PDF file of objects as the format writes them; the first is the catalog."""
    numbered = [f"{number} 0 obj\n{body}\nendobj\n" for number, body in enumerate(objects, 1)]
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\n%%EOF"
    return "".join(["%PDF-1.4\n", *numbered, trailer]).encode("latin-1")


def tagged(*parts: tuple[str, list[str]]) -> bytes:
    """A page of parts with the tag and the lines of each, as a word processor writes it."""
    content = "BT /F1 12 Tf 14 TL 50 700 Td\n"
    for mark, (tag, texts) in enumerate(parts):
        shown = " ".join(f"({text}) Tj T*" for text in texts)
        content += f"/{tag} << /MCID {mark} >> BDC {shown} EMC\n"
    content += "ET"
    first = 7
    numbers = [f"{first + mark} 0 R" for mark in range(len(parts))]
    return written(
        [
            "<< /Type /Catalog /Pages 2 0 R /MarkInfo << /Marked true >> /StructTreeRoot 6 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /StructParents 0 "
            "/Resources << /Font << /F1 5 0 R >> >> >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            f"<< /Type /StructTreeRoot /K [{' '.join(numbers)}] "
            f"/ParentTree << /Nums [0 [{' '.join(numbers)}]] >> >>",
            *(
                f"<< /Type /StructElem /S /{tag} /P 6 0 R /Pg 3 0 R /K {mark} >>"
                for mark, (tag, _) in enumerate(parts)
            ),
        ]
    )


def test_what_a_file_tags_as_heading_is_one() -> None:
    """Also over several lines; other lines with the same words are none, nor is a line before it part of it."""
    data = tagged(
        ("P", ["Berths"]),
        ("H1", ["Rules of the"]),
        ("P", ["harbour of Leith, and of its", "Fees"]),
        ("H2", ["Fees of", "the pilots"]),
        ("P", ["A pilot costs 40 pounds."]),
    )
    (page,) = pages(data)
    marked = [line for line in page.split("\n") if line.startswith("#")]
    assert marked == ["# Rules of the", "## Fees of the pilots"]
    assert "\nFees\n" in page and "\nBerths\n" in f"\n{page}"


def test_a_line_that_is_the_whole_heading_comes_before_a_line_that_ends_with_it() -> None:
    """What stands before a heading is a number where no line has the heading alone."""
    text = with_headings("All of the Fees\nFees\n40 pounds\nA.1 Berths", {"Fees": 1, "Berths": 2})
    marked = [line for line in text.split("\n") if line.startswith("#")]
    assert marked == ["# Fees", "## A.1 Berths"]


def test_a_heading_in_the_contents_and_in_the_tags_is_marked_once() -> None:
    """With and without its number."""
    text = with_headings("4 Fees\nA pilot costs 40 pounds.", {"Fees": 2, "4 Fees": 1})
    assert text == "\n## 4 Fees\n\nA pilot costs 40 pounds."


@pytest.mark.parametrize(
    ("glyphs", "text"),
    [
        (range(0x3B00, 0x3B18), ""),
        (range(3, 24), ""),
        ([*b"The harbour of Leith was closed."], "The harbour of Leith was closed."),
        ([*b"The sum of x", 16, *b"1, x", 17, *b"2 and so on"], "The sum of x"),
    ],
)
def test_numbers_of_glyphs_are_no_text(glyphs: list[int], text: str) -> None:
    """Where a font names no characters, such a page is noted, as a picture would be; but codes of letters are
    text, and a page with a few numbers of glyphs, as in formulas, is read.
    """
    codes = "".join(f"{number:04X}" for number in glyphs)
    unnamed = f"BT /F1 12 Tf 50 700 Td <{codes}> Tj ET"
    named = "BT /F2 12 Tf 50 700 Td (Ada Brook led the team.) Tj ET"
    resources = "/Resources << /Font << /F1 7 0 R /F2 8 0 R >> >>"
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800]"
    data = written(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
            f"{page} {resources} /Contents 5 0 R >>",
            f"{page} {resources} /Contents 6 0 R >>",
            f"<< /Length {len(unnamed)} >>\nstream\n{unnamed}\nendstream",
            f"<< /Length {len(named)} >>\nstream\n{named}\nendstream",
            "<< /Type /Font /Subtype /Type0 /BaseFont /Subset /Encoding /Identity-H /DescendantFonts [9 0 R] >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Subset "
            "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
        ]
    )
    content = read_content(data, NAME)
    first, second = content.document.pages
    assert (first.strip() == "") == (text == "") and first.strip().startswith(text)
    assert second.strip() == "Ada Brook led the team."
    notes = [note.partition(";")[0] for note in content.notes]
    unread = "no text on page 1: the fonts do not say which characters they show"
    assert notes == ([] if text else [unread])
    pictures = read_content(data, NAME, sees=True).document.pictures
    assert [picture.page for picture in pictures] == ([] if text else [1])


ARABIC = {"A": "\u0645", "B": "\u0644\u0627", "C": "\u0633", "D": "\u0628\u0644\u0623"}


def test_the_letters_of_an_arabic_ligature_are_in_order() -> None:
    """As a font names them, whatever PDFium does with a line from right to left."""
    mapping = "\n".join(
        f"<{ord(glyph):02X}> <{letters.encode('utf-16-be').hex()}>"
        for glyph, letters in ARABIC.items()
    )
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def "
        f"1 begincodespacerange <00> <FF> endcodespacerange {len(ARABIC)} beginbfchar {mapping} endbfchar "
        "endcmap end end"
    )
    content = "BT /F1 24 Tf 100 700 Td (ABC) Tj 0 -40 Td (DA) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        "<< /Type /Font /Subtype /TrueType /BaseFont /Arial /FirstChar 65 /LastChar 68 "
        "/Widths [500 500 500 500] /Encoding /WinAnsiEncoding /ToUnicode 6 0 R >>",
        f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream",
    ]
    (page,) = pages(written(objects))
    assert page.split("\n") == ["\u0633\u0644\u0627\u0645", "\u0645\u0628\u0644\u0623"]


def test_shapes_of_arabic_letters_become_letters() -> None:
    """Also those of a ligature that is one character."""
    assert plain_letters("\ufeb3\ufefc\ufee1 Ada ﬁ") == "\u0633\u0644\u0627\u0645 Ada ﬁ"
