"""The reports of estimates, batch files and imports: public names, for a user's own annotations."""

from __future__ import annotations

from pathlib import Path

from lightrag_jsonl import (
    BatchExport,
    BatchImport,
    ConfigError,
    Document,
    Estimate,
    ImportReport,
    LightRAG,
)
from lightrag_jsonl.testing import ScriptedLLM

CURIE = Document("Marie Curie discovered radium, 居里夫人发现了镭 １２ 🙂.", id="curie")


def taken_over(rag: LightRAG, folder: Path) -> ImportReport | None:
    """What an import brought; None where the folder is no index."""
    try:
        return rag.import_index(folder)
    except ConfigError:
        return None


def test_reports_can_be_named(tmp_path: Path) -> None:
    """Each method returns the public type that says what it did."""
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM(())) as rag:
        estimate: Estimate = rag.estimate(CURIE)
        exported: BatchExport = rag.export_batch(tmp_path / "ask.jsonl", CURIE)
        imported: BatchImport = rag.import_batch(*exported.files)
        assert estimate.documents == exported.waiting == imported.waiting == 1
        assert taken_over(rag, tmp_path / "kb") is None
