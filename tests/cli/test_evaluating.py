"""`eval` measures a directory with questions made from its own graph, or given in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli import main
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.samples import sample_documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("eval") / "kb"
    with LightRAG(path) as rag:
        rag.insert(sample_documents("en")[:6])
    return path


def test_generated_questions_are_measured_and_kept(folder: Path, tmp_path: Path) -> None:
    """Questions over two chunks each, a row a mode; the same questions can be asked again."""
    made = tmp_path / "made.jsonl"
    command = ["eval", "-w", str(folder), "--generate", "3", "-m", "mix", "--save", str(made)]
    first = CliRunner().invoke(main, [*command, "--json"])
    assert first.exit_code == 0, first.output
    lines = [json.loads(line) for line in made.read_text(encoding="utf-8").split("\n") if line]
    assert len(lines) == 3 and all(len(line["supporting"]) == 2 for line in lines)
    again = CliRunner().invoke(main, ["eval", str(made), "-w", str(folder), "-m", "mix", "--json"])
    assert again.exit_code == 0, again.output

    def found(output: str) -> dict[str, object]:
        return {row["name"]: row["metrics"] for row in json.loads(output)["rows"]}

    assert found(first.stdout) == found(again.stdout)
    assert {"dense", "bm25", "mix"} <= found(first.stdout).keys()


def test_naive_may_be_named_and_is_measured_once(folder: Path) -> None:
    """It is measured anyway; naming it alone leaves the graph modes away. No bar without a terminal."""
    command = ["eval", "-w", str(folder), "--generate", "2", "-m", "naive", "--json"]
    result = CliRunner().invoke(main, command)

    assert result.exit_code == 0 and result.stderr == ""
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == ["dense", "bm25", "naive"]


def test_the_default_budget_holds_chunks_of_the_default_size() -> None:
    """Otherwise no answer could be found in any context, whatever was retrieved."""
    (budget,) = [one for one in main.commands["eval"].params if one.name == "budget"]
    assert budget.default >= 3 * IndexOptions().chunk_tokens
