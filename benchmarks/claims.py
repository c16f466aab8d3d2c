"""What words tell of claims, by kind and language: python -m benchmarks.claims FILE

A line of FILE is {"lang": …, "kind": …, "label": "true" or "false", "claim": …, "passage": …, "heading": …}. `missing` counts
claims with a hard reason, `compare` those to be compared. A good judge marks false claims and no true ones. Prints one JSON
object; `cpu_ms` is the CPU time a claim, each passage read for the first time.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from lightrag_jsonl.tracing.judging import Passage, judge_claim


def main() -> None:
    """Judge the claims of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.file.read_text(encoding="utf-8").strip().split("\n")]
    print(json.dumps({"benchmark": "claims", **figures(rows)}, ensure_ascii=False, indent=1))


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The number of claims with each verdict, by label and language and by label and kind."""
    judge_claim("It rained in May 1911.", [Passage("It rained.")])  # words and patterns are loaded
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    cpu = 0.0
    for row in rows:
        started = time.process_time()
        verdict = judge_claim(row["claim"], [Passage(row["passage"], row["heading"])]).verdict
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
