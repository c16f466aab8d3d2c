"""How extraction went: the report stored with each chunk, and sums over many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.types import ChunkState, Extraction, ExtractionReport, Usage

ALL_REFUSED = "every line of the answer was refused"  # for failed chunks without an error


def as_json(extraction: Extraction) -> str:
    """The report of one chunk's extraction, for `status`, as JSON."""
    return dump(as_object(extraction))


def as_object(extraction: Extraction) -> dict[str, object]:
    """The report as an object; zeros and empty values are left out."""
    reasons: dict[str, int] = {}
    for refused in extraction.rejections:
        reasons[refused.reason] = reasons.get(refused.reason, 0) + 1
    usage = extraction.usage
    full: dict[str, object] = {
        "records": extraction.records,
        "rejections": reasons,
        "ungrounded": sum(not mention.grounded for mention in extraction.entities),
        "truncated": extraction.truncated,
        "resumed": extraction.resumed,
        "gleaned": extraction.gleaned,
        "usage": [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.calls],
        "error": extraction.error,
    }
    return {key: value for key, value in full.items() if value}


class Sum:
    """Adds up the reports of many chunks."""

    def __init__(self) -> None:
        self.chunks = 0
        self._states = dict.fromkeys(("ok", "empty", "partial", "failed"), 0)
        self._counts = dict.fromkeys(("records", "ungrounded", "truncated", "resumed"), 0)
        self._reasons: dict[str, int] = {}
        self._gleaned: list[int] = []
        self._usage = Usage()

    def add(self, state: ChunkState, report: Mapping[str, Any]) -> None:
        """Add one chunk's state and report."""
        self.chunks += 1
        self._states[state] += 1
        for key in self._counts:
            self._counts[key] += report.get(key, 0)
        for reason, number in report.get("rejections", {}).items():
            self._reasons[reason] = self._reasons.get(reason, 0) + number
        for round_, number in enumerate(report.get("gleaned", ())):
            self._gleaned += [0] * (round_ + 1 - len(self._gleaned))
            self._gleaned[round_] += number
        self._usage += Usage(*report.get("usage", ()))

    def report(self) -> ExtractionReport:
        """The sum so far."""
        return ExtractionReport(
            **self._states,
            **self._counts,
            rejections=dict(sorted(self._reasons.items())),
            repaired=self._reasons.get("repaired", 0),
            gleaned=tuple(self._gleaned),
            usage=self._usage,
        )


def summed(rows: Iterable[tuple[ChunkState, str]]) -> ExtractionReport:
    """The sum of stored (state, report) pairs."""
    found = Sum()
    for state, text in rows:
        found.add(state, json.loads(text))
    return found.report()
