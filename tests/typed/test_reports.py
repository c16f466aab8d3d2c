"""The reports of tools: public names, for a user's own annotations."""

from __future__ import annotations

from pathlib import Path

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tools.batch import BatchExport, BatchImport, export_batch, import_batch
from lightrag_jsonl.tools.estimate import Estimate, estimate
from lightrag_jsonl.tools.importer import ImportReport, import_index

CURIE = Document("Marie Curie discovered radium, 居里夫人发现了镭 １２ 🙂.", id="curie")


def imported_index(rag: LightRAG, folder: Path) -> ImportReport | None:
    """What an import brought; None where the folder is no index."""
    try:
        return rag.run(import_index, folder)
    except ConfigError:
        return None


def test_reports_can_be_named(tmp_path: Path) -> None:
    """Each tool returns the public type that says what it did."""
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM(())) as rag:
        expected: Estimate = rag.run(estimate, CURIE)
        exported: BatchExport = rag.run(export_batch, tmp_path / "ask.jsonl", CURIE)
        files = [Path(file) for file in exported.files]
        imported: BatchImport = rag.run(import_batch, files)
        assert expected.documents == exported.pending == imported.pending == 1
        assert imported_index(rag, tmp_path / "kb") is None
