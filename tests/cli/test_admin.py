"""entities, cache, vacuum, reembed, rebuild, doctor, demo: whether an index is sound, and keeping it so."""

from __future__ import annotations

import contextlib
import shlex
import sqlite3
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from tests.cli.conftest import ENGLISH, run, run_json
from tests.cli.test_documents import Lengths
from tests.kit import view


def test_the_command_to_undo_a_merge_works(kb: Path) -> None:
    """If one of the names is the one they all get, it is not among those to unmerge."""
    before = view(kb)
    merge = ("entities", "merge", "-w", kb, "Marie Curie", "Pierre Curie", "--into", "Marie Curie")
    merged = run(*merge)
    undo = merged.stderr.split("lightrag-jsonl ")[1]

    assert merged.exit_code == 0 and view(kb).entities.keys() < before.entities.keys()
    assert shlex.split(undo)[4:] == ["Pierre Curie"]
    assert run(*shlex.split(undo)).exit_code == 0
    assert view(kb) == before
    assert isinstance(run_json("entities", "duplicates", "-w", kb), list)
    assert run("entities", "merge", "-w", kb, "Nobody", "--into", "X").exit_code == 1


def test_a_sound_index(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """doctor finds nothing, and says what will be used and where; it never shows a key, and makes no
    index. Cache and disk can be cleared without a change to what is stored.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-shown")
    found, url, before = run_json("doctor", "-w", kb), "http://127.0.0.1:9/v1", view(kb)
    shown = run("doctor", "-w", tmp_path / "none", "--llm", "m", "--base-url", url)

    assert found["problems"] == [] and found["index"] is True
    assert found["llm"] == "none" and found["embedder"] == "hash"
    assert shown.exit_code == 0 and "OPENAI_API_KEY is set" in shown.stdout
    assert f"m at {url}" in shown.stdout and "sk-never-shown" not in shown.output
    assert not (tmp_path / "none").exists()
    assert run_json("cache", "-w", kb)["completions"] == 0
    assert run_json("cache", "--clear", "-w", kb).keys() == {"deleted"}
    assert "freed_bytes" in run_json("vacuum", "-w", kb) and view(kb) == before


def test_damage_is_found_and_what_is_derived_is_made_anew(kb: Path) -> None:
    """doctor exits with 1 and names the problem; after `rebuild` all is as it was."""
    before = view(kb)
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection, connection:
        connection.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")

    broken = run("doctor", "-w", kb)
    assert broken.exit_code == 1 and "problem: " in broken.stderr
    assert run("rebuild", "-w", kb).exit_code == 0
    assert run("doctor", "-w", kb).exit_code == 0
    assert view(kb) == before


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """What cannot be opened is a problem like the others, not a crash."""
    (tmp_path / "index.sqlite").write_bytes(b"no database at all" * 100)
    result = run("doctor", "-w", tmp_path)

    assert result.exit_code == 1 and "problem: " in result.stderr


def test_reembed_is_remembered(tmp_path: Path) -> None:
    """After a move to another embedder, queries use it without being asked to."""
    kb = tmp_path / "kb"
    with LightRAG(kb, embedder=Lengths()) as rag:  # type: ignore[arg-type]
        rag.insert(ENGLISH)
    assert run("query", "-w", kb, "Who?").exit_code == 1

    moved = run_json("reembed", "-w", kb, "--embedder", "hash")
    assert moved["embedder"].startswith("hash") and moved["texts"] > 0
    assert run("query", "-w", kb, "Where was Marie Curie born?").exit_code == 0
    assert run("doctor", "-w", kb).exit_code == 0


def test_demo_shows_both_languages(tmp_path: Path) -> None:
    """Counts, entities, relations, answers with sources, no model; a second run finds all there."""
    result = run("demo", "-w", tmp_path / "demo")
    again = run_json("demo", "-w", tmp_path / "demo")

    assert result.exit_code == 0
    assert "without a model" in result.stdout
    assert result.stdout.count("Most connected: ") == 2
    assert result.stdout.count("\nQ: ") == 4
    assert result.stdout.count(", page 1, characters ") >= 2
    assert result.stdout.count("，第 1 页，第 ") >= 2
    assert [tour["language"] for tour in again] == ["en", "zh"]
    assert all(answer["citations"] for tour in again for answer in tour["answers"].values())
    for language in ("en", "zh"):
        assert str(tmp_path / "demo" / language) in result.stdout
        assert run("status", "-w", tmp_path / "demo" / language).exit_code == 0
