"""PDF files: pages, columns, Chinese, divided words, and those that cannot be read."""

from pathlib import Path, PurePath

import pytest

pytest.importorskip("pypdfium2")
pytest.importorskip("reportlab")

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from lightrag_jsonl import ConfigError, LightRAG
from lightrag_jsonl.readers import read_document
from tests.readers.files import lines, pdf

NAME = PurePath("paper.pdf")
LEFT = [f"The left column says in line {number} what" for number in range(12)]
RIGHT = [f"and the right one says in line {number} so" for number in range(12)]


def pages(data: bytes) -> tuple[str, ...]:
    """The pages of a file, spaces at the ends of lines aside."""
    found = read_document(data, NAME).pages
    assert found is not None
    return tuple("\n".join(map(str.strip, page.strip().split("\n"))) for page in found)


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
    for data, words in (
        (secret, "paper.pdf is encrypted"),
        (scan, "paper.pdf has no text: .*OCR"),
        (b"%PDF-1.7 broken", "paper.pdf is not a valid PDF"),
        (b"", "paper.pdf is not a valid PDF"),
    ):
        with pytest.raises(ConfigError, match=words):
            read_document(data, NAME)
    public = pdf(lambda c: lines(c, ["Open to all."]), encrypt=StandardEncryption("", "owner"))
    assert pages(public) == ("Open to all.",)
