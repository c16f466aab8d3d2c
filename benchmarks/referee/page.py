"""The report as one HTML page in both languages, with plots that show intervals."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.referee.report import Report
from benchmarks.referee.words import COST_ROWS, WORDS, Row

Figures = Mapping[str, Any]
WIDTH, LABELS, LINE = 900, 300, 22  # pixels: of a plot, of its labels, of a line
NUMBERS = 150  # pixels for the number after a line
TITLES = {
    "en": "Referee: the same graph, vectors and questions",
    "zh": "裁判：同样的图、向量和问题",
}
PLOTTED = ("cpu_ms_per_chunk", "bytes_written", "one_more_cpu_ms", "first_context_cpu_s")

STYLE = """
body { font: 15px/1.5 system-ui, "Noto Sans CJK SC", sans-serif; margin: 2rem auto; max-width: 70rem;
  padding: 0 1rem; color: #1c1c1c; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
td, th { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: left; }
h1, h2, h3 { line-height: 1.2; margin-top: 2rem; }
svg { max-width: 100%; height: auto; }
svg text { font-size: 13px; fill: currentColor; }
.bar { fill: #9db8d9; } .ours { fill: #d98d4b; } .interval { stroke: #333; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #181818; } td, th { border-color: #444; }
  .interval { stroke: #eee; } .bar { fill: #4d6f99; } .ours { fill: #b8702f; }
}
"""


def page(figures: Figures) -> str:
    """The whole page."""
    parts = [_part(figures, language) for language in ("en", "zh")]
    body = "\n<hr>\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{TITLES['en']}</title><style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _part(figures: Figures, language: str) -> str:
    report = Report(figures, language)
    plots = "\n".join([*_recall_plots(report), *_cost_plots(report)])
    text = markup(report.markdown(level=2, with_ahead=False))
    ahead = markup(report.ahead(level=2))
    body = "\n".join([f"<h1>{TITLES[language]}</h1>", ahead, plots, text])
    return f'<section lang="{language}">{body}</section>'


# ── plots ───────────────────────────────────────────────────────────────────────


def _recall_plots(report: Report) -> Iterator[str]:
    """recall@5 of every way with its 95 % interval, by set."""
    for name, contestants in report.figures["sets"].items():
        bars = []
        for contestant, figures in contestants.items():
            for way, scores in figures.get("ways", {}).items():
                label = f"{report.title(contestant)}: {way}"
                bars.append((label, contestant == "ours", scores["averages"]["recall@5"]))
        if bars:
            yield f"<h2>{html.escape(name)}: recall@5, %</h2>"
            yield _bars(bars, largest=100.0)


def _cost_plots(report: Report) -> Iterator[str]:
    """A few costs of the largest size, on a logarithmic scale."""
    sizes = report.figures["sizes"]
    if not sizes:
        return
    size = max(sizes, key=int)
    rows = {row.key: row for row in COST_ROWS}
    for key in PLOTTED:
        values = [
            (report.title(contestant), contestant == "ours", figures[key] / rows[key].divisor)
            for contestant, figures in sizes[size].items()
            if figures.get(key)
        ]
        if values:
            words = WORDS[report.language]
            notes = f"{words['chunks'].format(f'{int(size):,}')}, {words['logarithmic']}"
            title = html.escape(_cost_title(rows[key], report.language))
            yield f"<h2>{title}, {notes}</h2>"
            yield _logarithmic_bars(values)


def _cost_title(row: Row, language: str) -> str:
    return f"{row.title(language)} ({row.unit})" if row.unit else row.title(language)


def _bars(bars: Sequence[tuple[str, bool, Sequence[float]]], *, largest: float) -> str:
    """Bars with intervals; values are triples of a mean and its bounds."""
    room = WIDTH - LABELS - NUMBERS
    lines = []
    for number, (label, is_ours, (mean, low, high)) in enumerate(bars):
        middle = number * LINE + LINE // 2
        begin, end = (LABELS + room * bound / largest for bound in (low, high))
        lines.append(_bar(number, label, is_ours=is_ours, length=room * mean / largest))
        lines.append(
            f'<line class="interval" x1="{begin:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}"/>'
        )
        for place in (begin, end):
            lines.append(
                f'<line class="interval" x1="{place:.1f}" x2="{place:.1f}" '
                f'y1="{middle - 4}" y2="{middle + 4}"/>'
            )
        lines.append(
            f'<text x="{WIDTH - NUMBERS + 6}" y="{middle + 5}">{mean} [{low}, {high}]</text>'
        )
    return _svg(lines, len(bars))


def _logarithmic_bars(values: Sequence[tuple[str, bool, float]]) -> str:
    """Bars whose lengths are the logarithms of their values, the smallest a tenth of the room."""
    room = WIDTH - LABELS - NUMBERS
    logarithms = [math.log10(value) for _, _, value in values]
    least = min(logarithms)
    span = max(logarithms) - least or 1.0
    lines = []
    for number, (label, is_ours, value) in enumerate(values):
        length = room * (0.1 + 0.9 * (logarithms[number] - least) / span)
        lines.append(_bar(number, label, is_ours=is_ours, length=length))
        middle = number * LINE + LINE // 2
        lines.append(
            f'<text x="{LABELS + length + 6:.1f}" y="{middle + 5}">{_number(value)}</text>'
        )
    return _svg(lines, len(values))


def _bar(number: int, label: str, *, is_ours: bool, length: float) -> str:
    top = number * LINE
    kind = "ours" if is_ours else "bar"
    return (
        f'<text x="{LABELS - 8}" y="{top + LINE // 2 + 5}" text-anchor="end">{html.escape(label)}'
        f'</text><rect class="{kind}" x="{LABELS}" y="{top + 4}" width="{max(1.0, length):.1f}" '
        f'height="{LINE - 8}"/>'
    )


def _svg(lines: Sequence[str], count: int) -> str:
    height = count * LINE
    content = "".join(lines)
    return f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">{content}</svg>'


# ── text ────────────────────────────────────────────────────────────────────────


def markup(markdown: str) -> str:
    """Headings, lists, tables and paragraphs of Markdown as HTML: what a report is made of."""
    blocks = [_block(block) for block in markdown.split("\n\n")]
    return "\n".join(blocks)


def _block(block: str) -> str:
    lines = block.split("\n")
    if block.startswith("#"):
        hashes, _, title = block.partition(" ")
        return f"<h{len(hashes)}>{html.escape(title)}</h{len(hashes)}>"
    if block.startswith("|"):
        return _table(lines)
    if block.startswith("- "):
        items = "".join([f"<li>{html.escape(line[2:])}</li>" for line in lines])
        return f"<ul>{items}</ul>"
    if block.startswith("`"):
        return f"<p><code>{html.escape(block.strip('`'))}</code></p>"
    return f"<p>{html.escape(block)}</p>"


def _table(lines: Sequence[str]) -> str:
    rows = []
    for number, row in enumerate(lines):
        if number == 1:
            continue  # the line of dashes
        tag = "th" if number == 0 else "td"
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        rows.append("".join([f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells]))
    return "<table>" + "".join([f"<tr>{row}</tr>" for row in rows]) + "</table>"


def _number(value: float) -> str:
    """A figure with what digits can be read beside a bar."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"
