"""`insert --read asked`, `--read-chunks` and `retry --upgrade --max-tokens` on the command line."""

from pathlib import Path

from tests.cli.conftest import run, run_json
from tests.kit import entity, jsonl
from tests.servers import Reply, Request, ScriptedServer, chat_reply, stream_reply

TEXTS = {
    "mill.txt": "Orla Finch rents the Grey Mill from Tobias Venn since the flood.",
    "ferry.txt": "A ferry runs from Eastmere to Port Lorne every morning.",
}
QUESTION = "Who rents the Grey Mill?"


def reply(request: Request) -> Reply:
    """A model that finds one name in each text, and answers."""
    asked = request.json["messages"][-1]["content"]
    if "Text:\n" in asked:
        name = "Orla Finch" if "Orla Finch" in asked else "Port Lorne"
        return chat_reply(jsonl(entity(name), {"type": "done", "entities": 1, "relationships": 0}))
    if "response_format" in request.json:
        return chat_reply('{"high_level_keywords": [], "low_level_keywords": ["Grey Mill"]}')
    if request.json.get("stream"):
        return stream_reply(["Orla Finch rents it. [1]"])
    return chat_reply("Orla Finch rents it. [1]")


def test_read_when_asked_from_the_first_insert_to_the_last_chunk(tmp_path: Path) -> None:
    """An insert calls nobody; a question says what it had read; status and doctor say what the rest would
    cost; an upgrade reads it, within a budget.
    """
    kb = tmp_path / "kb"
    files = [tmp_path / name for name in TEXTS]
    for file, text in zip(files, TEXTS.values(), strict=True):
        file.write_text(text, encoding="utf-8")
    with ScriptedServer(respond=reply) as server:
        model = ("--llm", "m", "--base-url", server.base_url)
        insert = ("insert", "-w", kb, *model, "--read", "asked", "--read-chunks", "1")
        assert run(*insert, *files).exit_code == 0
        assert server.requests == []
        answered = run("query", "-w", kb, QUESTION)
        assert answered.exit_code == 0, answered.output
        assert "read for this question: 1 chunk," in answered.stderr
        status = run_json("status", "-w", kb)["reading"]
        assert (status["read"], status["chunks_read"], status["chunks_unread"]) == ("asked", 1, 1)
        assert status["tokens_for_rest"] > 0
        doctor = run("doctor", "-w", kb).stdout
        assert "1 of 2, by 1 question" in doctor
        asked = len(server.requests)
        assert (
            run("query", "-w", kb, "--read-chunks", "0", "Where does the ferry run?").exit_code == 0
        )
        assert "Text:\n" not in "".join(
            request.json["messages"][-1]["content"] for request in server.requests[asked:]
        )
        upgraded = run("retry", "-w", kb, "--upgrade", "--yes", "--max-tokens", "100000")
        assert upgraded.exit_code == 0, upgraded.output
    assert run_json("status", "-w", kb)["reading"]["chunks_unread"] == 0
