"""entities merge and unmerge on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import Run


def test_the_command_to_undo_a_merge_works(run: Run, kb: Path) -> None:
    """Where one of the names is the one they all get, it is not among those to set free."""
    merge = ("entities", "merge", "-w", kb, "Marie Curie", "Pierre Curie", "--into", "marie curie")
    merged = run(*merge)
    undo = merged.stdout.split("lightrag-jsonl ")[1]

    assert merged.stdout.startswith("1 name now means marie curie\n")
    assert run(*shlex.split(undo)).exit_code == 0


def test_a_merge_tells_the_name_as_it_is_kept(
    run: Run, run_json: Callable[..., Any], kb: Path
) -> None:
    """Cleaned, on one line."""
    told = run("entities", "merge", "-w", kb, "Pierre Curie", "--into", "The\nCuries\x1b")
    assert told.stdout.startswith("1 name now means The Curies\n")
    merged = run_json("entities", "merge", "-w", kb, "Marie Curie", "--into", "《The Curies》")
    assert merged["into"] == "The Curies"
