"""Lists in pages, and an index that is only read."""

from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, LightRAG, StorageError
from lightrag_jsonl.core.types import ExtractionReport
from lightrag_jsonl.storage import status
from lightrag_jsonl.storage.status import find_documents
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import entity, index, pending_document, read_names, relation


async def test_pages_together_are_the_whole_list(tmp_path: Path) -> None:
    """Of documents, waiting ones too, and a waiting version of a visible one only once; of entities
    and of relations.
    """
    async with index(tmp_path) as rag:
        for n in range(5):
            records = [relation("Hub", f"N{n}", strength=n + 1), entity("N中文", kind="place")]
            await rag.insert_records(Document(f"Hub {n}", id=f"d{n}"), records)
        waiting = [Document(f"New {n}", id=f"d{n}") for n in (3, 5, 6)]
        await rag.engine.indexing.defer([pending_document(one) for one in waiting])
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


async def test_documents_are_found_in_pages(tmp_path: Path) -> None:
    """By state and by a part of id, title, source or first words, waiting ones too; the pages together
    are all that is found, and the number is theirs.
    """
    async with index(tmp_path) as rag:
        for n in range(4):
            await rag.insert(Document(f"Hub {n} met Ann.", id=f"d{n}", title=f"Straße {n}"))
        await rag.insert("Untitled words 水 begin here, and go on.")
        await rag.engine.indexing.defer([pending_document(Document("New", id="d9"))])

        def found(text: str, state: str) -> list[str]:
            with rag.engine.store.view() as view:
                ids: list[str] = []
                for offset in range(0, 8, 2):
                    total, page = find_documents(view, text, state, limit=2, offset=offset)
                    ids += [document.id for document in page]
            assert total == len(ids)
            return ids

        everything = [document.id for document in await rag.documents()]
        assert found("", "") == everything and len(everything) == 6
        assert found("STRASSE", "") == ["d0", "d1", "d2", "d3"]
        assert found("words 水", "") == everything[4:5]
        assert found("", "pending") == ["d9"] == found("D9", "")
        assert found("", "done") == everything[:5]
        assert found("d", "failed") == []


async def test_totals_are_the_sum_over_chunks(tmp_path: Path) -> None:
    """Also of rejections by reason, of gleanings and of tokens, which differ from chunk to chunk."""
    llm = ScriptedLLM(lambda request: f"{read_names(request)}\n{{broken")
    async with index(tmp_path, llm) as rag:
        await rag.insert([f"Ann{n} met Bob and Cid{n} in Town." * (n + 1) for n in range(5)])
        with rag.engine.store.view() as view:
            reports = [chunk.report for chunk in view.chunk_reports()]
        total = (await rag.status()).extraction
        assert total.rejections and total == sum(reports, ExtractionReport())


async def test_totals_follow_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After new, changed and deleted documents the totals are those of an index opened anew, though
    only ranges with a changed chunk are added up.
    """
    monkeypatch.setattr(status, "CHUNKS_ADDED_UP", 2)
    llm = ScriptedLLM(read_names)
    added_up: list[range] = []
    original = StoreView.extraction_totals

    def counted(view: StoreView, rows: range) -> ExtractionReport:
        added_up.append(rows)
        return original(view, rows)

    monkeypatch.setattr(StoreView, "extraction_totals", counted)
    async with index(tmp_path, llm) as rag:
        await rag.insert([Document(f"Ann{n} met Bob.", id=f"d{n}") for n in range(6)])
        assert (await rag.status()).extraction.ok == 6
        for change in (
            rag.insert(Document("Ann7 met Cid.", id="d7")),
            rag.delete("d0"),
            rag.insert(Document("Ann1 met Bob and Cid.", id="d1")),
        ):
            added_up.clear()
            await change
            total = (await rag.status()).extraction
            assert len(added_up) < 4
            added_up.clear()
            assert (await rag.status()).extraction == total and added_up == []
            async with index(tmp_path, llm) as further:
                assert (await further.status()).extraction == total


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
