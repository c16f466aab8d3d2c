"""What an answer cost: all that was asked of the model for it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, QueryParam
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.indexing.kit import entity

TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
RADIUM = [entity("Marie Curie", "She discovered radium.")]


def test_keywords_that_cannot_be_read_cost_what_they_cost(tmp_path: Path) -> None:
    """Both times they were asked for count, and so does the answer."""
    model = ScriptedLLM(
        lambda request: "none" if "high_level_keywords" in request.text else "Radium [1]."
    )
    with LightRAG(tmp_path, llm=model) as rag:
        rag.insert_records(TEXT, RADIUM)
        usage = rag.query("What did Marie Curie discover?").usage
    assert usage.calls == len(model.requests) == 3


@pytest.mark.parametrize(("score", "calls"), [("1.0", 1), ("0.0", 3)])
def test_asking_whether_questions_are_the_same_is_part_of_the_cost(
    tmp_path: Path, score: str, calls: int
) -> None:
    """Of an answer that is written after it, and of one that is reused: then it is all it cost."""

    def script(request: Request) -> str:
        if "high_level_keywords" in request.text:
            return '{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}'
        return score if "compare two questions" in request.text else "Radium [1]."

    param = QueryParam(similarity_reuse=0.0, similarity_check=True)
    model = ScriptedLLM(script)
    with LightRAG(tmp_path, llm=model) as rag:
        rag.insert_records(TEXT, RADIUM)
        assert rag.query("Who discovered radium?", param).usage.calls == 2
        again = rag.query("Where was radium discovered?", param)
        assert rag.trace(str(again.trace_id)).reused == (score == "1.0")
    assert again.usage.calls == len(model.requests) - 2 == calls
