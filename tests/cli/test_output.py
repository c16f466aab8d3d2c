"""Tables, cut lines and JSON: readable with wide characters, harmless for a terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.cli.output import counted, one_line, pad, printable, table, to_json, width


def test_wide_characters_take_two_columns() -> None:
    """Chinese and full-width characters count two, combining marks and joiners none."""
    assert width("乔峰") == 4
    assert width("１２") == 4
    assert width("e\u0301") == 1
    assert width("a\u200bb") == 2


def test_table_columns_stand_under_each_other() -> None:
    """Every cell of a column begins (text) or ends (numbers) at the same column of the screen."""
    lines = table([("乔峰", 7, "x"), ("Scrooge", 1200, "y")], ("name", "count", "last")).split("\n")

    assert [width(line.split("  ")[0].ljust(0)) <= 7 for line in lines] == [True] * 3
    starts = {
        width(line[: line.rindex(char)]) for line, char in zip(lines, ("l", "x", "y"), strict=True)
    }
    assert len(starts) == 1
    assert "      7" in lines[1] and " 1200" in lines[2]


def test_table_without_rows_or_header() -> None:
    """An empty table is its header, or nothing."""
    assert table([], ("id", "state")) == "id  state"
    assert table([]) == ""


@given(st.text(), st.integers(1, 40))
def test_one_line_keeps_to_its_limit(text: str, limit: int) -> None:
    """A cut line is one line and never wider than it may be."""
    cut = one_line(text, limit)

    assert "\n" not in cut
    assert width(cut) <= limit


@given(st.text(st.characters(codec="utf-8")))
def test_printable_text_cannot_steer_a_terminal(text: str) -> None:
    """No control character but line ends and tabs is left; the rest stays as it was."""
    shown = printable("\x1b[2J" + text)

    assert "\x1b" not in shown and "\x9b" not in shown
    assert shown.startswith("\ufffd[2J")


def test_padding_knows_the_screen() -> None:
    """Text is filled up to a width on screen, not to a number of characters."""
    assert pad("中", 4) + "|" == "中  |"
    assert pad("中", 4, right=True) == "  中"


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of every kind that results hold."""

    when: datetime
    where: Path
    score: float
    names: tuple[str, ...]


def test_dataclasses_become_json() -> None:
    """Fields by name, tuples as arrays, dates in ISO form, NumPy's numbers as numbers."""
    sample = Sample(datetime(2024, 5, 1, tzinfo=UTC), Path("a/b"), np.float32(0.5), ("中文",))

    assert to_json({"one": sample}) == {
        "one": {
            "when": "2024-05-01T00:00:00+00:00",
            "where": "a/b",
            "score": 0.5,
            "names": ["中文"],
        }
    }


def test_json_has_no_nan() -> None:
    """What JSON cannot say becomes null."""
    assert json.dumps(to_json([float("nan"), float("inf")])) == "[null, null]"


def test_counts_read_well() -> None:
    """One thing, several things, thousands of things."""
    assert counted(1, "entity", "entities") == "1 entity"
    assert counted(1200, "entity", "entities") == "1,200 entities"
    assert counted(0, "chunk") == "0 chunks"
