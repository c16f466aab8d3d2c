"""What an index remembers before its first commit: an insert may be interrupted, an index only opened."""

from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG, LLMError, SettingsError
from lightrag_jsonl.testing import ScriptedLLM
from tests.cli.conftest import run
from tests.kit import recorded_settings
from tests.servers import ScriptedServer, chat_reply, error_reply

RECORDS = '{"type": "entity", "name": "Ida", "entity_type": "person", "description": "Swims."}'


def test_an_index_that_was_only_opened_keeps_its_language(tmp_path: Path) -> None:
    """Opened again without a language, prompts and rules are those of the first opening; until there is
    a document, another language may be given.
    """
    with LightRAG(tmp_path, language="zh"):
        pass
    with LightRAG(tmp_path) as rag:
        assert rag.engine.language == "zh"
    with LightRAG(tmp_path, language="fr") as rag:
        assert rag.engine.language == "fr"
    with LightRAG(tmp_path) as rag:
        assert rag.engine.language == "fr"
        rag.insert("Ida nage.")
    with pytest.raises(SettingsError, match="built with language"):
        LightRAG(tmp_path, language="zh")


def test_an_insert_that_failed_at_once_leaves_its_settings(tmp_path: Path) -> None:
    """Language, models for all tasks and embedder are known though no document is there; another model
    for a question changes nothing.
    """

    def fail(request: object) -> Exception:
        return LLMError("no", permanent=True)

    llm = ScriptedLLM(fail)
    rag = LightRAG(tmp_path, language="zh", llm=llm, models={"summarize": "none"})
    with rag, pytest.raises(LLMError):
        rag.insert("艾达在河里游泳。")
    before = recorded_settings(tmp_path)
    assert before is not None and "embedder" not in before
    with LightRAG(tmp_path, llm="none") as rag:
        assert rag.engine.language == "zh" and rag.status().documents == {"pending": 1}
    assert recorded_settings(tmp_path) == before


@pytest.mark.slow
def test_an_interrupted_insert_goes_on_with_its_settings(tmp_path: Path) -> None:
    """`resume` asks the same model at the same address, with prompts and options of the insert."""
    text = tmp_path / "a.txt"
    text.write_text("艾达在河里游泳。" * 40, encoding="utf-8")
    is_down = True

    def answer(request: object) -> object:
        return error_reply(401, "no") if is_down else chat_reply(RECORDS)

    with ScriptedServer(respond=answer) as server:  # type: ignore[arg-type]
        arguments = ("--llm", "m", "--base-url", server.base_url, "--language", "zh")
        options = ("--chunk-tokens", "60", "--gleanings", "0")
        run("insert", "-w", tmp_path / "kb", *arguments, *options, text)
        first_prompt = str(server.requests[0].json["messages"])
        asked = len(server.requests)
        is_down = False
        assert run("resume", "-w", tmp_path / "kb").exit_code == 0
        prompts = [str(request.json["messages"]) for request in server.requests[asked:]]
    assert first_prompt in prompts and len(prompts) > 1


@pytest.mark.slow
def test_a_retry_remembers_the_address_of_a_new_model(tmp_path: Path) -> None:
    """With `--upgrade` the index records the model, so questions find it where it was."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert("Ida Fenn swims in the river.")
    with ScriptedServer(respond=lambda request: chat_reply(RECORDS)) as server:
        upgrade = ("--upgrade", "--yes", "--llm", "m", "--base-url", server.base_url)
        assert run("retry", "-w", tmp_path / "kb", *upgrade).exit_code == 0
        asked = len(server.requests)
        with LightRAG(tmp_path / "kb") as rag:
            rag.query("Who swims?", mode="bypass")
        assert len(server.requests) == asked + 1
