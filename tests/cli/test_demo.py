"""demo: two languages, two modes, answers with sources, and where it all is."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run, RunJson


def test_demo_shows_both_languages(run: Run, tmp_path: Path) -> None:
    """Counts, hubs, relations, eight answers with sources, no model; the folders are named."""
    result = run("demo", "-w", tmp_path / "demo")

    assert result.exit_code == 0
    assert "No model is used" in result.stdout
    assert result.stdout.count("Best connected: ") == 2
    assert result.stdout.count("A, mode ") == 8
    assert result.stdout.count(", page 1, characters ") >= 8
    for language in ("en", "zh"):
        assert str(tmp_path / "demo" / language) in result.stdout
        assert run("status", "-w", tmp_path / "demo" / language).exit_code == 0


def test_demo_json(run_json: RunJson, tmp_path: Path) -> None:
    """One object a language; a second run over the same folder finds everything there."""
    first = run_json("demo", "-w", tmp_path)
    second = run_json("demo", "-w", tmp_path)

    assert [tour["language"] for tour in first] == ["en", "zh"]
    assert all(len(tour["asked"]) == 4 for tour in first)
    assert [tour["entities"] for tour in first] == [tour["entities"] for tour in second]
    assert all(one["answer"]["citations"] for tour in first for one in tour["asked"])
