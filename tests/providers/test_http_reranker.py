"""HTTP rerankers: the form of each server's requests and answers, limits, keys and errors."""

import inspect
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import HTTPReranker, LightRAG, LLMError, Reranker
from lightrag_jsonl.providers.settings import RERANKER_SETTINGS
from lightrag_jsonl.testing import RerankerContract
from tests.cli.conftest import run, run_json
from tests.servers import Reply, Request, ScriptedServer, error_reply

TEXTS = ["Ada met Charles.", "汉武帝派张骞。", "Rain."]
Respond = Callable[[Request], Reply]


def lengths(texts: list[str]) -> list[dict[str, Any]]:
    """A result for each text, the longest first: the score is the length."""
    results = [{"index": index, "relevance_score": len(text)} for index, text in enumerate(texts)]
    return sorted(results, key=lambda result: -result["relevance_score"])


def jina(request: Request) -> Reply:
    """Also Cohere, vLLM and llama.cpp."""
    assert request.path == "/v1/rerank" and set(request.json) == {"model", "query", "documents"}
    return Reply({"model": request.json["model"], "results": lengths(request.json["documents"])})


def voyage(request: Request) -> Reply:
    """A list under another name."""
    return Reply({"object": "list", "data": lengths(request.json["documents"])})


def tei(request: Request) -> Reply:
    """Text Embeddings Inference: `texts` instead of `documents`, and a bare list."""
    assert request.path == "/rerank"
    if "texts" not in request.json:
        message = "Failed to deserialize the JSON body into the target type: missing field `texts`"
        return Reply(message, status=422)
    results = lengths(request.json["texts"])
    return Reply([{"index": item["index"], "score": item["relevance_score"]} for item in results])


def dashscope(request: Request) -> Reply:
    """The native protocol, with `input`, `parameters` and `output`."""
    assert request.path == "/api/v1/services/rerank/text-rerank/text-rerank"
    documents = request.json["input"]["documents"]
    assert request.json["parameters"] == {"return_documents": False, "top_n": len(documents)}
    return Reply({"output": {"results": lengths(documents)}, "usage": {"total_tokens": 7}})


FORMS = [
    pytest.param(jina, "/v1", id="base"),
    pytest.param(jina, "/v1/rerank", id="whole address"),
    pytest.param(voyage, "/v1", id="voyage"),
    pytest.param(tei, "", id="tei"),
    pytest.param(dashscope, "/api/v1/services/rerank/text-rerank/text-rerank", id="dashscope"),
]


@pytest.mark.parametrize(("respond", "path"), FORMS)
async def test_each_form_gives_scores_in_the_order_of_the_texts(
    respond: Respond, path: str
) -> None:
    """Whatever the server calls things, and in whatever order it answers."""
    with ScriptedServer(respond=respond) as server:
        reranker = HTTPReranker("m", base_url=server.url + path, api_key="sk-own")
        assert list(await reranker.score("Whom?", TEXTS)) == [16, 7, 5]
        assert list(await reranker.score("Whom?", TEXTS[:1])) == [16]
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-own"}
    assert len(server.requests) == (3 if respond is tei else 2)  # the form is learned once


class TestHTTPReranker(RerankerContract):
    """It keeps the contract of rerankers."""

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with ScriptedServer(respond=jina) as self._server:
            yield

    def make(self) -> Reranker:
        return HTTPReranker("m", base_url=self._server.base_url)


async def test_a_batch_that_is_too_large_is_halved() -> None:
    """Until the server takes it; later requests are small at once. A given size is kept."""

    def at_most_two(request: Request) -> Reply:
        if len(request.json["documents"]) > 2:
            return error_reply(413, "batch size 5 > maximum allowed batch size 2")
        return jina(request)

    texts = ["a" * length for length in (3, 1, 4, 1, 5)]
    with ScriptedServer(respond=at_most_two) as server:
        reranker = HTTPReranker("m", base_url=server.base_url)
        assert list(await reranker.score("?", texts)) == [3, 1, 4, 1, 5]
        server.requests.clear()
        assert list(await reranker.score("?", texts)) == [3, 1, 4, 1, 5]
        assert [len(body["documents"]) for body in server.bodies] == [2, 2, 1]
        server.requests.clear()
        small = HTTPReranker("m", base_url=server.base_url, batch_size=1)
        await small.score("?", texts)
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply({"results": [{"index": 0, "relevance_score": 1}]}), "a score for each of 3 texts"),
        (Reply({"detail": "Not found"}), "check the address"),
        (Reply("<html>"), "check"),
        (error_reply(401, "who are you?"), "check the key"),
        (error_reply(400, "no such model"), "no such model"),
    ],
)
async def test_an_error_says_what_is_wrong(reply: Reply, words: str) -> None:
    """And names the server; it is asked once."""
    with ScriptedServer(respond=lambda request: reply) as server:
        reranker = HTTPReranker("m", base_url=server.base_url, api_key="sk-own")
        with pytest.raises(LLMError, match=words) as caught:
            await reranker.score("?", TEXTS)
    assert server.url.removeprefix("http://") in str(caught.value)
    assert len(server.requests) == 1


async def test_a_passing_error_is_repeated_and_no_foreign_key_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The key of the model's server is not sent to that of the reranker."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    loading = error_reply(503, "loading", retry_after="0.001")
    with ScriptedServer([loading], respond=jina) as server:
        await HTTPReranker("m", base_url=server.base_url).score("?", TEXTS)
    assert len(server.requests) == 2
    assert not any("sk-secret" in str(request.headers) for request in server.requests)


# ── the setting ─────────────────────────────────────────────────────────────────


def test_every_argument_is_a_setting() -> None:
    """A new argument of the constructor is a key of the config file and of the environment."""
    arguments = inspect.signature(HTTPReranker).parameters.keys()
    assert arguments - {"self", "model", "base_url", "api_key"} == RERANKER_SETTINGS.keys()


def test_a_reranker_from_the_config_file_orders_the_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions on the command line use it; `doctor` shows it; without an address, it is an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    user_file = Path(os.environ["XDG_CONFIG_HOME"]) / "lightrag-jsonl" / "config.toml"
    user_file.parent.mkdir(parents=True)
    Path("a.jsonl").write_text(
        "\n".join(json.dumps({"text": f"Ada met Charles{' again' * n}."}) for n in range(4)),
        encoding="utf-8",
    )
    run("insert", "-w", "kb", "a.jsonl")
    with ScriptedServer(respond=jina) as server:
        settings = (
            f'reranker = "m"\nreranker_base_url = "{server.base_url}"\nreranker_timeout = 99\n'
        )
        user_file.write_text(settings, encoding="utf-8")
        answer = run_json("retrieve", "-w", "kb", "--mode", "naive", "Whom did Ada meet?")
        first_text = answer["chunks"][0]["text"]
        report = run_json("doctor", "-w", "kb")
    assert first_text == "Ada met Charles again again again."
    assert server.bodies and "sk-secret" not in str(server.requests[0].headers)
    assert report["reranker"] == "m" and report["reranker_endpoint"] == server.base_url
    user_file.write_text('reranker = "m"', encoding="utf-8")
    result = run("retrieve", "-w", "kb", "Whom?")
    assert result.exit_code == 1 and "reranker_base_url" in result.stderr
    with LightRAG("kb") as rag:
        assert rag.engine.reranker is None  # a program gives its own
