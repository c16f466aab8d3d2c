"""`query --explain` and `explain`: how an answer came about, on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.storage.database import FILE_NAME, Database
from lightrag_jsonl.testing import Request
from tests import servers
from tests.explain.curie import CHINESE, ENGLISH, Example
from tests.explain.webdriver import browser, installed

from .conftest import Run, invoke


@pytest.fixture(params=[ENGLISH, CHINESE], ids=["en", "zh"])
def example(request: pytest.FixtureRequest) -> Example:
    """The example in each language."""
    found: Example = request.param
    return found


@pytest.fixture
def kb(tmp_path: Path, example: Example) -> Path:
    """The example's document, in both languages, and no query yet."""
    with LightRAG(tmp_path / "kb", language=example.language) as rag:
        rag.insert_records(example.document(), example.records)
    return tmp_path / "kb"


@pytest.fixture
def model(example: Example, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """The options of a model behind an endpoint that plays the example's part."""
    script = example.script({})

    def respond(request: servers.Request) -> servers.Reply:
        last = request.json["messages"][-1]["content"]
        kinds = {"Candidates": "jsonl", "候选项": "jsonl", "Context": "text", "资料": "text"}
        kind = next((kind for word, kind in kinds.items() if word in last), "json")
        said = script(Request((), kind, None))  # type: ignore[arg-type]
        assert isinstance(said, str)
        if request.json.get("stream"):
            return servers.stream_reply([said[:5], said[5:]])
        return servers.chat_reply(said)

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with servers.ScriptedServer(respond=respond) as server:
        yield "--llm", "m", "--base-url", server.base_url


@pytest.fixture
def asked(run: Run, kb: Path, model: tuple[str, ...], example: Example) -> Path:
    """The index after the example's question."""
    result = run("query", "-w", kb, *model, "-m", "hybrid", "--explain", example.question)
    assert result.exit_code == 0, result.output
    return kb


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_events_are_told_as_they_happen(
    run: Run, kb: Path, model: tuple[str, ...], example: Example, stream: str
) -> None:
    """The answer on stdout; on stderr session, retrieval, selection with reason and source, answer."""
    result = run("query", "-w", kb, *model, "-m", "hybrid", "--explain", stream, example.question)

    assert result.exit_code == 0, result.output
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
    assert result.stdout.startswith(example.answer)
    assert "\n[1] d1.txt" in result.stdout


def test_json_stays_alone_on_stdout(
    run: Run, kb: Path, model: tuple[str, ...], example: Example
) -> None:
    """With --json stdout is one JSON value, whatever stderr tells."""
    result = run("query", "-w", kb, *model, "--explain", "--json", example.question)

    answer = json.loads(result.stdout)
    assert answer["text"] == example.answer and answer["trace_id"] in result.stderr


@pytest.mark.parametrize("mode", ["naive", "local", "global", "hybrid", "mix", "walk"])
def test_every_mode_is_told_without_a_model(
    run: Run, kb: Path, example: Example, mode: str
) -> None:
    """No model, no reasons: scores instead, or chunks."""
    result = run("query", "-w", kb, "-m", mode, "--explain", example.question)

    assert result.exit_code == 0 and "Reason" not in result.stderr
    assert ("Selected 2 chunk(s)" in result.stderr) == (mode in ("naive", "mix", "walk"))
    assert ("Score:" in result.stderr) == (mode != "naive")
    assert run("explain", "verify", "-w", kb).exit_code == 0


def test_a_failure_is_told_and_ends_in_an_error(
    run: Run, kb: Path, example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model refuses: exit status 1, and the trace is there to look at."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    refused = servers.error_reply(401, "bad key")
    with servers.ScriptedServer(respond=lambda request: refused) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        result = run("query", "-w", kb, *model, "-m", "naive", "--explain", example.question)

    assert result.exit_code == 1 and "[failed]" in result.stderr and "error:" in result.stderr
    assert "failed" in run("explain", "list", "-w", kb).stdout


def test_list_and_show(run: Run, asked: Path, example: Example) -> None:
    """The list names the query; its trace tells what the live lines told, and what was refused."""
    listed = run("explain", "list", "-w", asked).stdout
    id = listed.split("\n")[1].split(" ")[0]
    shown = run("explain", "show", "-w", asked, id[:8]).stdout

    assert "complete" in listed and example.question in listed
    for text in (
        f"[session] urn:trustgraph:session:{id}",
        f"Edge: ({', '.join(example.edge)})",
        f"Reason: {example.reason}",
        "Source: Chunk 1 → Page 1 → d1.txt",
        "unknown_id",
        "duplicate_id",
        "truncated",
        example.answer,
    ):
        assert text in shown
    assert run("explain", "show", "-w", asked, "nosuch").exit_code == 1


def test_the_newest_query_needs_no_id(run: Run, kb: Path, example: Example) -> None:
    """`show` and `export` take the newest query where none is named; where there is none, they say so."""
    for command in ("show", "export"):
        none = run("explain", command, "-w", kb)
        assert none.exit_code == 1 and "no query is on record" in none.stderr
    run("query", "-w", kb, example.question)
    run("query", "-w", kb, "Another one?")

    assert "Another one?" in run("explain", "show", "-w", kb).stdout
    assert "Another one?" in run("explain", "export", "-w", kb).stdout


def test_export_under_a_base_of_ones_own(run: Run, asked: Path) -> None:
    """The URIs of the facts begin as they are wanted."""
    bases = ("--entity-base", "https://kb.example/", "--predicate-base", "urn:p:")
    quads = run("explain", "export", "-w", asked, *bases).stdout

    assert "<<( <https://kb.example/" in quads and "<urn:p:" in quads
    assert "urn:entity:" not in quads and "urn:predicate:" not in quads


def test_show_as_json(run: Run, run_json: Any, asked: Path, example: Example) -> None:
    """The trace, and where its chunks stand; a deleted source is said to be deleted."""
    (summary,) = run_json("explain", "list", "-w", asked)
    found = run_json("explain", "show", "-w", asked, summary["id"])
    assert found["trace"]["selected"][0]["reasoning"] == example.reason
    assert found["sources"][0]["where"] == "Chunk 1 → Page 1 → d1.txt"

    run("delete", "-w", asked, "d1")
    found = run_json("explain", "show", "-w", asked, summary["id"])
    assert [place["deleted"] for place in found["sources"]] == [True]
    assert "source deleted" in run("explain", "show", "-w", asked, summary["id"]).stdout


def test_edge_and_documents(run: Run, run_json: Any, asked: Path, example: Example) -> None:
    """From an edge up to its documents and queries, and from a document down to its edges."""
    edge = run("explain", "edge", "-w", asked, *example.edge).stdout
    assert example.edge_id in edge and "Source: Chunk 1 → Page 1 → d1.txt" in edge
    assert "chosen by" in edge
    assert run_json("explain", "edge", "-w", asked, *example.edge)["edge"]["id"] == example.edge_id
    wrong = run("explain", "edge", "-w", asked, example.person, "ate", example.found[1])
    assert wrong.exit_code == 1 and example.found[0] in wrong.stderr

    tree = run("explain", "documents", "-w", asked, "d1").stdout
    assert "urn:document:d1" in tree and tree.count("urn:chunk:") == tree.count("Page ") == 2
    assert f"Edge: ({', '.join(example.edge)})  {example.edge_id}" in tree and "shown to" in tree
    found = run_json("explain", "documents", "-w", asked, "d1")
    assert [one["chunk"]["page"] for one in found["chunks"]] == [1, 2]
    assert run("explain", "documents", "-w", asked, "d9").exit_code == 1


@pytest.mark.parametrize("format", ["nquads", "turtle", "trig", "jsonld"])
def test_export(run: Run, run_json: Any, asked: Path, tmp_path: Path, format: str) -> None:
    """Each format to stdout, to a file, and inside JSON; the file is UTF-8 with the same bytes."""
    pytest.importorskip("pyoxigraph")
    (summary,) = run_json("explain", "list", "-w", asked)
    command = ("explain", "export", "-w", asked, summary["id"][:8], "--format", format)
    file = tmp_path / "out"

    text = run(*command).stdout
    assert run(*command, "-o", file).stdout == "" and file.read_text(encoding="utf-8") == text
    assert run_json(*command)["text"] == text
    assert run_json(*command, "-o", file)["file"] == str(file)
    assert len(run(*command, "--with-source").stdout) > len(text)
    if format == "nquads":
        assert len(text.splitlines()) == 18
        assert "<<( " in text and "<< " in run(*command, "--rdf", "star").stdout


def test_export_is_the_same_on_stdout_and_in_a_file(run: Run, kb: Path, tmp_path: Path) -> None:
    """To the byte, whatever characters the question has."""
    run("query", "-w", kb, "谁发现了镭？\x85 １２ 🙂\x9b")
    command = ("explain", "export", "-w", kb)
    run(*command, "-o", tmp_path / "out.nq")
    told = run(*command).stdout_bytes
    assert told == (tmp_path / "out.nq").read_bytes() and "\x85".encode() in told


def test_nothing_is_written_over_an_index(run: Run, asked: Path, tmp_path: Path) -> None:
    """Not by its name, by no link to it, and not by that of a file it may have tomorrow."""
    link = tmp_path / "answer.html"
    link.hardlink_to(asked / FILE_NAME)
    before = link.read_bytes()
    for target in (link, asked / FILE_NAME, asked / "index.sqlite-wal"):
        for words in (("explain", "export", "-o"), ("explain", "show", "--html")):
            result = run(*words, target, "-w", asked)
            assert result.exit_code == 1 and "belongs to an index" in result.stderr
    for target in (FILE_NAME, "writer.lock"):
        result = run("export", asked / target, "-w", asked, "--format", "json")
        assert result.exit_code == 1 and "belongs to an index" in result.stderr
    assert (asked / FILE_NAME).read_bytes() == before


def test_json_ld_cannot_carry_triple_terms(run: Run, run_json: Any, asked: Path) -> None:
    """Asked for 1.2, the error names 1.1."""
    (summary,) = run_json("explain", "list", "-w", asked)
    command = ("explain", "export", "-w", asked, summary["id"], "--format", "jsonld")
    result = run(*command, "--rdf", "1.2")
    assert result.exit_code == 2 and "1.1" in result.stderr


def test_verify_finds_what_is_wrong(run: Run, run_json: Any, asked: Path) -> None:
    """Exit status 0 and 1, with the list."""
    assert "all is well" in run("explain", "verify", "-w", asked).stdout
    database = Database(asked)
    database.write(lambda connection: connection.execute("UPDATE chunks SET stop = stop - 1"))
    database.close()

    result = run("explain", "verify", "-w", asked)
    assert result.exit_code == 1 and "offsets" in result.stdout
    found = run_json("explain", "verify", "-w", asked, status=1)
    assert {problem["check"] for problem in found["problems"]} >= {"offsets"}
    assert {problem["document_id"] for problem in found["problems"]} == {"", "d1"}


def test_gc_keeps_the_newest(run: Run, run_json: Any, asked: Path, example: Example) -> None:
    """All but the newest go."""
    run("query", "-w", asked, "-m", "naive", example.question)
    assert run_json("explain", "gc", "-w", asked, "--keep", "1") == {"forgotten": 1}
    (left,) = run_json("explain", "list", "-w", asked)
    assert left["mode"] == "naive"
    assert "0 traces forgotten" in run("explain", "gc", "-w", asked, "--keep", "5").stdout


def test_an_index_must_exist(tmp_path: Path) -> None:
    """Looking at nothing makes no folder."""
    for command in (["list"], ["verify"], ["gc", "--keep", "1"], ["show", "x"]):
        result = invoke("explain", *command, "-w", tmp_path / "none")
        assert result.exit_code == 1 and "no index" in result.stderr
    assert not (tmp_path / "none" / FILE_NAME).exists()


def test_the_page_in_a_browser(
    run: Run, run_json: Any, asked: Path, tmp_path: Path, example: Example
) -> None:
    """`show --html` writes a page; in Chromium a click on its citation opens the marked passage."""
    (summary,) = run_json("explain", "list", "-w", asked)
    page = tmp_path / "page.html"
    result = run("explain", "show", "-w", asked, summary["id"], "--html", page)
    assert result.exit_code == 0 and str(page) in result.stdout
    assert f'lang="{"en" if example.language == "en" else "zh-CN"}"' in page.read_text("utf-8")
    if not installed():
        pytest.skip("no chromium and chromedriver on this machine")
    with browser(tmp_path / "profile") as window:
        window.resize(1200, 900)
        window.open(page)
        window.click("#answer a.cite.number")
        opened = window.run(
            "return {text: document.querySelector('#panel .text').textContent,"
            " marked: [...document.querySelectorAll('#panel mark.on')].map(m => m.textContent),"
            " on: document.querySelectorAll('svg g.edge.on').length}"
        )
    assert opened == {"text": example.pages[0], "marked": [example.pages[0]], "on": 1}


def test_a_text_from_a_file_is_named_as_the_file(run: Run, tmp_path: Path) -> None:
    """The source of an edge names the file to open, and not only its stem."""
    file = tmp_path / "d1.txt"
    file.write_text("Marie Curie discovered radium.", encoding="utf-8")
    run("insert", "-w", tmp_path / "kb", file)
    told = run("query", "-w", tmp_path / "kb", "--explain", "What did Marie Curie discover?").stderr

    assert "Source: Chunk 1 → Page 1 → d1.txt" in told
