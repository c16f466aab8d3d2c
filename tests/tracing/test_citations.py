"""Finding and resolving the `[n]` of an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.text import CITATION_MARKER
from lightrag_jsonl.core.types import Chunk, Citation, Context, Relation
from lightrag_jsonl.tracing.citations import marked_numbers, resolve_citations

from .conftest import stored

ENGLISH = (
    "Marie Curie was born in Warsaw in 1867. 🧪 She discovered radium and polonium. "
    "The Nobel Prize followed in 1903."
)
CHINESE = "居里夫人１８６７年生于华沙。她和丈夫一起发现了镭和钋。一九〇三年，她获得诺贝尔奖。"


def chunk(text: str, *, start: int = 0, id: str = "c1") -> Chunk:
    return Chunk(id, "d1", 0, 1, start, start + len(text), text)


def cited(answer: str, *chunks: Chunk) -> tuple[Citation, ...]:
    """The citations of an answer that was written from these chunks."""
    return resolve_citations(answer, Context(chunks=chunks), stored({}))[0]


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("[ 12 ]", [(12,)]),
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


def test_a_citation_is_narrowed_to_its_sentence() -> None:
    """The span is the sentence of the chunk that the citing sentence rests on, exact in the page."""
    page = "A heading.\n\n" + ENGLISH
    context = Context(chunks=(chunk(ENGLISH, start=12),), documents={"d1": "Lives"})

    (found,), _ = resolve_citations("It was Curie who discovered radium [1].", context, stored({}))

    assert found.text == page[found.start : found.end]
    assert found.text.endswith("She discovered radium and polonium.")
    assert (found.document, found.page, found.chunk_id) == ("Lives", 1, "c1")


WHOLE, BORN = [ENGLISH], "Marie Curie was born in Warsaw in 1867."


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
        (ENGLISH, "Bananas are yellow [1].", WHOLE),
        (ENGLISH, "He was in the zoo [1].", WHOLE),
        (ENGLISH, "In 1867, in Warsaw [1]. In Warsaw in 1867 " + "[1]" * 500 + ".", [BORN]),
    ],
    ids=["Chinese", "paragraphs", "nothing shared", "function words", "the same again"],
)
def test_the_best_sentence_is_cited(text: str, answer: str, sentences: list[str]) -> None:
    """In both languages, in the order of the answer, each once; where no sentence shares enough,
    none is pretended to be the source.
    """
    found = [one.text for one in cited(answer, chunk(text))]
    assert found == sentences


def test_a_marker_after_the_full_stop_belongs_to_the_sentence_before() -> None:
    """`A sentence. [1]` cites for that sentence, not for what comes next."""
    answer = "She discovered radium. [1] The Nobel Prize came later. [1]"

    first, second = cited(answer, chunk(ENGLISH))

    assert "radium" in first.text
    assert second.text == "The Nobel Prize followed in 1903."


def test_invented_numbers_are_reported_once() -> None:
    """A number that was not shown is no citation, but is on record; the others are kept."""
    context = Context(chunks=(chunk(ENGLISH),))

    citations, invented = resolve_citations(
        "Radium [1, 7]. Polonium [7][2-3].", context, stored({})
    )

    assert {found.number for found in citations} == {1}
    assert invented == (7, 2, 3)


def test_a_relation_cites_every_chunk_it_was_read_from() -> None:
    """One citation a chunk, all under the relation's number; deleted chunks are left out."""
    chunks = {
        "c1": chunk("Curie discovered radium."),
        "c2": chunk("Radium: discovered by Curie.", id="c2"),
    }
    fact = Relation("Curie", "radium", ("discovered",), "", chunk_ids=("c1", "gone", "c2"))

    citations, _ = resolve_citations(
        "Curie discovered radium [1].", Context(relations=(fact,)), stored(chunks)
    )

    assert [(found.number, found.chunk_id, found.kind, found.label) for found in citations] == [
        (1, "c1", "relation", "Curie — discovered → radium"),
        (1, "c2", "relation", "Curie — discovered → radium"),
    ]


def test_a_chunk_cut_to_the_budget_is_cited_within_what_was_shown() -> None:
    """The same chunk, cut in the context and whole for a fact, is cited exactly in both."""
    whole = chunk(ENGLISH)
    cut = replace(whole, text=ENGLISH[:20], end=20)
    fact = Relation("Curie", "prize", ("won",), "", chunk_ids=("c1",))
    context = Context(relations=(fact,), chunks=(cut,))

    citations, _ = resolve_citations(
        "The Nobel Prize followed [1][2].", context, stored({"c1": whole})
    )

    assert [found.text for found in citations] == [
        "The Nobel Prize followed in 1903.",
        ENGLISH[:20],
    ]


texts = st.text("abc [1]. [2] 中文。ß İ １\n!ǅ", max_size=80)


@given(answer=texts, first=texts.filter(bool), second=texts.filter(bool), at=st.integers(0, 50))
def test_every_span_is_exact(answer: str, first: str, second: str, at: int) -> None:
    """Whatever the texts, a citation is the slice of the page that it says it is."""
    chunks = chunk(first, start=at), chunk(second, start=at, id="c2")

    for found in cited(answer, *chunks):
        own = chunks[found.number - 1]
        assert own.id == found.chunk_id
        assert own.start <= found.start < found.end <= own.end
        assert own.text[found.start - at : found.end - at] == found.text
