"""The reader on other people's material: JSONTestSuite, broken JSON, answers of real models."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl.core.types import Json, JsonlResult, Record
from lightrag_jsonl.llm.reader import JsonlReader, parse_jsonl

# `[{}` is no JSON, but it is an array cut after a whole object, and that object is kept
# (specification 1, example 3). It is the one refused file with a record in it.
CUT_ARRAYS = {"n_array_unclosed_with_object_inside.json"}


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
def answers(shared_data: Path) -> list[dict[str, Json]]:
    """Recorded answers of real models."""
    path = shared_data / "llm-answers" / "answers.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


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


def test_accepted_files_come_through_equal(suite: dict[str, str]) -> None:
    """Every file that must be accepted yields its objects, and complains of nothing but scalars."""
    names = [name for name in suite if name.startswith("y_")]
    assert len(names) == 95
    for name in names:
        result = read_both_ways(suite[name])
        assert result.records == objects_of(suite[name]), name
        assert {rejection.reason for rejection in result.rejections} <= {"not_object"}, name


def test_refused_files_never_become_records(suite: dict[str, str]) -> None:
    """What a strict parser must refuse gives no record: neither the whole nor a repaired part."""
    names = [name for name in suite if name.startswith("n_")]
    assert len(names) == 188
    for name in names:
        result = read_both_ways(suite[name])
        assert result.records == (({},) if name in CUT_ARRAYS else ()), name
        assert "repaired" not in {rejection.reason for rejection in result.rejections}, name


def test_undecided_files_do_not_raise(suite: dict[str, str]) -> None:
    """Where the suite leaves the choice, nothing raises and what is read can be written."""
    names = [name for name in suite if not name.startswith(("y_", "n_"))]
    assert len(names) == 57
    for name in names:
        records = read_both_ways(suite[name]).records
        json.dumps(records, ensure_ascii=False, allow_nan=False).encode("utf-8")


def test_broken_json_invents_nothing(shared_data: Path) -> None:
    """Of six pretty-printed objects one is broken: the five others are read, and no part of it."""
    folder = shared_data / "json-suites"
    valid = (folder / "json_repair_valid.json").read_text(encoding="utf-8")
    invalid = (folder / "json_repair_invalid.json").read_text(encoding="utf-8")

    assert read_both_ways(valid).records == objects_of(valid)
    result = read_both_ways(invalid)
    assert result.records == objects_of(valid)[:5]
    assert "malformed" in {rejection.reason for rejection in result.rejections}


def test_well_formed_answers_give_exactly_their_objects(answers: list[dict[str, Json]]) -> None:
    """Every answer that is JSON gives its objects, no more and no less, and no complaint."""
    strict = [str(answer["answer"]) for answer in answers if answer.get("strict_json")]
    assert len(answers) == 1921 and len(strict) == 411
    for text in strict:
        result = parse_jsonl(text)
        assert result.records == objects_of(text)
        assert not result.rejections


def test_other_answers_give_nothing_that_was_not_whole(answers: list[dict[str, Json]]) -> None:
    """Cut answers are `truncated`; tuples and prose hold no records; nothing raises."""
    for answer in answers:
        if not answer.get("strict_json"):
            result = parse_jsonl(str(answer["answer"]))
            assert result.records == ()
            assert result.truncated or answer.get("strict_json") is None


def _cuts(text: str) -> Iterator[str]:
    return (text[:cut] for cut in range(0, len(text), max(1, len(text) // 5)))


def test_cut_answers_give_only_what_the_whole_one_gives(answers: list[dict[str, Json]]) -> None:
    """A well-formed answer cut anywhere yields no half of itself."""
    for answer in answers:
        text = str(answer["answer"]).rstrip()
        if answer.get("strict_json"):
            assert all(not parse_jsonl(cut).records for cut in _cuts(text))
