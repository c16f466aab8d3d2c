"""What a truncated answer loses in three formats, and how fast lines are read and validated.

`python -m benchmarks.jsonl [--lines N]` prints one JSON object. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import jsonschema

from lightrag_jsonl import parse_jsonl
from lightrag_jsonl.llm.schemas import Schema

CUTS = 95
PAIRS = 20
LINES = 20_000
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

Record = dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    given = parser.parse_args()
    figures = {"benchmark": "jsonl", "cuts": cuts(), "speed": speed(given.lines)}
    print(json.dumps(figures, ensure_ascii=False, indent=2))


def answer() -> list[Record]:
    """40 records as a model would write them: 20 stations on a ring line, 20 tracks between them.

    A relation follows as soon as both its ends have been named.
    """
    records: list[Record] = []
    for index in range(PAIRS):
        records.append(_station(index))
        if index:
            records.append(_track(index - 1, index))
    return [*records, _track(PAIRS - 1, 0)]


def cuts() -> dict[str, Record]:
    """Cut the answer in each format at 95 places; count the records kept, and those made up."""
    records = answer()
    entities = [record for record in records if record["type"] == "entity"]
    relations = [record for record in records if record["type"] == "relationship"]
    texts = {
        "jsonl": "\n".join(_line(record) for record in records),
        "array": json.dumps(records, ensure_ascii=False),
        "object": json.dumps(
            {"entities": entities, "relationships": relations}, ensure_ascii=False
        ),
    }
    return {name: _cut_row(text, records) for name, text in texts.items()}


def speed(count: int) -> Record:
    """CPU seconds for so many valid lines; `jsonschema.validate` is scaled up from a sample."""
    records = answer()
    lines = [_line(records[number % len(records)]) for number in range(count)]
    text, schema = "\n".join(lines), Schema(SCHEMA)
    sample = [json.loads(line) for line in lines[:SAMPLE]]
    slow = _seconds(lambda: _validate_each(sample), rounds=1)
    return {
        "lines": count,
        "kept": len(parse_jsonl(text, schema=schema).records),
        "read_and_validate_s": _seconds(lambda: parse_jsonl(text, schema=schema)),
        "read_s": _seconds(lambda: parse_jsonl(text)),
        "json_loads_s": _seconds(lambda: [json.loads(line) for line in lines]),
        "jsonschema_validate_s": round(slow * count / len(sample), 3),
    }


def _validate_each(records: list[Record]) -> None:
    for record in records:
        jsonschema.validate(record, SCHEMA)


def _cut_row(text: str, records: list[Record]) -> Record:
    ends = [text.index(line) + len(line) for line in map(_line, records)]
    kept = whole = half = 0
    for number in range(1, CUTS + 1):
        cut = len(text) * number // (CUTS + 1)
        good, bad = _read(text[:cut], records)
        kept += len(good)
        half += bad
        whole += sum(end <= cut for end in ends)
    middle, _ = _read(text[: len(text) // 2], records)
    return {
        "cuts": CUTS,
        "records_kept": kept,
        "whole_records_before_the_cuts": whole,
        "half_records_admitted": half,
        "relations_kept_at_one_half": sum(item["type"] == "relationship" for item in middle),
        "of_relations": PAIRS,
    }


def _read(text: str, records: list[Record]) -> tuple[list[Record], int]:
    """The records read that the answer has, and the number of those that it does not have."""
    found = parse_jsonl(text, normalize=_unfold).records
    good = [record for record in found if record in records]
    return good, len(found) - len(good)


def _unfold(record: Record) -> Iterable[Record]:
    """`{"entities": […], "relationships": […]}` stands for the records in its lists."""
    if "type" in record:
        return [record]
    lists = [items for items in record.values() if isinstance(items, list)]
    return [item for items in lists for item in items if isinstance(item, dict)]


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False)


def _station(index: int) -> Record:
    return {
        "type": "entity",
        "name": f"Station {index + 1}",
        "entity_type": "place",
        "description": f"Stop number {index + 1} of the ring line (环线第{index + 1}站).",
    }


def _track(start: int, end: int) -> Record:
    return {
        "type": "relationship",
        "source": f"Station {start + 1}",
        "target": f"Station {end + 1}",
        "keywords": ["track", "neighbors"],
        "description": f"A track leads from stop {start + 1} to stop {end + 1}.",
        "strength": 1 + start / 4,
    }


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
