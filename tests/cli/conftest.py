"""Fixtures of the command line's tests: running a command, and a small index to run it on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lightrag_jsonl.cli import main
from tests.conftest import CHECKOUT

ENGLISH = "Marie Curie was born in Warsaw. She discovered radium with Pierre Curie in Paris."
CHINESE = "张骞出使西域，到过大月氏。汉武帝派张骞联络大月氏。"

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture(autouse=True)
def own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of the test's own, who has named no endpoint yet."""
    home = str(tmp_path_factory.mktemp("home"))
    for variable in ("HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(variable, home)


def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run a command in this process; an unexpected exception is raised, not swallowed."""
    runner = CliRunner(catch_exceptions=False)
    return runner.invoke(main, [str(argument) for argument in arguments], input=stdin)


@pytest.fixture
def run() -> Run:
    """`invoke`, so that tests need no import."""
    return invoke


@pytest.fixture
def run_json() -> RunJson:
    """Run a command with --json and read its stdout, which must be one JSON value."""

    def ask(*arguments: object, status: int = 0) -> Any:
        result = invoke(*arguments, "--json")
        assert result.exit_code == status, result.output
        return json.loads(result.stdout)

    return ask


@pytest.fixture(scope="session")
def _kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    lines = [
        {"id": "curie", "title": "Curie", "text": ENGLISH, "year": 1934, "date": "1934-07-04"},
        {"id": "张骞", "title": "张骞传", "text": CHINESE, "year": 100},
    ]
    source = folder / "texts.jsonl"
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    source.write_text(text, encoding="utf-8")
    result = invoke("insert", "-w", folder / "kb", source)
    assert result.exit_code == 0, result.output
    return folder / "kb"


@pytest.fixture
def kb(_kb: Path, tmp_path: Path) -> Path:
    """A small bilingual index, a fresh copy for each test."""
    return Path(shutil.copytree(_kb, tmp_path / "kb"))


@pytest.fixture
def environment() -> dict[str, str]:
    """What a child process gets: this checkout, and a proxy that refuses at once."""
    nowhere = {"https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1,localhost"}
    path = os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, **nowhere, "PYTHONPATH": path.strip(os.pathsep)}


@pytest.fixture
def process(environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """Run the command as a real process."""

    def start(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command(arguments), env=environment, cwd=tmp_path, input=stdin, capture_output=True
        )

    return start


def command(arguments: Sequence[object]) -> list[str]:
    """The command line of a real process."""
    return [sys.executable, "-m", "lightrag_jsonl.cli", *map(str, arguments)]
