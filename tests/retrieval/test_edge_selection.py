"""Choosing relations: ids of edges, reading a selection, and a model's choice or that by rank."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Context, JsonlResult, QueryParam, Relation
from lightrag_jsonl.core.edges import EdgeSelection, edge_ids
from lightrag_jsonl.core.protocols import QueryObserver
from lightrag_jsonl.retrieval.edge_selection import DESCRIPTION_LENGTH, resolve_selection
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import Record
from tests.retrieval.conftest import Pipelines

COLLIDING = [
    ("entity 2637", "relates to", "entity 2638"),
    ("entity 70737", "relates to", "entity 70738"),
]


def answer(*records: Record) -> JsonlResult:
    return JsonlResult(records, tuple(range(1, len(records) + 1)), (), False)


def test_ids_of_the_specification() -> None:
    """An id is the first 8 hex digits of sha256 of `s|p|o`."""
    assert edge_ids([("DNA", "located_in", "cell nucleus")]) == ("ffb79d1c",)


label = st.text("ab|中 ", min_size=1, max_size=4)


@given(st.lists(st.tuples(label, label, label), unique=True, max_size=30))
def test_ids_are_distinct_for_distinct_edges(triples: list[tuple[str, str, str]]) -> None:
    """No two candidates share an id, whatever their labels, also if these hold a `|`."""
    assert len(set(edge_ids(triples))) == len(triples)


def test_a_selection_keeps_the_models_order() -> None:
    """What is refused of it is on record with its line and text."""
    one, other = ids = edge_ids([("Marie Curie", "discovered", "radium"), ("a", "b", "c")])
    records: list[Record] = [{"id": id} for id in (other, one, "00000000")]
    chosen, (refused,) = resolve_selection(answer(*records), ids)
    assert [*chosen] == [other, one] and refused.line == 3
    assert json.loads(refused.text)["id"] == "00000000"


def test_a_colliding_pair_is_told_apart() -> None:
    """Both get longer ids; the eight digits they share select neither, the long id its edge."""
    _, second, third = ids = edge_ids([*COLLIDING, ("居里夫人", "发现", "镭")])
    assert len(set(ids)) == 3 and third == "17f268d1"
    records: list[Record] = [{"id": second, "reasoning": "this"}, {"id": "37a1a68d"}]
    chosen, refused = resolve_selection(answer(*records), ids)
    assert chosen == {second: "this"} and [r.reason for r in refused] == ["unknown_id"]


@pytest.mark.parametrize(
    "written", [" 66bd5bed ", "[66bd5bed]", "66BD5BED", None, True, [], {}, 1.5, ""]
)
def test_small_liberties_with_an_id_are_understood(written: object) -> None:
    """Brackets, spaces and capitals around an id do not lose the edge; a blank reason is none. What
    is no id is a rejection, never an error.
    """
    record: Record = {"id": written, "reasoning": "  "}
    chosen, refused = resolve_selection(answer(record), ["66bd5bed"])
    assert chosen == ({"66bd5bed": ""} if written and isinstance(written, str) else {})
    assert [r.reason for r in refused] == ([] if chosen else ["unknown_id"])


# ── choosing ────────────────────────────────────────────────────────────────────

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


async def test_choosing_nothing_leaves_what_the_text_found(
    carol: Path, pipelines: Pipelines
) -> None:
    """Where passages were hit directly, an empty choice is respected: no fact, those passages, and a
    note. An answer that is no choice at all is not taken for one.
    """
    param = replace(CHOOSING, mode="mix")
    for lines, is_none in (("", True), ('{"id":"00000000"}', False)):
        observed = Observed()
        asked = f"{QUESTION}{'' if is_none else '?'}"  # the answer to the same one is cached
        context = await pipelines(carol, llm=choosing(lines)).retrieve(asked, param, observed)
        plain = await pipelines(carol).retrieve(QUESTION, replace(param, mode="naive"))
        assert context.none_selected is is_none
        assert observed.selection.fallback is not is_none
        assert bool(context.relations) is bool(context.entities) is not is_none
        assert context.chunks
        if is_none:
            assert {one.id for one in context.chunks} <= {one.id for one in plain.chunks}


async def test_the_model_is_shown_the_beginning_of_each_description(
    carol: Path, pipelines: Pipelines
) -> None:
    """On one line, and no longer than is needed to choose."""
    model = choosing("")
    await pipelines(carol, llm=model).retrieve(QUESTION, CHOOSING)
    lines = [line for line in model.requests[-1].question.split("\n") if line.startswith("{")]
    described = [edge["d"] for edge in map(json.loads, lines) if "d" in edge]
    assert described and all(0 < len(text) <= DESCRIPTION_LENGTH + 1 for text in described)


async def test_without_a_model_selection_is_by_score(carol: Path, pipelines: Pipelines) -> None:
    """Asking for a model's choice offline is no error; "all" shows all that was found."""
    pipeline, observed = pipelines(carol), Observed()
    await pipeline.retrieve(QUESTION, CHOOSING, observed)
    assert observed.selection.method == "score" and observed.selection.relations
    few = QueryParam(mode="hybrid", top_k=1, selection="all", ll_keywords=("Scrooge",))
    every = await pipeline.retrieve(QUESTION, few, observed)
    assert observed.selection.method == "all" and len(every.relations) == len(observed.found) > 1
