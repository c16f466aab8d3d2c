"""The user's settings of models: none is forgotten, each arrives, and secrets stay with their server."""

import inspect
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import ConfigError, LightRAG, OpenAIEmbedder, OpenAILLM
from lightrag_jsonl.core.types import MODEL_TASKS
from lightrag_jsonl.providers.settings import (
    EMBEDDER,
    EMBEDDER_SETTINGS,
    LLM_SETTINGS,
    SETTING_TYPES,
    Setup,
    endpoint,
)
from tests.cli.conftest import run, run_json
from tests.conftest import CHECKOUT
from tests.servers import Reply, Request, ScriptedServer, chat_reply, embedding_reply

NO_SETTINGS = {"self", "model", "name", "base_url", "api_key"}
MODELS_PAGE = CHECKOUT / "docs" / "models.md"
TEXT = "Ada met Charles in London."


@pytest.fixture(autouse=True)
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder; the user's config file, which is not there yet."""
    monkeypatch.chdir(tmp_path)
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "lightrag-jsonl" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def respond(request: Request) -> Reply:
    """Any answer, or vectors, of 1,536 numbers from a model of OpenAI's."""
    if "/embeddings" in request.path:
        dim = request.json.get("dimensions", 1536)
        return embedding_reply([[1.0] * dim for _ in request.json["input"]])
    return chat_reply("Charles [1].")


@pytest.mark.parametrize(
    ("model_class", "table"), [(OpenAILLM, LLM_SETTINGS), (OpenAIEmbedder, EMBEDDER_SETTINGS)]
)
def test_every_argument_of_a_model_is_a_setting(model_class: type, table: dict[str, Any]) -> None:
    """A new argument of a constructor is a key of the config file and of the environment."""
    arguments = inspect.signature(model_class).parameters.keys() - NO_SETTINGS
    assert arguments == table.keys()
    prefixes = [EMBEDDER] if table is EMBEDDER_SETTINGS else ["", *(f"{t}_" for t in MODEL_TASKS)]
    assert {f"{prefix}{name}" for prefix in prefixes for name in table} <= SETTING_TYPES.keys()


def test_every_setting_is_in_the_documentation() -> None:
    """In the English and in the Chinese part of docs/models.md."""
    parts = MODELS_PAGE.read_text(encoding="utf-8").split("\n# 模型与服务器\n")
    assert len(parts) == 2
    for part in parts:
        for name in (*LLM_SETTINGS, *(f"{EMBEDDER}{name}" for name in EMBEDDER_SETTINGS)):
            assert f"`{name}`" in part, name


CONFIG_FILES = re.findall(r"```toml\n(.*?)```", MODELS_PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("config", CONFIG_FILES)
def test_the_config_files_of_the_documentation_work(user_file: Path, config: str) -> None:
    """With a server in place of theirs: texts are read, embedded and asked about."""
    with ScriptedServer(respond=respond) as server:
        user_file.write_text(re.sub(r"https?://[^/\"]+", server.url, config), encoding="utf-8")
        Path("a.txt").write_text(TEXT, encoding="utf-8")
        run("insert", "-w", "kb", "a.txt")
        answer = run_json("query", "-w", "kb", "--mode", "bypass", "Whom did Ada meet?")
    assert answer["text"] == "Charles [1]."
    model = re.search(r'^llm = "(.*)"', config, re.MULTILINE)
    assert model is not None and model[1] in {body["model"] for body in server.bodies}
    has_embedder = "embedder =" in config
    assert has_embedder == any("/embeddings" in request.path for request in server.requests)


def test_a_key_that_cannot_be_sent_is_named() -> None:
    """A key with an ellipsis or a full-width letter was not copied whole; the error does not show it."""
    for arguments in ({"api_key": "sk-１２…"}, {"extra_headers": {"X-Key": "sk-１２…"}}):
        with pytest.raises(ConfigError, match="ASCII") as caught:
            OpenAILLM("m", base_url="http://127.0.0.1:1/v1", **arguments)  # type: ignore[arg-type]
        assert "１２" not in str(caught.value)


@pytest.mark.slow
def test_settings_arrive_at_the_server(user_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the file, from the environment, and for one task."""
    with ScriptedServer(respond=respond) as server:
        user_file.write_text(
            f"""
            base_url = "{server.base_url}"
            llm = "m"
            temperature = "none"
            max_tokens = 700
            extra_body = {{options = {{num_ctx = 8192}}}}
            answer_llm = "m"
            answer_reasoning_effort = "low"
            answer_max_tokens = 50
            embedder = "openai:e"
            embedder_passage_prefix = "passage: "
            embedder_query_input_type = "query"
            embedder_dimensions = 8
            embedder_batch_size = 1
            """,
            encoding="utf-8",
        )
        monkeypatch.setenv("LIGHTRAG_JSONL_EXTRA_HEADERS", '{"X-Team": "maps"}')
        monkeypatch.setenv("LIGHTRAG_JSONL_EMBEDDER_EXTRA_BODY", '{"user": "u"}')
        Path("a.txt").write_text(TEXT, encoding="utf-8")
        run("insert", "-w", "kb", "a.txt")
        run_json("query", "-w", "kb", "--mode", "naive", "Whom did Ada meet?")
        run_json("query", "-w", "kb", "--mode", "bypass", "Whom did Ada meet?")
    vectors = [request for request in server.requests if request.path.endswith("/embeddings")]
    chats = [request for request in server.requests if request not in vectors]
    reading = chats[0].json
    assert reading["max_tokens"] == 700 and reading["options"] == {"num_ctx": 8192}
    assert "temperature" not in reading and "reasoning_effort" not in reading
    assert chats[0].headers["x-team"] == "maps"
    answer = chats[-1].json
    assert (answer["reasoning_effort"], answer["max_tokens"]) == ("low", 50)
    assert vectors[0].json["dimensions"] == 8 and vectors[0].json["user"] == "u"
    passages = [request.json["input"] for request in vectors if "input_type" not in request.json]
    assert [f"passage: {TEXT}"] in passages and all(len(texts) == 1 for texts in passages)
    queries = [request.json for request in vectors if request.json.get("input_type") == "query"]
    assert ["Whom did Ada meet?"] in [request["input"] for request in queries]


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TIMEOUT", "soon", "float"),
        ("TIMEOUT", "-1", "0"),
        ("CONSTRAIN", "always", "always"),
        ("EXTRA_BODY", "{", "JSON|Expecting"),
        ("EXTRA_HEADERS", '{"X": 1}', "str"),
    ],
)
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    """An error says which variable, and what is wrong with it."""
    monkeypatch.setenv(f"LIGHTRAG_JSONL_{variable}", value)
    with pytest.raises(ConfigError, match=rf"LIGHTRAG_JSONL_{variable}: .*({words})"):
        endpoint(Setup())


def test_a_wrong_key_of_a_file_is_named(user_file: Path) -> None:
    """With the setting that was probably meant."""
    user_file.write_text("tiemout = 3", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"config\.toml: unknown setting tiemout; did you mean ti"
    ):
        endpoint(Setup())
    user_file.write_text('timeout = "long"', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"config\.toml: timeout: Expected `float`"):
        endpoint(Setup())


def test_headers_of_the_user_do_not_go_to_a_prepared_address(user_file: Path) -> None:
    """A header or a body may hold a key: a prepared folder must not collect it."""
    user_file.write_text(
        'extra_headers = {X-Key = "secret-key"}\nextra_body = {token = "secret"}\ntimeout = 9\n',
        encoding="utf-8",
    )
    assert endpoint(Setup()).settings["extra_headers"] == {"X-Key": "secret-key"}
    Path("lightrag-jsonl.toml").write_text(
        'base_url = "https://evil.example/v1"\napi_key = "own"', encoding="utf-8"
    )
    assert endpoint(Setup()).settings == {"timeout": 9}


def test_a_header_is_not_shown_in_errors() -> None:
    """A gateway that repeats the headers does not bring a key into a log."""

    def repeat(request: Request) -> Reply:
        return Reply({"error": {"message": f"no: {request.headers['x-key']}"}}, status=400)

    with ScriptedServer(respond=repeat) as server:
        llm = OpenAILLM("m", base_url=server.base_url, extra_headers={"X-Key": "secret-key"})
        with LightRAG("kb", llm=llm) as rag, pytest.raises(Exception, match=r"no: \*\*\*"):
            rag.query("?", mode="bypass")


# ── the address of an index ─────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_address_given_to_insert_is_remembered(user_file: Path) -> None:
    """The second command asks the same server, from any folder; the index folder holds no address."""
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    with ScriptedServer(respond=respond) as server:
        run("insert", "-w", "kb", "--llm", "m", "--base-url", server.base_url, "a.txt")
        answer = run_json("query", "-w", Path("kb").resolve(), "--mode", "naive", "Whom?")
        assert answer["text"] == "Charles [1]."
        with LightRAG("kb") as rag:
            assert rag.query("Who?", mode="naive").text == "Charles [1]."
        report = run_json("doctor", "-w", "kb")
        assert report["llm_endpoint"] == server.base_url
        assert Path(report["llm_endpoint_from"]).parent == user_file.parent / "indexes"
        address = server.base_url.removesuffix("/v1").encode()
        assert not any(address in file.read_bytes() for file in Path("kb").iterdir())


def test_a_remembered_address_is_that_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another model, or an address in the arguments, is asked elsewhere; the environment's address is
    for indexes without one.
    """
    index = Path("kb")
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    with ScriptedServer(respond=respond) as server:
        run("insert", "-w", "kb", "--llm", "m", "--base-url", server.base_url, "a.txt")
    monkeypatch.setenv("LIGHTRAG_JSONL_BASE_URL", "http://variable/v1")
    assert endpoint(Setup(index), model="m").url == server.base_url
    assert endpoint(Setup(index), model="other").url == "http://variable/v1"
    assert endpoint(Setup(index, base_url="http://new/v1"), model="m").url == "http://new/v1"
    assert endpoint(Setup(Path("kb2")), model="m").url == "http://variable/v1"


def test_a_new_index_in_the_same_place_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address belonged to the deleted index."""
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    with ScriptedServer(respond=respond) as server:
        run("insert", "-w", "kb", "--llm", "m", "--base-url", server.base_url, "a.txt")
        Path("kb/index.sqlite").unlink()
        run("insert", "-w", "kb", "--llm", "none", "a.txt")
    assert endpoint(Setup(Path("kb")), model="m").url is None


def test_a_foreign_folder_brings_no_address(user_file: Path) -> None:
    """Whatever files an index folder has, addresses come from the user's own folder only."""
    Path("kb").mkdir()
    content = {"index": str(Path("kb").resolve()), "addresses": {"m": "https://evil.example/v1"}}
    for name in ("addresses.json", "indexes.json", "config.toml", "lightrag-jsonl.toml"):
        (Path("kb") / name).write_text(json.dumps(content), encoding="utf-8")
    assert endpoint(Setup(Path("kb")), model="m").url is None


def test_a_folder_that_cannot_be_written_is_no_failure(user_file: Path) -> None:
    """The insert is done, and a warning says what the next command needs."""
    (user_file.parent / "indexes").write_text("a file in the way", encoding="utf-8")
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    with ScriptedServer(respond=respond) as server:
        result = run("insert", "-w", "kb", "--llm", "m", "--base-url", server.base_url, "a.txt")
    assert result.exit_code in (0, 3) and Path("kb/index.sqlite").exists()
