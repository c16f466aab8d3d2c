"""The pairs of entities that are proposed as one, with what speaks for and against each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.types import Document, Record
from lightrag_jsonl.indexing.duplicates import Duplicate


def proposed(folder: Path, entities: Sequence[tuple[str, str]]) -> tuple[Duplicate, ...]:
    """The proposals for entities, each with a type, that one document mentions."""
    text = ". ".join(name for name, _ in entities)
    records: list[Record] = [
        {"type": "entity", "name": name, "entity_type": kind, "description": f"About {name}."}
        for name, kind in entities
    ]
    with LightRAG(folder) as rag:
        rag.insert_records(Document(text, id="d"), records)
        return rag.entities.duplicates()


def evidence(found: Sequence[Duplicate], one: str, other: str) -> set[str]:
    """What speaks for a pair; empty where it was not proposed."""
    for pair in found:
        if {pair.name, pair.into} == {one, other}:
            return {item.kind for item in pair.evidence}
    return set()


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Apple Inc.", "Apple", "variant"),
        ("The Beatles", "Beatles", "variant"),
        ("Québec City", "Quebec City", "variant"),
        ("Smith, John", "John Smith", "variant"),
        ("Guinea - Bissau", "Guinea-Bissau", "variant"),
        ("Mercury (planet)", "Mercury", "variant"),
        ("华为技术有限公司", "华为技术", "variant"),
        ("腾讯控股有限公司", "腾讯公司", "variant"),
        ("鲁迅先生", "鲁迅", "variant"),
        ("第1中学公司", "第1中学", "variant"),
        ("Mr. Fezziwig", "Fezziwig", "variant"),
        ("Ebenezer Scrooge", "Ebenezer Scrouge", "spelling"),
        ("Cratchit", "Cratchitt", "spelling"),
        ("Cratchit", "Cratchti", "spelling"),
    ],
)
def test_what_speaks_for_a_pair_is_reported(
    tmp_path: Path, one: str, other: str, kind: str
) -> None:
    """Other articles, titles, legal forms, accents, order and additions; a slip."""
    found = proposed(tmp_path, [(one, "x"), (other, "x"), ("Nobody Else", "x")])
    assert kind in evidence(found, one, other)
    assert [pair.score for pair in found] == sorted((p.score for p in found), reverse=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("北京", "北京大学"),
        ("Ada", "Amy Dora Ann"),
        ("Marley", "Barley"),
        ("Marley", "Marlowe"),
        ("Terminal 1A", "Terminal 1B"),
        ("Henry IV", "Henry V"),
        ("第一医院", "第二医院"),
        ("5吨", "50万吨"),
        ("Mr. Smith", "Mrs. Smith"),
        ("The Lord Mayor", "The Lady Mayor"),
        ("王小明先生", "王小明女士"),
    ],
)
def test_other_names_are_not_proposed(tmp_path: Path, one: str, other: str) -> None:
    """What begins like another, is one letter apart at its beginning or by a number, or is a couple."""
    assert evidence(proposed(tmp_path, [(one, "thing"), (other, "thing")]), one, other) == set()


def test_another_type_halves_the_score_and_is_reported(tmp_path: Path) -> None:
    """The fruit and the company are a pair to look at, below two companies of one name."""
    found = proposed(
        tmp_path,
        [
            ("Apple", "fruit"),
            ("Apple Inc.", "organization"),
            ("Acme Ltd", "organization"),
            ("Acme", "organization"),
        ],
    )
    assert "types" in evidence(found, "Apple", "Apple Inc.")
    assert "types" not in evidence(found, "Acme", "Acme Ltd")
    assert {found[0].name, found[0].into} == {"Acme", "Acme Ltd"}


def test_entities_of_one_sentence_are_not_alike_for_that(tmp_path: Path) -> None:
    """Without a model every name of a sentence is described by all of it; that makes no two one."""
    with LightRAG(tmp_path) as rag:
        rag.insert("Werner Heisenberg taught Paul Dirac and Wolfgang Pauli in Leipzig for years.")
        assert {"Paul Dirac", "Wolfgang Pauli"} <= set(rag.graph)
        assert rag.entities.duplicates() == ()
        words = "labourers carried heavy wooden crates between harbour warehouses every morning"
        names = ("Harbour Labourers", "Labourers Harbour")
        texts = (f"{words} singing", f"singing {words}")
        records: list[Record] = [
            {"type": "entity", "name": name, "entity_type": "x", "description": text}
            for name, text in zip(names, texts, strict=True)
        ]
        rag.insert_records(Document(". ".join(names), id="d"), records)
        assert "meaning" in evidence(rag.entities.duplicates(), *names)


def test_what_was_merged_is_proposed_no_more(tmp_path: Path) -> None:
    """A pair that a person made one is settled, until it is unmerged; an empty index has none."""
    with LightRAG(tmp_path) as rag:
        assert rag.entities.duplicates() == ()
    assert proposed(tmp_path, [("Beatles", "group"), ("The Beatles", "group")])
    with LightRAG(tmp_path) as rag:
        rag.entities.merge(["Beatles"], into="The Beatles")
        assert not rag.entities.duplicates()
        rag.entities.unmerge("Beatles")
        assert rag.entities.duplicates()
