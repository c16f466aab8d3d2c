"""`query --explain` and `explain`: how an answer came about, on the command line."""

import contextlib
import re
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.testing import Request
from tests import servers
from tests.cli.conftest import run, run_json
from tests.tracing.curie import CHINESE, ENGLISH, Example


@pytest.fixture(params=[ENGLISH, CHINESE], ids=["en", "zh"])
def example(request: pytest.FixtureRequest) -> Example:
    found: Example = request.param
    return found


@pytest.fixture
def kb(tmp_path: Path, example: Example) -> Path:
    with LightRAG(tmp_path / "kb", language=example.language) as rag:
        rag.insert_records(example.document(), example.records)
    return tmp_path / "kb"


@pytest.fixture
def model(example: Example) -> Iterator[tuple[str, ...]]:
    """The options of a model behind an endpoint that plays the example's part."""
    script = example.script({})

    def respond(request: servers.Request) -> servers.Reply:
        last = request.json["messages"][-1]["content"]
        kinds = {"Candidates": "jsonl", "候选项": "jsonl", "Context": "text", "资料": "text"}
        kind = next((kind for word, kind in kinds.items() if word in last), "json")
        text = str(script(Request((), kind, None)))  # type: ignore[arg-type]
        if request.json.get("stream"):
            return servers.stream_reply([text[:5], text[5:]])
        return servers.chat_reply(text)

    with servers.ScriptedServer(respond=respond) as server:
        yield "--llm", "m", "--base-url", server.base_url


@pytest.fixture
def asked(kb: Path, model: tuple[str, ...], example: Example) -> Path:
    result = run("query", "-w", kb, *model, "-m", "hybrid", "--explainable", example.question)
    assert result.exit_code == 0, result.output
    return kb


def test_events_are_printed_as_they_happen(
    kb: Path, model: tuple[str, ...], example: Example
) -> None:
    """The answer on stdout; on stderr session, retrieval, selection with reason and source, answer."""
    result = run("query", "-w", kb, *model, "-m", "hybrid", "--explain", example.question)

    assert result.exit_code == 0, result.output
    # as a terminal shows both streams, the events do not cut the answer
    assert result.output.index("[answer]") < result.output.index(result.stdout.split("\n")[0])
    lines = [line.strip() for line in result.stderr.split("\n") if line]
    heads = [line.split(" ")[0] for line in lines if line.startswith("[")]
    assert heads == ["[session]", "[keywords]", "[retrieval]", "[selection]", "[answer]"]
    at = lines.index("Selected 1 edge(s)")
    assert lines[at + 1 : at + 4] == [
        f"Edge: ({', '.join(example.edge)})",
        f"Reason: {example.reason}",
        "Source: Chunk 1 → Page 1 → d1.txt",
    ]
    assert "[session] urn:trustgraph:session:" in lines[0]
    marked = example.answer.replace("[9]", "[9?]")  # no such source
    assert result.stdout.startswith(marked) and "\n[1][2] d1.txt" in result.stdout


@pytest.mark.slow
def test_list_and_show(asked: Path, example: Example) -> None:
    """The list names the query; its trace shows what the live lines showed, and what was rejected. The
    id may be short, a URI that was printed, or left out for the newest query.
    """
    (summary,) = run_json("explain", "list", "-w", asked)
    shown = run("explain", "show", "-w", asked, summary["id"][:8]).stdout
    for text in ("unknown_id", "duplicate_id", "truncated", example.answer, example.reason):
        assert text in shown
    uris = re.findall(r"urn:trustgraph:\S+", shown)
    for names in ([], uris[:1], [f"urn:trustgraph:prov:edge:{summary['id']}:0"]):
        assert run("explain", "show", "-w", asked, *names).stdout == shown
    assert run("explain", "show", "-w", asked, "nosuch").exit_code == 1
    page = asked / "page.html"
    assert str(page) in run("explain", "show", "-w", asked, "--html", page).stdout
    assert example.answer.partition("[")[0].strip() in page.read_text("utf-8")
    assert run("delete", "-w", asked, "d1").exit_code == 0
    assert run_json("explain", "show", "-w", asked)["sources"][0]["chunk"] is None
    assert "source deleted" in run("explain", "show", "-w", asked).stdout
    assert run_json("explain", "gc", "-w", asked, "--keep", "0") == {"deleted": 1}


@pytest.mark.slow
def test_edge_and_documents(asked: Path, example: Example) -> None:
    """From an edge up to its documents and queries, and from a document down to its edges. What is
    printed names it, too; a name of several documents is an error.
    """
    edge = run("explain", "edge", "-w", asked, *example.edge).stdout
    assert example.edge_id in edge and "Source: Chunk 1 → Page 1 → d1.txt" in edge
    assert "used by:" in edge and example.question in edge
    wrong = run("explain", "edge", "-w", asked, example.person, "ate", example.found[1])
    assert wrong.exit_code == 1 and example.found[0] in wrong.stderr

    tree = run("explain", "documents", "-w", asked, "d1").stdout
    assert "urn:document:d1" in tree and tree.count("urn:chunk:") == 2 and "used by:" in tree
    assert f"Edge: ({', '.join(example.edge)})  {example.edge_id}" in tree
    for name in tree.split("\n")[0].split("  "):
        assert run("explain", "documents", "-w", asked, name).stdout == tree
    with LightRAG(asked) as rag:
        rag.insert_records(Document("Other.", id="d2", title=rag.documents()[0].title), [])
    twice = run("explain", "documents", "-w", asked, tree.split("  ")[0])
    assert twice.exit_code == 1 and "several are called so: d1, d2" in twice.stderr


@pytest.mark.slow
def test_export(asked: Path) -> None:
    """Each format to stdout, to the byte, and inside JSON."""
    pytest.importorskip("pyoxigraph")
    for format in ("nquads", "turtle", "trig", "jsonld"):
        command = ("explain", "export", "-w", asked, "--format", format)
        text = run(*command).stdout_bytes
        assert run_json(*command)["text"].encode() == text
        assert len(run(*command, "--with-source").stdout_bytes) > len(text)


def changed_text(packed: bytes) -> bytes:
    return zlib.compress(b"x" + zlib.decompress(packed))


@pytest.mark.slow
def test_verify_finds_what_is_wrong(asked: Path) -> None:
    """Exit status 0 and 1, with the list."""
    assert run_json("explain", "verify", "-w", asked) == {"traces": 1, "problems": []}
    with contextlib.closing(sqlite3.connect(asked / "index.sqlite")) as connection, connection:
        connection.create_function("changed", 1, changed_text)
        connection.execute("UPDATE pages SET text = changed(text)")

    result = run("explain", "verify", "-w", asked)
    assert result.exit_code == 1 and "offsets" in result.stderr
    found = run_json("explain", "verify", "-w", asked, status=1)
    assert {problem["check"] for problem in found["problems"]} >= {"offsets"}
