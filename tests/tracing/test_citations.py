"""Finding and resolving the `[n]` of an answer."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, Citation, Context, Document, LightRAG, Relation
from lightrag_jsonl.core.answers import Cited
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.text.citation_markers import CITATION_MARKER, CitationNumbering, marked_numbers
from lightrag_jsonl.tracing.citations import resolve_citations
from tests.kit import Record, entity

from .conftest import stored

ENGLISH = (
    "Marie Curie was born in Warsaw in 1867. 🧪 She discovered radium and polonium. "
    "The Nobel Prize followed in 1903."
)
QUOTES = '吕布骂道："环眼贼！我打你，便是打吕布！"张飞不答。张飞说："我不怕吕布。"'
CHINESE = "居里夫人１８６７年生于华沙。她和丈夫一起发现了镭和钋。一九〇三年，她获得诺贝尔奖。"


def chunk(text: str, *, start: int = 0, id: str = "c1") -> Chunk:
    return Chunk(id, "d1", 0, 1, start, start + len(text), text)


def cited(answer: str, *chunks: Chunk) -> tuple[Citation, ...]:
    return resolved(answer, Context(chunks=chunks)).citations


def resolved(answer: str, context: Context, held: dict[str, Chunk] | None = None) -> Cited:
    """The citations of an answer, under the numbers that its context has."""
    return resolve_citations(
        stored(held or {}), answer, len(answer), context, range(1, context.items + 1)
    )


def test_what_the_package_appends_is_no_claim() -> None:
    """Its numbers are resolved; its sentences are not judged, whatever they are."""
    written = "She moved to Paris in 1891."
    appended = (
        "\n\nShelf marks: the first volume stands at 76.9 in the reading room. See radium [1]."
    )
    context = Context(chunks=(chunk(ENGLISH),))
    found = resolve_citations(stored({}), written + appended, len(written), context, [1])
    assert [(claim.start, claim.end) for claim in found.uncited] == [(0, len(written))]
    assert [claim.number for claim in found.claims] == [1]


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("[1，3、4;5, 1]", [(1, 3, 4, 5)]),
        ("[1][2–4, 9]", [(1,), (2, 3, 4, 9)]),
        ("［１］【1，２】", [(1,), (1, 2)]),
        ("[4-2][1-999999]", [(4, 2), (1, 999999)]),
        ("[] [one] [1.5] [-1] [^1]", []),
        ("[1](https://example.org)", []),
        ("[" + "9" * 5000 + "]", []),
    ],
)
def test_the_forms_of_a_marker(written: str, numbers: list[tuple[int, ...]]) -> None:
    """Square, full-width and lenticular brackets; lists and ranges; nothing else."""
    found = CITATION_MARKER.finditer(f"A sentence{written}.")
    assert [marked_numbers(marker) for marker in found] == numbers


NONE, BORN = [""], "Marie Curie was born in Warsaw in 1867."
RADIUM = "🧪 She discovered radium and polonium."
PRIZE = "The Nobel Prize followed in 1903."


@pytest.mark.parametrize(
    ("text", "answer", "sentences"),
    [
        (
            CHINESE,
            "居里夫人发现了镭和钋［1］。她1867年生于华沙【1】。",
            ["她和丈夫一起发现了镭和钋。", "居里夫人１８６７年生于华沙。"],
        ),
        (
            "Radium glows.\n\nMarie likes radium.\n\nMarie likes gold.",
            "Gold is what Marie likes [1].",
            ["Marie likes gold."],
        ),
        (ENGLISH, "Her prize came in 1903 [1], radium was her discovery [1].", [PRIZE, RADIUM]),
        (ENGLISH, "In Warsaw in 1867. [1] The Nobel Prize came later. [1]", [BORN, PRIZE]),
        (
            QUOTES,
            '我打你，便是打吕布！" [1] 张飞说："我不怕吕布。" [1]',
            ['我打你，便是打吕布！"', '张飞说："我不怕吕布。"'],
        ),
        (ENGLISH, "Bananas are yellow [1].", NONE),
        (ENGLISH, "He was in the zoo [1].", NONE),
        (ENGLISH, "In 1867, in Warsaw [1]. In Warsaw in 1867 " + "[1]" * 500 + ".", [BORN]),
    ],
    ids=[
        "Chinese",
        "paragraphs",
        "two claims",
        "marker after",
        "straight quotation marks",
        "nothing shared",
        "function words",
        "again",
    ],
)
def test_the_best_sentence_is_cited(text: str, answer: str, sentences: list[str]) -> None:
    """In both languages, in the order of the answer, each once; where no sentence shares a word, none is
    pretended to be the nearest.
    """
    found = cited(answer, chunk(text))
    assert [one.text for one in found] == sentences


def test_invented_numbers_are_reported_once() -> None:
    """A number that was not shown is no citation, but is on record; the others are kept."""
    context = Context(chunks=(chunk(ENGLISH),), documents={"d1": "Lives"})
    answer = "Radium [1, 7]. Polonium [7][2-3]."

    found = resolved(answer, context)

    assert {(one.number, one.document, one.chunk_id) for one in found.citations} == {
        (1, "Lives", "c1")
    }
    assert found.invented == (7, 2, 3)


def test_a_relation_cites_the_nearest_of_its_chunks() -> None:
    """Of all the passages that it was read from; deleted ones are left out. The title of the document is
    there also if no passage of it is shown.
    """
    chunks = {"c1": chunk(ENGLISH), "c2": chunk("The Nobel Prize.", id="c2")}
    cut = replace(chunks["c1"], text=ENGLISH[:20], end=20)
    fact = Relation("Curie", "prize", ("won",), "", chunk_ids=("gone", "c2", "c1"))
    chunks["c2"] = replace(chunks["c2"], document_id="d2")
    context = Context(relations=(fact,), chunks=(cut,))

    (first, second) = resolved("The Nobel Prize was hers [1][2].", context, chunks).citations

    assert (first.number, first.chunk_id, first.kind, first.text) == (1, "c1", "chunk", "")
    assert (second.number, second.chunk_id, second.kind) == (2, "c2", "relation")
    assert (second.text, second.label) == ("The Nobel Prize.", "Curie — won → prize")
    assert {first.document, second.document} == {"Lives (d1)", "Lives (d2)"}


LIGHTHOUSE = "The lighthouse of Norby was built in 1871. Its lamp burns whale oil."
TEA = "龙井茶产于杭州西湖一带。清明之前采摘的最为珍贵。"


@pytest.mark.parametrize(
    ("text", "answer", "claims"),
    [
        (
            LIGHTHOUSE,
            "The lighthouse of Norby was built in 1871 [1]. Its lamp burns gas in 1902 [1].",
            [
                ("The lighthouse of Norby was built in 1871", "nearest", ""),
                ("Its lamp burns gas in 1902", "missing", "the passage does not say: 1902"),
            ],
        ),
        (
            LIGHTHOUSE,
            "It was built in 1781 [1], while its lamp burns whale oil [1].",
            [
                ("It was built in 1781", "missing", "the passage says “1871”, not “1781”"),
                ("while its lamp burns whale oil", "nearest", ""),
            ],
        ),
        (
            TEA,
            "龙井茶产于杭州西湖一带［1］。🍵清明之前采摘的不珍贵［1］。",
            [
                ("龙井茶产于杭州西湖一带", "nearest", ""),
                ("🍵清明之前采摘的不珍贵", "missing", "原文的说法中没有“不”"),
            ],
        ),
        (
            LIGHTHOUSE,
            "Penguins govern harbors. [1] Its lamp burns whale oil. [1]",
            [
                ("Penguins govern harbors.", "compare", "the passage shares no word with it"),
                ("Its lamp burns whale oil.", "nearest", ""),
            ],
        ),
    ],
    ids=["two sentences", "one sentence", "Chinese", "marker after"],
)
def test_a_verdict_belongs_to_the_claim(
    text: str, answer: str, claims: list[tuple[str, str, str]]
) -> None:
    """Where one claim cites a passage rightly, another one that cites the same passage is still marked;
    each has its own place in the answer.
    """
    found = resolved(answer, Context(chunks=(chunk(text),)))

    shown = [(answer[one.start : one.end], one.verdict, one.reason) for one in found.claims]
    assert shown == claims
    for claim in found.claims:
        marker = CITATION_MARKER.match(answer, claim.marker)
        assert marker is not None and claim.number in marked_numbers(marker)


def test_the_numbers_of_one_claim_are_judged_together() -> None:
    """What one passage lacks may stand in the other; each number has its own nearest sentence."""
    chunks = chunk(LIGHTHOUSE), chunk("Sheep graze at Norby since 1902.", id="c2")
    answer = "Norby has a lighthouse of 1871, and sheep since 1902 [1][2]."
    found = resolved(answer, Context(chunks=chunks))
    assert [(one.number, one.verdict) for one in found.claims] == [(1, "nearest"), (2, "nearest")]
    assert [found.citations[one.citations[0]].chunk_id for one in found.claims] == ["c1", "c2"]
    alone = resolved(answer.replace("[2]", ""), Context(chunks=chunks))
    assert [(one.verdict, one.reason) for one in alone.claims] == [
        ("missing", "the passage says “1871”, not “1902”")
    ]


def test_the_words_that_differ_are_places_of_answer_and_page() -> None:
    """To the character, also behind emoji and in a chunk that does not begin its page."""
    text = "🧪 The pump runs for 24 hours."
    answer = "🍵 The pump runs for 48 hours [1]."
    found = resolved(answer, Context(chunks=(chunk(text, start=100),)))
    (claim,) = found.claims
    ((start, end),) = claim.differing
    assert answer[start:end] == "48 hours"
    ((start, end),) = claim.instead
    assert text[start - 100 : end - 100] == "24 hours"


@pytest.mark.parametrize(
    ("answer", "statements"),
    [
        (
            "# The lighthouse of Norby\n\nThis is known about it:\n\n1. It was built in 1781 by Norby.\n"
            "2. Its lamp burns whale oil [1].\n\nDo you want to know more about whale oil? "
            "I hope this helps with your lighthouse question.",
            [("It was built in 1781 by Norby.", "missing", "lighthouse of Norby was built")],
        ),
        (
            "The lighthouse of Norby burns whale oil. The sources do not say who built the lighthouse.",
            [("The lighthouse of Norby burns whale oil.", "nearest", "lamp burns whale oil")],
        ),
        (
            "The zebra quickly jumps sideways.",
            [("The zebra quickly jumps sideways.", "compare", "")],
        ),
        (  # few words state something, too, where one is a name or a number
            "It stands at Norby. It opened in 1902. I hope this helps.",
            [
                ("It stands at Norby.", "nearest", "lighthouse of Norby was built"),
                ("It opened in 1902.", "missing", ""),
            ],
        ),
    ],
)
def test_statements_without_a_number_lead_to_their_nearest_sentence(
    answer: str, statements: list[tuple[str, str, str]]
) -> None:
    """But no heading, introduction, question or offer, nor what is said of the sources; and not by a
    number that the answer uses.
    """
    found = resolved(answer, Context(chunks=(chunk(LIGHTHOUSE),)))

    shown = [(answer[one.start : one.end], one.verdict) for one in found.uncited]
    assert shown == [(text, verdict) for text, verdict, _ in statements]
    for claim, (_, _, nearest) in zip(found.uncited, statements, strict=True):
        assert claim.number > max([one.number for one in found.citations], default=0)
        assert (claim.nearest is not None) == bool(nearest)
        assert claim.nearest is None or nearest in claim.nearest.text


@pytest.mark.parametrize(
    ("before", "sentence", "claim"),
    [
        (
            "When the keepers met in the old boat house, after a long quarrel about the bell, the nets and the"
            " oil, and though the elder of the two had left before the candles were lit, ",
            "they agreed to row out with 26 lanterns.",
            "The keepers agreed to row out with 62 lanterns",
        ),
        (
            "守塔人在旧船屋里开会，先是为钟、渔网和灯油争吵了很久，" * 7,
            "最后决定带上26盏灯划船出海。",
            "守塔人决定带上62盏灯划船出海",
        ),
    ],
)
def test_the_words_that_differ_are_seen_in_a_long_sentence(
    before: str, sentence: str, claim: str, tmp_path: Path
) -> None:
    """At its end, too: in the printed answer and in the wiki the quotation begins later then."""
    text = before + sentence
    llm = ScriptedLLM(lambda request: f"{claim} [1].")
    with LightRAG(tmp_path / "kb", llm=llm, models={"extract": "none"}) as rag:
        rag.insert(text)
        printed = str(rag.query("26?", mode="naive"))
        records: list[Record] = [entity("Boat", f"{claim}.")]
        rag.insert_records(Document(text, id="boat"), records)
        rag.admin.export(tmp_path / "wiki")
    wiki = (tmp_path / "wiki" / "entities" / "Boat.md").read_text(encoding="utf-8")
    (footnote,) = re.findall(r"^\[\^1\]: (.+)$", wiki, re.MULTILINE)
    assert "**26" in footnote and "“…" in footnote and before not in footnote
    (line,) = [line for line in printed.split("\n") if line.startswith("(!)")]
    assert "⟨26" in line and "⟨62" in line and "“…" in line and before not in line


@given(st.text("ab 中。.[]12\n🍵", max_size=60))
def test_claims_lie_in_the_answer(answer: str) -> None:
    """Whatever is written, a claim is a part of the answer, and its marker is one of its brackets."""
    for claim in resolved(answer, Context(chunks=(chunk("ab 中 12"),))).claims:
        assert 0 <= claim.start <= claim.end <= len(answer)
        assert answer[claim.marker] in "[［【"


texts = st.text("abc [1]. [2] 中文。ß İ １\n!ǅ", max_size=80)


@given(answer=texts, first=texts.filter(bool), second=texts.filter(bool), at=st.integers(0, 50))
def test_every_span_is_exact(answer: str, first: str, second: str, at: int) -> None:
    """Whatever the texts, a citation is the slice of the page that it says it is."""
    chunks = chunk(first, start=at), chunk(second, start=at, id="c2")

    for found in cited(answer, *chunks):
        own = chunks[found.number - 1]
        assert own.id == found.chunk_id
        assert own.start <= found.start <= found.end <= own.end
        assert own.text[found.start - at : found.end - at] == found.text


def renumbered(*pieces: str, shown: int = 40) -> tuple[str, tuple[int, ...]]:
    numbering = CitationNumbering(shown)
    text = "".join([*map(numbering.feed, pieces), numbering.feed("", last=True)])
    return text, tuple(numbering.numbers)


@pytest.mark.parametrize(
    ("written", "read", "numbers"),
    [
        ("A [35]. B [39][35].", "A [1]. B [2][1].", (35, 39)),
        ("A [3-6]. B [5, 9]【6】", "A [1, 2, 3, 4]. B [3, 5]【4】", (3, 4, 5, 6, 9)),
        ("Forged [41], in part [7; 99], of [2024] and [0].", "Forged [41], in part [1, 99], of [2024] and [0].", (7,)),
        (r"As a\[3] and [7](https://a.b) are, [x] and [8", r"As a\[3] and [7](https://a.b) are, [x] and [8", ()),
        ("甲［１２］。乙【3，１2】", "甲［1］。乙【1, 2】", (12, 3)),
        ("`a[5]` [4]:\n```\nb[5] = [4]\n```\n`[5]", "`a[5]` [1]:\n```\nb[5] = [4]\n```\n`[2]", (4, 5)),
        ("A ` alone [5] ends with its line.\nB [4]", "A ` alone [5] ends with its line.\nB [1]", (4,)),
    ],
    ids=["order of use", "ranges and lists", "not shown", "no citations", "Chinese", "code", "line"],
)  # fmt: skip
def test_citations_are_numbered_in_the_order_of_their_first_use(
    written: str, read: str, numbers: tuple[int, ...]
) -> None:
    """Readers see 1, 2, 3; what was never shown keeps its number, which no other one can have."""
    assert renumbered(written) == (read, numbers)
    assert renumbered(*written) == (read, numbers)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("An engineer【2†source】.", "An engineer【1】."),
        ("An engineer [2†L3-L5].", "An engineer [1]."),
        ("An engineer.[^2]", "An engineer.[1]"),
        ("An engineer [Source 2, source 1].", "An engineer [1, 2]."),
        ("An engineer [Passages 1-2].", "An engineer [1, 2]."),
        ("工程师［资料2］【来源 1】。", "工程师［1］【2】。"),
        ("An engineer [citation:2][Doc. 1, Doc. 2].", "An engineer [1][1, 2]."),
        ("An engineer [ref_2] [Document #1] [^2^].", "An engineer [1] [2] [1]."),
        ("工程师（来源：2）〔x〕【参考资料1】。", "工程师[1]〔x〕【2】。"),
        ("An engineer (Sources 2, 1).", "An engineer [1, 2]."),
        ("An engineer<sup>2</sup> and <sup>[1]</sup>.", "An engineer[1] and [2]."),
        ("On 2 km<sup>2</sup>, 10<sup>1</sup> of them, (Note 1), (2), \\(Source 1)", None),
        ("[Source 99] [Table 2] [^a] [2†a\n] (source 99)", None),
        ("`a[^2]` is code, [Source 2](https://example.org) a link", None),
    ],
)
def test_the_marks_of_models_with_marks_of_their_own(written: str, read: str | None) -> None:
    """Labels and locations are left out; what cites nothing stays as it is, however it arrives."""
    assert renumbered(written)[0] == (read or written)
    assert renumbered(*written)[0] == (read or written)


LABELED = st.sampled_from(
    [
        "<sup>",
        "</s",
        "up>",
        "(doc ",
        "1)",
        "km",
        "[source ",
        "[Sou",
        "rce",
        "【来",
        "来源",
        "^",
        "2†",
        "†L3",
        "1]",
    ]
)


@given(st.lists(st.text("ab [1,-3]】【\\\\(http:#`\n", max_size=12) | LABELED, max_size=8))
def test_pieces_are_numbered_like_the_text(pieces: list[str]) -> None:
    """Wherever a stream is cut, the reader sees what the text as one piece would show."""
    assert renumbered(*pieces) == renumbered("".join(pieces))


def test_a_piece_is_held_back_only_while_it_may_become_a_citation() -> None:
    """A stream does not wait for what cannot be a marker."""
    numbering = CitationNumbering(9)
    assert [numbering.feed(one) for one in ("See [", "7", "]", " or [a", "] [1](", "x)")] == [
        "See ", "", "", "[1] or [a", "] ", "[2](x)",
    ]  # fmt: skip


def test_an_index_in_code_is_no_citation() -> None:
    """Code in an answer is not changed, and nothing in it counts as cited."""
    found = cited(
        "Use `argv[2]` [1]:\n```\nrows[2] = [2, 1]\n```",
        chunk("Use argv."),
        chunk("Rows.", id="c2"),
    )
    assert [one.number for one in found] == [1]


def test_a_quote_stands_under_its_own_heading(tmp_path: Path) -> None:
    """Not under the chapter in which its passage begins."""
    text = "# Log\n\n## Harbor\n\nOlaf Lind left at noon.\n\n## Island\n\nRita Moss found a lamp."
    with LightRAG(tmp_path, llm="none", embedder="hash") as rag:
        rag.insert(Document(text, id="log"))
        answer = rag.query("What did Rita Moss find?")

    assert [citation.heading for citation in answer.citations] == ["Log › Island"]
    assert answer.citations[0].text == "Rita Moss found a lamp."
