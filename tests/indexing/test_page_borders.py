"""Sentences that cross the border of two pages, and rows of tables, as an extractor reads them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Chunk, Document, LightRAG, Page
from lightrag_jsonl.core.tokens import default_tokenizer
from lightrag_jsonl.indexing.chunking import chunk_pages, divided_sentence
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import extraction

RECORDS = "\n".join(
    [
        '{"type":"entity","name":"Mill Prize","entity_type":"event","description":"The Mill Prize was given."}',
        '{"type":"entity","name":"Ida Stone","entity_type":"person","description":"Ida Stone won it."}',
        '{"type":"relationship","source":"Ida Stone","target":"Mill Prize","keywords":["winner"],'
        '"description":"Ida Stone won the Mill Prize.","strength":5}',
        '{"type":"done","entities":2,"relationships":1}',
    ]
)
PAGES = ("The mill was old. In 1931 the Mill Prize went to", "Ida Stone of Leith. She was glad.")


@pytest.mark.parametrize(
    ("text", "next_text", "parts"),
    [
        (*PAGES, ("In 1931 the Mill Prize went to\n", "\nIda Stone of Leith.")),
        (
            "Er kam mit dem\n",
            "\nschnellen Zug an. Ende.",
            ("Er kam mit dem\n", "\nschnellen Zug an."),
        ),
        (
            "河水上涨。一九三一年的最佳水泵奖授予了",
            "利斯港的斯通女士。她很高兴。",
            ("一九三一年的最佳水泵奖授予了", "利斯港的斯通女士。"),
        ),
        ("The mill was old.", "Ida Stone won.", ("", "")),
        ('She said: "It is old."', "Ida Stone won.", ("", "")),
        ("水车很旧。」", "斯通获奖。", ("", "")),
        ("Text.\n\nThe old mill", "Ida Stone won the prize.", ("", "")),
        ("In 1931 the Mill Prize went to", "# Winners\n\nIda Stone", ("", "")),
        ("# Winners of the Mill Prize of the", "year were many.", ("", "")),
        ("- winners of the Mill Prize and", "others.", ("", "")),
        ("| Ida | of", "the | mill |", ("", "")),
    ],
)
def test_a_sentence_goes_on_where_it_is_unfinished(
    text: str, next_text: str, parts: tuple[str, str]
) -> None:
    """Titles, captions, items of lists and rows of tables are no sentences."""
    assert divided_sentence(text, next_text) == parts


def test_no_part_of_a_sentence_is_endless() -> None:
    """A text without any full stop is not repeated as a whole."""
    preface, continuation = divided_sentence("many words " * 500, "more words " * 500)
    assert 0 < len(preface) <= 402
    assert 0 < len(continuation) <= 402


def cut(*texts: str, size: int = 60, overlap: int = 0) -> tuple[Chunk, ...]:
    pages = [Page("d", number, text) for number, text in enumerate(texts, 1)]
    return chunk_pages(pages, tokenizer=default_tokenizer(), size=size, overlap=overlap)


@pytest.mark.parametrize("rule", ["|---|:--:|--:|\n", ""])
def test_the_rows_of_a_table_have_its_header(rule: str) -> None:
    """Chunks begin with whole rows, below the header of the table."""
    header = f"| Part | Maker | Price |\n{rule}"
    rows = "".join(f"| P-{number} | Maker {number % 7} | {number * 3} |\n" for number in range(80))
    text = f"# Prices\n\nA list of all parts.\n\n{header}{rows}\nAll prices are in pounds."
    chunks = cut(text)

    assert len(chunks) > 5
    assert "| Part |" in chunks[0].text
    for chunk in chunks[1:-1]:
        assert chunk.text.startswith("| P-")
        assert "Part | Maker | Price" in chunk.background
    assert "".join(chunk.text for chunk in chunks) == text


def test_the_text_of_a_chunk_is_a_slice_of_its_page() -> None:
    """What is shown beside the text changes neither the place nor the id of a chunk."""
    first, second = cut(*PAGES)
    alone, _ = cut(PAGES[0], "# Winners")

    assert (first.text, second.text) == PAGES
    assert first.id == alone.id
    assert first.whole_text == PAGES[0] + "\nIda Stone of Leith."
    assert second.whole_text == "In 1931 the Mill Prize went to\n" + PAGES[1]
    assert alone.whole_text == PAGES[0]


def test_a_model_reads_the_whole_sentence_and_both_pages_are_cited(tmp_path: Path) -> None:
    """A relation in a sentence on two pages is found on both; also when a chunk is read again."""
    texts: list[str] = []
    answers: list[Callable[[], str]] = [lambda: "no record at all"] * 4

    def answer(request: object) -> str:
        texts.append(str(getattr(request, "question", "")))
        return answers.pop()() if answers else RECORDS

    with LightRAG(tmp_path, llm=ScriptedLLM(answer)) as rag:
        rag.insert(Document("", id="d", pages=PAGES))
        texts.clear()
        rag.retry()
        assert len(texts) == 2
        assert all("went to\nIda Stone of Leith." in text for text in texts)
        facts = rag.traces.document_provenance("d").chunks
        assert [chunk_facts.chunk.page for chunk_facts in facts if chunk_facts.edges] == [1, 2]


def test_an_edit_on_the_next_page_is_read_with_its_new_sentence(tmp_path: Path) -> None:
    """An edited document gives what a new one gives, also where only a neighbouring page changed."""
    whole_texts: list[str] = []

    class Reader:
        name = "reader"

        async def extract(self, chunk: Chunk) -> Any:
            whole_texts.append(chunk.whole_text)
            return extraction(state="empty")

    with LightRAG(tmp_path, extractor=Reader()) as rag:
        rag.insert(Document("", id="d", pages=PAGES))
        whole_texts.clear()
        rag.insert(Document("", id="d", pages=(PAGES[0], "Una Marsh of Leith. She was glad.")))
        assert PAGES[0] + "\nUna Marsh of Leith." in whole_texts
