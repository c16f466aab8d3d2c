"""Merging names by hand: reversible, and it outlives inserts and deletes; proposals come with evidence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG, NotFoundError, QueryParam
from tests.kit import entity, problems, relation


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[LightRAG]:
    text = "Peking University is in Beijing. PKU is old. Apple Inc. makes phones."
    with LightRAG(tmp_path / "kb") as rag:
        records = [
            entity("Peking University", "A university in Beijing.", "organization"),
            entity("PKU", "An old university.", "organization"),
            entity("Beijing", "A city.", "place"),
            entity("Apple Inc.", "It makes phones.", "organization"),
            relation("PKU", "Beijing"),
        ]
        rag.insert_records(Document(text, id="a"), records)
        yield rag


def shape(rag: LightRAG) -> tuple[object, object]:
    graph = rag.graph
    nodes = {name: (d["entity_type"], d["description"]) for name, d in graph.nodes(data=True)}
    edges = {frozenset(e[:2]): (e[2]["weight"], e[2]["keywords"]) for e in graph.edges(data=True)}
    return nodes, edges


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
            records = [entity(name, f"{name} is here.")]
            rag.insert_records(Document(f"{name} text.", id=name), records)
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
    rag.insert_records(Document("It is.", id="b"), [entity(into, "It is old.")])
    assert "It is old." in rag.graph.nodes[name]["description"]


def test_a_relation_between_names_that_are_merged_comes_back(rag: LightRAG) -> None:
    """What a text says of the two is kept while they are one."""
    before = shape(rag)
    rag.entities.merge(["PKU"], into="Beijing")
    assert not rag.graph.edges
    rag.entities.unmerge("PKU")
    assert shape(rag) == before and len(rag.graph.edges) == 1


def test_what_cannot_be_merged_is_named(rag: LightRAG) -> None:
    """A name that is not known, or not merged; and nothing is merged into nothing."""
    with pytest.raises(NotFoundError, match="Nobody"):
        rag.entities.merge(["Nobody"], into="PKU")
    with pytest.raises(NotFoundError, match="PKU"):
        rag.entities.unmerge("PKU")
    for into in ("", "  ", "\x1b\n", "<b></b>"):
        with pytest.raises(ConfigError, match="merged into is empty"):
            rag.entities.merge(["PKU"], into=into)


def test_a_merge_outlives_inserts_and_deletes(rag: LightRAG) -> None:
    """A later document that uses the merged name speaks of the one entity."""
    rag.entities.merge(["PKU"], into="Peking University")
    rag.insert_records(Document("PKU has a lake.", id="b"), [entity("PKU", "It has a lake.")])
    assert "PKU" not in rag.graph
    assert "It has a lake." in rag.graph.nodes["Peking University"]["description"]
    rag.delete("a")
    assert set(rag.graph) == {"Peking University"}
    rag.entities.unmerge("PKU")
    assert set(rag.graph) == {"PKU"}


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


@pytest.mark.slow
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


def test_a_relation_keeps_the_direction_of_each_claim(tmp_path: Path) -> None:
    """Most claims decide its direction; what was claimed the other way leads back, also under a
    filter, and goes with its document.
    """
    claims = (("Anna", "Ben", "mother"), ("Anna", "Ben", "teacher"), ("Ben", "Anna", "son"))
    with LightRAG(tmp_path / "kb") as rag:
        for number, (source, target, keyword) in enumerate(claims):
            one = relation(source, target, keywords=[keyword])
            rag.insert_records(Document(f"{source} and {target}.", id=f"d{number}"), [one])
        for param in (QueryParam(), QueryParam(where={"id": ["d0", "d1", "d2"]})):
            (found,) = rag.retrieve("How are Anna and Ben related?", param).relations
            assert (found.source, found.target) == ("Anna", "Ben")
            assert (found.keywords, found.reverse_keywords) == (("mother", "teacher"), ("son",))
        rag.delete("d0", "d1")
        (found,) = rag.retrieve("How are Anna and Ben related?").relations
        assert (found.source, found.keywords, found.reverse_keywords) == ("Ben", ("son",), ())
    assert problems(tmp_path / "kb") == []


def test_descriptions_are_in_the_order_of_the_documents_dates(tmp_path: Path) -> None:
    """Whatever the order of inserts; what has no date comes last."""
    with LightRAG(tmp_path / "kb") as rag:
        for date in ("2004", "2003-05", None, "2006-01-02T10:00", "2003-05-02", "soon", "2001"):
            records = [entity("Fair", f"The fair of {date}.")]
            rag.insert_records(Document(f"Fair {date}.", id=f"d{date}", date=date), records)
        *dated, last, end = rag.graph.nodes["Fair"]["description"].split("\n")
    assert [text.removeprefix("The fair of ") for text in dated] == [
        "2001.", "2003-05.", "2003-05-02.", "2004.", "2006-01-02T10:00.",
    ]  # fmt: skip
    assert {last, end} == {"The fair of None.", "The fair of soon."}
