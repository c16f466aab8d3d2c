"""The reader on other people's material: JSONTestSuite, broken JSON, answers of real models."""

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import JsonlReader, JsonlResult, parse_jsonl
from tests.kit import Record, rows_of

# `[{}` is no JSON, but it is an array cut after a whole object, and that object is kept
# (specification 1, example 3). It is the one refused file with a record in it.
CUT_ARRAYS = {"n_array_unclosed_with_object_inside.json"}
# A closed object with a last comma, or with a key in single quotes, can be read in one way only.
REPAIRED: dict[str, Record] = {
    "n_object_lone_continuation_byte_in_key_and_trailing_comma.json": {"\ufffd": "0"},
    "n_object_single_quote.json": {"a": 0},
    "n_object_trailing_comma.json": {"id": 0},
}


@pytest.fixture(scope="module")
def suite(shared_data: Path) -> dict[str, str]:
    """The files of JSONTestSuite as text, by name; bytes that are no UTF-8 become U+FFFD."""
    texts: dict[str, str] = {}
    with tarfile.open(shared_data / "json-suites" / "JSONTestSuite.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                text = file.read().decode("utf-8", errors="replace")
                texts[member.name.rsplit("/", 1)[-1]] = text
    return texts


@pytest.fixture(scope="module")
def answers(shared_data: Path) -> list[dict[str, Any]]:
    """Recorded answers of real models."""
    return rows_of(shared_data / "llm-answers" / "answers.jsonl.gz")


def objects_of(text: str) -> tuple[Record, ...]:
    """What a text that is JSON holds: itself, or the objects of its array."""
    value = json.loads(text)
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, dict))


def read_both_ways(text: str) -> JsonlResult:
    """Whole and in pieces of seven characters; both must agree."""
    reader = JsonlReader()
    for start in range(0, len(text), 7):
        reader.feed(text[start : start + 7])
    result = reader.close()
    assert result == parse_jsonl(text)
    return result


@pytest.mark.slow
def test_json_test_suite(suite: dict[str, str]) -> None:
    """What must be accepted yields its objects, and complains of nothing but scalars; what must be
    refused gives no record, except for three small faults, which are reported as repaired; nothing
    raises, and all can be written."""
    counts = Counter(name[:2] for name in suite)
    assert (counts["y_"], counts["n_"], len(suite)) == (95, 188, 340)
    for name, text in suite.items():
        result = read_both_ways(text)
        reasons = {rejection.reason for rejection in result.rejections}
        json.dumps(result.records, ensure_ascii=False, allow_nan=False).encode("utf-8")
        if name.startswith("y_"):
            assert result.records == objects_of(text) and reasons <= {"not_object"}, name
        elif name in REPAIRED:
            assert result.records == (REPAIRED[name],) and reasons == {"repaired"}, name
        elif name.startswith("n_"):
            assert result.records == (({},) if name in CUT_ARRAYS else ()), name
            assert "repaired" not in reasons, name


def test_broken_json_invents_nothing(shared_data: Path) -> None:
    """Of six pretty-printed objects one is broken: the five others are read, and no part of it."""
    folder = shared_data / "json-suites"
    valid = (folder / "json_repair_valid.json").read_text(encoding="utf-8")
    invalid = (folder / "json_repair_invalid.json").read_text(encoding="utf-8")

    assert read_both_ways(valid).records == objects_of(valid)
    result = read_both_ways(invalid)
    assert result.records == objects_of(valid)[:5]
    assert "malformed" in {rejection.reason for rejection in result.rejections}


@pytest.mark.slow
def test_recorded_answers(answers: list[dict[str, Any]]) -> None:
    """Those that are JSON give their objects, and cut anywhere nothing; others give no record."""
    strict = [str(answer["answer"]) for answer in answers if answer.get("strict_json")]
    assert len(answers) == 1921 and len(strict) == 411
    for text in strict:
        result = parse_jsonl(text)
        assert result.records == objects_of(text) and not result.rejections
        for cut in range(0, len(text.rstrip()), max(1, len(text) // 5)):
            assert not parse_jsonl(text[:cut]).records
    for answer in answers:
        if not answer.get("strict_json"):
            result = parse_jsonl(str(answer["answer"]))
            assert result.records == ()
            assert result.truncated or answer.get("strict_json") is None
