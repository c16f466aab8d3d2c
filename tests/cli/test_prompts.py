"""parse, extract and prompts: model output and prompts, without an index."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run, run_json
from tests.conftest import CHECKOUT
from tests.servers import ScriptedServer, chat_reply

BROKEN = 'Sure!\n{"entity":"猫","definition":"x"}\n{"entity":"dog","defi'
SCHEMA = {"type": "object", "required": ["entity", "definition"]}


def test_parse_separates_records_and_refusals(tmp_path: Path) -> None:
    """Records go to stdout as JSONL, refused lines with the reason to stderr; --json has it all. Every
    encoding of a text file is read.
    """
    result = run("parse", "--strict", stdin='{"a":"刘备"}\n'.encode("gb18030"))
    assert result.stderr == "" and json.loads(result.stdout) == {"a": "刘备"}
    assert run("parse", "--strict", stdin=BROKEN).exit_code == 1
    assert run("parse", "--strict", stdin='{"a":"say "hi" now"}').exit_code == 0  # repaired
    result = run("parse", stdin=BROKEN)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"entity": "猫", "definition": "x"}
    first, second = result.stderr.rstrip("\n").split("\n")
    assert first.startswith("line 1: not_json") and second.startswith("line 3: truncated")

    (tmp_path / "answer.txt").write_text(BROKEN, encoding="utf-8")
    found = run_json("parse", tmp_path / "answer.txt")
    assert found["truncated"] is True and found["line_numbers"] == [2]
    assert [one["reason"] for one in found["rejections"]] == ["not_json", "truncated"]


def test_parse_with_a_schema(tmp_path: Path) -> None:
    """Records that break the schema are refused, with what is missing; a broken schema is an error."""
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA), encoding="utf-8")
    result = run("parse", "--schema", schema, stdin='{"entity":"cat"}')
    assert result.stdout == "" and "schema" in result.stderr and "definition" in result.stderr

    for text in ("{", "[]", '{"type": 7}'):
        schema.write_text(text, encoding="utf-8")
        result = run("parse", "--schema", schema, stdin="{}")
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1


def test_extract_asks_and_prints_records(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Records are printed one a line, other lines logged. --set gives a prompt its further variables,
    JSON from a file among them.
    """
    fields = [{"name": "city", "type": "string"}]
    table = {"name": "cities", "description": "Cities", "fields": fields}
    (tmp_path / "table.json").write_text(json.dumps(table), encoding="utf-8")
    replies = [chat_reply('{"topic":"猫","definition":"动物"}\nOK'), chat_reply('{"city":"Rome"}')]
    with ScriptedServer([*replies, chat_reply("none")]) as server:
        url = ("--llm", "m", "--base-url", server.base_url)
        topics = run("extract", "extract-topics", "-l", "zh", *url, stdin="猫是一种动物。")
        rows = ("extract", "extract-rows", "--set", f"schema=@{tmp_path / 'table.json'}", *url)
        cities, nothing = (run(*rows, stdin=text) for text in ("Born in Rome.", "She was born."))
        sent = json.dumps(server.bodies, ensure_ascii=False)

    assert topics.exit_code == 0, topics.output
    assert json.loads(topics.stdout) == {"topic": "猫", "definition": "动物"}
    assert "猫是一种动物。" in sent and "OK" in caplog.text
    assert json.loads(cities.stdout) == {"city": "Rome"}
    assert nothing.stdout == "" and "no records" in nothing.stderr
    assert run("extract", "answer", *url, stdin="x").exit_code == 2  # it answers with a text


@pytest.mark.slow
def test_prompts_of_ones_own(tmp_path: Path) -> None:
    """What is shown is the file, to the character; changed, it is used and checked from its folder."""
    assert run_json("prompts", "check") == {"en": [], "zh": []}
    english, chinese = run_json("prompts", "list"), run_json("prompts", "list", "-l", "zh")
    assert [one["id"] for one in english] == [one["id"] for one in chinese]
    shown = run("prompts", "show", "extract-graph", "-l", "zh").stdout
    assert shown == (CHECKOUT / "prompts_zh" / "extract-graph.md").read_text(encoding="utf-8")
    assert run("prompts", "show", "ontology-extract").exit_code == 0  # an alias
    unknown = run("prompts", "show", "extract-grap")
    assert unknown.exit_code == 1 and "extract-graph" in unknown.stderr

    text = run("prompts", "show", "no-context").stdout
    own = tmp_path / "no-context.md"
    own.write_text(text + "\nMine.\x85\x0c🙂\n", encoding="utf-8")
    assert run("prompts", "show", "no-context", "--prompts", tmp_path).stdout.endswith("\x0c🙂\n")
    assert run("prompts", "check", tmp_path).stdout == "OK\n"
    own.write_text(text + "{{ nobody }}", encoding="utf-8")
    result = run("prompts", "check", tmp_path)
    assert result.exit_code == 1
    assert "no-context.md" in result.stdout and "nobody" in result.stdout
