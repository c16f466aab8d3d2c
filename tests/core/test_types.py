"""The nouns: what answers, contexts and extractions say about themselves."""

from dataclasses import replace

import pytest

from lightrag_jsonl import Answer, Citation, Context
from lightrag_jsonl.core.answers import CitedClaim, UncitedClaim, source_lines
from lightrag_jsonl.core.languages import known_language

CITED = Citation(1, "chunk", "[1]", "d1", "红楼梦", 2, "c", 10, 24, "黛玉自幼多病。👻")


def test_a_position_is_written_in_the_language_of_the_index() -> None:
    """Chinese in any spelling of its code; English stands in for all others."""
    assert [known_language(name) for name in ("zh", "ZH-Hant", "zh_TW")] == ["zh"] * 3
    assert known_language("en-GB") == known_language("fr") == known_language("") == "en"
    paged = replace(CITED, paged=True, date="1792", heading="第一回")
    assert [*source_lines([paged], "zh-CN")] == [
        "[1] 红楼梦，第一回，第 2 页，1792：“黛玉自幼多病。👻”"
    ]
    assert [*source_lines([paged], "fr")] == [
        "[1] 红楼梦, 第一回, page 2, 1792: “黛玉自幼多病。👻”"
    ]


def test_an_answer_prints_its_sources() -> None:
    """Each place once, with all its numbers; without sources it is its text."""
    second = replace(CITED, number=2, kind="entity", label="黛玉")
    lacking = replace(CITED, number=3, text="", end=10)
    answer = Answer("多病 [1][2]。", (CITED, second, CITED, lacking), Context(language="zh"))

    assert str(answer) == "多病 [1][2]。\n\n[1][2] 红楼梦：“黛玉自幼多病。👻”\n[3] 红楼梦"
    long = replace(CITED, text="word " * 100)
    assert len(next(source_lines([long]))) < 190
    assert str(Answer("没有。")) == "没有。"
    other = replace(CITED, number=2, document_id="d2")
    assert "红楼梦 (d1)" in str(replace(answer, citations=(CITED, other)))


@pytest.mark.parametrize(
    ("language", "text", "claim", "line"),
    [
        (
            "en",
            "The lamp burns oil [1]. **Penguins** govern the harbor [1][2].",
            "**Penguins** govern the harbor",
            "(!) [1][2] “⟨Penguins⟩ govern the harbor” – no penguins: “黛玉⟨自幼⟩多病。👻”",
        ),
        (
            "zh",
            "灯用油点亮［1］。火星上住着三位木匠🍵［1］［2］。",
            "火星上住着三位木匠🍵",
            "(!) [1][2] “⟨火星上住着⟩三位木匠🍵” —— no penguins：“黛玉⟨自幼⟩多病。👻”",
        ),
    ],
)
def test_an_answer_says_which_claims_are_marked(
    language: str, text: str, claim: str, line: str
) -> None:
    """Below the sources, once for each claim with all its numbers, the reason, and the differing words of
    claim and sentence in brackets; a claim with nothing against it is not listed.
    """
    start = text.index(claim)
    first = start + claim.index(claim.strip("*")[0])
    places = {"start": start, "end": start + len(claim), "marker": start + len(claim)}
    wrong = [
        CitedClaim(
            number=number,
            verdict="missing",
            reason="no penguins",
            citations=(0,),
            differing=((first, first + (8 if language == "en" else 5)),),
            instead=((12, 14),),
            **places,
        )
        for number in (1, 2, 1)
    ]
    right = CitedClaim(number=1, start=0, end=5, marker=6)
    answer = Answer(text, (CITED,), Context(language=language), claims=(right, *wrong))

    assert str(answer).split("\n")[-1] == line
    assert str(answer).count("(!)") == 1
    assert "(!)" not in str(replace(answer, claims=(right,)))
    compared = replace(wrong[0], verdict="compare")
    asked = {"en": "look yourself: no penguins", "zh": "请自行核对：no penguins"}
    printed = str(replace(answer, claims=(compared,)))
    assert asked[language] in printed
    assert "(?) [1] " in printed and "(!)" not in printed


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        (
            "en",
            [
                "(!) This answer cites no source.",
                "(≈1) “It rains” – not there – nearest: 红楼梦: “黛玉自幼多病。👻”",
            ],
        ),
        (
            "zh",
            [
                "(!) 本回答没有引用任何来源。",
                "(≈1) “It rains” —— not there —— 最接近的原文：红楼梦：“黛玉自幼多病。👻”",
            ],
        ),
    ],
)
def test_a_statement_without_a_citation_leads_to_its_nearest_sentence(
    language: str, lines: list[str]
) -> None:
    """Under a number and a name of the package's own, never as a source."""
    claim = UncitedClaim(
        number=1, start=0, end=8, verdict="missing", reason="not there", nearest=CITED
    )
    answer = Answer("It rains.", (), Context(language=language), uncited=(claim,))

    assert str(answer).split("\n")[2:] == lines


def test_invented_numbers_do_not_look_like_citations() -> None:
    """They get a question mark where the answer is printed; the text itself stays."""
    answer = Answer("The lamp burns oil [1]. It is blue [9]【８】.", (CITED,), invented=(9, 8))

    assert str(answer).startswith("The lamp burns oil [1]. It is blue [9?]【８?】.")
    assert "[9?]" in answer._repr_html_() and "[9]" in answer.text


def test_quotes_have_no_markup() -> None:
    """Marks of Markdown and HTML are left out; what only looks like them stays."""
    source = (
        "There's _such_ a **goose**, `Martha`! <b>See</b> [the page](https://example.org) 2 * 3 a_b"
    )
    (line,) = source_lines([replace(CITED, text=source)])

    assert line.endswith("“There's such a goose, Martha! See the page 2 * 3 a_b”")
