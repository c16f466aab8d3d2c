"""Scores and graph health as rows of text."""

from __future__ import annotations

from collections.abc import Sequence

from lightrag_jsonl.evaluation.health import GraphHealth
from lightrag_jsonl.evaluation.running import Row
from lightrag_jsonl.evaluation.scores import Interval

LABELS = {
    "recall@1": "r@1",
    "recall@2": "r@2",
    "recall@5": "r@5",
    "recall@10": "r@10",
    "all@5": "all@5",
    "all@10": "all@10",
    "answer": "answer",
}


def header(rows: Sequence[Row]) -> tuple[str, ...]:
    """The names of the columns of `cells`."""
    return ("", *(LABELS[name] for name in _metrics(rows)), "gain r@5", "ms")


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """A line for each row: its metrics in percent with half of their intervals, then its gain."""
    return [
        (
            row.name,
            *(_percent(row.metrics[name]) for name in _metrics(rows)),
            _signed(row.gains.get("recall@5")),
            f"{row.p50_ms:.1f}",
        )
        for row in rows
    ]


def health_rows(health: GraphHealth) -> list[tuple[str, str]]:
    """The statistics of a graph, one a line."""
    linkage = health.linkage
    rows = [
        ("chunks", f"{health.chunks:,}, {health.silent_chunks:,} without any entity"),
        ("entities", f"{health.entities:,}, {health.isolated:,} without any relation"),
        ("relations", f"{health.relations:,}"),
        ("relations an entity", _degrees(health)),
    ]
    if linkage.pairs:
        told = (
            f"{linkage.linked:,} of {linkage.pairs:,} ({linkage.share:.0%}); "
            f"{linkage.by_entity:,} by an entity, {linkage.by_relation:,} by a relation"
        )
        rows.append(("supporting pairs that are linked", told))
    return rows


# ── helpers ─────────────────────────────────────────────────────────────────────


def _metrics(rows: Sequence[Row]) -> list[str]:
    return [name for name in LABELS if rows and name in rows[0].metrics]


def _percent(interval: Interval) -> str:
    half = (interval.high - interval.low) / 2
    return f"{100 * interval.value:.1f} ±{100 * half:.0f}"


def _signed(gain: Interval | None) -> str:
    """A gain with its interval; the gain is significant if the interval excludes 0."""
    if gain is None:
        return ""
    return f"{100 * gain.value:+.1f} [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]"


def _degrees(health: GraphHealth) -> str:
    quantiles = ", ".join(f"{name} {value:,}" for name, value in health.degrees.items())
    return f"mean {health.mean_degree:g}, {quantiles}"
