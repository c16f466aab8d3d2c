"""The real command in a real process: start-up, pipes, terminals, Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CHINESE, ENGLISH, command
from tests.servers import Reply, Request, ScriptedServer, chat_reply

HEAVY = (
    "faiss",
    "jinja2",
    "networkx",
    "numpy",
    "openai",
    "rjieba",
    "scipy",
    "sentence_transformers",
    "textblob",
    "tiktoken",
    "torch",
    "tqdm",
    "lightrag_jsonl.rag",
)


def test_help_loads_nothing_heavy(environment: dict[str, str], tmp_path: Path) -> None:
    """--help needs click and our own light modules, nothing that takes long to import."""
    code = (
        "import sys; from lightrag_jsonl.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("[]")


def test_answers_on_stdout_everything_else_on_stderr(process: Callable[..., Any], kb: Path) -> None:
    """A pipe gets the answer alone, in UTF-8, with no bar and no escape sequence."""
    done = process("query", "-w", kb, stdin="谁联络大月氏？".encode())

    assert done.returncode == 0, done.stderr
    assert "张骞" in done.stdout.decode("utf-8")
    assert done.stderr == b"" and b"\x1b" not in done.stdout


def test_exit_statuses(process: Callable[..., Any], kb: Path) -> None:
    """2 for wrong usage, 1 for an error in one line without a traceback."""
    usage = process("query", "-w", kb, "--mode", "deep", "x")
    error = process("status", "-w", "nowhere")

    assert (usage.returncode, error.returncode) == (2, 1)
    assert error.stderr.decode().strip().split("\n") == [
        "error: no index in nowhere; make one with: lightrag-jsonl insert -w nowhere FILES"
    ]


@pytest.mark.skipif(os.name == "nt", reason="a reader that leaves is another matter there")
@pytest.mark.parametrize(
    "words",
    [
        ("parse",),
        ("--debug", "parse"),
        ("query", "--stream", "Who was born in Warsaw?"),
        ("export", "--format", "jsonl"),
        ("prompts", "show", "answer"),
        ("query", "--help"),
        ("--help",),
    ],
)
def test_a_reader_that_leaves_is_no_error(
    environment: dict[str, str], kb: Path, words: tuple[str, ...]
) -> None:
    """`export | head -1` ends quietly, with the status that the shell has for it."""
    with subprocess.Popen(
        command(words),
        env=environment,
        cwd=kb.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin and child.stdout and child.stderr
        child.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # who asks for help reads nothing
            child.stdin.write(b'{"a":1}\n' * 20_000)
            child.stdin.close()
        assert child.stderr.read() == b""
    assert child.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_what_cannot_be_told_on_stderr_ends_no_work(
    environment: dict[str, str], kb: Path, tmp_path: Path
) -> None:
    """A note that nobody can read is no failure of the command, and an error keeps its status."""
    found = command(("retrieve", "-w", kb, "--where", "nosuch=1", "Who?"))
    unknown = command(("delete", "-w", kb, "nobody"))
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        noted = subprocess.run(found, env=environment, stdout=subprocess.PIPE, stderr=full)
        failed = subprocess.run(unknown, env=environment, stderr=full)
    assert noted.returncode == 0 and noted.stdout.startswith(b"nothing was found")
    assert failed.returncode == 1


def test_a_terminal_that_is_not_utf8_gets_ascii_json(environment: dict[str, str], kb: Path) -> None:
    """JSON stays readable where the terminal's encoding has no Chinese."""
    done = subprocess.run(
        command(["documents", "-w", kb, "--json"]),
        env={**environment, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        capture_output=True,
    )

    assert done.returncode == 0, done.stderr
    assert "张骞" in {one["id"] for one in json.loads(done.stdout.decode("ascii"))}


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_ctrl_c_keeps_what_was_read(
    environment: dict[str, str], process: Callable[..., Any], tmp_path: Path
) -> None:
    """Status 130, one line that tells how to go on; `resume` asks only for what was in flight."""
    (tmp_path / "a.txt").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "b.txt").write_text(CHINESE, encoding="utf-8")
    asked, stuck = threading.Event(), True

    def respond(request: Request) -> Reply:
        if stuck and "张骞" in json.dumps(request.json, ensure_ascii=False):
            asked.set()
            return Reply(chat_reply("").body, delay=60)
        return chat_reply('{"type":"done","entities":0,"relationships":0}')

    with ScriptedServer(respond=respond) as server:
        words = (
            "insert",
            "-w",
            "kb",
            "--llm",
            "m",
            "--base-url",
            server.base_url,
            "a.txt",
            "b.txt",
        )
        child = subprocess.Popen(
            command(words),
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        heard = asked.wait(60)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        stuck = False
        before = len(server.requests)
        resumed = process("resume", "-w", "kb")
        after = len(server.requests)

    assert heard and child.returncode == 130
    assert errors.decode() == (
        "interrupted; whole documents, and whatever a model answered, are kept; go on with: "
        "lightrag-jsonl resume -w kb\n"
    )
    assert resumed.returncode == 0, resumed.stderr
    assert after - before <= 2
