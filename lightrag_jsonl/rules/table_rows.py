"""Rows of tables as people read them: each cell behind the name of the column."""

from collections.abc import Sequence

from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.patterns import pattern_of

TABLE_RULE = pattern_of(r"[\s|:+-]+")
_RULE_BELOW = pattern_of(r"\s*\n[ \t|:+]*-[ \t|:+-]*(?:\n|\Z)")


def is_table_header(text: str, end: int) -> bool:
    """Whether the row that ends there is the header of a table."""
    return _RULE_BELOW.match(text, end) is not None


def cells_of(row: str) -> list[str]:
    """The cells of a row, also of empty ones."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def row_with_columns(row: str, columns: Sequence[str]) -> str:
    """A row, each cell behind the name of the column; "" for a row with other cells than the table has columns."""
    cells = cells_of(row)
    if len(cells) != len(columns):
        return ""
    colon = colon_of(row)
    named_cells = [
        f"{name}{colon}{cell}" if name else cell
        for name, cell in zip(columns, cells, strict=True)
        if cell
    ]
    return ("；" if has_cjk(row) else "; ").join(named_cells)


def colon_of(text: str) -> str:
    """A colon in the script of a text."""
    return "：" if has_cjk(text) else ": "
