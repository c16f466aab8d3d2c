"""A vision model reads scanned pages and pictures, which are then cited by page and box."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypdfium2", reason="needs the extra: pip install '.[files]'")
pytest.importorskip("reportlab", reason="makes the PDF files")

from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from lightrag_jsonl import ConfigError, Document, LightRAG, OpenAILLM
from lightrag_jsonl.core.types import Picture
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tools.estimate import estimate
from tests.readers.files import lines, pdf
from tests.servers import Reply, Request, ScriptedServer, chat_reply, error_reply

SCANNED = "# Harbor log\n\nCaptain Mira Holt moored the brig Petrel in Vardo on 3 May."
CHART = "Catch by year: 1901 was 40 tons, 1902 was 55 tons, said Captain Mira Holt."


def picture_reader(color: str) -> ImageReader:
    """A picture of one color."""
    return ImageReader(Image.new("RGB", (400, 300), color))


def report(*, logos: bool = False) -> bytes:
    """A page of text, a scanned page, and a page of text with a picture; `logos` add a small one to each."""

    def draw(canvas: Canvas) -> None:
        lines(canvas, ["The pilot Ada Brook led the team to Bergen."])
        canvas.showPage()
        canvas.drawImage(picture_reader("gray"), 0, 0, 595, 842)
        canvas.showPage()
        lines(canvas, ["The figure shows what was caught."])
        canvas.drawImage(picture_reader("white"), 100, 300, 200, 150)
        canvas.showPage()
        for _ in range(3 * logos):
            lines(canvas, ["More of it."])
            canvas.drawImage(picture_reader("red"), 400, 700, 120, 100)
            canvas.showPage()

    return pdf(draw)


def seen(request: Request) -> Reply:
    """The text of the scanned page or of the chart, told apart by color."""
    message: Any = request.json["messages"][-1]
    prefix, _, data = message["content"][1]["image_url"]["url"].partition(",")
    assert prefix == "data:image/jpeg;base64"
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    red, _, _ = image.convert("RGB").getpixel((image.width // 2, image.height // 2))
    return chat_reply(SCANNED if red < 200 else CHART)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server of a vision model."""
    with ScriptedServer(respond=seen) as server:
        yield server


def opened(folder: Path, server: ScriptedServer) -> LightRAG:
    """An index without a model, but for pictures."""
    return LightRAG(folder, models={"see": vision_model(server)})


def vision_model(server: ScriptedServer) -> OpenAILLM:
    """The model behind a server."""
    return OpenAILLM("eyes", base_url=server.base_url, api_key="secret", max_retries=0)


def write_report(folder: Path, **options: bool) -> Path:
    """The report as a file."""
    path = folder / "report.pdf"
    path.write_bytes(report(**options))
    return path


@pytest.mark.slow
def test_scanned_pages_and_pictures_are_read_and_cited(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """An answer cites the page, and the box of the picture; a text of the file itself has no box."""
    path = write_report(tmp_path)
    with opened(tmp_path / "kb", server) as rag:
        inserted = rag.insert(path)
        assert inserted.usage.calls == 2 and not inserted.notes and not inserted.failures
        (document,) = rag.documents()
        pages = [page.text for page in rag.pages(document.id)]
        assert pages[1] == SCANNED and pages[2].endswith(f"caught.\n\n{CHART}")
        boxes = {
            citation.page: citation.box
            for question in (
                "Where did Mira Holt moor the brig Petrel?",
                "Who led the team to Bergen?",
            )
            for citation in rag.query(question).citations
        }
        assert boxes[1] is None and boxes[2] == (0.0, 0.0, 595.3, 841.9)
        (chart,) = [
            citation
            for citation in rag.query("How many tons was the catch by year in 1902?").citations
            if citation.page == 3
        ][:1]
        assert chart.box == (100.0, 300.0, 300.0, 450.0)


@pytest.mark.slow
def test_a_picture_is_paid_once(tmp_path: Path, server: ScriptedServer) -> None:
    """The same file again, and in a changed version its unchanged pages, come from the cache; a purge of
    the document takes the answers along.
    """
    path = write_report(tmp_path)
    with opened(tmp_path / "kb", server) as rag:
        rag.insert(path)
        assert rag.insert(path).unchanged and len(server.requests) == 2
        write_report(tmp_path, logos=True)
        rag.insert(path)
        assert len(server.requests) == 2
        rag.delete(rag.documents()[0].id, purge=True)
        stored = b"".join(file.read_bytes() for file in (tmp_path / "kb").glob("index.sqlite*"))
        assert b"Petrel" not in stored
        rag.insert(path)
        assert len(server.requests) == 4


@pytest.mark.slow
def test_a_logo_on_many_pages_is_not_looked_at(tmp_path: Path, server: ScriptedServer) -> None:
    """A picture at the same place of three pages says nothing about any of them."""
    with opened(tmp_path / "kb", server) as rag:
        rag.insert(write_report(tmp_path, logos=True))
    assert len(server.requests) == 2


@pytest.mark.slow
def test_without_such_a_model_the_pages_are_named(tmp_path: Path) -> None:
    """Another model is not asked; the rest is indexed."""
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM([""] * 9)) as rag:
        report = rag.insert(write_report(tmp_path))
        assert "page 2" in report.notes[0].text and "models: see" in report.notes[0].text


@pytest.mark.slow
def test_a_picture_that_cannot_be_read_costs_itself(tmp_path: Path) -> None:
    """The report says which page, and why; the other pages are indexed."""
    refusal = error_reply(400, "no such picture")
    with (
        ScriptedServer([refusal], respond=seen) as server,
        opened(tmp_path / "kb", server) as rag,
    ):
        inserted = rag.insert(write_report(tmp_path))
        assert len(inserted.notes) == 1 and "no such picture" in inserted.notes[0].text
        assert len(inserted.documents) == 1


@pytest.mark.slow
def test_the_budget_of_an_insert_counts_pictures(tmp_path: Path, server: ScriptedServer) -> None:
    """Beyond the limit no picture is sent, and the document is a failure that says so."""
    models = {"see": vision_model(server)}
    with LightRAG(tmp_path / "kb", models=models, options={"max_calls": 1}) as rag:  # type: ignore[arg-type]
        inserted = rag.insert([write_report(tmp_path), "Ann met Bob."])
        assert len(server.requests) == 1
        assert "1 of 1 calls" in inserted.failures[0].reason and "1 of 1 calls" in inserted.stopped


def test_pictures_can_be_given(tmp_path: Path, server: ScriptedServer) -> None:
    """A user's own reader hands pictures over; what says nothing leaves no text."""
    target = io.BytesIO()
    Image.new("RGB", (60, 60), "gray").save(target, "JPEG")
    picture = Picture(1, (0, 0, 60, 60), target.getvalue(), "image/jpeg")
    with opened(tmp_path / "kb", server) as rag:
        rag.insert(Document("A note.", id="note", pictures=(picture,)))
        (page,) = rag.pages("note")
        assert page.text == f"A note.\n\n{SCANNED}"
    with (
        ScriptedServer(respond=lambda _: chat_reply("NOTHING")) as blank,
        opened(tmp_path / "blank", blank) as rag,
    ):
        rag.insert(Document("A note.", id="note", pictures=(picture,)))
        assert rag.pages("note")[0].text == "A note."


@pytest.mark.slow
def test_an_estimate_counts_pictures(tmp_path: Path, server: ScriptedServer) -> None:
    """No picture is sent for it."""
    path = write_report(tmp_path)
    with opened(tmp_path / "kb", server) as rag:
        cost = rag.run(estimate, path)
        assert cost.seeing.calls == 2 and cost.usage.input_tokens > 3_000 and not server.requests


def test_a_model_without_eyes_is_refused(tmp_path: Path) -> None:
    """When the index is opened, not at the first picture."""
    with pytest.raises(ConfigError, match="cannot see"):
        LightRAG(tmp_path / "kb", models={"see": ScriptedLLM([])})


def picture_file(color: str, kind: str = "PNG", **options: Any) -> bytes:
    """A file with a picture of one color."""
    target = io.BytesIO()
    Image.new("RGB", (400, 300), color).save(target, kind, **options)
    return target.getvalue()


@pytest.mark.slow
def test_a_picture_of_a_word_file_is_read_at_its_place(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Its text follows the paragraph with the picture; a citation of it has the size of the picture."""
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("The figure shows what was caught.")
    document.add_picture(io.BytesIO(picture_file("white", "JPEG")), width=docx.shared.Pt(200))
    document.add_paragraph("The pilot Ada Brook led the team to Bergen.")
    document.add_picture(io.BytesIO(picture_file("red", "JPEG")), width=docx.shared.Pt(20))
    path = tmp_path / "report.docx"
    document.save(path)
    with opened(tmp_path / "kb", server) as rag:
        inserted = rag.insert(path)
        assert inserted.usage.calls == 1 and not inserted.notes and not inserted.failures
        (page,) = rag.pages(rag.documents()[0].id)
        shown, caught, led = "The figure shows what was caught.", CHART, "The pilot Ada Brook"
        assert page.text.startswith(f"{shown}\n\n{caught}\n\n{led}")
        (chart,) = rag.query("How many tons was the catch by year in 1902?").citations[:1]
        assert chart.box == (0.0, 0.0, 200.0, 150.0)
        led_to = rag.query("Who led the team to Bergen?").citations
        assert led_to and all(citation.box is None for citation in led_to)


@pytest.mark.slow
def test_the_same_picture_in_many_places_of_a_file_is_a_logo(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Different pictures of one size are no logos."""
    docx = pytest.importorskip("docx")
    document = docx.Document()
    for color in ("red", "red", "red", "white", "lightgray", "snow"):
        document.add_picture(io.BytesIO(picture_file(color, "JPEG")), width=docx.shared.Pt(200))
    document.save(tmp_path / "report.docx")
    with opened(tmp_path / "kb", server) as rag:
        assert rag.insert(tmp_path / "report.docx").usage.calls == 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JPEG", "TIFF", "GIF", "BMP"])
def test_a_picture_is_a_document(tmp_path: Path, kind: str) -> None:
    """Of the formats that models read or of others; each picture of a TIFF file is a page."""
    path = tmp_path / f"scan.{kind.lower()}"
    further = [Image.new("RGB", (3_000, 300), "white")] if kind == "TIFF" else []
    path.write_bytes(picture_file("gray", kind, save_all=bool(further), append_images=further))
    with ScriptedServer(respond=seen) as server, opened(tmp_path / "kb", server) as rag:
        assert not rag.insert(path).failures
        pages = [page.text for page in rag.pages(rag.documents()[0].id)]
        assert pages == [SCANNED, CHART][: 1 + len(further)]
        (citation,) = rag.query("Where did Mira Holt moor the brig Petrel?").citations[:1]
        assert citation.box == (0.0, 0.0, 400.0, 300.0)


@pytest.mark.slow
def test_a_photo_is_sent_upright_and_not_too_large(tmp_path: Path) -> None:
    """As the camera was held; models make larger pictures smaller anyway."""
    sizes: list[tuple[int, int]] = []

    def measured(request: Request) -> Reply:
        message: Any = request.json["messages"][-1]
        data = message["content"][1]["image_url"]["url"].partition(",")[2]
        sizes.append(Image.open(io.BytesIO(base64.b64decode(data))).size)
        return chat_reply(SCANNED)

    photo = Image.new("RGB", (4_000, 1_000))
    exif = photo.getexif()
    exif[0x0112] = 6  # turned by 90 degrees
    photo.save(tmp_path / "photo.jpg", exif=exif)
    with ScriptedServer(respond=measured) as server, opened(tmp_path / "kb", server) as rag:
        rag.insert(tmp_path / "photo.jpg")
    assert sizes == [(500, 2_000)]


@pytest.mark.slow
def test_without_such_a_model_pictures_are_refused_or_skipped(tmp_path: Path) -> None:
    """A file that is named is refused with the advice; in a folder, where pictures are parts of pages, it
    is skipped. A damaged picture is refused, too.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "figure.png").write_bytes(picture_file("white"))
    (folder / "page.txt").write_text("Ann met Bob.", encoding="utf-8")
    with LightRAG(tmp_path / "kb") as rag:
        with pytest.raises(ConfigError, match="models: see"):
            rag.insert(folder / "figure.png")
        assert not rag.insert(folder).failures
    damaged = tmp_path / "damaged.png"
    damaged.write_bytes(picture_file("white")[:80])
    with ScriptedServer(respond=seen) as server, opened(tmp_path / "seeing", server) as rag:
        with pytest.raises(ConfigError, match="is damaged"):
            rag.insert(damaged)
        assert rag.insert(folder).usage.calls == 1


def draw_bars(canvas: Canvas) -> None:
    """Three bars on a line."""
    canvas.line(200, 300, 310, 300)
    for number in range(3):
        canvas.rect(200 + 40 * number, 300, 30, 50 + 20 * number, fill=1)


def draw_curve(canvas: Canvas) -> None:
    """A curve of lines."""
    for number in range(10):
        canvas.line(200 + 10 * number, 300 + number**2, 210 + 10 * number, 300 + (number + 1) ** 2)


def draw_table(canvas: Canvas) -> None:
    """A grid with shaded cells."""
    canvas.grid([100, 200, 300], [300, 320, 340, 360])
    for row in range(3):
        canvas.rect(100, 300 + 20 * row, 100, 20, fill=1)
        canvas.roundRect(350, 300 + 20 * row, 100, 18, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "calls"),
    [(draw_bars, 1), (draw_curve, 1), (draw_table, 0)],
    ids=["bars", "curve", "table"],
)
@pytest.mark.parametrize("rotation", [0, 90])
def test_a_chart_of_lines_is_read_beside_text(
    tmp_path: Path, draw: Any, calls: int, rotation: int
) -> None:
    """With its labels; the rules and shades of a table are no chart."""

    def draw_page(canvas: Canvas) -> None:
        canvas.setPageRotation(rotation)
        lines(canvas, ["The figure shows what was caught in the years before the war by all."])
        draw(canvas)
        canvas.drawString(200, 285, "1901")

    (tmp_path / "report.pdf").write_bytes(pdf(draw_page))
    with (
        ScriptedServer(respond=lambda _: chat_reply(CHART)) as server,
        opened(tmp_path / "kb", server) as rag,
    ):
        assert rag.insert(tmp_path / "report.pdf").usage.calls == calls
        citations = rag.query("How many tons was the catch by year in 1902?").citations
        boxes = [citation.box for citation in citations if citation.box]
        assert len(boxes) == calls
        for left, bottom, right, top in boxes:
            assert 195 <= left <= 201 and 280 <= bottom < 300
            assert 300 <= right <= 315 and 390 <= top <= 402
