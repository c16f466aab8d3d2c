"""The question sets of the benchmarks are read whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.datasets import load


@pytest.mark.parametrize(
    ("name", "passages", "questions"),
    [
        ("musique-a", 782, 40),
        ("hotpotqa-train", 994, 100),
        ("zh-cmrc2018", 848, 3219),
        ("bench-2wiki-corpus", 6119, 0),
    ],
)
def test_sets_are_whole(shared_data: Path, name: str, passages: int, questions: int) -> None:
    """Every passage and question is there, and each supporting id names a passage."""
    dataset = load(shared_data / name)
    ids = {passage.id for passage in dataset.passages}
    assert (len(ids), len(dataset.questions)) == (passages, questions)
    for question in dataset.questions:
        assert question.supporting and ids.issuperset(question.supporting)


def test_recorded_triples_become_records(shared_data: Path) -> None:
    """Malformed triples are passed over; each end of a relation is an entity record as well."""
    dataset = load(shared_data / "musique-a")
    assert sum(len(passage.triples) for passage in dataset.passages) == 7345
    records = dataset.passages[0].records()
    names = {record["name"] for record in records if record["type"] == "entity"}
    relations = [record for record in records if record["type"] == "relationship"]
    assert len(relations) == 6
    assert all({relation["source"], relation["target"]} <= names for relation in relations)


def test_recorded_question_names(shared_data: Path) -> None:
    """The names recorded for HotpotQA's questions are attached to them."""
    dataset = load(shared_data / "hotpotqa-train")
    assert dataset.questions[0].names == ("Gallu", "Lilu")
    assert sum(bool(question.names) for question in dataset.questions) >= 95


def test_unknown_sets_are_named() -> None:
    """A folder that is none of the sets is refused with the list of those that are."""
    with pytest.raises(SystemExit, match="musique-a"):
        load("nothing-like-it")
