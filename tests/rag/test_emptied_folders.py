"""`sync` of a folder without files: refused, since its disk may be missing, until somebody says it is meant."""

import shutil
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, LightRAG
from tests.cli.conftest import run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["empty", "other files", "gone"])
def test_an_emptied_folder_is_synchronized_when_it_is_meant(tmp_path: Path, kind: str) -> None:
    """The error names the option; with it the documents of this folder are removed, and no others."""
    folder = tmp_path / "资料"
    other = tmp_path / "other"
    for place in (folder, other):
        place.mkdir()
        (place / "a.txt").write_text("Ida Fenn swims in the river.", encoding="utf-8")
    kb = tmp_path / "kb"
    assert run("insert", "-w", kb, "--sync", folder, other).exit_code == 0
    (folder / "a.txt").unlink()
    if kind == "gone":
        shutil.rmtree(folder)
    elif kind == "other files":
        (folder / "a.unknown").write_text("x", encoding="utf-8")
    refused = run("insert", "-w", kb, "--sync", folder)
    assert refused.exit_code == 1 and "--allow-empty" in refused.stderr
    with LightRAG(kb) as rag:
        assert len(rag.documents()) == 2
        with pytest.raises(ConfigError):
            rag.insert(folder, sync=True)
    assert run("insert", "-w", kb, "--allow-empty", folder).exit_code == 2
    assert run("insert", "-w", kb, "--sync", "--allow-empty", folder).exit_code == 0
    with LightRAG(kb) as rag:
        assert [document.id for document in rag.documents()] == [str(other / "a.txt")]
        report = rag.insert([folder, other], sync=True, allow_empty=True)
        assert report.deleted == () and len(report.unchanged) == 1
