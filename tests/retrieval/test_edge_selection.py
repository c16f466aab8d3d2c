"""Choosing relations: ids of edges, reading a selection, and a model's choice or that by rank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import (
    Context,
    JsonlResult,
    Record,
    Rejection,
    Relation,
)
from lightrag_jsonl.retrieval.edge_selection import (
    EdgeSelection,
    candidate_edges,
    edge_id,
    edge_ids,
    resolve_selection,
)
from lightrag_jsonl.retrieval.pipeline import QueryObserver
from lightrag_jsonl.testing import ScriptedLLM
from tests.retrieval.conftest import Pipelines

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


label = st.text("ab|中 ", min_size=1, max_size=4)


@given(st.lists(st.tuples(label, label, label), unique=True, max_size=30))
def test_ids_are_distinct_for_distinct_edges(triples: list[tuple[str, str, str]]) -> None:
    """No two candidates share an id, whatever their labels, also if these hold a `|`."""
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

    chosen, refused = resolve_selection(result, edges)

    assert [one.edge.id for one in chosen] == [edges[1].id, "66bd5bed"]
    assert chosen[1].reasoning == "Names the discovered element"
    assert [r.reason for r in refused] == ["unknown_id", "duplicate_id", "truncated"]
    assert [r.line for r in refused] == [3, 4, 5]
    assert json.loads(refused[0].text)["id"] == "00000000"


def test_a_colliding_pair_is_told_apart() -> None:
    """The long id selects its edge; the eight digits they share select neither."""
    edges = candidate_edges([relation(*triple) for triple in COLLIDING])
    records: list[Record] = [{"id": edges[1].id, "reasoning": "this"}, {"id": "37a1a68d"}]

    chosen, refused = resolve_selection(answer(*records), edges)

    assert [one.edge.target for one in chosen] == ["entity 70738"]
    assert [r.reason for r in refused] == ["unknown_id"]


@pytest.mark.parametrize("written", [" 66bd5bed ", "[66bd5bed]", "66BD5BED"])
def test_small_liberties_with_an_id_are_understood(written: str) -> None:
    """Brackets, spaces and capitals around an id do not lose the edge; a blank reason is none."""
    edges = candidate_edges([relation("Marie Curie", "discovered", "radium")])
    (chosen,), _ = resolve_selection(answer({"id": written, "reasoning": "  "}), edges)
    assert (chosen.edge, chosen.reasoning, chosen.score) == (edges[0], None, None)


@pytest.mark.parametrize("written", [None, True, [], {}, 1.5, ""])
def test_what_is_no_id_is_unknown(written: object) -> None:
    """Any JSON value in place of an id is a rejection, never an error."""
    record: Record = {"id": written}  # type: ignore[dict-item]
    assert [r.reason for r in resolve_selection(answer(record), ())[1]] == ["unknown_id"]


def test_a_relation_given_twice_is_one_candidate() -> None:
    """Candidates are distinct, in the order of their first appearance."""
    twice = [relation("x", "y", "z"), relation("a", "b", "c"), relation("x", "y", "z")]
    assert [edge.source for edge in candidate_edges(twice)] == ["x", "a"]


# ── choosing ────────────────────────────────────────────────────────────────────

PARTNER = edge_id("Marley", "partner", "Scrooge")
CHOOSING = QueryParam(mode="hybrid", selection="llm", ll_keywords=("Scrooge",))
QUESTION = "Who was Scrooge's partner?"


class Observed(QueryObserver):
    """Keeps what was found, and what was chosen of it."""

    selection = EdgeSelection("score")
    found: tuple[Relation, ...] = ()

    async def retrieved(self, relations: object, chunks: object) -> None:
        self.found = tuple(relations)  # type: ignore[arg-type]

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        self.selection = selection


def choosing(lines: str | Exception) -> ScriptedLLM:
    """A model that chooses edges by these lines and answers anything else with "Marley [1]."."""
    return ScriptedLLM(lambda asked: lines if "Candidates:" in asked.text else "Marley [1].")


async def test_only_what_was_chosen_is_answered_from(carol: Path, pipelines: Pipelines) -> None:
    """The relation and its passage stay; no entity, whose description may say what was not chosen."""
    lines = f'{{"id":"{PARTNER}","reasoning":"Names the partner"}}\n{{"id":"00000000"}}\n{{"id"'
    llm, observed = choosing(lines), Observed()
    answer = await pipelines(carol, llm=llm).answer(QUESTION, CHOOSING, observer=observed)
    assert [r.predicate for r in answer.context.relations] == ["partner"]
    assert answer.context.entities == ()
    assert [c.document_id for c in answer.context.chunks] == ["partners"]
    assert "Tiny Tim" not in llm.requests[-1].text
    assert observed.selection.reasons == ("Names the partner",)
    assert [r.reason for r in observed.selection.rejections] == ["unknown_id", "truncated"]
    assert not observed.selection.fallback


@pytest.mark.parametrize("lines", ["", LLMError("the server is gone")], ids=["none", "failed"])
async def test_where_the_model_chose_nothing_rank_decides_and_says_so(
    carol: Path, pipelines: Pipelines, lines: str | Exception
) -> None:
    """Without a choice the best by rank are taken, without invented reasons, and why is on record."""
    observed = Observed()
    pipeline = pipelines(carol, llm=choosing(lines))
    answer = await pipeline.answer(QUESTION, CHOOSING, observer=observed)
    assert observed.selection.fallback
    assert observed.selection.error == (str(lines) or None)
    assert set(observed.selection.reasons) == {None}
    assert answer.context.relations == observed.selection.relations != ()


async def test_without_a_model_selection_is_by_score(carol: Path, pipelines: Pipelines) -> None:
    """Asking for a model's choice offline is no error; "all" shows all that was found."""
    pipeline, observed = pipelines(carol), Observed()
    await pipeline.retrieve(QUESTION, CHOOSING, observed)
    assert observed.selection.method == "score" and observed.selection.relations
    few = QueryParam(mode="hybrid", top_k=1, selection="all", ll_keywords=("Scrooge",))
    every = await pipeline.retrieve(QUESTION, few, observed)
    assert observed.selection.method == "all" and len(every.relations) == len(observed.found) > 1
