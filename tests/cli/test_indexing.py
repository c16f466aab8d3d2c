"""insert, retry, resume, delete: what goes in, what is told, and what is remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lightrag_jsonl.cli.opening import recorded
from tests.cli.conftest import CHINESE, ENGLISH, Run, RunJson
from tests.indexing.kit import damage
from tests.servers import Reply, Request, ScriptedServer, chat_reply, error_reply

ANSWER = "\n".join(
    [
        '{"type":"entity","name":"Marie Curie","entity_type":"person","description":"A physicist."}',
        '{"type":"entity","name":"Warsaw","entity_type":"place","description":"Her birthplace."}',
        '{"type":"relationship","source":"Marie Curie","target":"Warsaw","keywords":["birth"],'
        '"description":"She was born there.","strength":8}',
        "That was all!",
        '{"type":"done","entities":2,"relationships":1}',
    ]
)


def write(folder: Path, **texts: str) -> Path:
    """A folder of text files; `a__md` becomes a.md."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def test_a_report_for_people(run: Run, tmp_path: Path) -> None:
    """The report counts documents, chunks, entities and relations."""
    texts = write(tmp_path / "texts", a__txt=ENGLISH, b__md=CHINESE)
    result = run("insert", "-w", tmp_path / "kb", texts)

    assert result.exit_code == 0
    assert "read 2 documents (2 chunks)" in result.stdout
    assert "entities" in result.stdout and "relation" in result.stdout


def test_the_same_again_is_known(run: Run, tmp_path: Path) -> None:
    """Texts that are there already are not read again, and the report says so."""
    texts = write(tmp_path / "texts", a__txt=ENGLISH)
    run("insert", "-w", tmp_path / "kb", texts)
    result = run("insert", "-w", tmp_path / "kb", texts)

    assert result.exit_code == 0
    assert "1 document known already" in result.stdout


def test_folders_patterns_and_several_files(run_json: RunJson, tmp_path: Path) -> None:
    """Folders are read whole, quoted patterns are expanded, ** goes into folders."""
    write(tmp_path / "one" / "deep", a__txt=ENGLISH)
    write(tmp_path / "two", b__md=CHINESE, c__txt="Isaac Newton lived in England.")
    kb = tmp_path / "kb"

    assert len(run_json("insert", "-w", kb, tmp_path / "one")["documents"]) == 1
    assert len(run_json("insert", "-w", kb, f"{tmp_path}/two/*.md")["documents"]) == 1
    assert len(run_json("insert", "-w", kb, f"{tmp_path}/**/*.txt")["documents"]) == 1


def test_a_file_whose_name_looks_like_a_pattern(run: Run, tmp_path: Path) -> None:
    """A file that exists is that file, whatever characters its name has."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "[a].txt").write_text(ENGLISH, encoding="utf-8")

    assert run("insert", "-w", tmp_path / "kb", folder / "[a].txt").exit_code == 0


def test_a_pattern_without_a_match(run: Run, tmp_path: Path) -> None:
    """A pattern that matches nothing is an error that names it."""
    result = run("insert", "-w", tmp_path / "kb", f"{tmp_path}/*.txt")

    assert result.exit_code == 1
    assert f"no file matches {tmp_path}/*.txt" in result.stderr


def test_stdin_with_an_id_and_its_new_version(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    """A text from stdin gets the id it is given; another text with this id takes its place."""
    kb = tmp_path / "kb"
    assert run("insert", "-w", kb, "--id", "note", "-", stdin=ENGLISH).exit_code == 0
    assert run("insert", "-w", kb, "--id", "note", "-", stdin=CHINESE).exit_code == 0
    (document,) = run_json("documents", "-w", kb)

    assert document["id"] == "note"
    assert document["characters"] == len(CHINESE)


@pytest.mark.parametrize("id", ["", "  ", "\u3000", "\u200b\n"])
def test_an_id_that_cannot_be_seen_is_wrong_usage(run: Run, tmp_path: Path, id: str) -> None:
    """As of a variable that is not set; no index is made."""
    result = run("insert", "-w", tmp_path / "kb", "--id", id, "-", stdin=ENGLISH)

    assert result.exit_code == 2 and "--id" in result.stderr
    assert f"{id!r} has no character that can be seen" in result.stderr
    assert not (tmp_path / "kb").exists()


@pytest.mark.parametrize("name", ["none.txt", "binary.txt", "blank.txt", "empty"])
def test_one_unreadable_thing_alone_is_an_error(run: Run, tmp_path: Path, name: str) -> None:
    """A single file or folder that cannot be read ends the command with 1."""
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    (tmp_path / "blank.txt").write_bytes(b" \n")
    (tmp_path / "empty").mkdir()
    result = run("insert", "-w", tmp_path / "kb", tmp_path / name)

    assert result.exit_code == 1
    assert result.stderr.startswith("error: ") and name in result.stderr


def test_one_unreadable_file_of_several(run: Run, tmp_path: Path) -> None:
    """The others are read; the status is 3 and the failure is told with its reason."""
    texts = write(tmp_path / "texts", a__txt=ENGLISH)
    (texts / "b.txt").write_bytes(b"\0\1\2" * 100)
    result = run("insert", "-w", tmp_path / "kb", texts)

    assert result.exit_code == 3
    assert "read 1 document" in result.stdout
    assert "1 failure:" in result.stderr and "b.txt" in result.stderr


def test_chunk_sizes_are_taken(run_json: RunJson, tmp_path: Path) -> None:
    """Options of cutting reach the index."""
    text = " ".join(f"Person{i} met Person{i + 1} in London." for i in range(60))
    texts = write(tmp_path / "texts", a__txt=text)
    options = ("--chunk-tokens", "60", "--chunk-overlap", "0")

    assert run_json("insert", "-w", tmp_path / "kb", *options, texts)["chunks"] > 4


def test_delete(run: Run, run_json: RunJson, kb: Path) -> None:
    """A deleted document is gone with all that only it said; an unknown id removes nothing."""
    assert run("delete", "-w", kb, "curie", "nobody").exit_code == 1
    assert len(run_json("documents", "-w", kb)) == 2

    result = run("delete", "-w", kb, "curie")
    assert result.exit_code == 0 and "removed 1 document (1 chunk)" in result.stdout
    assert [one["id"] for one in run_json("documents", "-w", kb)] == ["张骞"]


def test_retry_and_resume_with_nothing_to_do(run: Run, kb: Path) -> None:
    """They say so, and end well."""
    assert "nothing has failed" in run("retry", "-w", kb).stdout
    assert "nothing is waiting" in run("resume", "-w", kb).stdout


# ── with a model ────────────────────────────────────────────────────────────────


def test_a_model_reads_and_is_remembered(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    """Tokens and refused lines are told; the model's name and endpoint are kept, never a key."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH), tmp_path / "kb"
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        result = run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, texts)

    assert result.exit_code == 0, result.output
    assert "2 entities, 1 relation" in result.stdout
    assert "model: 1 call, 7 tokens in, 5 out" in result.stdout
    assert "refused: not_json 1" in result.stdout
    (rejection,) = run_json("rejections", "-w", kb)
    assert rejection["text"] == "That was all!" and rejection["line"] == 4
    assert run_json("status", "-w", kb)["llm"] == "m"
    assert recorded(kb)["cli.base_url"] == server.base_url


def test_without_a_model_where_one_read_before(run: Run, tmp_path: Path) -> None:
    """An index that a model read is not silently filled up by rules."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH), tmp_path / "kb"
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, texts)
    more = write(tmp_path / "more", b__txt=CHINESE)
    refused = run("insert", "-w", kb, more)
    allowed = run("insert", "-w", kb, "--llm", "none", more)

    assert refused.exit_code == 1 and "--llm none" in refused.stderr
    assert allowed.exit_code == 0


def test_a_model_that_read_nothing_is_not_remembered(run: Run, tmp_path: Path) -> None:
    """Where all was known, the folder stays set up for the model it was; options are remembered."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH), tmp_path / "kb"
    nobody = ("--base-url", "http://127.0.0.1:9/v1")
    assert run("insert", "-w", kb, texts).exit_code == 0
    known = run("insert", "-w", kb, "--llm", "m", *nobody, "--gleanings", 2, texts)
    assert known.exit_code == 0 and "not read again" in known.stdout
    assert recorded(kb)["cli.llm"] == "none" and "max_gleanings" in recorded(kb)["cli.options"]
    more = write(tmp_path / "more", b__txt=CHINESE)
    assert run("insert", "-w", kb, more).exit_code == 0

    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        words = ("--llm", "m", "--base-url", server.base_url)
        last = write(tmp_path / "last", c__txt="Ada met Bob.")
        assert run("insert", "-w", kb, *words, last).exit_code == 0
        assert run("insert", "-w", kb, "--llm", "none", last).exit_code == 0
        assert recorded(kb)["cli.llm"] == "m"
        assert recorded(kb)["cli.base_url"] == server.base_url


def test_a_failed_chunk_is_told_and_retried(run: Run, tmp_path: Path) -> None:
    """Status 3 and the way on; `retry` knows the model, and asks for the failed chunk alone."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH, b__txt=CHINESE), tmp_path / "kb"
    broken = True

    def respond(request: Request) -> Reply:
        if broken and "张骞" in json.dumps(request.json, ensure_ascii=False):
            return error_reply(400, "no such thing")
        return chat_reply(ANSWER)

    with ScriptedServer(respond=respond) as server:
        first = run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, texts)
        broken = False
        asked = len(server.requests)
        second = run("retry", "-w", kb)
        asked = len(server.requests) - asked

    assert first.exit_code == 3
    assert f"lightrag-jsonl retry -w {kb}" in first.stderr
    assert "no such thing" in first.stderr
    assert second.exit_code == 0, second.output
    assert asked == 1


@pytest.mark.parametrize(
    ("refusal", "ends"),
    [
        (error_reply(401, "bad key"), True),
        (error_reply(402, "pay first"), True),
        (error_reply(404, "no such model"), True),
        (error_reply(429, "quota", code="insufficient_quota"), True),
        (error_reply(403, "this text was flagged"), False),
        (error_reply(400, "too long"), False),
    ],
)
def test_a_server_that_refuses_everything_is_not_asked_on(
    run: Run, run_json: RunJson, tmp_path: Path, refusal: Reply, ends: bool
) -> None:
    """What was read is there, the rest waits for `resume`; a text refused by itself ends nothing."""
    texts, kb = tmp_path / "texts", tmp_path / "kb"
    write(texts, **{f"t{n:02}__txt": f"{ENGLISH} And again {n}." for n in range(20)})
    good = 3

    def respond(request: Request) -> Reply:
        return chat_reply(ANSWER) if len(server.bodies) <= good else refusal

    with ScriptedServer(respond=respond) as server:
        first = run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, texts)
        asked, good = len(server.bodies), 10_000
        texts_asked = len({json.dumps(body["messages"]) for body in server.bodies})
        states = [one["state"] for one in run_json("documents", "-w", kb)]
        second = run("resume" if ends else "retry", "-w", kb)

    assert first.exit_code == 3 and str(refusal.status) in first.stderr
    assert ("stopped: " in first.stderr and "resume" in first.stderr) is ends
    assert (texts_asked <= 3 + 16) if ends else (texts_asked == 20)
    assert states.count("done") == 3 and ("pending" in states) is ends
    assert second.exit_code == 0, second.output
    assert [one["state"] for one in run_json("documents", "-w", kb)] == ["done"] * 20
    assert len(server.bodies) == asked + 17


def test_where_no_answer_comes_any_more_the_insert_ends(
    run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    """Sixteen slots, so 32 chunks in a row; those failed, the others wait, and both can go on."""
    texts, kb = tmp_path / "texts", tmp_path / "kb"
    write(texts, **{f"t{n:02}__txt": f"{ENGLISH} And again {n}." for n in range(80)})
    well = False

    def respond(request: Request) -> Reply:
        return chat_reply(ANSWER) if well else error_reply(400, "out to lunch")

    with ScriptedServer(respond=respond) as server:
        first = run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, texts)
        asked, well = len(server.bodies), True
        assert run("resume", "-w", kb).exit_code == 0
        assert run("retry", "-w", kb).exit_code == 0

    assert first.exit_code == 3 and 32 <= asked <= 32 + 16
    assert "32 chunks in a row got no answer" in first.stderr and "out to lunch" in first.stderr
    assert [one["state"] for one in run_json("documents", "-w", kb)] == ["done"] * 80


def test_a_chunk_read_in_part_is_told_and_retried(
    run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    """Where a second look fails: status 3, a partial document; `retry` asks for that look alone."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH * 40), tmp_path / "kb"
    broken = True

    def looks_again(request: Request) -> bool:
        return any(message["role"] == "assistant" for message in request.json["messages"])

    def respond(request: Request) -> Reply:
        if not looks_again(request):
            return chat_reply(ANSWER)
        return error_reply(400, "no such thing") if broken else chat_reply("No.")

    with ScriptedServer(respond=respond) as server:
        first = run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, texts)
        (document,) = run_json("documents", "-w", kb)
        broken = False
        asked = len(server.requests)
        second = run("retry", "-w", kb)
        retried = server.requests[asked:]

    assert first.exit_code == 3 and "no such thing" in first.stderr
    assert document["state"] == "partial" and document["extraction"]["partial"] > 0
    assert second.exit_code == 0, second.output
    assert len(retried) == len(document["failures"]) == 1 and looks_again(retried[0])
    assert [one["state"] for one in run_json("documents", "-w", kb)] == ["done"]


def test_resume_reads_what_was_left_waiting(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    """After a stop, `resume` goes on with the model, endpoint and cutting of the insert."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH, b__txt=CHINESE), tmp_path / "kb"
    cut = ("--chunk-tokens", "200", "--chunk-overlap", "0", "--max-calls", "1")
    with ScriptedServer(respond=lambda request: chat_reply(ANSWER)) as server:
        first = run("insert", "-w", kb, "--llm", "m", "--base-url", server.base_url, *cut, texts)
        waiting = [one for one in run_json("documents", "-w", kb) if one["state"] == "pending"]
        second = run("resume", "-w", kb)

    assert first.exit_code == 3 and "stopped" in first.stderr
    assert len(waiting) == 1
    assert second.exit_code == 0, second.output
    assert json.loads(recorded(kb)["cli.options"]) == {"chunk_overlap": 0, "chunk_tokens": 200}
    assert {one["state"] for one in run_json("documents", "-w", kb)} == {"done"}


def test_the_earlier_text_of_a_changed_file_is_told(
    run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    """A changed file is a new document; the command that removes the old one is said, and works."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH, b__txt=CHINESE), tmp_path / "kb"
    first = run("insert", "-w", kb, texts)
    (texts / "a.txt").write_text(ENGLISH + " She lived in Paris.", encoding="utf-8")
    second = run("insert", "-w", kb, texts)

    assert first.stderr == ""
    assert "1 earlier text of changed files stayed" in second.stderr
    assert run(*second.stderr.split("lightrag-jsonl ")[1].split()).exit_code == 0
    assert {one["characters"] for one in run_json("documents", "-w", kb)} == {
        len(ENGLISH) + 20,
        len(CHINESE),
    }
    assert run("insert", "-w", kb, texts).stderr == ""


def test_deleting_an_unknown_document_tells_where_the_ids_are(run: Run, kb: Path) -> None:
    """A file name is no id: the command that lists the ids is named."""
    result = run("delete", "-w", kb, "curie.txt")

    assert result.exit_code == 1
    assert "no such document: curie.txt" in result.stderr
    assert f"lightrag-jsonl documents -w {kb}" in result.stderr


# ── what an index remembers ─────────────────────────────────────────────────────


def test_language_and_embedder_are_remembered(run: Run, tmp_path: Path) -> None:
    """Later commands need not repeat them; a contradiction is the settings error."""
    texts, kb = write(tmp_path / "texts", a__txt=CHINESE), tmp_path / "kb"
    run("insert", "-w", kb, "--language", "zh", texts)

    assert run("query", "-w", kb, "张骞是谁？").exit_code == 0
    other = run("query", "-w", kb, "--language", "en", "张骞是谁？")
    assert other.exit_code == 1 and "was built with language 'zh', not 'en'" in other.stderr
    wrong = run("query", "-w", kb, "--embedder", "st:some/model", "张骞是谁？")
    assert wrong.exit_code == 1 and "was built with embedder 'hash" in wrong.stderr


def test_an_embedder_behind_an_endpoint_is_remembered(run: Run, tmp_path: Path) -> None:
    """`openai:NAME` and its URL are kept, so that `query` finds the same vectors; `doctor` tells."""
    texts, kb = write(tmp_path / "texts", a__txt=ENGLISH), tmp_path / "kb"

    def embed(request: Request) -> Reply:
        rows = [
            {"object": "embedding", "index": at, "embedding": [1.0, float(len(text)), 0.5]}
            for at, text in enumerate(request.json["input"])
        ]
        return Reply({"object": "list", "data": rows, "usage": {"prompt_tokens": 1}})

    with ScriptedServer(respond=embed) as server:
        url = ("--embedder-base-url", server.base_url)
        first = run("insert", "-w", kb, "--embedder", "openai:tiny", *url, texts)
        asked = len(server.requests)
        second = run("query", "-w", kb, "Who was born in Warsaw?")

    assert first.exit_code == 0, first.output
    assert second.exit_code == 0, second.output
    assert "Warsaw" in second.stdout
    assert len(server.requests) > asked
    assert f"tiny at {server.base_url}" in run("doctor", "-w", kb).stdout


def test_looking_needs_no_embedder(run: Run, kb: Path) -> None:
    """status, documents and export work where the embedder of the index is not known here."""
    damage(kb, "DELETE FROM settings WHERE key LIKE 'cli.%'")
    damage(kb, "UPDATE settings SET value = 'my own' WHERE key = 'embedder'")

    for command in ("status", "documents", "rejections", "export"):
        assert run(command, "-w", kb).exit_code == 0
    assert "my own" in run("status", "-w", kb).stdout
    assert "was built with embedder 'my own'" in run("query", "-w", kb, "Who?").stderr
