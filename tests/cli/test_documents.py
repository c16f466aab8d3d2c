"""insert, retry, resume, delete, status, documents: what goes in, what is reported and remembered."""

import json
import os
from pathlib import Path

import pytest

from lightrag_jsonl import FunctionEmbedder, LightRAG
from tests.cli.conftest import CHINESE, ENGLISH, columns, run, run_json
from tests.kit import recorded_settings
from tests.servers import Reply, Request, ScriptedServer, chat_reply, error_reply

ANSWER = """\
{"type":"entity","name":"Marie Curie","entity_type":"person","description":"A physicist."}
{"type":"entity","name":"Warsaw","entity_type":"place","description":"Her birthplace."}
{"type":"relationship","source":"Marie Curie","target":"Warsaw","description":"Marie Curie was born in Warsaw."}
That was all!
{"type":"done","entities":2,"relationships":1}"""


@pytest.mark.slow
def test_a_report_for_people(texts: Path, tmp_path: Path) -> None:
    """Five lines at most: documents, what is in them, what read them, what comes next; what is there already
    is not read again.
    """
    first = run("insert", "-w", tmp_path / "kb", texts)
    second = run("insert", "-w", tmp_path / "kb", texts)

    assert first.exit_code == 0 and first.stderr == ""
    lines = dict(line.split(maxsplit=1) for line in first.stdout.splitlines())
    counts = dict(reversed(count.split(" ", 1)) for count in lines["index"].split(", "))
    assert len(lines) <= 5 and lines["documents"] == "2 read" and counts["new chunks"] == "2"
    assert int(counts["entities"]) > 3 and int(counts["relations"]) > 1
    assert "without a model" in lines["read"] and "query -w" in lines["next"]
    assert second.exit_code == 0 and second.stdout.startswith("documents  2 known already")


@pytest.mark.slow
def test_folders_patterns_stdin_and_odd_names(texts: Path, tmp_path: Path) -> None:
    """Folders are read with all files, quoted patterns are expanded, ** goes into folders, - is stdin; a file
    that exists is that file, whatever characters its name has.
    """
    kb, odd = tmp_path / "kb", texts / "deep" / "[a].txt"
    odd.parent.mkdir()
    odd.write_text("Isaac Newton lived in England.", encoding="utf-8")

    assert len(run_json("insert", "-w", kb, f"{texts}/*.md")["documents"]) == 1
    assert len(run_json("insert", "-w", kb, f"{tmp_path}/**/a.txt")["documents"]) == 1
    assert len(run_json("insert", "-w", kb, odd)["documents"]) == 1
    assert len(run_json("insert", "-w", kb, texts)["unchanged"]) == 3
    for text in (ENGLISH, CHINESE):  # the second takes the place of the first
        assert run("insert", "-w", kb, "--id", "note", "-", stdin=text).exit_code == 0
    found = {one["id"]: one for one in run_json("documents", "-w", kb)}
    assert found["note"]["characters"] == len(CHINESE)


@pytest.mark.slow
def test_links_in_folders_and_patterns_are_listed(texts: Path, tmp_path: Path) -> None:
    """They are not read, the status is 0, and each is named with the reason; --json has them, too."""
    secret = tmp_path / "outside" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text(CHINESE, encoding="utf-8")
    (texts / "out.txt").symlink_to(secret)
    (texts / "folder").symlink_to(secret.parent)
    os.mkfifo(texts / "pipe.txt")
    report = run_json("insert", "-w", tmp_path / "kb", texts)
    assert len(report["documents"]) == 2 and not report["failures"]
    assert [Path(item["path"]).name for item in report["skipped"]] == [
        "folder",
        "out.txt",
        "pipe.txt",
    ]
    again = run("insert", "-w", tmp_path / "kb", f"{texts}/**/*.txt")
    assert again.exit_code == 0
    assert f"skipped: {texts}/folder/secret.txt, {texts}/out.txt: it is a link" in again.stderr
    named = run("insert", "-w", tmp_path / "kb", texts / "pipe.txt")
    assert named.exit_code == 1 and "it is a pipe, not a regular file" in named.stderr
    assert run("insert", "-w", tmp_path / "kb", texts / "out.txt").exit_code == 0
    ids = {Path(one["id"]).name for one in run_json("documents", "-w", tmp_path / "kb")}
    assert ids == {"a.txt", "b.md", "secret.txt"}


@pytest.mark.slow
def test_limits_of_a_file_are_options(tmp_path: Path) -> None:
    """A table beyond one is refused with the name of the option, which lets it in."""
    table = tmp_path / "table.csv"
    table.write_text("Name,Born\n" + "Marie Curie,1867\n" * 20, encoding="utf-8")
    few = run("insert", "-w", tmp_path / "kb", table, "--max-file-characters", 100)
    assert few.exit_code == 1 and "--max-file-characters" in few.stderr
    assert run("insert", "-w", tmp_path / "kb", table).exit_code == 0


@pytest.mark.slow
def test_one_unreadable_file_of_several(texts: Path, tmp_path: Path) -> None:
    """The others are read; the status is 3, and the failure has its reason; stdout stays JSON."""
    (texts / "bad.txt").write_bytes(b"\0\1\2" * 100)
    result = run("insert", "-w", tmp_path / "kb", "--json", texts, tmp_path / "none.txt")

    assert result.exit_code == 3
    report = json.loads(result.stdout)
    assert len(report["documents"]) == 2 and len(report["failures"]) == 2
    assert "bad.txt" in result.stderr and "no such file" in result.stderr


@pytest.mark.slow
def test_status_documents_and_delete(kb: Path) -> None:
    """The same for people and programs; columns begin at the same position, Chinese names or not. A
    deleted document is gone with all that it alone stated; an unknown id removes nothing.
    """
    assert run("retry", "-w", kb).stdout == "no failed chunks\n"
    assert run("resume", "-w", kb).stdout == "nothing is pending\n"
    assert run("rejections", "-w", kb, "curie").stdout == "no lines were rejected\n"
    status, shown = run_json("status", "-w", kb), run("status", "-w", kb).stdout
    assert status["documents"] == {"done": 2} and status["extraction"]["ok"] == 2
    assert f"entities       {status['entities']}\n" in shown and "done 2" in shown

    found = {one["id"]: one for one in run_json("documents", "-w", kb)}
    assert (found["curie"]["title"], found["curie"]["metadata"]) == ("Curie", {"year": 1934})
    header, *rows = run("documents", "-w", kb).stdout.rstrip("\n").split("\n")
    start = columns(header[: header.index("state")])
    assert {columns(row[: row.index("done")]) for row in rows} == {start}

    unknown = run("delete", "-w", kb, "curie", "nobody")
    assert unknown.exit_code == 1 and "nobody" in unknown.stderr
    report = run_json("delete", "-w", kb, "curie")
    assert report["documents"] == ["curie"] and report["entities"] > 1
    assert [one["id"] for one in run_json("documents", "-w", kb)] == ["张骞"]


@pytest.mark.slow
def test_looking_needs_no_embedder(tmp_path: Path) -> None:
    """An index that a program made with an embedder of its own can be looked at, but not queried; after
    a move to another one, queries use that without being asked to.
    """
    kb = tmp_path / "kb"
    lengths = FunctionEmbedder(lambda texts: [[1, len(t)] for t in texts], dim=2, name="lengths")
    with LightRAG(kb, embedder=lengths) as rag:
        rag.insert(ENGLISH)
    for command in ("status", "documents", "rejections", "export", "vacuum"):
        assert run(command, "-w", kb).exit_code == 0
    result = run("query", "-w", kb, "Who?")
    assert result.exit_code == 1 and "the embedder lengths is needed" in result.stderr

    moved = run_json("reembed", "-w", kb, "--embedder", "hash")
    assert moved["embedder"].startswith("hash") and moved["texts"] > 0
    assert run("query", "-w", kb, "Where was Marie Curie born?").exit_code == 0
    assert run("doctor", "-w", kb).exit_code == 0


@pytest.mark.slow
def test_a_model_reads_and_its_name_is_remembered(texts: Path, tmp_path: Path) -> None:
    """Usage and rejected lines are reported; `query` asks the model of the insert."""
    kb = tmp_path / "kb"
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        url = ("--base-url", server.base_url)
        result = run("insert", "-w", kb, "--llm", "m", *url, texts / "a.txt")
        assert result.exit_code == 0, result.output
        assert "m: 1 call, 7 input tokens, 5 output tokens" in result.stdout
        assert f"lightrag-jsonl rejections -w {kb}" in result.stderr
        (rejection,) = run_json("rejections", "-w", kb)
        assert rejection["text"] == "That was all!" and rejection["line"] == 4
        assert run_json("status", "-w", kb)["llm"] == "m"
        assert run_json("query", "-w", kb, *url, "-m", "naive", "Who was born?")["text"]
        assert server.bodies[-1]["model"] == "m"


@pytest.mark.parametrize("options", [(), ("--read", "asked"), ("--llm-for", "answer=m2")])
def test_a_model_without_a_key_is_not_remembered(
    kb: Path, texts: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """An insert with such a model changes no index, makes none, and says what to do; questions are answered
    as before.
    """
    before = recorded_settings(kb)
    for folder in (kb, tmp_path / "new"):
        result = run("insert", "-w", folder, "--llm", "m", *options, texts / "a.txt")
        assert result.exit_code == 1, result.output
        assert "no API key for api.openai.com: export OPENAI_API_KEY" in result.stderr
    assert recorded_settings(kb) == before
    assert not (tmp_path / "new").exists()
    assert run("query", "-w", kb, "Who was born in Warsaw?").exit_code == 0


def test_texts_read_by_rules_are_not_said_to_be_read_by_a_model(
    texts: Path, tmp_path: Path
) -> None:
    """Where no call was made, no model is named as the reader, and the way to have it read is told."""
    server = ("--llm", "m", "--base-url", "http://127.0.0.1:9/v1")
    kb = tmp_path / "kb"
    run("insert", "-w", kb, texts)
    again = run("insert", "-w", kb, *server, texts)
    assert again.exit_code == 0, again.output
    assert "2 known already" in again.stdout and "read by" not in again.stdout
    assert f"read them with m: lightrag-jsonl retry --upgrade -w {kb}" in again.stderr
    when_asked = run("insert", "-w", tmp_path / "asked", *server, "--read", "asked", texts)
    assert "read by    language rules; m reads what questions find" in when_asked.stdout
    assert "retry --upgrade" not in when_asked.stderr


@pytest.mark.slow
def test_stored_answers_are_named_as_such(texts: Path, tmp_path: Path) -> None:
    """A text that is deleted and inserted again is read from the answers of the first time."""
    kb = tmp_path / "kb"
    file = texts / "a.txt"
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        insert = ("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, file)
        run(*insert)
        run("delete", "-w", kb, file)
        again = run(*insert)
    assert "read by    m, from answers stored earlier" in again.stdout


@pytest.mark.slow
def test_defaults_of_the_user(texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folder and language come from the config file or the environment; an index keeps its language."""
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "config" / "lightrag-jsonl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('working_dir = "one"\nlanguage = "zh"\n', encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert run("insert", texts / "b.md").exit_code == 0
    assert run_json("status")["language"] == "zh" and Path("one").is_dir()
    other = run("query", "--language", "en", "张骞是谁？")
    assert other.exit_code == 1 and "was built with language 'zh', not 'en'" in other.stderr
    monkeypatch.setenv("LIGHTRAG_JSONL_WORKING_DIR", "two")
    assert run("insert", texts / "b.md", "--language", "en").exit_code == 0
    assert run_json("status")["language"] == "en" and Path("two").is_dir()


@pytest.mark.slow
def test_a_failed_chunk_is_reported_and_retried(texts: Path, tmp_path: Path) -> None:
    """Status 3 and what to do, in which folder; `retry` knows the model, and asks for the failed chunk alone."""
    kb, broken = tmp_path / "kb", True

    def respond(request: Request) -> Reply:
        if broken and "张骞" in json.dumps(request.json, ensure_ascii=False):
            return error_reply(400, "no such thing")
        return chat_reply(ANSWER)

    with ScriptedServer(respond=respond) as server:
        url = ("--base-url", server.base_url)
        first = run("insert", "-w", kb, "--llm", "m", *url, texts)
        broken, asked = False, len(server.requests)
        second = run("retry", "-w", kb, *url)
        assert len(server.requests) - asked == 1

    assert first.exit_code == 3
    assert f"lightrag-jsonl retry -w {kb}" in first.stderr and "no such thing" in first.stderr
    assert second.exit_code == 0, second.output


@pytest.mark.slow
def test_a_wrong_key_is_told_by_insert_and_by_query(texts: Path, tmp_path: Path) -> None:
    """Status 3, the reason and how to go on; a question is answered by what waits, not by "nothing found"."""
    kb = tmp_path / "kb"
    with ScriptedServer(respond=lambda request: error_reply(401, "wrong key")) as server:
        url = ("--base-url", server.base_url)
        first = run("insert", "-w", kb, "--llm", "m", *url, texts)
        second = run("resume", "-w", kb, *url)
        answer = run("query", "-w", kb, *url, "--mode", "naive", "Who was born in Warsaw?")
    for result in (first, second):
        assert result.exit_code == 3 and "check the key" in result.stderr
        assert f"lightrag-jsonl resume -w {kb}" in result.stderr
    assert "2 documents wait" in answer.stdout and "check the key" in answer.stdout


@pytest.mark.slow
def test_resume_goes_on_with_the_options_of_the_insert(texts: Path, tmp_path: Path) -> None:
    """After a limit was reached, with the model and chunk sizes of the insert, but without its limit; in
    Python, too.
    """
    kb = tmp_path / "kb"
    options = ("--chunk-tokens", "200", "--chunk-overlap", "0", "--max-calls", "1")
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        url = ("--base-url", server.base_url)
        first = run("insert", "-w", kb, "--llm", "m", *url, *options, texts)
        pending = [one for one in run_json("documents", "-w", kb) if one["state"] == "pending"]
        hint = run("retry", "-w", kb, *url).stderr
        second = run("resume", "-w", kb, *url)

    assert first.exit_code == 3 and "stopped" in first.stderr
    assert len(pending) == 1 and f"documents pending: 1; lightrag-jsonl resume -w {kb}" in hint
    assert second.exit_code == 0, second.output
    remembered = json.loads(recorded_settings(kb)["cli.options"])
    assert remembered == {"chunk_overlap": 0, "chunk_tokens": 200}
    with LightRAG(kb) as rag:
        assert (rag.engine.options.chunk_tokens, rag.engine.options.chunk_overlap) == (200, 0)
    assert {one["state"] for one in run_json("documents", "-w", kb)} == {"done"}


@pytest.mark.slow
def test_a_file_is_known_by_its_path_from_here(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was given to insert and as `documents` shows it, also when the file is gone; `explain` knows its title,
    too.
    """
    monkeypatch.chdir(texts)
    assert run("insert", "-w", tmp_path / "kb", "a.txt", "b.md").exit_code == 0
    Path("b.md").unlink()
    first_lines = run("documents", "-w", tmp_path / "kb").stdout.split("\n")[1:3]
    assert [line.split()[0] for line in first_lines] == ["a.txt", "b.md"]
    for sign, ids in (("=", {"b.md"}), ("!=", {"a.txt"})):
        words = ("retrieve", "-w", tmp_path / "kb", "--mode", "naive", "--where", f"id{sign}b.md")
        chunks = run_json(*words, "What is this?")["chunks"]
        assert {Path(chunk["document_id"]).name for chunk in chunks} == ids
    for name in ("a", "a.txt"):
        assert run("explain", "documents", "-w", tmp_path / "kb", name).exit_code == 0
    assert run("rejections", "-w", tmp_path / "kb", "b.md").exit_code == 0
    assert run("split", "-w", tmp_path / "kb", "--into", tmp_path / "b", "b.md").exit_code == 0
    assert run_json("delete", "-w", tmp_path / "kb", "b.md")["documents"] == [str(texts / "b.md")]
    unknown = run("delete", "-w", tmp_path / "kb", "a.txt", "c.txt", "图.md")
    assert unknown.stderr == "Error: no such document: c.txt, 图.md; `documents` lists all ids\n"
    assert len(run_json("documents", "-w", tmp_path / "kb")) == 1


@pytest.mark.slow
def test_a_synchronized_folder_names_what_is_new_in_one_line(texts: Path, tmp_path: Path) -> None:
    """The table has the counts, a note the first names; --json has all of them."""
    result = run("insert", "-w", tmp_path / "kb", "--sync", texts)
    report = run_json("insert", "-w", tmp_path / "again", "--sync", texts)

    assert "Marie Curie" not in result.stdout
    assert len([line for line in result.stderr.splitlines() if line.startswith("new: ")]) == 1
    assert "Marie Curie" in report["difference"]["new_entities"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *[(name, "zh") for name in ("chinese", "cn", "zh-CN", "zh_Hant", "中文")],
        *[(name, "en") for name in ("English", "en-GB", "英文")],
        ("French", "French"),
    ],
)
def test_usual_names_of_both_languages_are_known(
    texts: Path, tmp_path: Path, name: str, code: str
) -> None:
    """On the command line and in Python, when an index is made and opened again; others stay as they are."""
    assert run("insert", "-w", tmp_path / "kb", "-l", name, texts / "b.md").exit_code == 0
    assert run_json("status", "-w", tmp_path / "kb")["language"] == code
    with LightRAG(tmp_path / "kb", language=name) as rag:
        assert rag.status().language == code
    with LightRAG(tmp_path / "python", language=name) as rag:
        assert rag.engine.language == code


def test_errors_name_the_file_and_what_to_do(kb: Path, texts: Path, tmp_path: Path) -> None:
    """A folder that is not there has no number of an error, and a file is no index."""
    target = tmp_path / "nowhere" / "g.json"
    exported = run("export", "-w", kb, target)
    assert exported.stderr.startswith(f"Error: {target} cannot be written (No such file")
    file = texts / "a.txt"
    asked = run("query", "-w", file, "Who?")
    assert f"{file} is a file, not the folder of an index" in asked.stderr
    assert f"insert -w kb {file}" in asked.stderr


def test_a_text_from_stdin_is_cited_by_its_id(tmp_path: Path) -> None:
    """With --id; without it, as stdin."""
    run("insert", "-w", tmp_path / "kb", "--id", "馆长的信", "-", stdin=ENGLISH)
    answer = run("query", "-w", tmp_path / "kb", "Who was born in Warsaw?")
    assert "[1] 馆长的信" in answer.stdout and "stdin" not in answer.stdout


def test_an_unknown_type_is_said_in_the_language_of_the_index(texts: Path, tmp_path: Path) -> None:
    """For people; for programs it stays the same word."""
    run("insert", "-w", tmp_path / "kb", "-l", "zh", texts / "a.txt")
    listed = run("entities", "list", "-w", tmp_path / "kb").stdout
    assert "未知" in listed and "unknown" not in listed
    assert "unknown" in {
        entity["type"] for entity in run_json("entities", "list", "-w", tmp_path / "kb")
    }
