"""What the child process of a server reports about a job."""

import json
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAGError, LLMError, NotFoundError
from lightrag_jsonl.server.jobs import Job
from lightrag_jsonl.server.worker import do_job, stopped_message
from lightrag_jsonl.storage.store import write
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import entity, index, pending_document, relation


async def test_a_job_that_an_error_stopped_says_what_was_done(tmp_path: Path) -> None:
    """The reason as its error, and the report; an error of another kind has none."""
    llm = ScriptedLLM(lambda request: LLMError("check the key 🔑", permanent=True))
    job = Job("j", "insert", 1.0)
    waiting = pending_document(Document("Ida swims.", "i"), created_at=1.0, job="j")
    async with index(tmp_path / "kb", llm) as rag:
        await write(rag.engine.store, lambda transaction: transaction.put_pending(waiting))
        with pytest.raises(LightRAGError) as caught:
            await do_job(job, rag, lambda progress: None)
    message = stopped_message(job, caught.value)
    assert "check the key 🔑" in message.error and "progress saved" in message.error
    assert message.report["kind"] == "insert" and message.report["documents"] == []
    other = stopped_message(job, NotFoundError("no such document: x"))
    assert (other.report, other.error) == ({}, "no such document: x")


async def test_reports_are_written_only_for_the_calls_that_were_agreed_to(tmp_path: Path) -> None:
    """A job for fewer calls than are needed costs nothing; the other one says what was written."""
    report = {
        "title": "渡船 １２ 😀",
        "summary": "All.",
        "findings": [{"text": "Row.", "passages": [1]}],
    }
    llm = ScriptedLLM(lambda request: json.dumps(report, ensure_ascii=False))
    async with index(tmp_path / "kb", llm) as rag:
        for crew in (("Petrel", "Ostrom", "Gannet"), ("Hedda", "Osric", "Millrace")):
            records = [*map(entity, crew), relation(crew[0], crew[1]), relation(crew[1], crew[2])]
            await rag.insert_records(Document(" met ".join(crew), id=crew[0]), records)
        jobs = [Job(str(calls), "report", 1.0, {"calls": calls}) for calls in (1, 2)]
        with pytest.raises(ConfigError, match="2 reports are missing by now, 1 were agreed to"):
            await do_job(jobs[0], rag, lambda progress: None)
        assert llm.requests == []
        done = await do_job(jobs[1], rag, lambda progress: None)
    assert done["reports"] == [report["title"]] * 2 and done["usage"]["calls"] == 2
    assert done["failures"] in ([], ()) and len(llm.requests) == 2
