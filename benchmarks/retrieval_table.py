"""Writes the figures of `benchmarks.retrieval` as a table into the READMEs.

The table is between the marks `<!-- retrieval:begin -->` and `<!-- retrieval:end -->`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.readme import put

ROWS = {
    **{
        name: name
        for name in ("dense", "bm25", "naive", "local", "global", "hybrid", "mix", "walk")
    },
    "mix (dense only)": "mix, dense lane only",
    "walk (dense only)": "walk, dense lane only",
    "hipporag-2-like": "HippoRAG-2-like",
    "hipporag-2-like, names": "HippoRAG-2-like, names as seeds",
}


def write(path: Path, sets: dict[str, Any]) -> None:
    """Replace a README's table."""
    put(path, "retrieval", "\n".join(table(sets)))


def table(sets: dict[str, Any]) -> list[str]:
    """Markdown rows: recall@5 and recall@10 with their 95 % intervals; "–" if a set lacks a row."""
    names = [f"{name}, {one['questions']} questions" for name, one in sets.items()]
    lines = [f"| recall@5 / @10, % | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for row, shown in ROWS.items():
        found = [one["rows"].get(row) for one in sets.values()]
        if any(found):
            cells = [_cell(figures["percent"]) if figures else "–" for figures in found]
            lines.append(f"| {shown} | {' | '.join(cells)} |")
    return lines


def _cell(percent: dict[str, list[float]]) -> str:
    at_5, low_5, high_5 = percent["recall@5"]
    at_10, low_10, high_10 = percent["recall@10"]
    return f"{at_5} [{low_5}, {high_5}] / {at_10} [{low_10}, {high_10}]"
