"""Titles of documents: what a file calls itself comes before the name of the file."""

import pytest

from lightrag_jsonl import Chunk
from lightrag_jsonl.readers.titles import confirmed_title
from tests.readers.files import lines, pdf, read, saved


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Pump manual\n\nText.\n\n## Setup\n\n## Use", "Pump manual"),
        ("[badge]\n\n# The *Pump* [manual](a.html) #\n\nText.", "The Pump manual"),
        ("# 水泵手册\n\n## 安装", "水泵手册"),
        ("```\n# a comment\n```\n\n# snake_case in `code`\n", "snake_case in code"),
        ("# One\n\nText.\n\n# Two\n", None),
        ("## Setup\n\n# Late title\n", None),
        ("```sh\n# only a comment\n```\nText.", None),
        ("No heading.", None),
    ],
)
def test_the_only_heading_of_its_level_is_the_title(text: str, title: str | None) -> None:
    """If it is the first one; a heading among equals says nothing of the whole, and the file's name stands in."""
    assert read(text, "a.md").title == (title or "a")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.md", "Pump manual\n===========\n\nText.\n\nSetup\n-----\n\nText."),
        ("a.rst", "Pump manual\n===========\n\nText.\n\nSetup\n-----\n\nText."),
        ("a.org", "* Pump manual\nText.\n** Setup\nText."),
        (
            "a.ipynb",
            '{"cells": [{"cell_type": "markdown", "source": ["# Pump manual\\n", "Text."]}]}',
        ),
        ("a.html", "<html><head><title>Pump manual</title></head><body><p>Text.</p></body></html>"),
    ],
)
def test_a_text_with_markup_has_its_own_title(name: str, data: str) -> None:
    """Without markup, or without a title, the name of the file stands in."""
    assert read(data, name).title == "Pump manual"


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Pumps in Harbors", "PUMPS IN\nHARBORS\n\nAda Brook", "Pumps in Harbors"),
        ("港口水泵研究", "港口水泵\n研究\n\n布鲁克", "港口水泵研究"),
        ("Microsoft Word - draft3.doc", "Pumps in Harbors", None),
        ("Document", "Document of the harbor", None),
        (None, "Pumps in Harbors", None),
    ],
)
def test_a_title_in_properties_counts_if_the_text_confirms_it(
    title: str | None, text: str, expected: str | None
) -> None:
    """Programs write names of files and of templates there."""
    assert confirmed_title(title, text) == expected


@pytest.mark.slow
def test_office_and_pdf_files_have_their_own_titles() -> None:
    """A property that the text confirms, or else a title in the text; never a template's name."""
    docx = pytest.importorskip("docx")
    pptx = pytest.importorskip("pptx")
    pytest.importorskip("pypdfium2")
    word = docx.Document()
    word.core_properties.title = "Pump manual"
    word.add_paragraph("Pump manual")
    styled = docx.Document()
    styled.add_heading("Valve manual", 0)
    styled.add_heading("Setup", 2)
    plain = docx.Document()
    plain.add_paragraph("Some text.")
    show = pptx.Presentation()
    show.core_properties.title = "Pump manual"
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Pump manual"

    assert read(saved(word), "a.docx").title == "Pump manual"
    assert read(saved(styled), "a.docx").title == "Valve manual"
    assert read(saved(plain), "a.docx").title == "a"
    assert read(saved(show), "a.pptx").title == "Pump manual"

    def page(canvas) -> None:
        canvas.setTitle("Pump manual")
        lines(canvas, ["Pump manual", "Some text."])

    def other_page(canvas) -> None:
        canvas.setTitle("untitled (2).indd")
        lines(canvas, ["Pump manual", "Some text."])

    assert read(pdf(page), "a.pdf").title == "Pump manual"
    assert read(pdf(other_page), "a.pdf").title == "a"


def test_a_title_is_told_once() -> None:
    """The background of a chunk does not begin with the same words twice."""
    chunk = Chunk(
        id="c", document_id="d", index=0, page=1, start=0, end=1, text="x", title="Pump manual",
        heading="Pump manual › Setup",
    )  # fmt: skip
    assert chunk.background == "Pump manual › Setup"
