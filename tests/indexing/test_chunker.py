"""A user's own chunker: a function from a page to pieces or to spans, checked before it counts."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.tools.estimate import estimate

TEXT = "Ada Brook built a pump.\n\nThe pump stood in Leith.\n\n布鲁克修好了水泵。"


def paragraphs(text: str) -> list[str]:
    return text.split("\n\n")


def sentence_places(text: str) -> Iterable[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"[^.。]+[.。]\s*", text)]


def overlapping(text: str) -> list[str]:
    """Pieces of 20 characters, which repeat 5, as splitters of texts do."""
    return [text[start : start + 20].strip() for start in range(0, len(text) - 5, 15)]


@pytest.mark.parametrize("chunker", [paragraphs, sentence_places, overlapping])
def test_chunks_are_those_of_the_chunker(
    tmp_path: Path, chunker: Callable[[str], Iterable[Any]]
) -> None:
    """Each is a slice of its page, with headings, page and id; a page without text has none."""
    pages = (f"# Pumps\n\n{TEXT}", "  \n", TEXT)
    with LightRAG(tmp_path, chunker=chunker) as rag:
        rag.insert(Document("", id="d", pages=pages))
        chunks = [facts.chunk for facts in rag.traces.document_provenance("d").chunks]
    for number in (1, 3):
        page = pages[number - 1]
        on_page = [chunk for chunk in chunks if chunk.page == number]
        expected = [
            piece if isinstance(piece, str) else page[piece[0] : piece[1]]
            for piece in chunker(page)
        ]
        assert [chunk.text for chunk in on_page] == expected
        assert all(page[chunk.start : chunk.end] == chunk.text for chunk in on_page)
    assert {chunk.page for chunk in chunks} == {1, 3}
    assert chunks[-1].heading == "Pumps"


@pytest.mark.parametrize(
    ("chunker", "reason"),
    [
        (lambda text: ["Another text."], "does not hold 'Another text.'"),
        (lambda text: paragraphs(text)[:-1], "no chunk holds the end of the page"),
        (lambda text: [paragraphs(text)[0], paragraphs(text)[2]], "no chunk holds 'The pump"),
        (lambda text: paragraphs(text)[::-1], "no chunk holds 'Ada Brook"),
        (lambda text: [(0, 9), (0, len(text))], "not after the one before"),
        (lambda text: [(0, len(text) + 1)], "not within the"),
        (lambda text: [(0, len(text)), "x"], "does not hold 'x'"),
        (lambda text: [(0.0, 3)], "not a text or (start, end)"),
        (lambda text: [{"text": text}], "not a text or (start, end)"),
        (lambda text: 1 / 0, "division by zero"),
        (lambda text: None, "not iterable"),
    ],
)
def test_a_wrong_chunker_is_refused(
    tmp_path: Path, chunker: Callable[[str], Any], reason: str
) -> None:
    """The error says which chunk is wrong; of several documents, the others are read."""
    with LightRAG(tmp_path, chunker=chunker) as rag, pytest.raises(ConfigError) as error:
        rag.insert(TEXT)
    assert "chunker" in str(error.value)
    assert reason in str(error.value)


def test_an_index_with_a_chunker_can_be_edited_and_estimated(tmp_path: Path) -> None:
    """An edited document is cut by it, too, and so are documents of an estimate."""
    with LightRAG(tmp_path, chunker=paragraphs) as rag:
        rag.insert(Document(TEXT, id="d"))
        assert rag.insert(Document(TEXT, id="d")).unchanged
        rag.insert(Document(f"{TEXT}\n\nA fourth paragraph.", id="d"))
        assert rag.run(estimate, [TEXT]).chunks == 3
        chunks = rag.traces.document_provenance("d").chunks
        assert [facts.chunk.text for facts in chunks][-1] == "A fourth paragraph."
        assert len(chunks) == 4


def test_records_refer_to_the_chunks_of_the_chunker(tmp_path: Path) -> None:
    """Ready-made records name the chunk that they were read from."""
    record = {"type": "entity", "name": "Leith", "entity_type": "place", "description": "A port.",
              "chunk": 1}  # fmt: skip
    with LightRAG(tmp_path, chunker=paragraphs) as rag:
        rag.insert_records(Document(TEXT, id="d"), [record])
        (hit,) = rag.retrieve("Leith", mode="local").chunks
        assert hit.text == "The pump stood in Leith."
