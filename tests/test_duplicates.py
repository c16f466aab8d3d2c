"""Names taken apart, and the pairs of entities that are proposed as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.duplicates import Duplicate
from lightrag_jsonl.naming import (
    abbreviates,
    differ_by_a_letter,
    initials,
    is_acronym,
    numbers_agree,
    read_name,
    titles_agree,
)
from lightrag_jsonl.types import Record


def _proposed(folder: Path, entities: Sequence[tuple[str, str]]) -> tuple[Duplicate, ...]:
    """The proposals for entities, each with a type, that one document mentions."""
    text = ". ".join(name for name, _ in entities)
    records: list[Record] = [
        {"type": "entity", "name": name, "entity_type": kind, "description": f"About {name}."}
        for name, kind in entities
    ]
    with LightRAG(folder) as rag:
        rag.insert_records(Document(text, id="d"), records)
        return rag.duplicates()


def _kinds(found: Sequence[Duplicate], one: str, other: str) -> set[str]:
    """What speaks for a pair; empty where it was not proposed."""
    for pair in found:
        if {pair.name, pair.into} == {one, other}:
            return {item.kind for item in pair.evidence}
    return set()


# ── names ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Apple Inc.", "Apple"),
        ("The Beatles", "Beatles"),
        ("Québec City", "Quebec City"),
        ("Smith, John", "John Smith"),
        ("Guinea - Bissau", "Guinea-Bissau"),
        ("Mercury (planet)", "Mercury"),
        ("华为技术有限公司", "华为技术"),
        ("腾讯控股有限公司", "腾讯公司"),
        ("鲁迅先生", "鲁迅"),
        ("ＩＢＭ", "IBM"),
    ],
)
def test_variants_share_a_core(one: str, other: str) -> None:
    """Articles, titles, legal forms, accents, order and additions are no part of the core."""
    assert read_name(one).core == read_name(other).core


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("WHO", "World Health Organization"),
        ("U.S.", "United States"),
        ("北大", "北京大学"),
        ("中科院", "中国科学院"),
    ],
)
def test_acronyms_are_among_the_initials(short: str, long: str) -> None:
    """First letters of a spaced name; the first and one or two later characters of a Chinese one."""
    assert is_acronym(read_name(short)) and abbreviates(read_name(short), read_name(long))
    assert read_name(short).core in set(initials(read_name(long)))


def test_a_place_is_no_acronym_of_what_begins_with_it() -> None:
    """北京 is not short for 北京大学, and "Ada" is a name, not letters."""
    assert not abbreviates(read_name("北京"), read_name("北京大学"))
    assert not is_acronym(read_name("Ada"))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Scrooge", "Scrouge", True),
        ("Cratchit", "Cratchitt", True),
        ("Cratchit", "Cratchti", True),
        ("Marley", "Barley", False),
        ("Scrooge", "Scrooge", False),
        ("Marley", "Marlowe", False),
    ],
)
def test_one_letter_may_be_a_slip(one: str, other: str, alike: bool) -> None:
    """Changed, left out, added or swapped; the first letter is never the slip."""
    assert differ_by_a_letter(read_name(one), read_name(other)) is alike


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("Henry IV", "Henry V", False),
        ("Terminal 1", "Terminal 2", False),
        ("Terminal 1A", "Terminal 1B", False),
        ("第一医院", "第二医院", False),
        ("5吨", "50万吨", False),
        ("第１中学", "第1中学校", True),
        ("Apollo 11", "Apollo-11", True),
    ],
)
def test_numbers_tell_names_apart(one: str, other: str, agree: bool) -> None:
    """Arabic, Roman and Chinese numbers must be the same."""
    assert numbers_agree(read_name(one), read_name(other)) is agree


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("Mr. Fezziwig", "Mrs. Fezziwig", False),
        ("The Lord Mayor", "The Lady Mayor", False),
        ("王小明先生", "王小明女士", False),
        ("Mr. Fezziwig", "Fezziwig", True),
        ("Sir Isaac", "Mr. Isaac", True),
        ("Lord", "The Sirens", True),
    ],
)
def test_titles_of_a_man_and_a_woman_tell_names_apart(one: str, other: str, agree: bool) -> None:
    """Other titles, and none at all, do not."""
    assert titles_agree(read_name(one), read_name(other)) is agree
    assert titles_agree(read_name(other), read_name(one)) is agree


@given(st.text(min_size=1, max_size=40))
def test_any_text_can_be_taken_apart(text: str) -> None:
    """Nothing is too strange to be compared."""
    name = read_name(text)
    list(initials(name))
    assert name.text == text and name.words and numbers_agree(name, name)


# ── proposals ───────────────────────────────────────────────────────────────────


def test_what_speaks_for_a_pair_is_told(tmp_path: Path) -> None:
    """Variants, acronyms and slips are proposed, each with its kind of evidence."""
    found = _proposed(
        tmp_path / "kb",
        [
            ("World Health Organization", "organization"),
            ("WHO", "organization"),
            ("Ebenezer Scrooge", "person"),
            ("Ebenezer Scrouge", "person"),
            ("Beatles", "organization"),
            ("The Beatles", "organization"),
        ],
    )
    assert "acronym" in _kinds(found, "WHO", "World Health Organization")
    assert "spelling" in _kinds(found, "Ebenezer Scrooge", "Ebenezer Scrouge")
    assert "variant" in _kinds(found, "Beatles", "The Beatles")
    assert [pair.score for pair in found] == sorted((p.score for p in found), reverse=True)


def test_another_type_halves_the_score_and_is_said(tmp_path: Path) -> None:
    """The fruit and the company are a pair to look at, below two companies of one name."""
    found = _proposed(
        tmp_path / "kb",
        [
            ("Apple", "fruit"),
            ("Apple Inc.", "organization"),
            ("Acme Ltd", "organization"),
            ("Acme", "organization"),
        ],
    )
    assert "types" in _kinds(found, "Apple", "Apple Inc.")
    assert "types" not in _kinds(found, "Acme", "Acme Ltd")
    assert {found[0].name, found[0].into} == {"Acme", "Acme Ltd"}


def test_numbered_names_are_not_proposed(tmp_path: Path) -> None:
    """Kings and terminals differ by a number only, and differ."""
    names = [("Terminal 1A", "Terminal 1B"), ("Henry IV", "Henry V"), ("第一医院", "第二医院")]
    found = _proposed(tmp_path / "kb", [(name, "thing") for pair in names for name in pair])
    assert not {frozenset((p.name, p.into)) for p in found} & {frozenset(pair) for pair in names}


def test_a_couple_is_not_proposed(tmp_path: Path) -> None:
    """Mr. and Mrs. Fezziwig share a core, and are two people."""
    found = _proposed(tmp_path / "kb", [("Mr. Smith", "person"), ("Mrs. Smith", "person")])
    assert found == ()


def test_what_one_sentence_tells_of_is_not_alike_for_that(tmp_path: Path) -> None:
    """Without a model every name of a sentence is told of by all of it; that makes no two one."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert("Werner Heisenberg taught Paul Dirac and Wolfgang Pauli in Leipzig for years.")
        assert {"Paul Dirac", "Wolfgang Pauli"} <= set(rag.graph)
        assert rag.duplicates() == ()
        words = "labourers carried heavy wooden crates between harbour warehouses every morning"
        told = (f"{words} singing", f"singing {words}")
        names = ("Harbour Labourers", "Labourers Harbour")
        records: list[Record] = [
            {"type": "entity", "name": name, "entity_type": "x", "description": text}
            for name, text in zip(names, told, strict=True)
        ]
        rag.insert_records(Document(". ".join(names), id="d"), records)
        assert "meaning" in _kinds(rag.duplicates(), *names)


def test_what_was_merged_is_proposed_no_more(tmp_path: Path) -> None:
    """A pair that a person made one is settled, until it is unmerged."""
    _proposed(tmp_path / "kb", [("Beatles", "organization"), ("The Beatles", "organization")])
    with LightRAG(tmp_path / "kb") as rag:
        assert rag.duplicates()
        rag.merge_entities(["Beatles"], into="The Beatles")
        assert not rag.duplicates()
        rag.unmerge("Beatles")
        assert rag.duplicates()


def test_an_empty_index_has_no_duplicates(tmp_path: Path) -> None:
    """Nothing is proposed where nothing is."""
    with LightRAG(tmp_path / "kb") as rag:
        assert rag.duplicates() == ()
