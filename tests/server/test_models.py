"""The models of a server: named once for all indexes, by task, with a reranker."""

from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")


from lightrag_jsonl import LightRAG
from lightrag_jsonl.server.indexes import Indexes
from tests.cli.conftest import run
from tests.kit import entity, jsonl
from tests.server.running import serving, wait_for
from tests.servers import Reply, Request, ScriptedServer, chat_reply, stream_reply

pytestmark = pytest.mark.timeout(300)

TEXT = "Ada kept the old mill."


def respond(request: Request) -> Reply:
    """Scores, records or an answer."""
    if request.path.endswith("/rerank"):
        scores = [
            {"index": index, "relevance_score": 0.5}
            for index, _ in enumerate(request.json["documents"])
        ]
        return Reply({"results": scores})
    if request.json["model"] == "reader":
        return chat_reply(jsonl(entity("Ada", "Ada kept the old mill.")))
    if request.json.get("stream"):
        return stream_reply(["Ada did [1]."], usage={"prompt_tokens": 9, "completion_tokens": 3})
    return chat_reply("Ada did [1].")


@pytest.mark.slow
def test_questions_and_jobs_have_the_models_of_the_server(tmp_path: Path) -> None:
    """Instead of those that the index remembers: one reads, another answers, a third orders passages."""
    kb = tmp_path / "kb"
    with LightRAG(kb) as rag:
        rag.insert([f"Somebody {name} kept the old mill." for name in ("Bob", "Cy", "Di")])
    with ScriptedServer(respond=respond) as models:
        options = {
            "llm": "none",
            "models": {"extract": "reader", "answer": "writer"},
            "base_url": models.base_url,
            "reranker": "orderer",
            "reranker_base_url": models.base_url,
        }
        with serving(kb, models=options) as server:
            job = server.client.post("/indexes/kb/documents", json={"documents": [{"text": TEXT}]})
            path = f"/indexes/kb/jobs/{job.json()['id']}"
            wait_for(lambda: server.client.get(path).json()["state"] == "done")
            answer = server.client.post(
                "/indexes/kb/query", json={"question": "Who kept the old mill?"}
            )
    assert answer.json()["text"] == "Ada did [1]."
    assert {body["model"] for body in models.bodies} == {"reader", "writer", "orderer"}


def test_serve_takes_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the command line, as other commands do; an unknown task is an error before anything starts."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(TEXT)
    opened: list[Indexes] = []
    monkeypatch.setattr(Indexes, "open", lambda indexes, folders: opened.append(indexes))
    monkeypatch.setattr("uvicorn.Server.run", lambda server: setattr(server, "started", True))
    folder = str(tmp_path / "kb")
    options = ["--llm", "m", "--llm-for", "answer=a", "--base-url", "http://localhost:1/v1"]
    options += ["--reranker", "r", "--reranker-base-url", "http://localhost:2"]
    result = run("serve", folder, *options)
    assert result.exit_code == 0, result.output
    (indexes,) = opened
    setup = indexes.setup
    assert setup is not None and (setup.llm, setup.models) == ("m", {"answer": "a"})
    assert (setup.base_url, setup.reranker) == ("http://localhost:1/v1", "r")
    wrong = run("serve", folder, "--llm-for", "dream=a")
    assert wrong.exit_code == 2 and "the tasks are" in wrong.output
