"""Finding and resolving the `[n]` of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.explain import citations
from lightrag_jsonl.explain.citations import Citable, resolve_citations
from lightrag_jsonl.markers import markers
from lightrag_jsonl.text import search_terms
from lightrag_jsonl.types import Chunk

ENGLISH = (
    "Marie Curie was born in Warsaw in 1867. 🧪 She discovered radium and polonium. "
    "The Nobel Prize followed in 1903."
)
CHINESE = "居里夫人１８６７年生于华沙。她和丈夫一起发现了镭和钋。一九〇三年，她获得诺贝尔奖。"


def chunk(text: str, *, start: int = 0, name: str = "c1") -> Chunk:
    return Chunk(name, "d1", 0, 1, start, start + len(text), text)


def shown(*chunks: Chunk) -> dict[int, Citable]:
    return {n: Citable("chunk", c.text[:20], (c,)) for n, c in enumerate(chunks, start=1)}


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("[1]", [(1,)]),
        ("[ 12 ]", [(12,)]),
        ("[1, 3]", [(1, 3)]),
        ("[1，3、4;5；6]", [(1, 3, 4, 5, 6)]),
        ("[1][2]", [(1,), (2,)]),
        ("[2-4]", [(2, 3, 4)]),
        ("[2–4, 9]", [(2, 3, 4, 9)]),
        ("［１］", [(1,)]),
        ("【１，２】", [(1, 2)]),
        ("【3】", [(3,)]),
        ("[1, 1]", [(1,)]),
        ("[4-2]", [(4, 2)]),
        ("[1-999999]", [(1, 999999)]),
        ("[20240101123456789]", [(20240101123456789,)]),
        ("", []),
        ("[]", []),
        ("[one]", []),
        ("[1.5]", []),
        ("[-1]", []),
        ("[1](https://example.org)", []),
        ("[" + "9" * 5000 + "]", []),
        ("[^1]", []),
    ],
)
def test_the_forms_of_a_marker(written: str, numbers: list[tuple[int, ...]]) -> None:
    """Square, full-width and lenticular brackets; lists and ranges; nothing else."""
    assert [mark.numbers for mark in markers(f"A claim{written}.")] == numbers


@given(st.text("[]［］【】0123456789１２,，- 中a\n", max_size=60))
def test_markers_stand_where_they_say(text: str) -> None:
    """Markers do not overlap, and each is a bracketed piece of the text."""
    position = 0
    for mark in markers(text):
        assert position <= mark.start < mark.end
        assert text[mark.start] in "[［【" and text[mark.end - 1] in "]］】"
        position = mark.end


def test_a_citation_is_narrowed_to_its_sentence() -> None:
    """The span is the sentence of the chunk that the citing sentence rests on, exact in the page."""
    page = "A heading.\n\n" + ENGLISH
    piece = chunk(ENGLISH, start=12)

    cited = resolve_citations(
        "It was Curie who discovered radium [1].", shown(piece), {"d1": "Lives"}
    )

    (found,) = cited.citations
    assert found.text == page[found.start : found.end]
    assert found.text.endswith("She discovered radium and polonium.")
    assert (found.document, found.page, found.chunk_id) == ("Lives", 1, "c1")


def test_chinese_sentences_too() -> None:
    """The same for Chinese, with full-width brackets and digits."""
    answer = "居里夫人发现了镭和钋［1］。她1867年生于华沙【1】。"

    cited = resolve_citations(answer, shown(chunk(CHINESE)))

    assert [found.text for found in cited.citations] == [
        "她和丈夫一起发现了镭和钋。",
        "居里夫人１８６７年生于华沙。",
    ]


def test_a_marker_after_the_full_stop_belongs_to_the_sentence_before() -> None:
    """`A claim. [1]` cites for the claim, not for what comes next."""
    answer = "She discovered radium. [1] The Nobel Prize came later. [1]"

    cited = resolve_citations(answer, shown(chunk(ENGLISH)))

    assert ["radium" in found.text for found in cited.citations] == [True, False]
    assert cited.citations[1].text == "The Nobel Prize followed in 1903."


def test_where_nothing_is_shared_the_whole_chunk_is_cited() -> None:
    """No sentence is pretended to be the source."""
    cited = resolve_citations("Bananas are yellow [1].", shown(chunk(ENGLISH)))

    assert cited.citations[0].text == ENGLISH


def test_function_words_are_no_evidence() -> None:
    """Sharing "was in the" is not enough."""
    cited = resolve_citations("He was in the zoo [1].", shown(chunk(ENGLISH)))

    assert cited.citations[0].text == ENGLISH


def test_invented_numbers_are_reported_once() -> None:
    """A number that was not shown is no citation, but is on record; the others are kept."""
    cited = resolve_citations("Radium [1, 7]. Polonium [7][2-3].", shown(chunk(ENGLISH)))

    assert {found.number for found in cited.citations} == {1}
    assert cited.invented == (7, 2, 3)


def test_a_relation_cites_every_chunk_it_was_read_from() -> None:
    """One citation a chunk, all under the relation's number."""
    first, second = (
        chunk("Curie discovered radium."),
        chunk("Radium: discovered by Curie.", name="c2"),
    )
    fact = Citable("relation", "Curie — discovered → radium", (first, second))

    cited = resolve_citations("Curie discovered radium [4].", {4: fact})

    assert [(found.number, found.chunk_id, found.kind) for found in cited.citations] == [
        (4, "c1", "relation"),
        (4, "c2", "relation"),
    ]


def test_the_same_citation_is_listed_once() -> None:
    """Citing one sentence twice does not double it."""
    cited = resolve_citations(
        "Radium was discovered [1]. She discovered radium [1].", shown(chunk(ENGLISH))
    )

    assert len(cited.citations) == 1


texts = st.text("abc [1]. [2] 中文。ß İ １\n!ǅ", max_size=80)


@given(answer=texts, first=texts.filter(bool), second=texts.filter(bool), at=st.integers(0, 50))
def test_every_span_is_exact(answer: str, first: str, second: str, at: int) -> None:
    """Whatever the texts, a citation is the slice of the page that it says it is."""
    pieces = {"c1": chunk(first, start=at), "c2": chunk(second, start=at, name="c2")}

    cited = resolve_citations(answer, shown(*pieces.values()))

    for found in cited.citations:
        piece = pieces[found.chunk_id]
        assert piece.start <= found.start < found.end <= piece.end
        assert piece.text[found.start - at : found.end - at] == found.text


def test_a_sentence_is_read_once_however_often_it_is_marked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model that got stuck repeating a citation costs no more than one that did not."""
    read: list[str] = []

    def terms(text: str) -> list[str]:
        read.append(text)
        return search_terms(text)

    monkeypatch.setattr(citations, "search_terms", terms)

    cited = resolve_citations(
        "Curie discovered radium " + "[1] [7]" * 500 + ".", shown(chunk("Radium."))
    )

    assert len(read) == 1
    assert (len(cited.citations), cited.invented) == (1, (7,))
