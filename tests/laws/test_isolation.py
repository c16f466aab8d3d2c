"""Law `isolation`: two working directories in one process never see each other."""

import asyncio
from pathlib import Path

from lightrag_jsonl import Document, IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import index, problems, read_names


async def test_two_folders_share_no_document_and_no_paid_answer(tmp_path: Path) -> None:
    """The same text is asked about anew in another folder; what is deleted in one stays in the other."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path / "a", llm) as one, index(tmp_path / "b", llm) as other:
        await asyncio.gather(
            one.insert([Document("Ann met Bob.", id="x"), Document("Cid left.", id="y")]),
            other.insert([Document("Ann met Bob.", id="x"), Document("Dora sang.", id="z")]),
        )
        assert len(llm.requests) == 4
        await one.delete("x")
        assert {d.id for d in await one.documents()} == {"y"}
        assert {d.id for d in await other.documents()} == {"x", "z"}
        assert set(one.graph) == {"Cid"}
        assert set(other.graph) == {"Ann", "Bob", "Dora"}
    assert problems(tmp_path / "a") == problems(tmp_path / "b") == []


def test_two_instances_on_one_folder_in_one_process_agree(tmp_path: Path) -> None:
    """A second instance sees what the first commits, in answers too, and can write after it."""
    llm = ScriptedLLM(read_names)
    with LightRAG(tmp_path, llm=llm) as one, LightRAG(tmp_path, llm=llm) as other:
        one.insert(Document("Ann met Bob in Bern.", id="x"))
        found = other.retrieve("Bern", QueryParam(mode="naive"))
        assert [chunk.document_id for chunk in found.chunks] == ["x"]
        other.insert(Document("Cid lives in Bern.", id="y"))
        one.delete("x")
        found = other.retrieve("Bern", QueryParam(mode="naive"))
        assert [chunk.document_id for chunk in found.chunks] == ["y"]
    assert problems(tmp_path) == []


async def test_at_most_the_slots_are_in_flight_over_all_documents(tmp_path: Path) -> None:
    """`max_concurrent_calls` limits calls over all documents and inserts of an index, and is used."""
    llm = ScriptedLLM(read_names, seconds=0.02)
    documents = [Document(f"Person{n} met Ann.", id=f"d{n}") for n in range(12)]
    options = IndexOptions(max_concurrent_calls=3)
    async with index(tmp_path, llm, options=options) as rag:
        await asyncio.gather(rag.insert(documents[:6]), rag.insert(documents[6:]))
        assert llm.most_in_flight == 3 and len(llm.requests) == 12
        assert len(await rag.documents()) == 12
