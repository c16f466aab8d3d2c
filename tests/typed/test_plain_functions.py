"""A user's plain functions as a model and an embedder, the reader alone, and tools: all well typed."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from lightrag_jsonl import (
    Answer,
    ConfigError,
    Context,
    FunctionEmbedder,
    FunctionLLM,
    LightRAG,
    parse_jsonl,
)
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tools.batch import BatchExport, BatchImport, export_batch, import_batch
from lightrag_jsonl.tools.estimate import Estimate, estimate
from lightrag_jsonl.tools.importer import ImportReport, import_index


async def llm(
    prompt: str,
    system_prompt: str | None = None,
    history_messages: list[dict[str, str]] | None = None,
    **kwargs: object,
) -> str:
    """A model as LightRAG users write it."""
    return "She discovered radium [1]."


async def embed(texts: list[str]) -> npt.NDArray[np.float32]:
    """An embedder as LightRAG users write it."""
    return np.eye(8, dtype=np.float32)[[len(text) % 8 for text in texts]]


def test_functions_are_models(tmp_path: Path) -> None:
    """Given as they are, or wrapped with a name and a dimension."""
    with LightRAG(tmp_path / "kb", llm=llm, embedder=FunctionEmbedder(embed, dim=8)) as rag:
        rag.insert_records(
            "Marie Curie discovered radium.",
            [{"type": "entity", "name": "radium", "entity_type": "concept", "description": ""}],
        )
        context: Context = rag.retrieve("radium", mode="local")
        assert [entity.name for entity in context.entities] == ["radium"]
        answer: Answer = rag.query("What did Marie Curie discover?", mode="naive")
        assert answer.text == "She discovered radium [1]."
    assert FunctionLLM(llm, name="mine").name == "mine"


def test_the_reader_alone() -> None:
    """Records and rejections of a text, without an index."""
    result = parse_jsonl('{"name":"居里夫人"}\n{"name": oops}\n{"name":"１２ 🙂"}')
    names: list[object] = [record["name"] for record in result.records]
    assert names == ["居里夫人", "１２ 🙂"]
    lines: list[int] = [rejection.line for rejection in result.rejections]
    assert len(lines) == 1


@pytest.mark.slow
def test_reports_of_tools_can_be_named(tmp_path: Path) -> None:
    """Each tool returns the public type that says what it did."""
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM(())) as rag:
        expected: Estimate = rag.run(estimate, "居里夫人发现了镭 １２ 🙂.")
        exported: BatchExport = rag.run(export_batch, tmp_path / "ask.jsonl", "居里夫人发现了镭.")
        imported: BatchImport = rag.run(import_batch, [Path(file) for file in exported.files])
        assert expected.documents == exported.pending == imported.pending == 1
        with pytest.raises(ConfigError):
            _: ImportReport = rag.run(import_index, tmp_path / "kb")
