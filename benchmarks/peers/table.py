"""Formats the figures as a table for the READMEs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: its title in each language, its figure's key, and how to format it."""

    en: str
    zh: str
    key: str
    show: Callable[[float], str]


def _milliseconds(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.1f} ms"


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


def _thousands(value: float) -> str:
    return f"{value / 1_000:.0f}k"


def _bytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB" if value >= 1e8 else f"{value / 1e6:.1f} MB"


ROWS = (
    Row("indexing, CPU a chunk", "建索引：每块 CPU", "cpu_ms_per_chunk", _milliseconds),
    Row("indexing, written to disk", "建索引：写入磁盘", "bytes_written", _bytes),
    Row("the index on disk", "索引大小", "bytes_on_disk", _bytes),
    Row("one more document, CPU", "再加一篇：CPU", "one_more_cpu_ms", _milliseconds),
    Row("one more document, written", "再加一篇：写入", "one_more_bytes_written", _bytes),
    Row("one document deleted, CPU", "删除一篇：CPU", "delete_cpu_ms", _milliseconds),
    Row("one document deleted, written", "删除一篇：写入", "delete_bytes_written", _bytes),
    Row("first context, new process", "新进程到首个上下文", "cold_first_context_s", _seconds),
    Row("a context, warm, fullest mode", "热检索（最全的模式）", "full_mode_p50_ms", _milliseconds),
    Row("its size, characters", "上下文长度（字符）", "full_mode_chars", _thousands),
)
LANGUAGES = {
    "en": {"chunks": "{} chunks", "ours": "here", "none": "not offered", "failed": "failed"},
    "zh": {"chunks": "{} 块", "ours": "本项目", "none": "不提供", "failed": "失败"},
}


def table(
    sizes: Mapping[str, Mapping[str, Figures]], titles: Mapping[str, str], language: str
) -> str:
    """A Markdown table for each corpus size, and a line for everything that failed."""
    words = LANGUAGES[language]
    parts = [
        "\n".join(_lines(size, systems, titles, words, language)) for size, systems in sizes.items()
    ]
    failures = [
        f"- {titles[name]}, {words['chunks'].format(size)}: {figures['error']}"
        for size, systems in sizes.items()
        for name, figures in systems.items()
        if "error" in figures
    ]
    return "\n\n".join([*parts, "\n".join(failures)]).strip()


def _lines(
    size: str,
    systems: Mapping[str, Figures],
    titles: Mapping[str, str],
    words: Mapping[str, str],
    language: str,
) -> Iterator[str]:
    names = sorted(systems, key=lambda name: (name != "ours", list(systems).index(name)))
    heads = [words["chunks"].format(f"{int(size):,}")]
    heads += [words["ours"] if name == "ours" else titles[name] for name in names]
    yield _line(heads)
    yield _line(["---"] + ["---:"] * len(names))
    for row in ROWS:
        cells = [_cell(row, systems[name], words) for name in names]
        yield _line([row.zh if language == "zh" else row.en, *cells])


def _cell(row: Row, figures: Figures, words: Mapping[str, str]) -> str:
    if row.key in figures:
        return row.show(figures[row.key])
    return words["failed"] if "error" in figures else words["none"]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
