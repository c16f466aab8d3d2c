"""The recipes of docs/scale.md: batch files answered by a server, until nothing is left to ask."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import run_json
from tests.cluster.kit import answer
from tests.conftest import CHECKOUT
from tests.kit import problems
from tests.servers import ScriptedServer
from tests.tools.test_merging import documents


@pytest.mark.slow
def test_the_recipe_for_batch_files_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Export, the code printed in the documentation, import: extraction, gleaning and summaries."""
    text = (CHECKOUT / "docs" / "scale.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    lines = [{"id": one.id, "text": one.text} for one in documents("en", 24)]
    Path("texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rounds = []
    with ScriptedServer(respond=answer) as server:
        monkeypatch.setenv("SERVER", server.url)
        monkeypatch.setenv("CALLS", "4")
        models, given = ["--llm", "scripted", "--base-url", server.base_url], ["texts.jsonl"]
        export = ["batch", "export", *models, "-o", "requests.jsonl", "-w", "kb"]
        while (found := run_json(*export, *given))["requests"]:
            rounds.append(found["round"])
            exec(compile(recipe, "docs/scale.md", "exec"), {})
            run_json("batch", "import", "results.jsonl", "-w", "kb")
            given = []
    assert rounds[0] == "extraction" and rounds[-1] == "summaries"
    assert run_json("status", "-w", "kb")["documents"] == {"done": 24}
    assert problems("kb") == []
