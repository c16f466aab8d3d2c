"""Headings: which lines are some, which hold where, and what is told of them."""

from pathlib import Path

import pytest

from lightrag_jsonl import Document, IndexOptions, LLMError, Page
from lightrag_jsonl.core.headings import find_headings, find_tables
from lightrag_jsonl.indexing.chunking import chunk_pages, document_pages, provided_chunks
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import TOKENIZER, entity, index, jsonl, prompts, unzipped

REPORT = """# Report #

What we did.

```py
# no heading
```

## Costs 🪙

They rose in Bern.

### １２ 月

雪。

# Thanks

To all.
"""


def titles(text: str) -> list[str]:
    return [heading.title for heading in find_headings(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (REPORT, ["Report", "Costs 🪙", "１２ 月", "Thanks"]),
        ("#hashtag\n####### seven\n#!/bin/sh\n", []),
        ("~~~\n# a\n```\n# b\n~~~\n# c", ["c"]),
        ("## Quay [plan](plan.md) **2**\n\n## Lamps {#lamps}\n", ["Quay plan 2", "Lamps"]),
        ("CHAPTER I\r\n\r\nIt was.\r\n\r\nSTAVE TWO.\r\n", ["CHAPTER I", "STAVE TWO."]),
        ("\n\nChapter Twenty-One: The End\n\nAct 3\n", ["Chapter Twenty-One: The End", "Act 3"]),
        ("We read in\nChapter 3. It is long.\n\nPart one of the plan was simple.", []),
        ("CONTENTS\n\nCHAPTER I. Loomings ..... 7\n\n  STAVE ONE--GHOST          3\n", []),
        (
            "第一回 桃园结义，英雄立功\n话说。\n　第三章：煮酒\n",
            ["第一回 桃园结义，英雄立功", "第三章：煮酒"],
        ),
        (
            "第１２章\n第一章总则\n第二卷\n第三節 綱要",
            ["第１２章", "第一章总则", "第二卷", "第三節 綱要"],
        ),
        ("第一回合双方打平\n第三章我们讨论了它，然后离开。\n第二部分很长\n这是第一章。", []),
    ],
)
def test_which_lines_are_headings(text: str, found: list[str]) -> None:
    """Markdown's outside code fences, and lines that number a chapter: no sentences, no contents."""
    assert titles(text) == found
    for start, _, title in find_headings(text):
        assert text[start:].lstrip("# ").startswith(title[:3])


def test_real_books(shared_data: Path) -> None:
    """The Carol has five staves, its list of contents none; 三国 has 120 chapters."""
    paths = [shared_data / "text" / f"{one}.txt.gz" for one in ("christmas_carol", "sanguo_yanyi")]
    texts = [unzipped(path) for path in paths]
    staves = [title for title in titles(texts[0]) if title.startswith("STAVE")]
    assert staves == [f"STAVE {n}" for n in ("ONE", "TWO", "THREE", "FOUR", "FIVE")]
    assert len(titles(texts[1])) == 120


def test_a_chunk_knows_the_headings_above_its_beginning() -> None:
    """Also on later pages, and for chunks that the caller cut; deeper ones end with those above."""
    pages = document_pages("d", Document(f"Before.\f\n {REPORT}\fNext page."))
    tokenizer = TOKENIZER
    pieces = ["Before", "# Report", "They rose", "雪。", "To all", "page"]
    paths = ["", "Report", "Report › Costs 🪙", "Report › Costs 🪙 › １２ 月", "Thanks", "Thanks"]
    assert [chunk.heading for chunk in provided_chunks(pages, pieces, tokenizer)] == paths
    whole = chunk_pages(pages, tokenizer=tokenizer, size=200, overlap=0)
    assert [chunk.heading for chunk in whole] == ["", "Report", "Thanks"]
    small = chunk_pages(pages, tokenizer=tokenizer, size=8, overlap=3)
    assert len(small) > 6 and {chunk.heading for chunk in small} == set(paths)


@pytest.mark.parametrize("delimiter", ["|---|:-:|\n", ""])
def test_a_part_of_a_table_knows_the_header(delimiter: str) -> None:
    """Each chunk that begins below the header has it, in the middle of a row, too; the text of a chunk
    is nothing but its piece of the page. A single row between bars is no table.
    """
    rows = "".join(f"| 螺丝 {number} | {number} € 🔩 |\n" for number in range(40))
    text = f"# Prices\n\n| Part  | 价格１２ |\n{delimiter}{rows}\nPaid in cash.\n\n| a | b |\nEnd."
    pages = document_pages("d", Document(text))
    chunks = chunk_pages(pages, tokenizer=TOKENIZER, size=60, overlap=0)
    parts = [chunk for chunk in chunks if "Part" not in chunk.text and "螺丝" in chunk.text[:9]]
    assert len(parts) > 3
    assert {chunk.heading for chunk in parts} == {"Prices › Part | 价格１２"}
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    pieces = ["# Prices", "| Part", "Paid", "End"]
    around = provided_chunks(pages, pieces, TOKENIZER)
    assert {chunk.heading for chunk in around} == {"Prices"}
    wide = "|".join(f" column {number} " for number in range(99))
    (place,) = find_tables(Page("d", 1, f"|{wide}|\n|---|\n| x |\n| y |"))
    assert len(place.header) < 130


NOTHING = jsonl(entity("Bern"), {"type": "done", "entities": 1, "relationships": 0})
OPTIONS = IndexOptions(max_gleanings=0, chunk_tokens=12, chunk_overlap=0)


@pytest.mark.parametrize(
    ("language", "words"), [("en", "Background, only to"), ("zh", "背景，只用来")]
)
async def test_extraction_and_answers_are_told_of_title_and_headings(
    tmp_path: Path, language: str, words: str
) -> None:
    """In the user's turn, so that the system's can be cached; again in a retry; and stored, so that
    they are shown over the passage.
    """
    answers = iter([LLMError("busy"), *[NOTHING] * 99])
    llm = ScriptedLLM(lambda request: next(answers))
    text = "# 报告\n\n## Costs\n\nThey rose in Bern, and they rose again in Biel. 他们又涨了。"
    more = {"language": language, "prompts": prompts(language)}
    async with index(tmp_path, llm, options=OPTIONS, **more) as rag:
        await rag.insert(Document(text, id="x", title="Year 2024"))
        first = len(llm.requests)
        assert not (await rag.retry()).failures and len(llm.requests) > first
        users = [request.question.split("\n")[0] for request in llm.requests]
        assert all(user.startswith(words) for user in users)
        assert users[-1].endswith("Year 2024 › 报告") and users[first - 1].endswith("› Costs")
        assert len({request.messages[0].content for request in llm.requests}) == 1
        context = await rag.retrieve("Bern", mode="naive")
        comma = "，" if language == "zh" else ", "
        assert f"Year 2024{comma}报告 › Costs" in context.prompt


@pytest.mark.parametrize(
    ("language", "words"), [("en", "written on 2019-03-07"), ("zh", "写于 2019-03-07")]
)
async def test_extraction_is_told_of_the_date_of_a_document(
    tmp_path: Path, language: str, words: str
) -> None:
    """In the user's turn, also in a retry, so that "last year" can be resolved; a document without a
    date has no such words.
    """
    answers = iter([LLMError("busy"), *[NOTHING] * 9])
    llm = ScriptedLLM(lambda request: next(answers))
    more = {"language": language, "prompts": prompts(language)}
    async with index(tmp_path, llm, options=OPTIONS, **more) as rag:
        await rag.insert(
            Document("Rents in Bern rose last year. 去年涨了。", id="x", date="2019-03-07")
        )
        assert not (await rag.retry()).failures
        dated_questions = [request.question for request in llm.requests]
        await rag.insert(Document("Rents in Biel fell last year. 去年跌了。", id="y"))

    assert all(words in question for question in dated_questions) and len(dated_questions) > 1
    assert words[:4] not in llm.requests[-1].question
    assert len({request.messages[0].content for request in llm.requests}) == 1


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("id", ["extract-graph", "agent-kg-extract", "extract-with-ontologies"])
def test_a_text_without_headings_is_asked_about_as_ever(language: str, id: str) -> None:
    """No background, no word of it."""
    names = ["classes", "object_properties", "datatype_properties"]
    given = {"text": "猫", **{name: ["A"] for name in names}}
    for none in ({}, {"background": ""}):
        (_, user) = prompts(language).render(id, {**given, **none})
        assert user.content == {"en": "Text:\n猫", "zh": "文本：\n猫"}[language]
