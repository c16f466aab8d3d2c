"""Finds where another contestant is ahead, which a report says first."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.referee.quality import EVERYTHING, difference
from benchmarks.referee.words import COST_ROWS, Row

Figures = Mapping[str, Any]
OURS = "ours"
OVERVIEW = "overview"  # its way of answering questions about a whole text
FLOOR = "vectors"  # which does less than all others, and is no peer in costs
COMPARED = ("recall@2", "recall@5", "recall@10", "all@5", EVERYTHING, "answer")
MARGIN = 1.05  # ratios below are the noise of a busy machine


def ahead_in_quality(
    sets: Mapping[str, Figures],
) -> Iterator[tuple[str, str, str, str, list[float]]]:
    """Set, metric, contestant, its best way by the metric, and its lead in percent over the default
    way of this package.
    """
    for name, contestants in sets.items():
        ours = contestants.get(OURS, {})
        if "ways" not in ours:
            continue
        our_scores = ours["ways"][ours["default"]]["questions"]
        for metric in COMPARED:
            for contestant, figures in contestants.items():
                if contestant != OURS and "ways" in figures:
                    way, scores = _best_by(metric, figures["ways"])
                    lead = difference(scores, our_scores, metric)
                    if lead[0] > 0:
                        yield name, metric, contestant, way, lead


def _best_by(metric: str, ways: Mapping[str, Figures]) -> tuple[str, list[dict[str, float]]]:
    """The way with the highest average of a metric, and its scores."""

    def mean(way: str) -> float:
        values = [row[metric] for row in ways[way]["questions"] if metric in row]
        return float(sum(values) / (len(values) or 1))

    best = max(ways, key=mean)
    return best, ways[best]["questions"]


def ahead_in_costs(sizes: Mapping[str, Figures]) -> Iterator[tuple[Row, str, str, float, float]]:
    """Row, size, contestant, its figure and this package's, for the largest size of each row."""
    for row in COST_ROWS:
        for size in sorted(sizes, key=int, reverse=True):
            leaders = list(_leaders(row, size, sizes[size]))
            yield from leaders
            if leaders:
                break


def _leaders(
    row: Row, size: str, contestants: Figures
) -> Iterator[tuple[Row, str, str, float, float]]:
    ours = contestants.get(OURS, {}).get(row.key)
    if ours is None:
        return
    for contestant, figures in contestants.items():
        value = figures.get(row.key)
        if contestant not in (OURS, FLOOR) and value is not None and value * MARGIN < ours:
            yield row, size, contestant, value, ours


def ahead_in_coverage(
    texts: Mapping[str, Figures],
) -> Iterator[tuple[str, str, str, str, str, float, float]]:
    """Text, group of questions, budget, contestant, its best way, the percent that this way covers and
    the percent of this package's overview, where the latter is less.
    """
    for name, contestants in texts.items():
        for contestant, figures in contestants.items():
            for group, ways in figures.get("groups", {}).items() if contestant != OURS else ():
                ours = contestants.get(OURS, {}).get("groups", {}).get(group, {}).get(OVERVIEW, {})
                for budget, percent in ours.items():
                    best = max(ways, key=lambda way: float(ways[way][budget]))
                    if ways[best][budget] > percent:
                        yield name, group, budget, contestant, best, ways[best][budget], percent


def ahead_in_faults(faults: Mapping[str, Figures]) -> Iterator[tuple[str, str]]:
    """Fault and contestant, where a contestant loses or repeats less than this package."""
    for fault, contestants in faults.items():
        ours = _badness(fault, contestants.get(OURS, {}))
        for contestant, figures in contestants.items():
            badness = _badness(fault, figures)
            is_peer = contestant not in (OURS, FLOOR)
            if is_peer and badness is not None and ours is not None and badness < ours:
                yield fault, contestant


def _badness(fault: str, figures: Figures) -> float | None:
    """How much went wrong; None if it was not measured."""
    if not figures or "error" in figures or "not offered" in figures:
        return None
    measures = {
        "deletion": lambda: figures["graph"] + figures["contexts"] + len(figures["files"]),
        "cut answers": lambda: figures["entities_lost"] + figures["relations_lost"],
        "copied example": lambda: figures["entities"],
        "equal file names": lambda: figures["of"] - figures["indexed"],
        "same insert": lambda: figures["calls"] + 1_000 * figures["graph_changed"],
        "kill": lambda: (
            figures["calls_repeated"] / (figures["calls_undisturbed"] or 1)
            + 1_000 * figures["graph_differs"]
        ),
    }
    return float(measures[fault]())
