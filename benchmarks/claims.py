"""What words tell of claims, by kind and language: python -m benchmarks.claims [FILE]

A line of FILE is {"lang": …, "kind": …, "label": "true" or "false", "claim": …, "passage": …, "heading": …}. Without
FILE, the claims are those of the yardstick for checkers, most of which words cannot decide. `missing` counts
claims with a hard reason, `compare` those to be compared. A good judge marks false claims and no true ones. Prints one JSON
object; `cpu_ms` is the CPU time a claim, each passage read for the first time.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightrag_jsonl.tracing.checking import yardstick
from lightrag_jsonl.tracing.cited_passages import JudgedPassage
from lightrag_jsonl.tracing.judging import judge_claim


def main() -> None:
    """Judge the claims of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?")
    file = parser.parse_args().file
    if file is None:
        rows = list(_yardstick_rows())
    else:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").strip().split("\n")]
    print(json.dumps({"benchmark": "claims", **figures(rows)}, ensure_ascii=False, indent=1))


def _yardstick_rows() -> Iterator[dict[str, Any]]:
    for labelled in yardstick():
        yield {
            "lang": "en" if labelled.claim.isascii() else "zh",
            "kind": labelled.kind,
            "label": "true" if labelled.is_true else "false",
            "claim": labelled.claim,
            "passage": labelled.window,
            "heading": "",
        }


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The number of claims with each verdict, by label and language and by label and kind."""
    judge_claim(
        "It rained in May 1911.", [JudgedPassage("It rained.")]
    )  # words and patterns are loaded
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    cpu = 0.0
    for row in rows:
        started = time.process_time()
        verdict = judge_claim(row["claim"], [JudgedPassage(row["passage"], row["heading"])]).verdict
        cpu += time.process_time() - started
        for group in ("all", row["lang"], row["kind"]):
            counts[f"{row['label']} {group}"][verdict] += 1
    return {
        "claims": len(rows),
        **{group: dict(verdicts) for group, verdicts in sorted(counts.items())},
        "cpu_ms": round(1000 * cpu / max(len(rows), 1), 2),
    }


if __name__ == "__main__":
    main()
