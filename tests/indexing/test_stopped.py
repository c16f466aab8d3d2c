"""Inserts that an error stops: it is raised with what was done, and queries of an unfilled index say so."""

from pathlib import Path

import pytest

from lightrag_jsonl import (
    Document,
    EmbeddingError,
    IndexOptions,
    LightRAG,
    LightRAGError,
    LLMError,
    OpenAILLM,
)
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.indexing.test_embedding import Counting
from tests.kit import TOKENIZER, index, problems, prompts, read_names
from tests.servers import ScriptedServer, error_reply

DOCUMENTS = [Document("Lena Fischer paints.", id="a"), Document("Otto Brandt sings.", id="b")]
QUESTION = {"en": "Who paints?", "zh": "谁画画？"}


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [(401, "bad key", "check the key"), (404, "no such model", "check the model's name")],
)
def test_a_wrong_key_or_model_is_raised_in_python(
    tmp_path: Path, status: int, message: str, advice: str
) -> None:
    """By insert, resume and retry, with a report that says that nothing became visible."""
    server = ScriptedServer(respond=lambda request: error_reply(status, message))
    with (
        server,
        LightRAG(
            tmp_path,
            llm=OpenAILLM("m", base_url=server.base_url, api_key="a-secret"),
            embedder=HashEmbedder(dim=64),
            tokenizer=TOKENIZER,
        ) as rag,
    ):
        for change in (lambda: rag.insert(DOCUMENTS), rag.resume):
            with pytest.raises(LLMError, match=advice) as caught:
                change()
            report = caught.value.report
            assert report is not None and (report.documents, report.chunks) == ((), 0)
            assert advice in report.stopped and message in report.stopped
        answer = rag.query("Who paints?", mode="naive").text
        assert "2 documents wait" in answer and advice in answer and "resume" in answer


async def test_what_was_done_before_the_error_is_in_its_report(tmp_path: Path) -> None:
    """Documents that were committed, failures of files, and the cost; a retry raises, too."""
    first = "Lena Fischer paints. " * 3
    options = IndexOptions(max_concurrent_calls=1, max_gleanings=0)
    ill = LLMError("wrong key", permanent=True)

    def answer(request: Request) -> str | Exception:
        return ill if "Otto" in request.text else read_names(request)

    missing = tmp_path / "missing.txt"
    async with index(tmp_path / "kb", ScriptedLLM(answer), options=options) as rag:
        with pytest.raises(LLMError) as caught:
            await rag.insert([Document(first, id="a"), missing, Document("Otto sang.", id="b")])
        report = caught.value.report
        assert report is not None and report.documents == ("a",) and report.usage.calls == 1
        assert [one.document_id for one in report.failures] == [str(missing)]
        assert [one.state for one in await rag.documents()] == ["done", "pending"]
    assert problems(tmp_path / "kb") == []


async def test_an_embedder_that_cannot_be_asked_stops_with_a_report(tmp_path: Path) -> None:
    """As a model does; the paid answers are counted in it."""
    embedder = Counting(fails_from=0)
    async with index(tmp_path, ScriptedLLM(read_names), embedder=embedder) as rag:
        with pytest.raises(EmbeddingError) as caught:
            await rag.insert(DOCUMENTS)
        report = caught.value.report
        assert report is not None and (report.documents, report.usage.calls) == ((), 2)


async def test_a_wrong_address_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One document is no reason to stop: it failed, as its status, a warning and a query say."""
    with ScriptedServer() as server:
        llm = OpenAILLM("m", base_url=server.base_url, api_key="a-secret", max_retries=0)
    async with index(tmp_path, llm, options=IndexOptions(max_gleanings=0)) as rag:
        report = await rag.insert(DOCUMENTS[0])
        assert "no connection" in report.failures[0].reason and "no connection" in caplog.text
        answer = await rag.query("Who?", {"mode": "naive", "where": {"id": "nothing"}})
        assert "no connection" in answer.text and "retry" in answer.text


async def test_a_limit_that_the_user_set_is_no_error(tmp_path: Path) -> None:
    """It is `stopped` in the report; a query of the empty index names it."""
    options = IndexOptions(max_calls=0)
    async with index(tmp_path, ScriptedLLM(read_names), options=options) as rag:
        report = await rag.insert(DOCUMENTS)
        assert "0 of 0 calls" in report.stopped
        assert "0 of 0 calls" in (await rag.query("Who paints?", mode="naive")).text


@pytest.mark.parametrize(
    ("language", "never", "waiting", "failed", "nothing"),
    [
        (
            "en",
            "insert documents first",
            "1 document waits",
            "could read nothing of 1 document",
            "No document passes the filter (id = nothing).",
        ),
        (
            "zh",
            "请先插入文档",
            "1 篇文档等待处理",
            "1 篇文档模型未能读出任何内容",
            "没有文档符合过滤条件（id = nothing）。",
        ),
    ],
)
async def test_an_index_that_was_never_filled_says_so(
    tmp_path: Path, language: str, never: str, waiting: str, failed: str, nothing: str
) -> None:
    """Nothing inserted, all waiting, all failed: each in the language of the index, with the reason,
    until something is read; then nothing found is nothing found."""
    script: list[str | LLMError] = [LLMError("no key here 🔑", permanent=True), LLMError("ill")]
    llm = ScriptedLLM(lambda request: script.pop(0) if script else read_names(request))
    options = IndexOptions(max_gleanings=0)
    more = {"language": language, "prompts": prompts(language)}
    async with index(tmp_path, llm, options=options, **more) as rag:
        param = {"mode": "naive", "where": {"id": "nothing"}}  # so that no passage is found

        async def told() -> str:
            return (await rag.query(QUESTION[language], param)).text

        assert never in await told()
        assert (await rag.query(QUESTION[language], param, fail_response="?")).text == "?"
        with pytest.raises(LightRAGError):
            await rag.insert(Document("Lena Fischer paints.", id="a"))
        text = await told()
        assert waiting in text and "no key here 🔑" in text and "resume" in text
        await rag.resume()
        text = await told()
        assert failed in text and "ill" in text and "retry" in text and "🔑" not in text
        await rag.retry()
        assert await told() == nothing


async def test_a_failure_that_cannot_be_written_costs_its_chunk_only(tmp_path: Path) -> None:
    """A model whose error quotes half a character fails for one document; the other is read."""

    def answer(request: Request) -> str:
        if "Otto" in request.text:
            raise ValueError("unreadable: \udce9 中 🙂")
        return read_names(request)

    async with index(tmp_path, ScriptedLLM(answer)) as rag:
        report = await rag.insert(DOCUMENTS)
    assert [failure.reason for failure in report.failures] == [
        "scripted failed: ValueError: unreadable: \ufffd 中 🙂"
    ]
    assert report.documents == ("a", "b")
