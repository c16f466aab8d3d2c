"""A Christmas Carol read without a model, then by gpt-4o as it was recorded."""

import asyncio
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, IndexOptions, LLMError, PromptManager
from lightrag_jsonl.testing import ReplayLLM, Request, ScriptedLLM
from lightrag_jsonl.tools.estimate import estimate_upgrade
from tests.kit import entity, index, problems, read_names, reading, view
from tests.replays.carol import documents
from tests.replays.test_carol import OPTIONS, otherwise


@pytest.mark.slow
def test_an_upgraded_index_equals_one_made_at_once(shared_data: Path, tmp_path: Path) -> None:
    """Entities, relations, vectors, full text and reports, also when the upgrade stops half-way and
    goes on; each chunk is paid for once, and a second upgrade finds nothing to read.
    """
    given, recorded = documents(shared_data, 20)
    more = {"clock": lambda: 1000.0}
    few = IndexOptions(chunk_tokens=3_000, max_calls=19)

    async def run() -> None:
        llm = ReplayLLM(recorded, otherwise=otherwise)
        async with index(tmp_path / "once", llm, options=OPTIONS, **more) as rag:
            await rag.insert(given)
        async with index(tmp_path / "kb", options=OPTIONS, **more) as rag:
            await rag.insert(given)
            with pytest.raises(ConfigError, match="needs a model"):
                await rag.retry(upgrade=True)
        again = ReplayLLM(recorded, otherwise=otherwise)
        async with index(tmp_path / "kb", again, options=few, **more) as rag:
            price = await estimate_upgrade(rag)
            assert price.chunks == 20 and price.extraction.calls == 40
            assert (await rag.retry(upgrade=True)).stopped
        async with index(tmp_path / "kb", again, options=OPTIONS, **more) as rag:
            report = await rag.retry(upgrade=True)
            assert not report.stopped and not report.failures
            assert (await rag.retry(upgrade=True)).chunks == 0
            assert (await estimate_upgrade(rag)).chunks == 0
        assert len(again.requests) == len(llm.requests)

    asyncio.run(run())
    assert view(tmp_path / "kb", times=True) == view(tmp_path / "once", times=True)
    with reading(tmp_path / "kb") as kb, reading(tmp_path / "once") as once:
        names = [
            [(r.chunk_id, r.extractor, r.report.records) for r in one.chunk_reports()]
            for one in (kb, once)
        ]
        assert names[0] == names[1] and {extractor for _, extractor, _ in names[0]} != {""}
    assert problems(tmp_path / "kb") == []


async def test_an_upgrade_reads_what_is_older_and_keeps_what_it_cannot_better(
    tmp_path: Path,
) -> None:
    """Neither ready-made records, nor edits, nor what this model read; a chunk whose call fails keeps
    its mentions; a newer revision of the prompt reads everything of a model again.
    """
    texts = {"d1": "Ann met Bob.", "d2": "Cid met Dan."}

    def broken(request: Request) -> str:
        if "Cid" in request.text:
            raise LLMError("down")
        return read_names(request)

    async with index(tmp_path) as rag:
        await rag.insert([Document(text, id=id) for id, text in texts.items()])
        await rag.insert_records(Document("Eve met Fay.", id="d3"), [entity("Eve")])
        await rag.entities.create("Gil", type="person", description="By hand.", by="Hal")
        before = {one.name for one in await rag.entities.list()}
    llm = ScriptedLLM(broken, name="one")
    async with index(tmp_path, llm, options=IndexOptions(max_gleanings=0)) as rag:
        report = await rag.retry(upgrade=True)
        assert [one.document_id for one in report.failures] == ["d2"]
        assert {one.name for one in await rag.entities.list()} >= before
        ann = await rag.entities.get("Ann")
        assert ann.description == "Ann is in the text."
        assert not any(name in request.text for request in llm.requests for name in ("Eve", "Gil"))
    newer = PromptManager.load("en")
    newer.prompt("extract-graph").revision = "next"
    again = ScriptedLLM(read_names, name="one")
    async with index(tmp_path, again, prompts=newer, options=IndexOptions(max_gleanings=0)) as rag:
        assert (await estimate_upgrade(rag)).chunks == 2
        assert set((await rag.retry(upgrade=True)).documents) == {"d1", "d2"}
        assert (await rag.retry(upgrade=True)).documents == ()
    assert problems(tmp_path) == []
