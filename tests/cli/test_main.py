"""The group: help, version, errors in one line, exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import lightrag_jsonl
from lightrag_jsonl.cli import main
from lightrag_jsonl.errors import StorageError
from tests.cli.conftest import Run


def commands(group: click.Group = main, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every command, those of groups included."""
    found = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += commands(command, (*prefix, name))
        else:
            found.append((*prefix, name))
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_has_help_and_json(run: Run, path: tuple[str, ...]) -> None:
    """Each command explains itself and can speak JSON."""
    result = run(*path, "--help")

    assert result.exit_code == 0
    assert "--json" in result.stdout
    assert result.stdout.split("\n\n")[1].strip().endswith((".", "."))


def test_overview_shows_whole_sentences(run: Run) -> None:
    """No summary in the list of commands is cut off."""
    assert "..." not in run("--help").stdout.partition("Commands:")[2].partition("Examples:")[0]


def test_version(run: Run) -> None:
    """--version is the package's."""
    assert run("--version").stdout.strip() == f"lightrag-jsonl {lightrag_jsonl.__version__}"


READING = [
    ("query", "Who?"),
    ("retrieve", "Who?"),
    ("status",),
    ("documents",),
    ("rejections",),
    ("retry",),
    ("resume",),
    ("delete", "x"),
    ("export",),
    ("cache", "stats"),
    ("cache", "clear"),
    ("vacuum",),
    ("reembed", "--embedder", "hash"),
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_no_index_is_a_clear_error_and_creates_nothing(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """What needs an index says how to make one; no folder appears by asking."""
    folder = tmp_path / "none"
    result = run(*command, "-w", folder)

    assert result.exit_code == 1
    assert result.stdout == ""
    expected = f"no index in {folder}; make one with: lightrag-jsonl insert -w {folder} FILES"
    assert result.stderr == f"error: {expected}\n"
    assert not folder.exists()


def test_debug_shows_the_traceback(run: Run, tmp_path: Path) -> None:
    """With --debug the error itself comes through."""
    with pytest.raises(StorageError):
        run("--debug", "status", "-w", tmp_path)


def test_no_key_in_a_url(run: Run, tmp_path: Path) -> None:
    """A URL with a password in it is refused: keys come from the environment."""
    url = "http://user:secret@localhost/v1"
    result = run("insert", "-w", tmp_path / "kb", "--base-url", url, "x.txt")

    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.stderr and "secret" not in result.stderr


def test_json_stays_json_with_failures(run: Run, tmp_path: Path) -> None:
    """Even where something failed, stdout holds one JSON value and nothing else."""
    good = tmp_path / "good.txt"
    good.write_text("Ada Lovelace met Charles Babbage.", encoding="utf-8")
    result = run("insert", "-w", tmp_path / "kb", "--json", good, tmp_path / "none.txt")

    assert result.exit_code == 3
    assert len(json.loads(result.stdout)["failures"]) == 1


def test_the_package_can_be_run() -> None:
    """`python -m lightrag_jsonl` is the same command line, under its own name."""
    done = subprocess.run(
        [sys.executable, "-m", "lightrag_jsonl", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: lightrag-jsonl ")
