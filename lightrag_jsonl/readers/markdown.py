"""Writes tables as in Markdown."""

from collections.abc import Iterable


def markdown_table(rows: Iterable[Iterable[str]]) -> str:
    """The rows of a table, one a line."""
    return "\n".join(_table_row(row) for row in rows)


def _table_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()) for cell in cells) + " |"
