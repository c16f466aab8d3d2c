"""status, documents, export: what is in an index, for people and for programs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.cli.output import width
from tests.cli.conftest import CHINESE, ENGLISH, Run, RunJson


def test_status_for_people_and_programs(run: Run, run_json: RunJson, kb: Path) -> None:
    """Both tell the same counts; the JSON has the fields of `Status`."""
    status, shown = run_json("status", "-w", kb), run("status", "-w", kb).stdout

    assert status["documents"] == {"done": 2}
    assert status["extraction"]["ok"] == 2
    assert f"entities   {status['entities']}" in shown
    assert "2 (2 done)" in shown and "hash" in shown


def test_the_size_is_that_of_the_index(kb: Path) -> None:
    """Somebody's own files beside it are none of it."""
    with LightRAG(kb) as rag:
        rag.status()
        before = rag.status().bytes_on_disk
        (kb / "book.txt").write_bytes(bytes(1_000_000))
        assert rag.status().bytes_on_disk == before > 0


def test_documents_stand_in_columns(run: Run, kb: Path) -> None:
    """Columns begin at the same place on screen, Chinese names or not."""
    header, *rows = run("documents", "-w", kb).stdout.rstrip("\n").split("\n")

    assert {width(row[: row.index("done")]) for row in rows} == {
        width(header[: header.index("state")])
    }
    assert sorted("张骞传" in row for row in rows) == [False, True]


def test_documents_json(run_json: RunJson, kb: Path) -> None:
    """An array of documents with dates in ISO form and their metadata."""
    found = {one["id"]: one for one in run_json("documents", "-w", kb)}
    curie, zhang = found["curie"], found["张骞"]

    assert (curie["title"], curie["metadata"]) == ("Curie", {"year": 1934})
    assert zhang["created_at"].endswith("+00:00")


def test_rejections_of_an_unknown_document(run: Run, kb: Path) -> None:
    """An id that is not there is an error; where nothing was refused, that is said."""
    assert run("rejections", "-w", kb, "nobody").exit_code == 1
    assert run("rejections", "-w", kb, "curie").stdout == "nothing was refused\n"


def test_graphml_can_be_read_back(run: Run, kb: Path, tmp_path: Path) -> None:
    """networkx reads the file: the same nodes and edges, with descriptions and weights."""
    path = tmp_path / "graph.graphml"
    assert run("export", "-w", kb, path).exit_code == 0
    graph = nx.read_graphml(path)
    with LightRAG(kb) as rag:
        assert set(graph.nodes) == set(rag.graph.nodes)
        assert {frozenset(edge) for edge in graph.edges} == {
            frozenset(edge) for edge in rag.graph.edges
        }
    assert graph.nodes["张骞"]["description"]
    assert all(data["weight"] > 0 for _, _, data in graph.edges(data=True))


def test_graphml_of_strange_characters(run: Run, tmp_path: Path) -> None:
    """Characters that XML forbids do not break the file."""
    with LightRAG(tmp_path / "kb") as rag:
        record = {
            "type": "entity",
            "name": "A & B <C>",
            "entity_type": "x",
            "description": "\x0b\x1f",
        }
        rag.insert_records("A & B <C> is here.", [record])

    assert ET.fromstring(run("export", "-w", tmp_path / "kb").stdout.encode())


def test_json_is_one_object(run: Run, run_json: RunJson, kb: Path) -> None:
    """--format json, and --json without a file, are the same object of entities and relations."""
    graph = json.loads(run("export", "-w", kb, "--format", "json").stdout)

    assert {entity["name"] for entity in graph["entities"]} >= {"Marie Curie", "张骞"}
    assert {"source", "target", "keywords", "weight"} <= graph["relations"][0].keys()
    assert graph == run_json("export", "-w", kb)


def test_records_make_the_same_graph_again(run: Run, kb: Path, tmp_path: Path) -> None:
    """The exported records, inserted elsewhere with their texts, give the same names and pairs."""
    lines = run("export", "-w", kb, "--format", "jsonl").stdout.split("\n")
    records = [json.loads(line) for line in lines if line]
    with LightRAG(kb) as old, LightRAG(tmp_path / "new") as new:
        for id, text in (("curie", ENGLISH), ("张骞", CHINESE)):
            own = [record for record in records if record["document"] == id]
            new.insert_records(Document(text, id=id), own)
        assert set(old.graph.nodes) == set(new.graph.nodes)
        assert set(map(frozenset, old.graph.edges)) == set(map(frozenset, new.graph.edges))


def test_export_reports_what_it_wrote(run_json: RunJson, kb: Path, tmp_path: Path) -> None:
    """With a file, --json tells its name and how many lines it has."""
    path = tmp_path / "records.jsonl"
    report = run_json("export", "-w", kb, "--format", "jsonl", path)

    assert report["lines"] == len(path.read_text(encoding="utf-8").rstrip("\n").split("\n"))
