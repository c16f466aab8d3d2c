"""How fast lines of JSON are read and validated: python -m benchmarks.jsonl [--lines N]

Prints one JSON object with the CPU seconds that 40 records, repeated, take: read and validated by
this library, only read, read by `json.loads`, and validated by `jsonschema` (scaled up from a few).
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jsonschema

from lightrag_jsonl.llm.reader import parse_jsonl
from lightrag_jsonl.llm.schemas import Schema

LINES = 20_000
RECORDS = 40
SAMPLE = 200
ROUNDS = 5
TEXT, WORDS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
FIELDS: dict[str, dict[str, object]] = {
    "entity": {"name": TEXT, "entity_type": TEXT, "description": TEXT},
    "relationship": {
        "source": TEXT,
        "target": TEXT,
        "keywords": WORDS,
        "description": TEXT,
        "strength": {"type": "number"},
    },
}
SCHEMA: dict[str, Any] = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"type": {"const": kind}, **fields},
            "required": ["type", *fields],
        }
        for kind, fields in FIELDS.items()
    ]
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    count = parser.parse_args().lines
    lines = [json.dumps(_record(n % RECORDS), ensure_ascii=False) for n in range(count)]
    text, schema = "\n".join(lines), Schema(SCHEMA)
    sample = [json.loads(line) for line in lines[:SAMPLE]]
    slow = _seconds(lambda: _validate_each(sample), rounds=1)
    figures = {
        "benchmark": "jsonl",
        "lines": count,
        "kept": len(parse_jsonl(text, schema=schema).records),
        "read_and_validate_s": _seconds(lambda: parse_jsonl(text, schema=schema)),
        "read_s": _seconds(lambda: parse_jsonl(text)),
        "json_loads_s": _seconds(lambda: [json.loads(line) for line in lines]),
        "jsonschema_validate_s": round(slow * count / len(sample), 3),
    }
    print(json.dumps(figures, indent=2))


def _record(number: int) -> dict[str, Any]:
    """A station of a ring line, or a track from it to the next one."""
    stop = number // 2 + 1
    if number % 2 == 0:
        return {
            "type": "entity",
            "name": f"Station {stop}",
            "entity_type": "place",
            "description": f"Stop number {stop} of the ring line (环线第{stop}站).",
        }
    return {
        "type": "relationship",
        "source": f"Station {stop}",
        "target": f"Station {stop + 1}",
        "keywords": ["track", "neighbors"],
        "description": f"A track leads from stop {stop} to stop {stop + 1}.",
        "strength": 1 + stop / 4,
    }


def _validate_each(records: list[Any]) -> None:
    for record in records:
        jsonschema.validate(record, SCHEMA)


def _seconds(work: Callable[[], object], *, rounds: int = ROUNDS) -> float:
    """The median CPU time of some rounds."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return round(statistics.median(times), 3)


if __name__ == "__main__":
    main()
