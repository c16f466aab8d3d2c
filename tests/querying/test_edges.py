"""Choosing relations: by a model with reasons, or by rank."""

from __future__ import annotations

from pathlib import Path

from lightrag_jsonl.candidates import edge_id
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.querying.edges import EdgeSelection
from lightrag_jsonl.querying.observing import Silent
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Context
from tests.querying.conftest import Pipelines

PARTNER = edge_id("Marley", "business partner", "Scrooge")
LLM_CHOICE = QueryParam(mode="hybrid", selection="llm", ll_keywords=("Scrooge",))
QUESTION = "Who was Scrooge's partner?"


class Watching(Silent):
    """Keeps the selection."""

    def __init__(self) -> None:
        self.selection = EdgeSelection("score")

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """Keep it."""
        self.selection = selection


def choosing(lines: str) -> ScriptedLLM:
    """A model that chooses edges by these lines and answers anything else with "Marley [1]."."""

    def say(request: Request) -> str:
        return lines if "Candidates:" in request.text else "Marley [1]."

    return ScriptedLLM(say)


async def test_only_what_was_chosen_is_answered_from(carol: Path, pipelines: Pipelines) -> None:
    """The relation and its passage stay; no entity, whose description may say what was not chosen."""
    llm = choosing(
        f'{{"id":"{PARTNER}","reasoning":"Names the partner"}}\n{{"id":"00000000"}}\n{{"id"'
    )
    watching = Watching()
    answer = await pipelines(carol, llm=llm).answer(QUESTION, LLM_CHOICE, observer=watching)
    assert [r.predicate for r in answer.context.relations] == ["business partner"]
    assert answer.context.entities == ()
    assert [c.document_id for c in answer.context.chunks] == ["partners"]
    assert "Tiny Tim" not in llm.requests[-1].text
    assert watching.selection.reasons == ("Names the partner",)
    assert [r.reason for r in watching.selection.rejections] == ["unknown_id", "truncated"]
    assert not watching.selection.fallback


async def test_where_the_model_chose_nothing_rank_decides_and_says_so(
    carol: Path, pipelines: Pipelines
) -> None:
    """An empty selection falls back to the best by rank, without invented reasons."""
    watching = Watching()
    pipeline = pipelines(carol, llm=choosing(""))
    answer = await pipeline.answer(QUESTION, LLM_CHOICE, observer=watching)
    assert watching.selection.fallback
    assert set(watching.selection.reasons) == {None}
    assert answer.context.relations == watching.selection.relations != ()


async def test_without_a_model_selection_is_by_score(carol: Path, pipelines: Pipelines) -> None:
    """Asking for a model's choice offline is no error."""
    watching = Watching()
    await pipelines(carol).retrieve(QUESTION, LLM_CHOICE, watching)
    assert watching.selection.method == "score"
    assert watching.selection.relations
