"""Odd arguments and closed streams: told in a sentence, nothing done by mistake, no traceback."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from lightrag_jsonl.cli.opening import recorded
from tests.cli.conftest import ENGLISH, Run, RunJson, command, invoke
from tests.servers import Reply, Request, ScriptedServer, chat_reply


def test_an_empty_name_is_not_this_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a variable that is not set."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(ENGLISH, encoding="utf-8")
    for words in (("insert", "-w", "kb", ""), ("estimate", " ")):
        result = run(*words)
        assert result.exit_code == 2 and "the name of a file is empty" in result.stderr
    assert not Path("kb").exists()


MODEL = ("--llm", "m", "--base-url", "http://127.0.0.1:9/v1")
NO_EMBEDDERS = ("st:", "openai", "bert", "hash:12", "openai:")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("insert", "a.txt", "-w", " "), "the name of a folder is empty"),
        (("demo", "-w", ""), "the name of a folder is empty"),
        (("status", "-w", "a.txt"), "is a file"),
        (("insert", "a.txt", "-w", "b.txt"), "is a file"),
        (("insert", "a.txt", "--llm", ""), "no character that can be seen"),
        (("insert", "a.txt", "--entity-type", " "), "no character that can be seen"),
        (("insert", "a.txt", "--language", "xx"), "there are: en, zh"),
        (("prompts", "list", "--language", ""), "there are: en, zh"),
        (("insert", "a.txt", "--base-url", "http://"), "it names no server"),
        (("insert", "a.txt", "--chunk-tokens", "9", "--chunk-overlap", "9"), "chunk_overlap (9)"),
        (("estimate", "a.txt", "--chunk-tokens", "9", "--chunk-overlap", "9"), "chunk_overlap (9)"),
        (("insert", "a.txt", "--extraction", "extract-with-ontologies"), "needs an --ontology"),
        (
            ("insert", "a.txt", "a.txt", "b.txt", "--id", "x"),
            "names one document, but 2 were given",
        ),
        *((("insert", "a.txt", "--embedder", spec), "st:NAME_OR_FOLDER") for spec in NO_EMBEDDERS),
        (
            ("estimate", "a.txt", "--price-input", "nan", "--price-output", "1"),
            "nan is not a price",
        ),
        (
            ("estimate", "a.txt", "--price-input", "1", "--price-output", "inf"),
            "inf is not a price",
        ),
        (("estimate", "a.txt", "--price-cached", "1"), "--price-cached needs"),
        (("batch", "export", "a.txt", "-o", "requests.jsonl"), "name one with --llm"),
        (("query", "--mode", "bypass", "Who?"), "name one with --llm"),
        (
            ("query", "--mode", "deep", "Who?"),
            "'naive', 'local', 'global', 'hybrid', 'mix', 'walk'",
        ),
        (("query", "--history", "none.json", "Who?"), "does not exist"),
        (("query", "--stream", "--json", "Who?"), "cannot be used with --stream"),
        (("export", "--json", "--format", "graphml"), "--json on stdout means --format json"),
        (("extract", "extract-topics", "none.txt", *MODEL), "does not exist"),
        (("extract", "extract-rows", "a.txt", "--set", "schema=@none", *MODEL), "no such file"),
    ],
)
def test_wrong_usage_has_a_status_of_its_own(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    """What the command line alone shows to be wrong ends with 2, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        Path(name).write_text(ENGLISH, encoding="utf-8")
    result = run(*words)

    assert result.exit_code == 2 and told in result.stderr, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_a_misspelt_file_makes_no_index(run: Run, tmp_path: Path) -> None:
    """Nor is the model of that insert what the folder is set up for."""
    for word in ("insert", "estimate"):
        result = run(word, "-w", tmp_path / "kb", *MODEL, tmp_path / "none.txt")
        assert result.exit_code == 1 and "no such file" in result.stderr
    assert not (tmp_path / "kb").exists()


def test_a_bad_line_refuses_its_file_alone_or_in_company(
    run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    """Nothing of it goes in, whatever stands beside it."""
    bad, good = tmp_path / "bad.jsonl", tmp_path / "good.txt"
    bad.write_text('{"text": "Ada met Bob."}\n{"txet": "x"}\n', encoding="utf-8")
    good.write_text(ENGLISH, encoding="utf-8")
    alone = run("insert", "-w", tmp_path / "one", bad)
    assert alone.exit_code == 1 and "line 2" in alone.stderr and "never awaited" not in alone.stderr
    both = run("insert", "-w", tmp_path / "two", bad, good)
    assert both.exit_code == 3 and "line 2" in both.stderr
    assert [one["title"] for one in run_json("documents", "-w", tmp_path / "two")] == ["good"]


def test_stdin_is_read_as_a_file_is(run: Run, tmp_path: Path) -> None:
    """The same encodings, and the same that are refused by name."""
    pdf = invoke("insert", "-w", tmp_path / "kb", "-", stdin=b"%PDF-1.4\n(Ada) Tj\n")
    assert pdf.exit_code == 1 and "stdin is no text file but a PDF" in pdf.stderr
    gbk = "张骞出使西域，到过大月氏。".encode("gb18030")
    read = invoke("insert", "-w", tmp_path / "kb", "--language", "zh", "-", stdin=gbk)
    assert read.exit_code == 0, read.output


def test_what_cannot_be_written_to_is_told_by_its_name(
    run: Run, kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for name in ("", str(tmp_path / "none" / "graph.graphml")):
        result = run("export", "-w", kb, name)
        assert result.exit_code == 1 and repr(name) in result.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "streams", "status", "told"),
    [
        (("query", "Who was born?"), ">&-", 0, ""),
        (("query", "--json", "Who was born?"), ">&-", 0, ""),
        (("query",), "<&-", 2, "question is empty"),
        (("insert", "-"), "<&-", 3, "no text"),
        (("parse",), "<&-", 0, ""),
    ],
)
def test_closed_streams(
    words: tuple[str, ...],
    streams: str,
    status: int,
    told: str,
    kb: Path,
    environment: dict[str, str],
) -> None:
    """As cron and careful scripts have them."""
    folder = () if words[0] == "parse" else ("-w", kb)
    line = command((words[0], *folder, *words[1:]))
    script = f'"$@" {streams}'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *line], env=environment, capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr
    assert told in done.stderr and "Traceback" not in done.stderr


def test_an_unknown_trace_or_an_empty_name_is_an_error(run: Run, kb: Path) -> None:
    run("query", "-w", kb, "Who was born in Warsaw?")
    run("query", "-w", kb, "Who discovered radium?")
    assert run("explain", "show", "-w", kb, "").exit_code == 1
    merged = run("entities", "merge", "-w", kb, "Warsaw", "--into", " ")
    assert merged.exit_code == 1 and "merged into is empty" in merged.stderr


def test_the_model_that_read_the_texts_is_asked_where_it_was(run: Run, tmp_path: Path) -> None:
    """The same name needs no endpoint again; another one has the usual endpoint."""
    kb, text = tmp_path / "kb", tmp_path / "a.txt"
    text.write_text(ENGLISH, encoding="utf-8")
    asked: list[str] = []

    def respond(request: Request) -> Reply:
        asked.append(request.json["model"])
        return chat_reply(
            '{"type": "entity", "name": "Warsaw", "entity_type": "place", "description": "A city."}'
        )

    with ScriptedServer(respond=respond) as server:
        first = run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, text)
        assert first.exit_code == 0 and recorded(kb)["cli.base_url"] == server.base_url
        read = len(asked)
        answered = run("query", "-w", kb, "--llm", "m", "--mode", "naive", "Who was born?")
        assert answered.exit_code == 0 and len(asked) > read, answered.output


def test_an_embedder_that_cannot_be_had_is_not_remembered(run: Run, tmp_path: Path) -> None:
    """The next insert, which names none, is not held to it; no folder is made for it."""
    kb, text = tmp_path / "kb", tmp_path / "a.txt"
    text.write_text(ENGLISH, encoding="utf-8")
    failed = run("insert", "-w", kb, "--embedder", f"st:{tmp_path / 'none'}", text)
    assert failed.exit_code == 1 and not kb.exists(), failed.output
    assert run("insert", "-w", kb, text).exit_code == 0


def test_chunks_that_failed_are_counted_where_it_says_what_was_read(
    run: Run, tmp_path: Path
) -> None:
    """`retry` says of documents that wait which command is theirs."""
    kb, text = tmp_path / "kb", tmp_path / "a.txt"
    text.write_text(ENGLISH, encoding="utf-8")
    refusal = Reply('{"error": {"message": "no"}}', status=400)
    with ScriptedServer(respond=lambda request: refusal) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        read = run("insert", "-w", kb, *model, text)
        assert read.exit_code == 3 and "(1 chunk, 1 failed)" in read.stdout, read.output
        text.write_text("Ada met Bob.", encoding="utf-8")
        run("batch", "export", "-w", tmp_path / "two", *model, "-o", tmp_path / "asked", text)
    waiting = run("retry", "-w", tmp_path / "two", "--llm", "none")
    assert "nothing has failed, but 1 document waits to be read" in waiting.stdout, waiting.output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_export_into_a_pipe_leaves_it_one(run: Run, kb: Path, tmp_path: Path) -> None:
    """As into a device: it is written to, and never replaced by a file."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "graph.json")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    result = run("export", "-w", kb, pipe)
    reader.join(30)
    assert result.exit_code == 0 and stat.S_ISFIFO(pipe.stat().st_mode)
    assert got[0].startswith(b"<?xml")
    assert run("export", "-w", kb, link).exit_code == 0 and link.is_symlink()


def test_an_export_has_the_format_of_its_name(run: Run, kb: Path, tmp_path: Path) -> None:
    """Unless it is said; other endings mean GraphML."""
    for name, begins in (("g.json", "{"), ("g.JSONL", '{"'), ("g.xml", "<?xml"), ("g", "<?xml")):
        assert run("export", "-w", kb, tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert run("export", "-w", kb, "-f", "graphml", tmp_path / "g.json").exit_code == 0
    assert (tmp_path / "g.json").read_text(encoding="utf-8").startswith("<?xml")


def test_sources_that_nobody_showed_are_told(run: Run, kb: Path) -> None:
    """On stderr, beside the answer that names them."""
    with ScriptedServer(respond=lambda request: chat_reply("She was born there [99].")) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        result = run("query", "-w", kb, *model, "--mode", "naive", "Who was born in Warsaw?")
    assert "note: [99] in the answer" in result.stderr and "note" not in result.stdout


def test_failures_of_one_reason_are_one_line(run: Run, tmp_path: Path) -> None:
    """As where every call of a long text was refused."""
    text = tmp_path / "a.txt"
    text.write_text("\n\n".join(f"Person{n} met Nobody." for n in range(40)), encoding="utf-8")
    refusal = Reply('{"error": {"message": "no"}}', status=400)
    with ScriptedServer(respond=lambda request: refusal) as server:
        model = ("--llm", "m", "--base-url", server.base_url, "--chunk-tokens", "50")
        result = run("insert", "-w", tmp_path / "kb", *model, text)
    (line,) = [line for line in result.stderr.split("\n") if line.startswith("  ")]
    assert "more, for the same reason): 127.0.0.1" in line
