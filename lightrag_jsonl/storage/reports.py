"""How extraction went: what is kept of each chunk's, and the sum over many."""

from __future__ import annotations

import json
from collections.abc import Iterable

from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.types import ChunkState, Extraction, ExtractionReport, Usage

ALL_REFUSED = "every line of the answer was refused"  # why a chunk failed that has no error


def as_json(extraction: Extraction) -> str:
    """What `status` needs to know of one chunk's extraction."""
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
    return dump({key: value for key, value in full.items() if value})


def summed(rows: Iterable[tuple[ChunkState, str]]) -> ExtractionReport:
    """Add up the stored (state, report) pairs of many chunks."""
    states = dict.fromkeys(("ok", "empty", "partial", "failed"), 0)
    counts = dict.fromkeys(("records", "ungrounded", "truncated", "resumed"), 0)
    reasons: dict[str, int] = {}
    gleaned: list[int] = []
    usage = Usage()
    for state, text in rows:
        report = json.loads(text)
        states[state] += 1
        for key in counts:
            counts[key] += report.get(key, 0)
        for reason, number in report.get("rejections", {}).items():
            reasons[reason] = reasons.get(reason, 0) + number
        for round_, number in enumerate(report.get("gleaned", ())):
            gleaned += [0] * (round_ + 1 - len(gleaned))
            gleaned[round_] += number
        usage += Usage(*report.get("usage", ()))
    return ExtractionReport(
        **states,
        **counts,
        rejections=dict(sorted(reasons.items())),
        repaired=reasons.get("repaired", 0),
        gleaned=tuple(gleaned),
        usage=usage,
    )
