"""What the child process of a server reports about a job."""

import json
from pathlib import Path

import pytest

from lightrag_jsonl.core.errors import LightRAGError, LLMError, NotFoundError
from lightrag_jsonl.server.jobs import Job
from lightrag_jsonl.server.worker import do_job, stopped_message
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import index


async def test_a_job_that_an_error_stopped_says_what_was_done(tmp_path: Path) -> None:
    """The reason as its error, and the report; an error of another kind has none."""
    llm = ScriptedLLM(lambda request: LLMError("check the key 🔑", permanent=True))
    content = tmp_path / "content"
    content.write_text(
        json.dumps({"documents": [{"text": "Ida swims.", "id": "i"}]}), encoding="utf-8"
    )
    job = Job("j", "insert", 1.0)
    async with index(tmp_path / "kb", llm) as rag:
        with pytest.raises(LightRAGError) as caught:
            await do_job(job, rag, content, lambda progress: None)
    message = stopped_message(job, caught.value)
    assert "check the key 🔑" in message.error and "progress saved" in message.error
    assert message.report["kind"] == "insert" and message.report["documents"] == []
    other = stopped_message(job, NotFoundError("no such document: x"))
    assert (other.report, other.error) == ({}, "no such document: x")
