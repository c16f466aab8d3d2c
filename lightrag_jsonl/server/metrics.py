"""Counters and a histogram of latencies, in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]

PREFIX: Final = "lightrag_"
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


def labels(**given: object) -> Labels:
    """Labels of a sample, in the order given."""
    return tuple((name, str(value)) for name, value in given.items())


class Metrics:
    """What was counted since the server started."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[Labels]] = defaultdict(Counter)
        self._seconds: defaultdict[Labels, list[float]] = defaultdict(
            lambda: [0.0] * (len(BUCKETS) + 2)  # a count for each bucket and for longer ones; a sum
        )

    def count(self, name: str, amount: int = 1, **given: object) -> None:
        """Add to a counter."""
        self._counts[name][labels(**given)] += amount

    def observe(self, seconds: float, **given: object) -> None:
        """Add a latency to the histogram."""
        row = self._seconds[labels(**given)]
        row[bisect_left(BUCKETS, seconds)] += 1
        row[-1] += seconds

    def render(self, gauges: Iterable[tuple[str, Labels, float]]) -> str:
        """Everything as text, with values that were measured just now."""
        measured: defaultdict[str, dict[Labels, float]] = defaultdict(dict)
        for name, given, value in gauges:
            measured[name][given] = value
        lines: list[str] = []
        tables: dict[str, Mapping[Labels, float]] = {**self._counts, **measured}
        for name, samples in tables.items():
            kind = "counter" if name in self._counts else "gauge"
            lines.append(f"# TYPE {PREFIX}{name} {kind}")
            lines += [_line(name, given, value) for given, value in samples.items()]
        if self._seconds:
            lines += [f"# TYPE {PREFIX}request_seconds histogram", *self._histogram()]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> Iterator[str]:
        for given, row in self._seconds.items():
            total = 0.0
            for limit, count in zip([*map(str, BUCKETS), "+Inf"], row[:-1], strict=True):
                total += count
                yield _line("request_seconds_bucket", (*given, ("le", limit)), total)
            yield _line("request_seconds_sum", given, row[-1])
            yield _line("request_seconds_count", given, total)


def _line(name: str, given: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in given)
    return f"{PREFIX}{name}{{{shown}}} {value}" if shown else f"{PREFIX}{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
