"""Fixtures of the command line's tests: running a command, and a small index to run it on."""

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from lightrag_jsonl.cli import main
from tests.conftest import CHECKOUT

ENGLISH = "Marie Curie was born in Warsaw. She discovered radium with Pierre Curie in Paris."
CHINESE = "张骞出使西域，到过大月氏。汉武帝派张骞联络大月氏。"


PROGRAM: click.Group = main  # the tree of commands


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run a command in this process; an unexpected exception is raised, not swallowed."""
    runner = CliRunner(catch_exceptions=False)
    return runner.invoke(PROGRAM, [str(argument) for argument in arguments], input=stdin)


def columns(text: str) -> int:
    """The columns that a text takes on a screen: two for a Chinese character, none for an accent."""
    visible = [char for char in text if unicodedata.category(char) not in ("Cf", "Me", "Mn")]
    return len(visible) + sum(unicodedata.east_asian_width(char) in "WF" for char in visible)


def run_json(*arguments: object, status: int = 0) -> Any:
    """Run a command with --json and read its stdout, which must be one JSON value."""
    result = run(*arguments, "--json")
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="session")
def _kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    lines = [
        {"id": "curie", "title": "Curie", "text": ENGLISH, "year": 1934, "date": "1934-07-04"},
        {"id": "张骞", "title": "张骞传", "text": CHINESE, "year": 100},
    ]
    source = folder / "texts.jsonl"
    source.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    result = run("insert", "-w", folder / "kb", source)
    assert result.exit_code == 0, result.output
    return folder / "kb"


@pytest.fixture
def kb(_kb: Path, tmp_path: Path) -> Path:
    """A small bilingual index, a fresh copy for each test."""
    return Path(shutil.copytree(_kb, tmp_path / "kb"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text(ENGLISH, encoding="utf-8")
    (folder / "b.md").write_text(CHINESE, encoding="utf-8")
    return folder


@pytest.fixture
def environment() -> dict[str, str]:
    """What a child process gets: this checkout, and a proxy that refuses at once."""
    nowhere = {"https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1,localhost"}
    return {**os.environ, **nowhere, "PYTHONPATH": str(CHECKOUT)}


def process(arguments: Sequence[object]) -> list[str]:
    return [sys.executable, "-m", "lightrag_jsonl", *map(str, arguments)]
