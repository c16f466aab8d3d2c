"""The nouns: what answers, contexts and extractions say about themselves."""

from dataclasses import replace

import pytest

from lightrag_jsonl.core.answers import Answer, Citation, CitedClaim, Context, source_lines
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.types import Chunk

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
    lacking = replace(CITED, number=3, text="", end=10, supported=False)
    answer = Answer("多病 [1][2]。", (CITED, second, CITED, lacking), Context(language="zh"))

    assert str(answer) == (
        "多病 [1][2]。\n\n[1][2] 红楼梦：“黛玉自幼多病。👻”\n"
        "[3] 红楼梦（未获支持：此处没有这样说的句子）"
    )
    both = [CITED, replace(lacking, number=1)]
    assert [*source_lines(both, "zh")] == [
        "[1] 红楼梦：“黛玉自幼多病。👻”（另有引用此处的说法未获支持）"
    ]
    assert next(source_lines(both)).endswith(" (another claim that cites this is unsupported)")
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
            "(!) not supported by [1][2]: “Penguins govern the harbor”",
        ),
        (
            "zh",
            "灯用油点亮［1］。火星上住着三位木匠🍵［1］［2］。",
            "火星上住着三位木匠🍵",
            "(!) [1][2]不支持此说法：“火星上住着三位木匠🍵”",
        ),
    ],
)
def test_an_answer_says_which_claims_have_no_support(
    language: str, text: str, claim: str, line: str
) -> None:
    """Below the sources, once for each claim with all its numbers; supported claims are not listed."""
    start = text.index(claim)
    places = {"start": start, "end": start + len(claim), "marker": start + len(claim)}
    wrong = [CitedClaim(number, supported=False, **places) for number in (1, 2, 1)]
    right = CitedClaim(1, start=0, end=5, marker=6, supported=True)
    answer = Answer(text, (CITED,), Context(language=language), claims=(right, *wrong))

    assert str(answer).split("\n")[-1] == line
    assert str(answer).count("(!)") == 1
    assert "(!)" not in str(replace(answer, claims=(right,)))
    assert claim.strip("*") in answer._repr_html_()


@pytest.mark.parametrize(
    ("language", "text", "lines"),
    [
        (
            "en",
            "# The harbor\n\nThe lamp burns oil. [1] Three **penguins** govern the harbor. What else "
            "is known there?\n\nThe sources say about oil:\n- It is old and clean [1].",
            ["(!) no source given: “Three penguins govern the harbor”"],
        ),
        (
            "zh",
            "灯用油点亮［1］。火星上住着三位木匠🍵。还有什么呢？",
            ["(!) 未注明来源：“火星上住着三位木匠🍵”"],
        ),
        ("en", "The lamp burns oil [1]. I hope.", []),
    ],
)
def test_statements_without_a_source_are_marked(language: str, text: str, lines: list[str]) -> None:
    """But no heading, question or introduction of a list, nor a fixed sentence of the package."""
    fixed = FIXED_WORDS[known_language(language)].selected
    answer = Answer(f"{text}\n\n{fixed}", (CITED,), Context(language=language))

    assert [line for line in str(answer).split("\n") if line.startswith("(!)")] == lines


@pytest.mark.parametrize(
    ("language", "text", "line"),
    [
        (
            "en",
            "The lamp burns oil. It hangs in the old tower.",
            "(!) This answer cites no source.",
        ),
        ("zh", "灯用油点亮，挂在旧塔上。", "(!) 这个回答没有引用任何来源。"),
    ],
)
def test_an_answer_that_cites_nothing_says_so(language: str, text: str, line: str) -> None:
    """In one line; but not where there was nothing to cite, or nothing is stated."""
    found = Context(language=language, chunks=(Chunk("c", "d", 0, 1, 0, 3, "Oil"),))
    words = FIXED_WORDS[known_language(language)]

    assert str(Answer(text, (), found)).split("\n") == [text, "", line]
    assert str(Answer(text, (), Context(language=language))) == text
    assert str(Answer(words.nothing_found, (), found)) == words.nothing_found


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
