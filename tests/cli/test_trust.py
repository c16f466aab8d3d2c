"""A folder names its endpoints; one that the user never named gets neither question nor key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lightrag_jsonl.adapters import endpoint
from lightrag_jsonl.cli import trust
from lightrag_jsonl.cli.opening import recorded, remember
from lightrag_jsonl.cli.options import Setup
from lightrag_jsonl.errors import ConfigError
from tests.cli.conftest import ENGLISH, Run
from tests.servers import Reply, Request, ScriptedServer, chat_reply

RECORDS = '{"type": "entity", "name": "Marie Curie", "entity_type": "person", "description": "A chemist."}'
ELSEWHERE = "https://models.example.com/v1"


def answer(request: Request) -> Reply:
    """Vectors for texts, records for chats."""
    if "input" not in request.json:
        return chat_reply(RECORDS)
    rows = [
        {"object": "embedding", "index": at, "embedding": [1.0, float(len(text)), 0.5]}
        for at, text in enumerate(request.json["input"])
    ]
    return Reply({"object": "list", "data": rows, "usage": {"prompt_tokens": 1}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A server that counts as somebody else's, though it is on this machine; and a key."""
    monkeypatch.setattr(endpoint, "is_own", lambda url: False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    with ScriptedServer(respond=answer) as started:
        yield started


def somebody_else() -> None:
    """From here on the commands are another user's."""
    (Path(click.get_app_dir("lightrag-jsonl")) / trust.FILE_NAME).unlink()


def test_a_folder_of_somebody_else_sends_nothing_until_its_endpoint_is_named(
    run: Run, server: ScriptedServer, tmp_path: Path
) -> None:
    """Who names an endpoint is not asked again; anybody else is, once, before anything is sent."""
    kb, text = tmp_path / "kb", tmp_path / "a.txt"
    text.write_text(ENGLISH, encoding="utf-8")
    url = ("--embedder-base-url", server.base_url)
    made = run("insert", "-w", kb, "--embedder", "openai:tiny", *url, text)
    question = ("query", "-w", kb, "Who was born in Warsaw?")
    assert made.exit_code == run(*question).exit_code == 0, made.output

    somebody_else()
    before = len(server.requests)
    refused = run(*question)
    assert refused.exit_code == 1
    assert server.base_url in refused.stderr and "--embedder-base-url" in refused.stderr
    assert f"at {server.base_url} (you never named it" in run("doctor", "-w", kb).stdout
    assert len(server.requests) == before

    named = run(*question, *url)
    assert named.exit_code == 0, named.output
    assert "you never named it" not in run("doctor", "-w", kb).stdout
    assert run(*question).exit_code == 0


def test_nor_does_going_on_with_its_model(run: Run, server: ScriptedServer, tmp_path: Path) -> None:
    """`resume` would send the texts that wait to the model of the insert before."""
    kb, text = tmp_path / "kb", tmp_path / "a.txt"
    text.write_text(ENGLISH, encoding="utf-8")
    model = ("--llm", "m", "--base-url", server.base_url)
    assert run("insert", "-w", kb, *model, text).exit_code == 0

    somebody_else()
    before = len(server.requests)
    for command in ("resume", "retry"):
        refused = run(command, "-w", kb)
        assert refused.exit_code == 1 and f"--base-url '{server.base_url}'" in refused.stderr
    assert len(server.requests) == before
    assert run("query", "-w", kb, "Who was born in Warsaw?").exit_code == 0  # no model, no endpoint
    assert run("resume", "-w", kb, "--base-url", server.base_url).exit_code == 0
    assert run("retry", "-w", kb).exit_code == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://127.0.0.1:8000/v1",
        "http://192.168.1.5/v1",
        "http://ollama:11434/v1",
        "https://api.openai.com/v1",
        "https://proxy.example.com/v1/",
        "",
        None,
    ],
)
def test_ones_own_servers_and_the_usual_one_need_no_word(
    url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example.com/v1")
    trust.check(url, Setup(Path("kb")), "--base-url")


@pytest.mark.parametrize(
    "url",
    [
        ELSEWHERE,
        "http://api.openai.com/v1",  # the key would travel in the clear
        "https://api.openai.com.example.com/v1",
        "https://api.openai.com@example.com/v1",
        "http://[not a url",
        "https://example.com/\x1b[2J",
    ],
)
def test_all_others_do(url: str) -> None:
    with pytest.raises(ConfigError, match="never named") as refused:
        trust.check(url, Setup(Path("kb")), "--base-url")
    assert str(refused.value).isprintable()


def test_a_folder_that_sends_nothing_there_is_opened(run: Run, kb: Path) -> None:
    """An endpoint beside the hashing embedder, or beside no model, is only a note."""
    remember(kb, recorded(kb), {"cli.base_url": ELSEWHERE, "cli.embedder_base_url": ELSEWHERE})
    assert run("query", "-w", kb, "Who was born in Warsaw?").exit_code == 0
    assert run("resume", "-w", kb).exit_code == 0


def test_where_settings_cannot_be_kept_the_command_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is told; what is named with each command needs no memory."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    trust.named(ELSEWHERE)
    assert "again" in caplog.text
    trust.check(ELSEWHERE, Setup(Path("kb"), base_url=ELSEWHERE), "--base-url")
    with pytest.raises(ConfigError):
        trust.check(ELSEWHERE, Setup(Path("kb")), "--base-url")
