"""Tables, cut lines and JSON: readable with wide characters, harmless for a terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Usage
from lightrag_jsonl.cli import output


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 40))
def test_text_keeps_to_its_limit_and_cannot_steer_a_terminal(text: str, limit: int) -> None:
    """A cut line is one line and never wider than it may be. No control character but line ends and
    tabs is left; the rest stays as it was.
    """
    cut, shown = output.one_line(text, limit), output.printable("\x1b[2J" + text)

    assert "\n" not in cut and output.width(cut) <= limit
    assert "\x1b" not in shown and "\x9b" not in shown and shown.startswith("\ufffd[2J")


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of every kind that results hold."""

    when: datetime
    where_it_is: Path
    score: float
    names: tuple[str, ...]
    usage: Usage
    ids: tuple[int, ...] = (1, 2, 3, 4)
    nothing: str | None = None


def test_dataclasses_become_json_and_words() -> None:
    """JSON has all fields; people see a line for each that is not empty, long lists as a number."""
    when = datetime(2024, 5, 1, tzinfo=UTC)
    sample = Sample(when, Path("a/b"), float("nan"), ("中文", "x"), Usage(7, 5))

    plain = output.to_json(sample)
    assert isinstance(plain, dict) and json.dumps(plain)
    assert plain["when"] == "2024-05-01T00:00:00Z" and plain["where_it_is"] == "a/b"
    assert plain["score"] is None and plain["names"] == ["中文", "x"]
    assert output.in_words(sample).split("\n") == [
        "when         2024-05-01T00:00:00Z",
        "where it is  a/b",
        "names        中文, x",
        "usage        input_tokens 7, output_tokens 5",
        "ids          4",
    ]
