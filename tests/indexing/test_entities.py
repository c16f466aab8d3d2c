"""Merging names by hand: reversible, and it outlives inserts and deletes; proposals come with evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, QueryParam
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.types import Record
from tests.kit import entity, problems


def record(name: str, kind: str, description: str) -> Record:
    return {"type": "entity", "name": name, "entity_type": kind, "description": description}


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[LightRAG]:
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert_records(
            Document(
                "Peking University is in Beijing. PKU is old. Apple Inc. makes phones.", id="a"
            ),
            [
                record("Peking University", "organization", "A university in Beijing."),
                record("PKU", "organization", "An old university."),
                record("Beijing", "place", "A city."),
                record("Apple Inc.", "organization", "It makes phones."),
                {
                    "type": "relationship",
                    "source": "PKU",
                    "target": "Beijing",
                    "keywords": ["located in"],
                    "description": "PKU is in Beijing.",
                    "strength": 5,
                },
            ],
        )
        yield rag


def shape(rag: LightRAG) -> tuple[object, object]:
    graph = rag.graph
    nodes = {name: (d["entity_type"], d["description"]) for name, d in graph.nodes(data=True)}
    edges = {frozenset(e[:2]): (e[2]["weight"], e[2]["keywords"]) for e in graph.edges(data=True)}
    return nodes, edges


def test_merging_is_undone_by_unmerging(rag: LightRAG) -> None:
    """Both names become one entity with both descriptions, and then again what they were."""
    before = shape(rag)
    rag.entities.merge(["PKU"], into="Peking University")
    assert "PKU" not in rag.graph and rag.graph.has_edge("Peking University", "Beijing")
    assert "An old university." in rag.graph.nodes["Peking University"]["description"]
    rag.entities.unmerge("PKU")
    assert shape(rag) == before


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (("Xavier", "Yves"), ("Xavier", "Zoe"), {"Yves", "Anna", "Zoe"}),  # moved to another
        (("Xavier", "Yves"), ("Anna", "Xavier"), {"Yves", "Zoe", "Xavier"}),  # others come to it
        (("Xavier", "Yves"), ("Yves", "Zoe"), {"Anna", "Zoe"}),  # both
    ],
)
def test_a_name_that_stood_for_another_takes_its_mentions_along(
    first: tuple[str, str], second: tuple[str, str], kept: set[str], tmp_path: Path
) -> None:
    """The graph is what its mentions and the merges say, not how they came about."""
    with LightRAG(tmp_path / "kb") as rag:
        for name in ("Xavier", "Yves", "Anna", "Zoe"):
            records = record(name, "person", f"{name} is here.")
            rag.insert_records(Document(f"{name} text.", id=name), [records])
        for name, into in (first, second):
            rag.entities.merge([name], into=into)
        graph = dict(rag.graph.nodes(data="description"))
        rag.admin.rebuild()
        assert dict(rag.graph.nodes(data="description")) == graph
        assert graph.keys() == kept
        assert f"{second[0]} is here." in graph[second[1]]


@pytest.mark.parametrize(
    ("into", "name"),
    [
        ("北\n京\x1b大学\x85", "北 京 大学"),
        ("<b>Peking</b>\tUniversity", "Peking University"),
        ("《ＰＫＵ 🙂》", "PKU 🙂"),
        ("“PKU”", "PKU"),  # the entity itself, as it would be found in a text
    ],
)
def test_the_name_of_a_merge_is_cleaned(rag: LightRAG, into: str, name: str) -> None:
    """As those in texts are, so that it is one with the same name there."""
    rag.entities.merge(["PKU"], into=into)
    assert name in rag.graph
    rag.insert_records(Document("It is.", id="b"), [record(into, "organization", "It is old.")])
    assert "It is old." in rag.graph.nodes[name]["description"]


def test_a_relation_between_names_that_are_merged_comes_back(rag: LightRAG) -> None:
    """What a text says of the two is kept while they are one."""
    before = shape(rag)
    rag.entities.merge(["PKU"], into="Beijing")
    assert not rag.graph.edges
    rag.entities.unmerge("PKU")
    assert shape(rag) == before and len(rag.graph.edges) == 1


def test_nothing_is_merged_into_nothing(rag: LightRAG) -> None:
    """A name of which nothing is left is a mistake."""
    for into in ("", "  ", "\x1b\n", "<b></b>"):
        with pytest.raises(ConfigError, match="merged into is empty"):
            rag.entities.merge(["PKU"], into=into)


def test_a_merge_outlives_inserts_and_deletes(rag: LightRAG) -> None:
    """A later document that uses the merged name speaks of the one entity."""
    rag.entities.merge(["PKU"], into="Peking University")
    rag.insert_records(
        Document("PKU has a lake.", id="b"), [record("PKU", "organization", "It has a lake.")]
    )
    assert "PKU" not in rag.graph
    assert "It has a lake." in rag.graph.nodes["Peking University"]["description"]
    rag.delete("a")
    assert set(rag.graph) == {"Peking University"}
    rag.entities.unmerge("PKU")
    assert set(rag.graph) == {"PKU"}


def test_unknown_names_are_named(rag: LightRAG) -> None:
    """Neither merging nor unmerging takes names it does not know."""
    with pytest.raises(NotFoundError, match="Nobody"):
        rag.entities.merge(["Nobody"], into="PKU")
    with pytest.raises(NotFoundError, match="PKU"):
        rag.entities.unmerge("PKU")


def test_a_name_that_is_only_spelt_anew_stays_so(tmp_path: Path) -> None:
    """An alias is not needed for it; inserts keep it, and `unmerge` gives the texts' spelling back."""
    with LightRAG(tmp_path) as rag:
        rag.insert_records("Alice met Bob.", [entity("Alice", "Sang."), entity("Bob", "Ran.")])
        rag.entities.merge(["Alice"], into="ALICE")
        assert problems(tmp_path) == []
        rag.insert_records("Alice slept.", [entity("Alice", "Slept.")])
        assert "ALICE" in rag.graph
        rag.entities.merge(["ALICE"], into="BOB")
        rag.insert_records("Carol left.", [entity("Carol", "Left.")])
        rag.entities.merge(["Carol"], into="Alice")
        assert set(rag.graph) == {"BOB", "Alice"}
        assert problems(tmp_path) == []
        rag.entities.unmerge("BOB")
        assert set(rag.graph) == {"Bob", "Alice"}
        with pytest.raises(NotFoundError):
            rag.entities.unmerge("BOB")
    assert problems(tmp_path) == []


def test_undoing_a_merge_gives_back_what_was_merged_before(tmp_path: Path) -> None:
    """Each merge is undone by unmerging the names that it was called with, the last one first."""
    names = ["Ann", "Bob", "Cid", "Dot", "Eve"]
    with LightRAG(tmp_path) as rag:
        rag.insert_records(" ".join(names), [entity(name, f"{name} sang.") for name in names])
        steps = [(["Ann"], "Queen"), (["Queen", "Bob"], "Pair"), (["Pair", "Cid"], "Dot")]
        shapes = []
        for merged, into in steps:
            shapes.append(shape(rag))
            rag.entities.merge(merged, into=into)
            rag.retrieve("Ann", mode="local")
        assert set(rag.graph) == {"Dot", "Eve"} and problems(tmp_path) == []
        context = rag.retrieve("Who is Ann?", param=QueryParam(mode="local", ll_keywords=("Ann",)))
        assert context.entities[0].name == "Dot"  # through three merges
        for merged, _ in reversed(steps):
            rag.entities.unmerge(*merged)
            assert shape(rag) == shapes.pop()
            assert problems(tmp_path) == []


def test_a_name_that_others_were_merged_into_gives_them_back(tmp_path: Path) -> None:
    """It is no name of the texts itself, so it goes."""
    with LightRAG(tmp_path) as rag:
        records = [entity("Scrooge", "A miser."), entity("Ebenezer", "A man.")]
        rag.insert_records("Scrooge. Ebenezer.", records)
        rag.entities.merge(["Scrooge", "Ebenezer"], into="Ebenezer Scrooge")
        rag.entities.unmerge("Ebenezer Scrooge")
        assert set(rag.graph) == {"Scrooge", "Ebenezer"} and problems(tmp_path) == []
        rag.insert_records("Scrooge again.", [entity("Scrooge", "He slept.")])
        assert set(rag.graph) == {"Scrooge", "Ebenezer"} and problems(tmp_path) == []
