"""Promises of questions about a part of a text by its number."""

from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.text.numbers import numbered_parts
from lightrag_jsonl.text.question_kinds import asks_about_everything
from lightrag_jsonl.text.terms import search_terms

RULES = """第一条 为了规范冰场的使用，制定本规则。
第十一条 入场者应当佩戴护膝。护膝由冰场提供。
第三十一条 违反规则的，取消当日入场资格。取消资格须由值班员记录。
第一百三十一条 本规则由体育处解释。
"""
LEASE = """1. Term. The lease runs for nine years.

7. Repairs. The owner repairs the roof. The tenant repairs the doors.

70. Notices. Notices are sent by post.
"""
ACT = """Whoever breaks section 17 pays a fine.

Section 7. Short title. This Act may be called the Ferry Act.

Section 17. Licences. No person shall run a ferry without one. A licence lasts five years.

Article IX. Courts. The ferry court sits at Leith.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "language", "question", "wanted", "unwanted"),
    [
        (RULES, "zh", "第31条规定了什么？", ["取消当日入场资格", "值班员记录"], ["护膝", "解释"]),
        (RULES, "zh", "第三十一条规定了什么？", ["取消当日入场资格"], ["护膝", "解释"]),
        (RULES, "zh", "第１１条是什么？", ["佩戴护膝", "由冰场提供"], ["取消", "解释"]),
        (RULES, "zh", "第131条是什么？", ["体育处解释"], ["护膝", "取消"]),
        (
            LEASE,
            "en",
            "What does section 7 say?",
            ["repairs the roof", "the doors"],
            ["post", "nine"],
        ),
        (ACT, "en", "What does Sec. 7 say?", ["Ferry Act"], ["fine", "five years", "Leith"]),
        (ACT, "en", "What does § 17 say?", ["Licences", "without one"], ["Ferry Act", "Leith"]),
        (ACT, "en", "What is in article 9?", ["sits at Leith"], ["fine", "licence"]),
    ],
)
def test_a_part_is_found_by_its_number_and_nothing_else_is(
    text: str, language: str, question: str, wanted: list[str], unwanted: list[str], tmp_path: Path
) -> None:
    """However a number is written, the answer has the sentences of that part, up to the next number."""
    with LightRAG(tmp_path, language=language) as rag:
        rag.insert(text)
        answer = rag.query(question).text

    assert [words for words in wanted if words not in answer] == []
    assert [words for words in unwanted if words in answer] == []


LIST = """第五条 本规则称冰场，适用第三条第一款。

第六条 有下列情形之一的，依照第五条处理：

（一）未佩戴护膝的；

（二）擅自入场的。

第七条 值班员应当登记。
"""


@pytest.mark.slow
def test_a_part_may_be_a_list_and_names_others(tmp_path: Path) -> None:
    """The list belongs to its part, not to the part that it names, and ends with the next number."""
    with LightRAG(tmp_path, language="zh") as rag:
        rag.insert(Document(LIST, id="rules"))
        sixth, seventh = rag.query("第6条规定了什么？").text, rag.query("第7条规定了什么？").text

    assert "有下列情形之一的" in sixth
    assert "擅自入场" in sixth
    assert "登记" not in sixth
    assert "登记" in seventh
    assert "情形" not in seventh


@pytest.mark.slow
def test_a_part_that_is_not_there_is_not_answered_from_its_neighbours(tmp_path: Path) -> None:
    """第13条 is not 第三十一条, and section 1 not section 17."""
    with LightRAG(tmp_path) as rag:
        rag.insert([RULES, ACT])

        assert "护膝" not in (chinese := rag.query("第13条规定了什么？").text)
        assert "资格" not in chinese
        assert "ferry" not in rag.query("What does section 1 say?").text.lower()


HARBOUR = """# Harbour rules

## Article 2. Berths

### Section 1. Fees

A berth costs nine crowns. 🛶

### Section 2. Length

No boat is longer than twelve metres.

## Article 3. Lights

### Section 2. Lanterns

Each mast carries a lantern. See Article 2.
"""
SAUNA = """# 桑拿房章程

第一条 本章程适用于全体会员。

第二条 桑拿房每周三开放。第三次违规的，暂停使用。
"""
LIBRARY = """# 图书室章程

第二条 图书室每天开放📚。
"""
LEASING = """# Lease of the boathouse

## 2. Rent

The rent is due in May.

9. It is paid to Ole Quist.

## 4. Keys

The keys lie with Una Pike. Section 2 stays in force without them.

4. Una Pike has one key.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "question", "wanted", "unwanted"),
    [
        ("en", "What does section 2 of article 3 say?", ["lantern"], ["metres", "crowns", "rent"]),
        ("en", "What does article 2 section 2 say?", ["twelve metres"], ["lantern", "crowns"]),
        ("en", "What does section 9 of article 3 say?", [], ["lantern", "metres", "May"]),
        ("en", "What does section 2 of article 7 say?", [], ["lantern", "metres", "May"]),
        ("en", "What is in article 2 of the harbour rules?", ["nine", "twelve"], ["rent is"]),
        ("en", "What does clause 4 of the lease say?", ["keys lie"], ["lantern", "crowns"]),
        ("en", "What does section 2 of the lease say?", ["rent is due"], ["metres", "lantern"]),
        ("en", "What does section 9 of the lease say?", [], ["Ole Quist", "metres"]),
        ("en", "What does section 1 of the Ilmar Statutes say?", [], ["crowns", "rent is"]),
        ("en", "What does section 1 of the lease say?", ["“lease; section 1”"], ["crowns", "May"]),
        ("zh", "桑拿房章程第二条是什么？", ["每周三开放"], ["每天开放"]),
        ("zh", "图书室章程第2条是什么？", ["每天开放"], ["每周三"]),
    ],
)
def test_a_part_is_that_of_the_text_asked_about(
    tmp_path: Path, language: str, question: str, wanted: list[str], unwanted: list[str]
) -> None:
    """Of several texts with a part of the number, and of parts in parts: all that the question names must hold. A
    heading that only has the number is a part where the parts of the text begin with no unit.
    """
    with LightRAG(tmp_path, language=language) as rag:
        for number, text in enumerate((HARBOUR, LEASING, SAUNA, LIBRARY)):
            title = text.split("\n")[0].removeprefix("# ")
            rag.insert(Document(text, id=str(number), title=title))
        answer = rag.query(question).text

    assert [words for words in wanted if words not in answer] == []
    assert [words for words in unwanted if words in answer] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "language", "question", "wanted"),
    [
        (
            ["# Lease\n\n1. Term. It runs on.\n\n12. Repairs. Ole mends the roof."],
            "en",
            "What does section 12 say?",
            "roof",
        ),
        (
            ["**Terms**\n\n1. Term. It runs on.\n\n12. Repairs. Ole mends it. 🛶"],
            "en",
            "What does section 12 say?",
            "mends",
        ),
        (
            ["# Rules\n\n## Section 13 opening hours\n\nBoats leave at nine."],
            "en",
            "What does section 13 say?",
            "at nine",
        ),
        (
            [
                "# Lease\n\nSection 12. Ending\n\nIt ends in May.",
                "# Termination guide\n\nSee section 12 first.",
            ],
            "en",
            "What does section 12 say about termination?",
            "in May",
        ),
        (
            ["# 租赁合同\n\n第十二条 租金每月一付。", "# 管理规定\n\n另见第十二条。"],
            "zh",
            "第十二条对租金的规定是什么？",
            "每月一付",
        ),
    ],
)
def test_a_part_is_found_below_any_heading(
    tmp_path: Path, texts: list[str], language: str, question: str, wanted: str
) -> None:
    """A heading without a number takes no number away, a heading is no mere mention, and a word of the question in
    another title hides no text.
    """
    with LightRAG(tmp_path, language=language) as rag:
        rag.insert(texts)
        assert wanted in rag.query(question).text


@pytest.mark.slow
def test_the_passage_of_a_number_comes_first(tmp_path: Path) -> None:
    """Of many short passages, the one with the number is the best, in either writing."""
    with LightRAG(tmp_path, language="zh") as rag:
        rag.insert(
            [Document(line, id=str(at)) for at, line in enumerate(RULES.strip().split("\n"))]
        )

        assert rag.retrieve("第31条").chunks[0].document_id == "2"
        assert rag.retrieve("第一百三十一条的内容").chunks[0].document_id == "3"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("第二十二条", ["第22条"]),
        ("第22條、第二節", ["第22条", "第2节"]),
        ("第一百〇五回 第一○五回", ["第105回", "第105回"]),
        ("Section 12.3, art. 4, §§ 5", ["section12.3", "article4", "section5"]),
        ("Chapter XIV and Stave Two", ["chapter14", "stave2"]),
        ("a section I wrote; sections of 12; the 5 parts", []),
        ("第一次，第几条，第22", []),
    ],
)
def test_all_writings_of_a_number_are_one_term(text: str, terms: list[str]) -> None:
    """Digits, numerals and number words with a unit are one number; others are no parts."""
    assert [part.term for part in numbered_parts(text)] == terms


def test_a_chinese_number_shares_no_term_with_another() -> None:
    """第二十二条 and 第十二条 are different words for the search."""
    assert search_terms("依第二十二条办理") == ["依", "第22条", "办理"]


def test_a_question_about_a_part_is_not_about_everything() -> None:
    """ "What does section 12 say?" has words for texts only, but asks about one part."""
    assert not asks_about_everything("What does section 12 say?")
    assert asks_about_everything("What do the sections say?")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Section 1. The ferry runs in May.", "What does section 7 say?"),
        ("第一条 图书馆周二开放。", "第七条怎么规定？"),
    ],
)
def test_that_a_part_is_missing_is_no_claim(tmp_path: Path, text: str, question: str) -> None:
    """The sentence is this program's own: it is neither looked up nor marked."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(text)
        answer = rag.query(question)
    assert not answer.citations and not answer.uncited
    assert str(answer) == answer.text
