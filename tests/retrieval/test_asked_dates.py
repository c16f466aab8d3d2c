"""A day or a month of the question is asked for, in whatever form question and texts write it."""

from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, QueryParam
from tests.kit import Mode

ENGLISH_MINUTES = [
    Document(
        f"# Meeting of the board, {day}\n\nAttending were:\n\n- {name}\n", id=f"minutes of {name}"
    )
    for day, name in (
        ("April 7, 2021", "Ada Orne"),
        ("May 12, 2021", "Ivo Brack"),
        ("June 9, 2021", "Una Dell"),
        ("12 May 2022", "Ole Quist"),
        ("2022-07-14", "Note taker: Mark"),
    )
]
CHINESE_MINUTES = [
    Document(f"# 理事会例会 {day}\n\n## 出席\n\n- {name}\n", id=f"{name} 纪要")
    for day, name in (
        ("2021-4-7", "王小明"),
        ("2021-5-12", "李大为"),
        ("二〇二一年六月九日", "赵一凡"),
        ("2022-5-12", "孙立新"),
    )
]


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> LightRAG:
    rag = LightRAG(tmp_path_factory.mktemp("en"))
    rag.insert([*ENGLISH_MINUTES, Document("The board met.", id="dated", date="2021-08-11")])
    return rag


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> LightRAG:
    rag = LightRAG(tmp_path_factory.mktemp("zh"), language="zh")
    rag.insert(CHINESE_MINUTES)
    return rag


def first_document(rag: LightRAG, question: str, mode: Mode) -> str:
    context = rag.retrieve(question, QueryParam(mode=mode))
    return context.chunks[0].document_id


@pytest.mark.parametrize("mode", ["mix", "naive"])
@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("Who attended the board meeting on 12 May 2021?", "Ivo Brack"),
        ("Who attended on 2021-05-12?", "Ivo Brack"),
        ("Who was there on May 12th, 2022?", "Ole Quist"),
        ("Who attended in June 2021?", "Una Dell"),
        ("What did the board do on 11 August 2021?", "dated"),
    ],
)
def test_passages_of_an_asked_date_come_first(
    english: LightRAG, mode: Mode, question: str, document: str
) -> None:
    """In a heading or as the document's date."""
    assert document in first_document(english, question, mode)


def test_a_month_within_a_text_leads_nowhere(tmp_path: Path) -> None:
    """What happened in a month is told by later texts, too, and other things of the month by many."""
    texts = {
        "inflation": "Inflation in August 2022 was nine percent, said the office on 14 September 2022.",
        "football": "The club lost in August 2022.",
        "weather": "In August 2022 it rained.",
    }
    with LightRAG(tmp_path) as rag:
        rag.insert(
            [
                Document(text, id=id, date="2022-08-20" if id == "weather" else None)
                for id, text in texts.items()
            ]
        )
        assert first_document(rag, "What was inflation in August 2022?", "mix") == "inflation"


@pytest.mark.parametrize("mode", ["mix", "naive"])
@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("2021年5月12日谁出席了例会？", "李大为"),
        ("2021-05-12的例会谁出席？", "李大为"),
        ("二〇二二年五月十二日谁出席？", "孙立新"),
        ("2021年6月的例会谁出席？", "赵一凡"),
    ],
)
def test_passages_of_an_asked_chinese_date_come_first(
    chinese: LightRAG, mode: Mode, question: str, document: str
) -> None:
    assert document in first_document(chinese, question, mode)


def test_sentences_of_the_asked_date_are_quoted_first(english: LightRAG, chinese: LightRAG) -> None:
    """Those under the heading of the day, and not the words of the day elsewhere."""
    english_answer = english.query("Who attended the meeting on 12 May 2021?").text
    chinese_answer = chinese.query("2021年5月12日谁出席了例会？").text

    assert english_answer.split("- ")[1].startswith("Attending were: Ivo Brack")
    assert chinese_answer.split("- ")[1].startswith("出席：李大为")
    # "Mark", and below the date, are no month of 2022.
    assert "Mark" in english.query("Who was the note taker on 14 July 2022?").text.split("- ")[1]


def test_a_list_of_dates_tells_nothing_of_a_date(tmp_path: Path) -> None:
    links = "\n".join([f"- [2021-{month:02}](minutes/{month}.md)" for month in range(1, 7)])
    with LightRAG(tmp_path) as rag:
        rag.insert([Document("The roof was repaired.", id="roof"), Document(links, id="links")])
        answer = rag.query("What happened to the roof in May 2021?").text

    assert answer.split("- ")[1].startswith("The roof was repaired.")


def test_what_is_of_the_date_comes_before_what_has_the_name(tmp_path: Path) -> None:
    """A question with a day asks about this day: what the name did on others is no answer."""
    with LightRAG(tmp_path) as rag:
        for day, text in (
            ("2021-05-12", "The harbour board met. It moved the buoys."),
            ("2021-06-09", "The Orne Club moved and painted its boats. 🛶"),
        ):
            rag.insert(Document(text, id=day, date=day))
        answer = rag.query("What was moved or painted at the Orne Club on 12 May 2021?")

    assert answer.citations[0].document_id == "2021-05-12"
