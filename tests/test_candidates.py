"""Edge ids: the specification's examples, collisions, and reading a selection."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.candidates import (
    candidate_edges,
    edge_id,
    edge_ids,
    resolve_selection,
)
from lightrag_jsonl.types import JsonlResult, Record, Rejection, Relation

COLLIDING = [
    ("entity 2637", "relates to", "entity 2638"),
    ("entity 70737", "relates to", "entity 70738"),
]


def relation(source: str, predicate: str, target: str) -> Relation:
    return Relation(source, target, (predicate,), "", chunk_ids=("c",), score=0.5)


def answer(*records: Record, rejections: tuple[Rejection, ...] = ()) -> JsonlResult:
    return JsonlResult(records, tuple(range(1, len(records) + 1)), rejections, bool(rejections))


@pytest.mark.parametrize(
    ("triple", "expected"),
    [
        (("DNA", "located_in", "cell nucleus"), "ffb79d1c"),
        (("Marie Curie", "discovered", "radium"), "66bd5bed"),
        (("居里夫人", "发现", "镭"), "17f268d1"),
    ],
)
def test_ids_of_the_specification(triple: tuple[str, str, str], expected: str) -> None:
    """An id is the first 8 hex digits of sha256 of `s|p|o`."""
    assert edge_id(*triple) == expected


def test_colliding_ids_are_lengthened() -> None:
    """Two edges that share eight digits get longer ids; a third one keeps its eight."""
    first, second = COLLIDING
    assert edge_id(*first) == edge_id(*second) == "37a1a68d"

    ids = edge_ids([first, second, ("居里夫人", "发现", "镭")])

    assert len(set(ids)) == 3
    assert ids[0].startswith("37a1a68d") and ids[1].startswith("37a1a68d")
    assert ids[2] == "17f268d1"


def test_labels_that_join_to_the_same_text_still_differ() -> None:
    """A `|` inside a label cannot make two edges one."""
    ids = edge_ids([("a|b", "c", "d"), ("a", "b|c", "d")])

    assert ids[0] != ids[1]


label = st.text("ab|中 ", min_size=1, max_size=4)


@given(st.lists(st.tuples(label, label, label), unique=True, max_size=30))
def test_ids_are_distinct_for_distinct_edges(triples: list[tuple[str, str, str]]) -> None:
    """No two candidates share an id, whatever their labels."""
    assert len(set(edge_ids(triples))) == len(triples)


def test_a_selection_keeps_the_models_order_and_reports_the_rest() -> None:
    """Known ids in the order chosen; unknown, repeated and cut lines are rejections on record."""
    edges = candidate_edges(
        [relation("Marie Curie", "discovered", "radium"), relation("a", "b", "c")]
    )
    cut = Rejection(5, '{"id": "66b', "truncated")
    result = answer(
        {"id": edges[1].id, "reasoning": "second"},
        {"id": "66bd5bed", "reasoning": "Names the discovered element"},
        {"id": "00000000", "reasoning": "no such edge"},
        {"id": "66bd5bed", "reasoning": "again"},
        rejections=(cut,),
    )

    found = resolve_selection(result, edges)

    assert [chosen.edge.id for chosen in found.selected] == [edges[1].id, "66bd5bed"]
    assert found.selected[1].reasoning == "Names the discovered element"
    assert [r.reason for r in found.rejections] == ["unknown_id", "duplicate_id", "truncated"]
    assert [r.line for r in found.rejections] == [3, 4, 5]
    assert json.loads(found.rejections[0].text)["id"] == "00000000"


def test_a_colliding_pair_is_told_apart_by_the_candidate_table() -> None:
    """The long id selects its edge; the eight digits they share select neither."""
    edges = candidate_edges(relation(*triple) for triple in COLLIDING)

    found = resolve_selection(
        answer({"id": edges[1].id, "reasoning": "this one"}, {"id": "37a1a68d", "reasoning": "?"}),
        edges,
    )

    assert [chosen.edge.target for chosen in found.selected] == ["entity 70738"]
    assert [r.reason for r in found.rejections] == ["unknown_id"]


@pytest.mark.parametrize("written", [" 66bd5bed ", "[66bd5bed]", "66BD5BED"])
def test_small_liberties_with_an_id_are_understood(written: str) -> None:
    """Brackets, spaces and capitals around an id do not lose the edge."""
    edges = candidate_edges([relation("Marie Curie", "discovered", "radium")])

    assert len(resolve_selection(answer({"id": written, "reasoning": "x"}), edges).selected) == 1


@pytest.mark.parametrize("written", [None, True, [], {}, 1.5, ""])
def test_what_is_no_id_is_unknown(written: object) -> None:
    """Any JSON value in place of an id is a rejection, never an error."""
    record: Record = {"id": written}  # type: ignore[dict-item]

    assert [r.reason for r in resolve_selection(answer(record), ()).rejections] == ["unknown_id"]


def test_no_reason_is_invented() -> None:
    """A blank or absent reason stays absent."""
    edges = candidate_edges([relation("a", "b", "c")])

    blank = resolve_selection(answer({"id": edges[0].id, "reasoning": "  "}), edges).selected[0]

    assert (blank.reasoning, blank.score) == (None, None)


def test_a_relation_given_twice_is_one_candidate() -> None:
    """Candidates are distinct, in the order of their first appearance."""
    edges = candidate_edges(
        [relation("x", "y", "z"), relation("a", "b", "c"), relation("x", "y", "z")]
    )

    assert [edge.source for edge in edges] == ["x", "a"]
