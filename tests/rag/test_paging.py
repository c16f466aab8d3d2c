"""Lists in pages, and an index that is only read."""

from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, LightRAG, StorageError
from lightrag_jsonl.storage.rows import PendingDocument
from tests.kit import entity, index, relation


async def test_pages_together_are_the_whole_list(tmp_path: Path) -> None:
    """Of documents, waiting ones too, and a waiting version of a visible one only once; of entities
    and of relations.
    """
    async with index(tmp_path) as rag:
        for n in range(5):
            records = [relation("Hub", f"N{n}", strength=n + 1), entity("N中文", kind="place")]
            await rag.insert_records(Document(f"Hub {n}", id=f"d{n}"), records)
        waiting = [Document(f"New {n}", id=f"d{n}") for n in (3, 5, 6)]
        await rag.engine.indexing.defer([PendingDocument(one, 0.0) for one in waiting])
        every = await rag.documents()
        assert [one.id for one in every] == [f"d{n}" for n in range(7)]
        for size in (1, 2, 3, 9):
            pages = [await rag.documents(limit=size, offset=at) for at in range(0, 9, size)]
            assert tuple(one for page in pages for one in page) == every
        found = await rag.entities.list(limit=3, offset=1)
        assert found == (await rag.entities.list())[1:4]
        assert [one.name for one in await rag.entities.list(search="ｎ中")] == ["N中文"]
        assert [one.name for one in await rag.entities.list(type="Place")] == ["N中文"]
        relations = await rag.entities.relations(limit=2)
        assert [one.weight for one in relations] == [5.0, 4.0]
        hub, around = await rag.entities.neighbours("ＨＵＢ")
        assert hub.degree == len(around) == 5 and around[0] == relations[0]
        assert len(await rag.entities.relations(search="hub")) == 5
        assert not await rag.entities.relations(search="中")


def test_a_reader_makes_no_folder(tmp_path: Path) -> None:
    """`create=False` is an error that names the folder and what to do; an index is opened."""
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(StorageError, match=r"no index in .*insert documents first") as error:
            LightRAG(folder, create=False)
        assert str(folder) in str(error.value)
    assert not [*tmp_path.iterdir()]
    AsyncLightRAG(tmp_path / "kb")
    with LightRAG(tmp_path / "kb", create=False) as rag:
        assert rag.documents() == ()
