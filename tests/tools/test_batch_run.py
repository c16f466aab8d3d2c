"""Batches from beginning to end, at a provider that speaks OpenAI's batch API."""

from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import ConfigError, Document, IndexOptions, LightRAG, LLMError, OpenAILLM
from lightrag_jsonl.providers.openai_batches import ProviderBatch
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.tools.batch import export_batch
from lightrag_jsonl.tools.batch_run import run_batch
from tests.batch_server import AnswerRequest, BatchServer
from tests.kit import entity, jsonl

NAMES = ("Scrooge", "Marley", "Fezziwig")
DOCUMENTS = [Document(f"{name} kept a counting house. " * 8, id=name) for name in NAMES]
GLEANED = IndexOptions(max_gleanings=1, glean_min_tokens=1)


class Interrupted(Exception):
    """The end of a process, in the middle of a run."""


def name_in(body: dict[str, Any]) -> str:
    """The person that a request is about."""
    text = body["messages"][1]["content"]
    return next(name for name in NAMES if name in text)


def answer(body: dict[str, Any]) -> str:
    """The person in the first turn, and a house in the second."""
    name = name_in(body)
    is_first = len(body["messages"]) == 2
    return jsonl(entity(name if is_first else f"House of {name}"))


def opened(folder: Path, server: BatchServer) -> LightRAG:
    llm = OpenAILLM("m", base_url=server.base_url, api_key="sk-test")
    return LightRAG(folder / "kb", llm=llm, options=GLEANED)


def test_a_run_indexes_everything(tmp_path: Path) -> None:
    """A round for first answers and one for gleanings; a further run has nothing to do."""
    shown: list[ProviderBatch] = []
    with BatchServer(answer, polls=2) as server, opened(tmp_path, server) as rag:
        run = rag.run(run_batch, DOCUMENTS, poll_seconds=0, show=shown.append)
        again = rag.run(run_batch, DOCUMENTS, poll_seconds=0)
        names = set(rag.graph)

    assert names == {*NAMES, *(f"House of {name}" for name in NAMES)}
    assert run.rounds == 2 and run.answered == 6 and not run.failed
    assert run.documents == tuple(sorted(NAMES)) and run.usage.output_tokens == 60
    assert run.batches == tuple(batch["id"] for batch in server.batches)
    assert again.rounds == 0 and len(again.unchanged) == 3
    assert {batch.state for batch in shown} == {"validating", "in_progress", "completed"}
    assert server.authorizations == {"Bearer sk-test"}
    assert {batch["endpoint"] for batch in server.batches} == {"/v1/chat/completions"}


@pytest.mark.slow
@pytest.mark.parametrize("state", ["validating", "in_progress", "completed"])
def test_an_interrupted_run_submits_nothing_twice(tmp_path: Path, state: str) -> None:
    """Whenever the process ends, the next run finds the batch at the provider."""

    def interrupt(batch: ProviderBatch) -> None:
        if batch.state == state:
            raise Interrupted

    with BatchServer(answer, polls=2) as server:
        with opened(tmp_path, server) as rag, pytest.raises(Interrupted):
            rag.run(run_batch, DOCUMENTS, poll_seconds=0, show=interrupt)
        assert len(server.batches) == 1
        with opened(tmp_path, server) as rag:
            run = rag.run(run_batch, poll_seconds=0)
            assert rag.status().documents == {"done": 3}
    assert run.answered == 6 and len(server.batches) == 2


def failing(times: int) -> AnswerRequest:
    """Answers, but the first requests about Marley fail."""
    failures_left = [times]

    def answer_or_fail(body: dict[str, Any]) -> str | None:
        if name_in(body) == "Marley" and failures_left[0]:
            failures_left[0] -= 1
            return None
        return answer(body)

    return answer_or_fail


@pytest.mark.slow
def test_failed_requests_are_submitted_again(tmp_path: Path) -> None:
    """In the next round, with the requests that this round brings."""
    with BatchServer(failing(1)) as server, opened(tmp_path, server) as rag:
        run = rag.run(run_batch, DOCUMENTS, poll_seconds=0)
        assert rag.status().documents == {"done": 3}
    assert not run.failed and run.answered == 6


@pytest.mark.slow
def test_requests_that_always_fail_end_the_run(tmp_path: Path) -> None:
    """With the reason; all else is indexed, and the chunk is failed, as after an insert."""
    with BatchServer(failing(100)) as server, opened(tmp_path, server) as rag:
        run = rag.run(run_batch, DOCUMENTS, poll_seconds=0)
        assert rag.status().documents == {"done": 2, "failed": 1}
    assert [reason for _, reason in run.failed] == ["the model is overloaded"]
    assert [failure.document_id for failure in run.failures] == ["Marley"]


@pytest.mark.slow
def test_a_refused_batch_is_an_error_with_the_reason(tmp_path: Path) -> None:
    """Nothing is lost: the documents wait."""
    refusal = "line 1: no such model"
    with BatchServer(answer, refusal=refusal) as server, opened(tmp_path, server) as rag:
        with pytest.raises(LLMError, match="no such model"):
            rag.run(run_batch, DOCUMENTS, poll_seconds=0)
        assert rag.status().documents == {"pending": 3}
        server.refusal = ""
        assert rag.run(run_batch, poll_seconds=0).answered == 6


def test_a_model_without_a_batch_api_is_named(tmp_path: Path) -> None:
    """Before anything is sent or stored; the files are another way."""
    llm = ScriptedLLM([], name="own")
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        with pytest.raises(ConfigError, match=r"own has no batch API.*batch export"):
            rag.run(run_batch, DOCUMENTS, poll_seconds=0)
        assert not rag.status().documents


def test_a_missing_key_is_named_before_documents_are_stored(tmp_path: Path) -> None:
    """And not taken for an answer that cannot be read, also where documents wait already."""
    with LightRAG(tmp_path / "kb", llm=OpenAILLM("m"), options=GLEANED) as rag:
        with pytest.raises(ConfigError, match="no API key for"):
            rag.run(run_batch, DOCUMENTS, poll_seconds=0)
        assert not rag.status().documents
        rag.run(export_batch, tmp_path / "requests.jsonl", DOCUMENTS)
        with pytest.raises(ConfigError, match="no API key for"):
            rag.run(run_batch, poll_seconds=0)
