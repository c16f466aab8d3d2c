"""Writes figures as Markdown tables into pages of docs, between `<!-- NAME:begin -->` and `:end -->`."""

from collections.abc import Sequence
from pathlib import Path


def put(readme: Path, name: str, text: str) -> None:
    """Replace the text between two marks."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, opened, rest = readme.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise SystemExit(f"{readme}: no {begin} … {end}")
    readme.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
