"""Models for single tasks: who is asked what, what is recorded, and where the names come from."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, LightRAG
from lightrag_jsonl.core.types import MODEL_TASKS
from lightrag_jsonl.llm.client import TASKS
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.cli.conftest import run, run_json
from tests.kit import prompts, read_names
from tests.servers import Reply, ScriptedServer, chat_reply
from tests.servers import Request as HTTPRequest

TEXT = "Ada met Charles in London."
QUESTION = "Whom did Ada meet?"
ANSWER = "She met Charles [1]."


def answer_anything(request: Request) -> str:
    """Records, keywords or an answer, whatever the prompt asks for."""
    if request.response_type == "jsonl":
        return read_names(request)
    if request.response_type == "json":
        return json.dumps({"high_level_keywords": [], "low_level_keywords": ["Ada"]})
    return ANSWER


def a_model(name: str) -> ScriptedLLM:
    return ScriptedLLM(answer_anything, name=name)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A server of every model, in an empty current folder."""
    monkeypatch.chdir(tmp_path)

    def respond(request: HTTPRequest) -> Reply:
        system = request.json["messages"][0]["content"]
        if "keyword" in system and "jsonl" not in system.lower():
            return chat_reply('{"high_level_keywords": [], "low_level_keywords": ["Ada"]}')
        return chat_reply(ANSWER)

    with ScriptedServer(respond=respond) as server:
        monkeypatch.setenv("LIGHTRAG_JSONL_BASE_URL", server.base_url)
        yield server


def test_each_task_asks_its_own_model(tmp_path: Path) -> None:
    """A task without a model of its own is done by `llm`; provenance names the model that read."""
    llm = a_model("general")
    models = {"extract": a_model("reader"), "answer": a_model("writer")}
    with LightRAG(tmp_path / "kb", llm=llm, models=models) as rag:
        rag.insert(TEXT)
        assert rag.query(QUESTION).text == ANSWER
        assert rag.status().llm == "general"
        assert rag.status().models == {"extract": "reader", "answer": "writer"}
        with rag.engine.store.view() as view:
            assert {report.extractor.rpartition("/")[2] for report in view.chunk_reports()} == {
                "reader"
            }
    assert {request.response_type for request in models["extract"].requests} == {"jsonl"}
    assert len(models["answer"].requests) == 1
    assert [request.response_type for request in llm.requests] == ["json"]


def test_answers_of_one_model_are_not_taken_for_those_of_another(tmp_path: Path) -> None:
    """The cache key of an answer holds the name of the model for the task."""
    first = a_model("first")
    second = a_model("second")
    for model in (first, second, second):
        with LightRAG(tmp_path / "kb", llm=a_model("llm"), models={"answer": model}) as rag:
            rag.insert_records(TEXT, [])
            rag.query(QUESTION, mode="naive")
    assert len(first.requests) == len(second.requests) == 1


def test_no_model_for_a_task_is_the_language_rules(tmp_path: Path) -> None:
    """The rules read for nothing, and a model writes the answer; or the other way round."""
    writer = a_model("writer")
    with LightRAG(tmp_path / "a", llm="none", models={"answer": writer}) as rag:
        rag.insert(TEXT)
        assert rag.entities.list() and rag.query(QUESTION).text == ANSWER
    assert len(writer.requests) == 1
    reader = a_model("reader")
    with LightRAG(tmp_path / "b", llm=reader, models={"answer": "none"}) as rag:
        rag.insert(TEXT)
        assert "Ada met Charles" in rag.query(QUESTION, mode="naive").text


def test_an_unknown_task_is_an_error_that_lists_the_tasks(tmp_path: Path) -> None:
    """In Python and on the command line."""
    with pytest.raises(
        ConfigError, match=r"no task 'extraction'; the tasks are extract, summarize"
    ):
        LightRAG(tmp_path / "kb", models={"extraction": "m"})  # type: ignore[dict-item]
    for value in ("extraction=m", "extract", "extract="):
        result = run("status", "-w", tmp_path / "kb", "--llm-for", value)
        assert result.exit_code == 2
    result = run("query", "-w", tmp_path / "kb", "--llm-for", "extraction=m", "?")
    assert result.exit_code == 2 and "the tasks are extract, summarize" in result.stderr
    assert not (tmp_path / "kb").exists()


@pytest.mark.slow
def test_an_index_remembers_the_models_of_its_tasks(server: ScriptedServer) -> None:
    """By name, as it remembers the model of all tasks. A model named by `--llm`, or `llm=`, does all
    tasks that are not named, too.
    """
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    run("insert", "-w", "kb", "--llm", "big", "--llm-for", "answer=writer", "a.txt")
    server.requests.clear()

    def asked(*arguments: str) -> list[str]:
        server.requests.clear()
        assert run("cache", "-w", "kb", "--clear").exit_code == 0
        run_json("query", "-w", "kb", "--mode", "naive", *arguments, QUESTION)
        return [body["model"] for body in server.bodies]

    assert asked() == ["writer"]
    assert asked("--llm", "other") == ["other"]
    assert asked("--llm-for", "answer=third") == ["third"]
    with LightRAG("kb") as rag:
        assert rag.status().models == {"answer": "writer"}
    with LightRAG("kb", llm=a_model("own")) as rag:
        assert rag.query(QUESTION, mode="naive").text == ANSWER and rag.status().models == {}
    assert run("insert", "-w", "kb", "--llm", "big", "a.txt").exit_code in (0, 3)
    assert asked() == ["big"]


def test_models_for_tasks_come_from_the_users_settings(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new index takes them from the config file and the environment, with an address of its own."""
    user_file = Path(os.environ["XDG_CONFIG_HOME"]) / "lightrag-jsonl" / "config.toml"
    user_file.parent.mkdir(parents=True)
    with ScriptedServer(respond=lambda request: chat_reply("From elsewhere [1].")) as elsewhere:
        user_file.write_text(
            f'llm = "big"\nanswer_llm = "writer"\nanswer_base_url = "{elsewhere.base_url}"',
            encoding="utf-8",
        )
        monkeypatch.setenv("LIGHTRAG_JSONL_KEYWORDS_LLM", "small")
        Path("a.txt").write_text(TEXT, encoding="utf-8")
        run("insert", "-w", "kb", "a.txt")
        server.requests.clear()
        answer = run_json("query", "-w", "kb", "--mode", "mix", QUESTION)
        assert answer["text"].startswith("From elsewhere")
        assert [body["model"] for body in elsewhere.bodies] == ["writer"]
        assert {body["model"] for body in server.bodies} == {"small"}


def test_every_prompt_that_is_sent_belongs_to_a_task() -> None:
    """A prompt added later is not taken for extraction by accident."""
    names = set(prompts().ids)
    assert TASKS.keys() - {"chat"} <= names
    for name in names - TASKS.keys():
        is_reading = "extract" in name or name == "glean-check"
        is_part_of_a_chat = name.startswith(("answer", "no-context", "nothing-indexed"))
        assert is_reading or is_part_of_a_chat, name
    assert set(TASKS.values()) == set(MODEL_TASKS) - {"extract"}
