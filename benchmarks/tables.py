"""Writes figures as Markdown tables into pages of docs, between `<!-- NAME:begin -->` and `:end -->`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightrag_jsonl.core.modes import GRAPH_MODES

Figures = Mapping[str, Any]

RETRIEVAL_ROWS = {
    **{name: name for name in ("dense", "bm25", "naive", *GRAPH_MODES)},
    "mix (dense only)": "mix, dense lane only",
    "walk (dense only)": "walk, dense lane only",
    "hipporag-2-like": "HippoRAG-2-like",
    "hipporag-2-like, names": "HippoRAG-2-like, names as seeds",
}


def put(readme: Path, name: str, text: str) -> None:
    """Replace the text between two marks."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, opened, rest = readme.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise SystemExit(f"{readme}: no {begin} … {end}")
    readme.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def retrieval_table(sets: Mapping[str, Figures]) -> str:
    """recall@5 and recall@10 with their 95 % intervals; "–" if a set lacks a row."""
    names = [f"{name}, {one['questions']} questions" for name, one in sets.items()]
    lines = [["recall@5 / @10, %", *names], ["---"] * (len(names) + 1)]
    for row, shown in RETRIEVAL_ROWS.items():
        found = [one["rows"].get(row) for one in sets.values()]
        if any(found):
            lines.append([shown, *(_recall(one["percent"]) if one else "–" for one in found)])
    return "\n".join(map(line, lines))


def context_table(sets: Mapping[str, Figures]) -> str:
    """recall@2/@5/@10, contexts of 4,000 tokens with the answer, and the tokens of a default one."""
    names = [f"{name}, {one['questions']} questions" for name, one in sets.items()]
    lines = [["recall@2 / @5 / @10; answer; tokens", *names], ["---"] * (len(names) + 1)]
    for mode in next(iter(sets.values()))["contexts"]:
        lines.append([mode, *(_context(one, mode) for one in sets.values())])
    return "\n".join(map(line, lines))


def _context(figures: Figures, mode: str) -> str:
    percent, context = figures["rows"][mode]["percent"], figures["contexts"][mode]
    recall = " / ".join(f"{percent[f'recall@{count}'][0]}" for count in (2, 5, 10))
    return f"{recall}; {context['answer']}; {context['tokens']:,}"


def _recall(percent: Mapping[str, Sequence[float]]) -> str:
    both = [percent[name] for name in ("recall@5", "recall@10")]
    return " / ".join(f"{value} [{low}, {high}]" for value, low, high in both)


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
