"""entities merge and unmerge on the command line."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

from lightrag_jsonl.storage import aliases
from lightrag_jsonl.storage.aliases import Aliases
from lightrag_jsonl.storage.database import Database
from tests.cli.conftest import Run, RunJson


def test_the_command_to_undo_a_merge_works(run: Run, kb: Path) -> None:
    """Where one of the names is the one they all get, it is not among those to set free."""
    merge = ("entities", "merge", "-w", kb, "Marie Curie", "Pierre Curie", "--into", "marie curie")
    merged = run(*merge)
    undo = merged.stdout.split("lightrag-jsonl ")[1]

    assert merged.stdout.startswith("1 name now means marie curie\n")
    assert run(*shlex.split(undo)).exit_code == 0


def test_a_merge_tells_the_name_as_it_is_kept(run: Run, run_json: RunJson, kb: Path) -> None:
    """Cleaned, on one line."""
    told = run("entities", "merge", "-w", kb, "Pierre Curie", "--into", "The\nCuries\x1b")
    assert told.stdout.startswith("1 name now means The Curies\n")
    merged = run_json("entities", "merge", "-w", kb, "Marie Curie", "--into", "《The Curies》")
    assert merged["into"] == "The Curies"


def test_the_commands_to_undo_a_merge_bring_back_the_merges_before(
    run: Run, run_json: RunJson, kb: Path
) -> None:
    """Who is merged into a name that was merged elsewhere takes it out of there; so does the other way."""

    def merge(name: str, into: str) -> str:
        return str(run("entities", "merge", "-w", kb, name, "--into", into).stdout)

    def known() -> Aliases:
        with contextlib.closing(Database(kb)) as database, database.reading() as connection:
            return aliases.read(connection)

    merge("radium", "Warsaw")
    merge("Warsaw", "The Ends")
    merge("Paris", "PARIS")
    before = known()
    for name, into in (
        ("Pierre Curie", "Warsaw"),
        ("The Ends", "radium"),
        ("Paris", "warsaw"),
        ("Paris", "paris"),
        ("Warsaw", "Marie Curie"),
    ):
        told = merge(name, into)
        assert known() != before
        for undo in told.split("lightrag-jsonl ")[1:]:
            result = run(*shlex.split(undo))
            assert result.exit_code == 0, result.output
        assert known() == before, told
