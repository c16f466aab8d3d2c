"""parse, extract and prompts: model output and prompts, with no index in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, RunJson
from tests.conftest import CHECKOUT
from tests.servers import ScriptedServer, chat_reply

BROKEN = 'Sure!\n{"entity":"猫","definition":"x"}\n{"entity":"dog","defi'
SCHEMA = {"type": "object", "required": ["entity", "definition"]}


def test_parse_separates_records_and_refusals(run: Run) -> None:
    """Records go to stdout as JSONL, refused lines with reason to stderr; the status is 0."""
    result = run("parse", stdin=BROKEN)

    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.rstrip("\n").split("\n")] == [
        {"entity": "猫", "definition": "x"}
    ]
    first, second = result.stderr.rstrip("\n").split("\n")
    assert first.startswith("line 1: not_json") and second.startswith("line 3: truncated")


def test_parse_strict(run: Run) -> None:
    """--strict fails where a line was refused, and only there; a mended record is none."""
    assert run("parse", "--strict", stdin=BROKEN).exit_code == 1
    assert run("parse", "--strict", stdin='{"a":1}\n').exit_code == 0
    mended = run("parse", "--strict", stdin='{"a":"say "hi" now"}')
    assert mended.exit_code == 0 and "repaired" in mended.stderr


def test_parse_with_a_schema(run: Run, tmp_path: Path) -> None:
    """Records that break the schema are refused, with what is missing."""
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (tmp_path / "answer.txt").write_text('{"entity":"cat"}', encoding="utf-8")
    result = run("parse", "--schema", tmp_path / "schema.json", tmp_path / "answer.txt")

    assert result.stdout == ""
    assert "schema" in result.stderr and "definition" in result.stderr


@pytest.mark.parametrize("schema", ["{", "[]", '{"type": 7}'])
def test_parse_with_a_broken_schema(run: Run, tmp_path: Path, schema: str) -> None:
    """A schema that is none is an error of one line."""
    (tmp_path / "schema.json").write_text(schema, encoding="utf-8")
    result = run("parse", "--schema", tmp_path / "schema.json", stdin="{}")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


def test_parse_json(run_json: RunJson, tmp_path: Path) -> None:
    """--json gives the whole result: records, lines, rejections, whether it was cut."""
    (tmp_path / "answer.txt").write_text(BROKEN, encoding="utf-8")
    result = run_json("parse", tmp_path / "answer.txt")

    assert result["truncated"] is True
    assert result["line_numbers"] == [2]
    assert [one["reason"] for one in result["rejections"]] == ["not_json", "truncated"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_parse_reads_what_insert_reads(run: Run, encoding: str) -> None:
    """Every encoding of a text file, with nothing to tell."""
    result = run("parse", "--strict", stdin='{"a":"刘备"}\n'.encode(encoding))

    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {"a": "刘备"}


@pytest.mark.parametrize(
    "data",
    [
        b'\xff\x00\n{"a":1}\n',
        b'{"a":1}\n{"b":' + "賈寶玉愛林黛玉".encode("big5") + b"\n",
        b'{"a":1}\n{"b":"' + "刘备".encode()[:-1],
    ],
)
def test_parse_reads_any_bytes(run: Run, data: bytes) -> None:
    """Those that are in no encoding cost their line, not the command, and are told."""
    result = run("parse", stdin=data)

    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"a": 1}
    assert "the answer is no text file" in result.stderr and "U+FFFD" in result.stderr


def test_parse_strict_refuses_wrong_bytes(run: Run) -> None:
    """Also where they stand inside of a record that can be read."""
    result = run("parse", "--strict", stdin=b'{"a":"caf\xe9!"}\n')

    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"a": "caf\ufffd!"}


def test_extract_asks_and_prints_records(run: Run, tmp_path: Path) -> None:
    """The prompt's records are printed one a line, and the text was sent."""
    (tmp_path / "text.txt").write_text("猫是一种动物。", encoding="utf-8")
    with ScriptedServer([chat_reply('{"topic":"猫","definition":"动物"}\nOK')]) as server:
        words = ("extract-topics", tmp_path / "text.txt", "--language", "zh")
        result = run("extract", *words, "--llm", "m", "--base-url", server.base_url)
        sent = json.dumps(server.bodies, ensure_ascii=False)

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"topic": "猫", "definition": "动物"}
    assert "猫是一种动物。" in sent


def test_extract_with_a_variable_from_a_file(run: Run, tmp_path: Path) -> None:
    """--set gives a prompt its further variables, JSON from a file among them."""
    table = {
        "name": "cities",
        "description": "Cities",
        "fields": [{"name": "city", "type": "string"}],
    }
    (tmp_path / "table.json").write_text(json.dumps(table), encoding="utf-8")
    with ScriptedServer([chat_reply('{"city":"Warsaw"}')]) as server:
        words = ("extract-rows", "--set", f"schema=@{tmp_path / 'table.json'}")
        url = ("--llm", "m", "--base-url", server.base_url)
        result = run("extract", *words, *url, stdin="She was born in Warsaw.")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"city": "Warsaw"}


def test_extract_tells_of_lines_that_are_no_record(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What the model wrote beside records is not passed over in silence, nor that it wrote none."""
    with ScriptedServer([chat_reply('{"topic": "cats"}\nI know no more.')]) as server:
        words = ("extract-topics", "--llm", "m", "--base-url", server.base_url)
        result = run("extract", *words, stdin="Cats.")

    assert result.exit_code == 0, result.output
    assert result.stdout == "" and "no record" in result.stderr
    assert "'definition' is missing" in caplog.text and "I know no more." in caplog.text


def test_a_variable_from_a_file_that_is_no_text_is_one_line(run: Run, tmp_path: Path) -> None:
    """A binary file is an error that names it."""
    (tmp_path / "table.json").write_bytes(b"\x00\xff\xfe")
    url = ("--llm", "m", "--base-url", "http://127.0.0.1:9/v1")
    words = ("extract-rows", "--set", f"schema=@{tmp_path / 'table.json'}")

    result = run("extract", *words, *url, stdin="She was born in Warsaw.")

    assert result.exit_code == 1 and "table.json is no text file" in result.stderr


def test_extract_needs_a_model_and_a_known_prompt(run: Run) -> None:
    """Without --llm it is wrong usage; an unknown prompt is an error that names near ones."""
    assert run("extract", "extract-topics", stdin="x").exit_code == 2
    result = run("extract", "extract-topic", "--llm", "m", stdin="x")
    assert result.exit_code == 1 and "extract-topics" in result.stderr


def test_prompts_list(run: Run, run_json: RunJson) -> None:
    """Every prompt with the form of its answer; the same ids in both languages."""
    english, chinese = run_json("prompts", "list"), run_json("prompts", "list", "-l", "zh")

    assert [one["id"] for one in english] == [one["id"] for one in chinese]
    assert {one["response_type"] for one in english} == {"text", "json", "jsonl"}
    assert "extract-graph" in run("prompts", "list").stdout


def test_prompts_show_is_the_file(run: Run) -> None:
    """What is shown can be written to a file and used as a prompt."""
    shown = run("prompts", "show", "extract-graph", "-l", "zh").stdout

    assert shown == (CHECKOUT / "prompts_zh" / "extract-graph.md").read_text(encoding="utf-8")


def test_prompts_show_changes_no_character(run: Run, tmp_path: Path) -> None:
    """Not even one that is not seen."""
    text = run("prompts", "show", "no-context").stdout + "\nMine.\x85\x0c🙂\n"
    (tmp_path / "no-context.md").write_text(text, encoding="utf-8")
    assert run("prompts", "show", "no-context", "--prompts", tmp_path).stdout == text


def test_prompts_show_follows_aliases(run: Run, run_json: RunJson) -> None:
    """An alias shows its prompt; an unknown id names near ones."""
    assert run_json("prompts", "show", "ontology-extract")["id"] == "extract-with-ontologies"
    unknown = run("prompts", "show", "extract-grap")
    assert unknown.exit_code == 1 and "extract-graph" in unknown.stderr


@pytest.mark.parametrize("id", ["extract-with-ontologies", "ontology-extract"])
def test_prompts_show_finds_the_file_of_an_alias(run: Run, tmp_path: Path, id: str) -> None:
    """A prompt of one's own that is named so is in use, and so it is shown."""
    text = run("prompts", "show", "ontology-extract").stdout + "\nMine.\n"
    (tmp_path / "ontology-extract.md").write_text(text, encoding="utf-8")
    assert run("prompts", "show", id, "--prompts", tmp_path).stdout == text


def test_prompts_of_ones_own(run: Run, tmp_path: Path) -> None:
    """A changed prompt is shown and checked in its folder; a broken one is told with file and key."""
    text = run("prompts", "show", "no-context").stdout
    (tmp_path / "no-context.md").write_text(text + "\nMine.\n", encoding="utf-8")
    assert "Mine." in run("prompts", "show", "no-context", "--prompts", tmp_path).stdout
    assert run("prompts", "check", tmp_path).exit_code == 0

    (tmp_path / "no-context.md").write_text(text + "{{ nobody }}", encoding="utf-8")
    result = run("prompts", "check", tmp_path)
    assert result.exit_code == 1
    assert "no-context.md" in result.stdout and "nobody" in result.stdout


def test_a_prompt_file_that_replaces_none_is_told(
    run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    """By `check`, with the name that was probably meant; it is no problem, since extract may use it."""
    for id in ("anwser", "answer", "ontology-extract", "食谱"):
        like = "extract-topics" if id == "食谱" else id.replace("anwser", "answer")
        text = run("prompts", "show", like).stdout
        (tmp_path / f"{id}.md").write_text(text, encoding="utf-8")
    (found,) = run_json("prompts", "check", tmp_path)
    assert found["problems"] == []
    assert [note.split(" (")[0] for note in found["notes"]] == [
        "anwser.md: no packaged prompt of this name; near: answer",
        "食谱.md: no packaged prompt of this name",
    ]
    told = run("prompts", "check", tmp_path)
    assert told.exit_code == 0 and "sound\n  note: anwser.md: no packaged" in told.stdout


def test_packaged_prompts_are_sound(run_json: RunJson) -> None:
    """`prompts check` without a folder looks at both packaged sets and finds nothing."""
    assert [one["problems"] for one in run_json("prompts", "check")] == [[], []]
