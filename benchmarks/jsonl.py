"""What a truncated answer loses in three formats, and how fast lines are read and validated.

`python -m benchmarks.jsonl` prints one JSON object. Times are CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable

import jsonschema

from lightrag_jsonl.jsonl import parse_jsonl
from lightrag_jsonl.schemas import compile_schema
from lightrag_jsonl.types import Json, Record

CUTS = 95
PAIRS = 20
LINES = 20_000
SAMPLE = 200
ROUNDS = 5

SCHEMA: dict[str, Json] = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "type": {"const": "entity"},
                "name": {"type": "string"},
                "entity_type": {"type": "string"},
                "description": {"type": "string"},
            },
            "required": ["type", "name", "entity_type", "description"],
        },
        {
            "type": "object",
            "properties": {
                "type": {"const": "relationship"},
                "source": {"type": "string"},
                "target": {"type": "string"},
                "keywords": {"type": "array", "items": {"type": "string"}},
                "description": {"type": "string"},
                "strength": {"type": "number"},
            },
            "required": ["type", "source", "target", "keywords", "description", "strength"],
        },
    ]
}


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(json.dumps({"cuts": cuts(), "speed": speed()}, ensure_ascii=False, indent=2))


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


def cuts() -> Json:
    """Cut the answer in each format at 95 places; count the records kept, and those made up."""
    records = answer()
    entities = [record for record in records if record["type"] == "entity"]
    relations = [record for record in records if record["type"] == "relationship"]
    both: Json = {"entities": [*entities], "relationships": [*relations]}
    texts = {
        "jsonl": "\n".join(json.dumps(record, ensure_ascii=False) for record in records),
        "array": json.dumps(records, ensure_ascii=False),
        "object": json.dumps(both, ensure_ascii=False),
    }
    return {name: _cut_row(text, records) for name, text in texts.items()}


def speed() -> Json:
    """CPU seconds for 20,000 valid lines; `jsonschema.validate` is scaled up from a sample."""
    records = answer()
    lines = [json.dumps(records[n % len(records)], ensure_ascii=False) for n in range(LINES)]
    text = "\n".join(lines)
    schema = compile_schema(SCHEMA)
    kept = len(parse_jsonl(text, schema=schema).records)
    sample = [json.loads(line) for line in lines[:SAMPLE]]
    slow = _seconds(lambda: _validate_each(sample), rounds=1)
    return {
        "lines": LINES,
        "kept": kept,
        "read_and_validate_s": _seconds(lambda: parse_jsonl(text, schema=schema)),
        "read_s": _seconds(lambda: parse_jsonl(text)),
        "json_loads_s": _seconds(lambda: [json.loads(line) for line in lines]),
        "jsonschema_validate_s": round(slow * LINES / SAMPLE, 3),
        "jsonschema_validate_note": f"measured on {SAMPLE} records and scaled to {LINES}",
    }


def _validate_each(records: list[Record]) -> None:
    for record in records:
        jsonschema.validate(record, SCHEMA)


def _cut_row(text: str, records: list[Record]) -> Json:
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
