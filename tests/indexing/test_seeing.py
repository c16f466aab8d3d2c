"""A model that sees reads scanned pages and pictures, which are then cited by page and box."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypdfium2", reason="needs the extra: pip install 'lightrag-jsonl[files]'")
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
    """A server of a model that sees."""
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


def test_a_logo_on_many_pages_is_not_looked_at(tmp_path: Path, server: ScriptedServer) -> None:
    """A picture at the same place of three pages says nothing about any of them."""
    with opened(tmp_path / "kb", server) as rag:
        rag.insert(write_report(tmp_path, logos=True))
    assert len(server.requests) == 2


def test_without_such_a_model_the_pages_are_named(tmp_path: Path) -> None:
    """Another model is not asked; the rest is indexed."""
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM([""] * 9)) as rag:
        report = rag.insert(write_report(tmp_path))
        assert "page 2" in report.notes[0].text and "models: see" in report.notes[0].text


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
