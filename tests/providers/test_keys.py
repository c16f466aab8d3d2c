"""Keys, tokens and passwords: taken as people have them, and shown nowhere."""

import json
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, LightRAG, OpenAILLM
from lightrag_jsonl.core.address import DatabaseURL, as_address
from tests.servers import Reply, Request, ScriptedServer, chat_reply

KEY = "sk-heron-4711"
RECORDS = '{"type": "entity", "name": "Ida Fenn", "entity_type": "person", "description": "Swims."}'
AROUND = ["\n", "\r\n", " ", "\t", "\u3000", "\u00a0"]


REPEATED = ("authorization", "x-gateway", "x-team", "openai-organization")


def answer_with_key(request: Request) -> Reply:
    """An answer to the right key; any other is repeated in the refusal, as some servers do."""
    sent = request.headers.get("authorization", "")
    if sent == f"Bearer {KEY}":
        return chat_reply(RECORDS)
    return Reply({"error": {"message": f"no account for {sent!r}"}}, status=401)


def stored_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "around"),
    [
        *(("argument", around) for around in AROUND),
        *((place, "\r\n") for place in ("OPENAI_API_KEY", "LIGHTRAG_JSONL_API_KEY", "file")),
    ],
)
def test_white_space_around_a_key_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, around: str
) -> None:
    """Wherever the key is from: such as a file from Windows, a secret, a key copied by hand."""
    key = f"{around}{KEY}{around}"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with ScriptedServer(respond=answer_with_key) as server:
        if place == "argument":
            llm: object = OpenAILLM("m", base_url=server.base_url, api_key=key)
            rag = LightRAG(tmp_path / "kb", llm=llm)  # type: ignore[arg-type]
        else:
            if place == "file":
                (tmp_path / "config" / "lightrag-jsonl").mkdir(parents=True)
                settings = (
                    f"api_key = {json.dumps(key)}\nbase_url = {json.dumps(server.base_url)}\n"
                )
                file = tmp_path / "config" / "lightrag-jsonl" / "config.toml"
                file.write_text(settings, encoding="utf-8")
            else:
                monkeypatch.setenv(place, key)
                monkeypatch.setenv("OPENAI_BASE_URL", f"{server.base_url}\r\n")
            rag = LightRAG(tmp_path / "kb", llm="m")
        with rag:
            rag.insert("Ida Fenn swims.")
            assert [document.state for document in rag.documents()] == ["done"]
    assert KEY.encode() not in stored_bytes(tmp_path / "kb")


@pytest.mark.parametrize(
    "key", ["sk-he\nron-4711", "sk-heron\0-4711", "sk-水鸟-4711", "sk\x7f-heron"]
)
def test_what_no_header_can_hold_is_refused(key: str) -> None:
    """At once, with words that name the place and not the value; headers and tokens, too."""
    refusing: list[Callable[[], object]] = [
        lambda: OpenAILLM("m", base_url="http://127.0.0.1:1/v1", api_key=key),
        lambda: OpenAILLM("m", base_url="http://127.0.0.1:1/v1", extra_headers={"X-Team": key}),
        lambda: OpenAILLM("m", base_url="http://127.0.0.1:1/v1", extra_headers={key: "x"}),
    ]
    for refuse in refusing:
        with pytest.raises(ConfigError) as caught:
            refuse()
        assert "header" in str(caught.value) or "copy it again" in str(caught.value)
        assert "heron" not in str(caught.value) and "4711" not in str(caught.value)


@pytest.mark.slow
def test_no_header_is_in_a_message_a_log_or_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Though the server repeats all that it got: the key, further headers long and short, and those of
    the account in the environment.
    """
    caplog.set_level(logging.DEBUG)
    secrets = {"X-Gateway": "Token gate-crane-99", "X-Team": "t-egret"}
    monkeypatch.setenv("OPENAI_ORG_ID", "org-bittern-3\n")

    def repeat(request: Request) -> Reply:
        values = [dict(request.headers)[name] for name in REPEATED]
        message = " ".join([*values, *(f"密钥{value}无效" for value in values)])
        return Reply({"error": {"message": message}}, status=400)

    with ScriptedServer(respond=repeat) as server:
        llm = OpenAILLM("m", base_url=server.base_url, api_key=KEY, extra_headers=secrets)
        with LightRAG(tmp_path / "kb", llm=llm) as rag:
            report = rag.insert("Ida Fenn swims.")
            shown = f"{report} {rag.documents()}"
    stored = stored_bytes(tmp_path / "kb").decode(errors="replace")
    for secret in (KEY, "gate-crane-99", "t-egret", "org-bittern-3"):
        assert secret not in shown and secret not in stored and secret not in caplog.text
    assert "***" in shown


@pytest.mark.slow
@pytest.mark.parametrize("proxy", ["http://u:heron-4711@[bad", "htp://u:heron-4711@127.0.0.1:1"])
def test_the_password_of_a_proxy_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An address of a proxy that cannot be used is named by its variable."""
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    llm = OpenAILLM("m", base_url="https://kestrel.invalid/v1", api_key=KEY, max_retries=0)
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        try:
            shown = str(rag.insert("Ida Fenn swims."))
        except ConfigError as error:
            shown = str(error)
    assert "heron-4711" not in shown + caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "http://ida:heron-4711@127.0.0.1/v1",
        "http://ida:heron/4711@127.0.0.1/v1",
        "http://ida:heron#4711@127.0.0.1/v1",
        "http://ida:heron?4711@127.0.0.1/v1",
        "ida:heron-4711@127.0.0.1/v1",
        "http://[heron-4711",
    ],
)
def test_a_password_in_the_address_of_a_model_is_refused_unseen(url: str) -> None:
    """Also one that reaches into other parts of the address, and without a scheme."""
    with pytest.raises(ConfigError) as caught:
        OpenAILLM("m", base_url=url)
    assert "heron" not in str(caught.value) and "4711" not in str(caught.value)


@pytest.mark.parametrize("mark", ["/", "?", "#", "@", "[", "?x="])
def test_a_password_in_the_address_of_a_database_is_refused_unseen(mark: str) -> None:
    """The message says how to write it; written so, no text of the address has it."""
    with pytest.raises(ConfigError, match="%2F") as caught:
        LightRAG(f"postgresql://ida:heron{mark}4711@[::1]:5432/db")
    assert "heron" not in str(caught.value) and "4711" not in str(caught.value)
    address = as_address("postgresql://ida:heron%2F4711@h/db?index=x&sslpassword=egret%23")
    assert isinstance(address, DatabaseURL)
    for text in (str(address), repr(address), str(address.beside("y"))):
        assert "heron" not in text and "egret" not in text
    message = address.without_passwords("no heron/4711, heron%2F4711 or egret#")
    assert message == "no ***, *** or ***"


def test_an_index_without_a_key_has_none(tmp_path: Path) -> None:
    """What an index remembers of a model is no key."""
    llm = OpenAILLM("m", base_url="http://127.0.0.1:1/v1", api_key=KEY)
    with LightRAG(tmp_path / "kb", llm=llm):
        pass
    with sqlite3.connect(tmp_path / "kb" / "index.sqlite") as connection:
        assert KEY not in str(connection.execute("SELECT * FROM settings").fetchall())
