"""Writes figures as Markdown tables into pages of docs, between `<!-- NAME:begin -->` and `:end -->`."""

from collections.abc import Iterator, Mapping, Sequence
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
# The key of each figure: its title in English and in Chinese, its unit, what it is divided by.
PEER_ROWS: Mapping[str, tuple[str, str, str, float]] = {
    "cpu_ms_per_chunk": ("indexing, CPU a chunk", "建索引：每块 CPU", "ms", 1),
    "bytes_written": ("indexing, written to disk", "建索引：写入磁盘", "MB", 1e6),
    "bytes_on_disk": ("the index on disk", "索引大小", "MB", 1e6),
    "one_more_cpu_ms": ("one more document, CPU", "再加一篇：CPU", "ms", 1),
    "one_more_bytes_written": ("one more document, written", "再加一篇：写入", "MB", 1e6),
    "delete_cpu_ms": ("one document deleted, CPU", "删除一篇：CPU", "ms", 1),
    "delete_bytes_written": ("one document deleted, written", "删除一篇：写入", "MB", 1e6),
    "cold_first_context_s": ("first context, new process", "新进程到首个上下文", "s", 1),
    "full_mode_p50_ms": ("a context, warm, fullest mode", "热检索（最全的模式）", "ms", 1),
    "full_mode_cpu_ms": ("the same, CPU of all threads", "同上，所有线程的 CPU", "ms", 1),
    "full_mode_chars": ("its size, characters", "上下文长度（字符）", "k", 1e3),
}
LANGUAGES = {
    "en": {"chunks": "{} chunks", "ours": "here", "none": "not offered", "failed": "failed"},
    "zh": {"chunks": "{} 块", "ours": "本项目", "none": "不提供", "failed": "失败"},
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


def peer_table(sizes: Mapping[str, Figures], titles: Mapping[str, str], language: str) -> str:
    """A table for each corpus size, and a line for everything that failed."""
    words = LANGUAGES[language]
    parts = ["\n".join(_peer_lines(*item, titles, language)) for item in sizes.items()]
    failures = [
        f"- {titles[name]}, {words['chunks'].format(size)}: {figures['error']}"
        for size, systems in sizes.items()
        for name, figures in systems.items()
        if "error" in figures
    ]
    return "\n\n".join([*parts, "\n".join(failures)]).strip()


def _peer_lines(
    size: str, systems: Figures, titles: Mapping[str, str], language: str
) -> Iterator[str]:
    words = LANGUAGES[language]
    heads = [words["ours"] if name == "ours" else titles[name] for name in systems]
    yield line([words["chunks"].format(f"{int(size):,}"), *heads])
    yield line(["---"] + ["---:"] * len(systems))
    for key, (en, zh, unit, divisor) in PEER_ROWS.items():
        cells = []
        for figures in systems.values():
            missing = words["failed"] if "error" in figures else words["none"]
            cells.append(_shown(figures[key] / divisor, unit) if key in figures else missing)
        yield line([zh if language == "zh" else en, *cells])


def _shown(value: float, unit: str) -> str:
    if unit == "k":
        return f"{value:.0f}k"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"


def _recall(percent: Mapping[str, Sequence[float]]) -> str:
    both = [percent[name] for name in ("recall@5", "recall@10")]
    return " / ".join(f"{value} [{low}, {high}]" for value, low, high in both)


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
