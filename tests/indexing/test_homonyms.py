"""Names with several bearers: proposed where documents contradict each other, separated and joined again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG, NotFoundError
from tests.kit import Record, entity, problems, relation, view

TWO_FIRMS: Sequence[tuple[str, str, list[Record]]] = (
    ("a", "张伟 leads 东海公司.", [entity("张伟", "张伟是经理。"), entity("东海公司", "x", "organization")]),
    ("b", "张伟 sued 东海公司.", [entity("张伟", "张伟起诉。"), entity("东海公司", "x", "organization")]),
    ("c", "张伟 joined 南山集团 １２ 😀.", [entity("张伟", "张伟是司机。"), entity("南山集团", "y", "organization")]),
)  # fmt: skip
ENDS = {"a": "东海公司", "b": "东海公司", "c": "南山集团"}


def filled(folder: Path, documents: Sequence[tuple[str, str, list[Record]]]) -> None:
    """Index documents with records."""
    with LightRAG(folder) as rag:
        for id, text, records in documents:
            rag.insert_records(Document(text, id=id), records)


def two_firms(folder: Path) -> None:
    """Three documents on a name in two firms."""
    filled(
        folder,
        [(id, text, [*records, relation("张伟", ENDS[id])]) for id, text, records in TWO_FIRMS],
    )


def life(name: str, description: str, kind: str = "person") -> list[Record]:
    """A record of a bearer."""
    return [entity(name, description, kind)]


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (life("John Gale", "John Gale (born 1820) built ships."), life("John Gale", "John Gale (born 3 May 1955) sang."), "dates"),
        (life("The Lamp", "The Lamp is a 1923 film.", "film"), life("The Lamp", "The Lamp is a 1961 film.", "film"), "dates"),
        (life("李明", "李明，1920年出生于海城。"), life("李明", "李明（1981年—）是歌手。"), "dates"),
        (life("Mercury", "Mercury is hot.", "planet"), life("Mercury", "Mercury flew.", "person"), "types"),
    ],
)  # fmt: skip
def test_documents_that_contradict_each_other_are_proposed(
    tmp_path: Path, first: list[Record], second: list[Record], kind: str
) -> None:
    """By years of birth or publication, or by types; with both sides of the contradiction."""
    name = first[0]["name"]
    filled(tmp_path, [("a", f"{name}.", first), ("b", f"{name}!", second)])
    with LightRAG(tmp_path) as rag:
        (homonym,) = rag.entities.homonyms()
        assert homonym.name == name and [sign.kind for sign in homonym.evidence] == [kind]
        assert sorted(homonym.bearers.values()) == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (life("Ann Gale", "Ann Gale (born 1820) built ships."), life("Ann Gale", "Ann Gale sang.")),
        (life("Ann Gale", "Ann Gale (born 1820) rowed."), life("Ann Gale", "Ann Gale, born in 1820, sang.")),
        (life("Ann Gale", "Ann Gale (born 1820)."), life("Ann Gale", "Tom Reed (born 1955) met Ann Gale.")),
        (life("Ann Gale", "x"), life("Ann Gale", "y", "concept")),
        (life("Ann Gale", "x") + life("Tom Reed", "z"), life("Ann Gale", "y", "ship") + life("Tom Reed", "z")),
    ],
)  # fmt: skip
def test_what_does_not_contradict_is_not_proposed(
    tmp_path: Path, first: list[Record], second: list[Record]
) -> None:
    """One year only, the same year, another's year, a vague type, or a common neighbour."""
    for id, records in (("a", first), ("b", second)):
        filled(tmp_path, [(id, ". ".join([*[str(r["name"]) for r in records], id]), records)])
    with LightRAG(tmp_path) as rag:
        assert rag.entities.homonyms() == ()


@pytest.mark.slow
def test_two_bearers_of_two_firms_are_separated_and_joined_again(tmp_path: Path) -> None:
    """Each with the relations and documents of one firm; joined again, all is as it was."""
    two_firms(tmp_path)
    before = view(tmp_path, times=True)
    with LightRAG(tmp_path) as rag:
        (homonym,) = rag.entities.homonyms()
        assert homonym.bearers == {"东海公司": ("a", "b"), "南山集团": ("c",)}
        rag.entities.separate(homonym.name, homonym.bearers)
        assert {name for name in rag.graph if "张伟" in name} == {
            "张伟 (东海公司)",
            "张伟 (南山集团)",
        }
        assert list(rag.graph["张伟 (南山集团)"]) == ["南山集团"]
        assert rag.entities.get("张伟 (东海公司)").aliases == ("张伟",)
        assert rag.entities.homonyms() == () == rag.entities.duplicates()
        assert any("张伟 (" in item.name for item in rag.retrieve("张伟").entities)
    assert problems(tmp_path) == []
    with LightRAG(tmp_path) as rag:
        rag.entities.rejoin("张伟 (东海公司)", "张伟 (南山集团)")
    assert view(tmp_path, times=True) == before and problems(tmp_path) == []


def test_a_later_document_keeps_the_bare_name(tmp_path: Path) -> None:
    """Nobody said who is meant; deleting the documents of a bearer leaves nothing of the qualifier."""
    two_firms(tmp_path)
    with LightRAG(tmp_path) as rag:
        rag.entities.separate("张伟", {"经理": ["a", "b"]})
        assert {"张伟", "张伟 (经理)"} <= set(rag.graph)
        rag.insert_records(Document("张伟 came.", id="d"), [entity("张伟")])
        assert rag.entities.get("张伟").chunk_ids != rag.entities.get("张伟 (经理)").chunk_ids
        rag.delete("a", "b", purge=True)
        assert not any("经理" in name for name in rag.graph)
    assert problems(tmp_path) == []


def test_a_separated_name_keeps_its_relations_to_short_forms_that_are_taken_apart(
    tmp_path: Path,
) -> None:
    """And the short form gets no name that it never had."""
    records = [
        entity("Nadia Petrov"),
        entity("Karl Jensen"),
        entity("Jensen"),
        entity("Petrov"),
        relation("Nadia Petrov", "Jensen"),
        relation("Petrov", "Karl Jensen"),
    ]
    filled(tmp_path, [("a", "Nadia Petrov met Jensen, Petrov met Karl Jensen.", records)])
    with LightRAG(tmp_path) as rag:
        rag.entities.separate("Nadia Petrov", {"pilot": ["a"]})
        rag.entities.unmerge("Jensen", "Petrov")
        ends = {frozenset((stated.source, stated.target)) for stated in rag.entities.relations()}
        assert ends == {
            frozenset(("Nadia Petrov (pilot)", "Jensen")),
            frozenset(("Petrov", "Karl Jensen")),
        }
        assert rag.entities.get("Petrov").aliases == ()
        rag.entities.rejoin("Nadia Petrov (pilot)")
        ends = {frozenset((stated.source, stated.target)) for stated in rag.entities.relations()}
        assert frozenset(("Nadia Petrov", "Jensen")) in ends
    assert problems(tmp_path) == []


def test_what_cannot_be_separated_is_refused(tmp_path: Path) -> None:
    """With the name or the documents, and nothing changed."""
    two_firms(tmp_path)
    with LightRAG(tmp_path) as rag:
        with pytest.raises(NotFoundError, match="no such entity: Nobody"):
            rag.entities.separate("Nobody", {"x": ["a"]})
        with pytest.raises(NotFoundError, match="not mentioned in: z"):
            rag.entities.separate("张伟", {"x": ["a", "z"]})
        with pytest.raises(ConfigError, match="without brackets"):
            rag.entities.separate("张伟", {"(x)": ["a"]})
        with pytest.raises(NotFoundError, match="not separated: 东海公司"):
            rag.entities.rejoin("东海公司")
        rag.entities.merge(["东海公司"], into="张伟")
        with pytest.raises(ConfigError, match="unmerge"):
            rag.entities.separate("张伟", {"x": ["a"]})


def test_years_of_birth_keep_two_names_apart(tmp_path: Path) -> None:
    """Names that are alike are not proposed as one where the years of birth differ."""
    with LightRAG(tmp_path) as rag:
        records = [
            entity("Dr. Tom Reed", "Dr. Tom Reed (born 1820) sang."),
            entity("Tom Reed", "Tom Reed (born 1955) rowed."),
        ]
        rag.insert_records(Document("Dr. Tom Reed. Tom Reed.", id="d"), records)
        assert rag.entities.duplicates() == ()
