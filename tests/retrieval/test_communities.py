"""Communities: a function of the visible graph, whatever the order of inserts and deletions."""

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Document
from tests.kit import entity, index, relation

CREWS = {
    "sea": ("Petrel", "Ostrom", "Gannet", "Valdemar"),
    "mill": ("Hedda", "Osric", "Millrace", "Grindstone"),
    "玻璃": ("周师傅", "熔炉", "窑厂", "李娘子"),
}


def _documents() -> list[tuple[Document, list[Any]]]:
    """Three groups of names, each named in three documents of its own."""
    documents: list[tuple[Document, list[Any]]] = []
    for group, names in CREWS.items():
        for number in range(3):
            first, second, third = (names[(number + step) % 4] for step in range(3))
            text = f"{first} met {second} and {third}. Note {number} １２ 😀."
            records = [entity(name) for name in (first, second, third)]
            records += [relation(first, second), relation(second, third)]
            documents.append((Document(text, id=f"{group}-{number}", title=group), records))
    return documents


async def _communities(
    folder: Path, documents: list[tuple[Document, list[Any]]], delete: tuple[str, ...] = ()
) -> tuple[Any, ...]:
    async with index(folder) as rag:
        for document, records in documents:
            await rag.insert_records(document, records)
        for id in delete:
            await rag.delete(id)
        return await rag.communities.list()


def _as_sets(communities: tuple[Any, ...]) -> set[tuple[Any, ...]]:
    """Communities without the order of their passages, which follows the order of inserts."""
    return {
        (community.title, community.entities, frozenset(community.chunk_ids), community.level)
        for community in communities
    }


async def test_groups_that_have_nothing_in_common_are_communities(tmp_path: Path) -> None:
    """Every group is one community, with all its names and with its passages in their order."""
    communities = await _communities(tmp_path / "index", _documents())
    assert {frozenset(community.entities) for community in communities} == {
        frozenset(names) for names in CREWS.values()
    }
    async with index(tmp_path / "index") as rag:
        for community in communities:
            chunks = [await rag.retrieve(name, mode="naive") for name in community.entities[:1]]
            assert chunks[0].chunks
            assert len(community.chunk_ids) == len(set(community.chunk_ids)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_the_order_of_inserts_does_not_matter(tmp_path: Path, seed: int) -> None:
    """The same set of mentions gives the same communities."""
    documents = _documents()
    in_order = await _communities(tmp_path / "in-order", documents)
    random.Random(seed).shuffle(documents)
    shuffled = await _communities(tmp_path / "shuffled", documents)
    assert _as_sets(shuffled) == _as_sets(in_order)


@pytest.mark.slow
async def test_a_deleted_document_leaves_nothing(tmp_path: Path) -> None:
    """After a deletion, communities are those of an index that never held the document."""
    documents = _documents()
    bridge = Document("Petrel paid Hedda for 熔炉.", id="bridge", title="bridge")
    records = [relation("Petrel", "Hedda"), relation("Hedda", "熔炉"), entity("Smuggler")]
    never = await _communities(tmp_path / "never", documents)
    documents.insert(4, (bridge, records))
    deleted = await _communities(tmp_path / "deleted", documents, delete=("bridge",))
    assert _as_sets(deleted) == _as_sets(never)


async def test_merged_and_edited_names_follow_and_undo_exactly(tmp_path: Path) -> None:
    """Communities show the merged name and the created entity; undoing both restores the communities."""
    async with index(tmp_path) as rag:
        for document, records in _documents():
            await rag.insert_records(document, records)
        before = await rag.communities.list()
        await rag.entities.merge(["Gannet"], into="Petrel")
        created = await rag.entities.create(
            "灯塔", type="place", description="Near Ostrom.", by="Ada", reason="a walk"
        )
        await rag.entities.create_relation(
            "灯塔", "Ostrom", description="It lights 灯塔.", by="Ada"
        )
        names = {name for part in await rag.communities.list() for name in part.entities}
        assert "Gannet" not in names
        assert {"Petrel", "灯塔"} <= names
        await rag.entities.unmerge("Gannet")
        await rag.entities.delete_relation("灯塔", "Ostrom", by="Ada")
        await rag.entities.delete("灯塔", by="Ada")
        statuses = await rag.documents()
        edits = [status.id for status in statuses if status.id.startswith("edit")]
        assert created in edits
        await rag.delete(*edits)
        assert await rag.communities.list() == before


async def test_a_purge_leaves_nothing_in_communities(tmp_path: Path) -> None:
    """After a purge no name or passage of the document is in a community, in this process or another."""
    async with index(tmp_path) as rag:
        for document, records in _documents():
            await rag.insert_records(document, records)
        assert "Osric" in repr(await rag.communities.list())
        await rag.delete("mill-0", "mill-1", "mill-2", purge=True)
        after = await rag.communities.list()
    assert "Osric" not in repr([community.entities for community in after])
    async with index(tmp_path) as rag:
        assert await rag.communities.list() == after


async def test_a_filter_hides_communities_of_other_documents(tmp_path: Path) -> None:
    """Under a filter, communities are those of the visible documents alone."""
    async with index(tmp_path / "all") as rag:
        for document, records in _documents():
            await rag.insert_records(document, records)
        filtered = await rag.communities.list(where={"title": ["sea", "玻璃"]})
    visible = [pair for pair in _documents() if pair[0].title != "mill"]
    alone = await _communities(tmp_path / "alone", visible)
    assert _as_sets(filtered) == _as_sets(alone)


async def test_a_large_community_is_divided(tmp_path: Path) -> None:
    """The parts of a large community hold its names, each once, one level deeper."""
    names = [f"Keeper{number:03}" for number in range(160)]
    records: list[Any] = [relation(first, second) for first, second in itertools.pairwise(names)]
    for start in range(0, 150, 10):
        records += [relation(names[start], names[start + step]) for step in range(2, 10)]
    async with index(tmp_path) as rag:
        await rag.insert_records(Document(" ".join(names), id="keepers"), records)
        communities = await rag.communities.list()
    top = [community for community in communities if community.level == 0]
    assert sorted(name for community in top for name in community.entities) == names
    assert len(top) > 1 or any(community.level == 1 for community in communities)


async def test_an_empty_index_has_none(tmp_path: Path) -> None:
    """Without documents, and without mentions, there are no communities, and no error."""
    async with index(tmp_path) as rag:
        assert await rag.communities.list() == ()
        await rag.insert_records(Document("No names here.", id="plain"), [])
        assert await rag.communities.list() == ()
