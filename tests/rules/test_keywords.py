"""Promises of the offline keyword extractor."""

from collections.abc import Sequence

import pytest

from lightrag_jsonl import Keywords, Message, QueryParam
from tests.kit import Language
from tests.rules.conftest import reader

FIRST_ZH, THEN_ZH = "曹操是谁？", "他的父亲原来姓什么"
FIRST, THEN = "Who is Scrooge?", "Who was his partner?"


def keywords(question: str, *history: Message, language: Language = "en") -> Keywords:
    param = QueryParam(mode="hybrid", conversation_history=history)
    return reader(language, "rules").retrieve(question, param).keywords


def test_names_are_low_level_and_themes_high_level() -> None:
    """Names and noun phrases are details, parted by verb forms; the other telling words are themes."""
    names = "Scrooge", "Ghost of Christmas Past"
    found = keywords("How does Scrooge change after the Ghost of Christmas Past appears?")
    assert found == Keywords(("change", "appears"), names)
    found = keywords("What is the debt load of the country containing Nugegoda?")
    assert found == Keywords(("country", "containing"), ("Nugegoda", "debt load"))


def test_chinese_questions_give_chinese_keywords() -> None:
    """A question in Chinese is read as Chinese in an English index too."""
    found = keywords("《战国无双3》是由哪两个公司合作开发的？")

    assert found.low_level == ("战国无双3",)
    assert "公司" in found.high_level
    assert keywords("曹操和刘备的关系？", language="zh").low_level == ("曹操", "刘备")


@pytest.mark.parametrize(
    ("question", "low"),
    [
        ("什么是镭？", ("镭",)),
        ("什麼是鐳？", ("鐳",)),
        ("修桥花了多少钱？", ("修桥花",)),
        ("煤是怎么形成的？", ("煤", "形成")),
        ("他为什么哭？", ("哭",)),
        ("胸斑眶锯雀鲷的习性？", ("习性",)),
        ("X是什么？", ()),
    ],
)
def test_a_chinese_word_may_be_one_character(question: str, low: tuple[str, ...]) -> None:
    """Nouns of one character are asked about as others are; no letter is, nor a piece of a name.
    Beside a name, such a noun is a theme.
    """
    assert keywords(question, language="zh") == Keywords((), low)
    assert keywords("刘备的马在中国叫什么？", language="zh") == Keywords(("马",), ("刘备", "中国"))


@pytest.mark.parametrize("low", ["3.14", "3．1416", "GB/T 19001-2016", "GB/T1.1-2020", "Windows"])
def test_a_number_is_not_cut(low: str) -> None:
    """Decimals are asked for whole, and standards by all of their code."""
    assert keywords(f"{low}是什么？", language="zh").low_level == (low,)
    assert keywords("Windows/Linux是什么？", language="zh").low_level[0] == "Windows"


@pytest.mark.parametrize("question", ["who is scrooge?", "谁是scrooge？", "Who is SCROOGE?"])
def test_a_question_in_small_letters_still_names_something(question: str) -> None:
    """Without a recognized name, what remains of the question is searched for."""
    assert [name.casefold() for name in keywords(question).low_level] == ["scrooge"]


@pytest.mark.parametrize("question", ["???", "👻", "\ud800", "what is it?", "是什么？"])
def test_empty_questions_have_no_keywords(question: str) -> None:
    """Nothing asked, nothing found, nothing raised."""
    assert keywords(question) == Keywords()


@pytest.mark.parametrize(
    ("before", "question", "language"),
    [
        ("Who repaired the boiler of Elm House?", "How much is the deposit?", "en"),
        ("Who is Ines Calder?", "When does the ferry leave?", "en"),
        ("榆园的锅炉是谁修的？", "押金是多少？", "zh"),
    ],
)
def test_a_question_with_words_of_its_own_needs_no_earlier_turn(
    before: str, question: str, language: Language
) -> None:
    """Without a pronoun or a word that goes on with the subject, the answer is as without a conversation."""
    turns = (Message("user", before), Message("assistant", "Ines Calder did."))
    assert keywords(question, *turns, language=language) == keywords(question, language=language)


@pytest.mark.parametrize(
    ("talk", "question", "searched"),
    [
        ((FIRST,), THEN, f"Scrooge {THEN}"),
        ((FIRST, THEN), "When did he die?", "Scrooge When did he die?"),
        ((FIRST, "What happened next?"), "When did he die?", "Scrooge When did he die?"),
        (("貂蝉是谁？",), "她的守将是谁？", "貂蝉 的守将是？"),
        ((FIRST,), "Why?", "Scrooge Why?"),
        ((FIRST,), "What is the film that Christopher Nolan made?", ""),
        ((FIRST,), "Where is London?", ""),
        (("Who was the partner of Scrooge?",), "And Fezziwig?", "partner And Fezziwig?"),
        ((FIRST_ZH,), THEN_ZH, "曹操 的父亲姓"),
        ((FIRST_ZH,), "刘备和他是什么关系？", "曹操 刘备和是关系？"),
        (("曹操的父亲是谁？",), "那刘备呢？", "父亲 刘备？"),
        ((FIRST_ZH,), "第１２回讲了什么，👻？", "曹操 第１２回讲了，👻？"),
        ((FIRST_ZH,), "介绍一下刘备这个人", ""),
        ((), THEN, ""),
    ],
)
def test_what_the_rules_search_with(talk: Sequence[str], question: str, searched: str) -> None:
    """Pronouns and questions without a name take names of earlier turns; a question that goes on
    with another name takes what was asked; all others stand alone.
    """
    language = "zh" if any("\u4e00" <= char <= "\u9fff" for char in question) else "en"
    turns = [Message("user", text) for text in talk]
    assert keywords(question, *turns, language=language).question == searched
