"""Models by name: recorded in the index, built from the user's settings, and which key goes where."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, EmbeddingError, LightRAG, OpenAILLM
from lightrag_jsonl.providers.settings import Setup, chosen_setting, endpoint
from tests.servers import ScriptedServer, chat_reply, error_reply

TEXT = "张骞出使西域。 Marie Curie discovered radium in Paris."
QUESTION = "What did Marie Curie discover?"


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder; returns the user's config file, which is not there yet."""
    monkeypatch.chdir(tmp_path)
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "lightrag-jsonl" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(respond=lambda request: chat_reply("Radium [1].")) as server:
        yield server


def test_an_index_asks_the_model_it_was_made_with(user: Path, server: ScriptedServer) -> None:
    """Without `llm=`, a question would else be answered by quoting, and in the wrong language. The
    folder holds names only; `llm="none"` quotes, and does not change what is recorded.
    """
    with LightRAG("kb", llm=OpenAILLM("m", base_url=server.base_url), language="zh") as rag:
        rag.insert_records(TEXT, [])
    assert server.base_url.encode() not in Path("kb/index.sqlite").read_bytes()
    user.write_text(f'base_url = "{server.base_url}"', encoding="utf-8")
    with LightRAG("kb", llm="none") as rag:
        assert "radium" in rag.query(QUESTION, mode="naive").text and not server.bodies
        assert rag.status().language == "zh"
    with LightRAG("kb") as rag:
        assert rag.query(QUESTION, mode="naive").text == "Radium [1]."
        assert rag.status().llm == server.bodies[-1]["model"] == "m"


def test_a_model_that_cannot_be_made_is_never_replaced_by_quotes(server: ScriptedServer) -> None:
    """A function cannot be recorded, and a key may be missing: what needs no model works, a question
    raises, and says what to do.
    """
    with LightRAG("kb", llm=lambda prompt: "Radium [1].") as rag:
        rag.insert_records(TEXT, [])
    with LightRAG("kb") as rag:
        assert rag.status().documents and rag.graph is not None
        with pytest.raises(ConfigError, match=r"llm=….*--llm none \(in Python llm=\"none\"\)"):
            rag.query(QUESTION, mode="naive")
        rag.insert_records("Second.", [])  # does not forget the model
    with LightRAG("kb") as rag, pytest.raises(ConfigError, match="is needed"):
        rag.query(QUESTION, mode="naive")
    with LightRAG("paid", llm=OpenAILLM("m", base_url=server.base_url)) as rag:
        rag.insert_records(TEXT, [])
    with LightRAG("paid") as rag, pytest.raises(ConfigError, match=r"no API key for api\.openai"):
        rag.query(QUESTION, mode="naive")


def test_an_upgrade_without_a_key_records_no_model() -> None:
    """Questions are answered as before, by rules."""
    with LightRAG("kb") as rag:
        rag.insert(TEXT)
    with LightRAG("kb", llm="m") as rag, pytest.raises(ConfigError, match="no API key"):
        rag.retry(upgrade=True)
    with LightRAG("kb") as rag:
        assert "radium" in rag.query(QUESTION, mode="naive").text


def test_later_sources_win(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's file, the folder's, the environment, arguments; and a wrong file is named. A file in
    the index folder is never read.
    """
    found = [chosen_setting("base_url", Setup())]
    user.write_text('base_url = "http://user"', encoding="utf-8")
    found.append(chosen_setting("base_url", Setup()))
    Path("lightrag-jsonl.toml").write_text('base_url = "http://folder"', encoding="utf-8")
    found.append(chosen_setting("base_url", Setup()))
    assert chosen_setting("base_url", Setup(tmp_path)) == ("http://user", str(user))
    monkeypatch.setenv("LIGHTRAG_JSONL_BASE_URL", "http://variable")
    found += [
        chosen_setting("base_url", Setup()),
        chosen_setting("base_url", Setup(base_url="http://given")),
    ]
    values = [value for value, _ in found]
    assert values == [None, "http://user", "http://folder", "http://variable", "http://given"]
    for wrong in ('bse_url = "x"', "llm = 1", "llm = "):
        user.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"config\.toml"):
            chosen_setting("llm", Setup())


EVIL = "https://evil.example/v1"


@pytest.mark.parametrize("kind", ["", "embedder_"])
def test_a_prepared_folder_gets_no_key_of_the_user(
    user: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Wherever the user's key is, an address from the current folder's file is refused with it; a key
    from that file itself is used.
    """
    Path("lightrag-jsonl.toml").write_text(f'{kind}base_url = "{EVIL}"', encoding="utf-8")
    user.write_text('api_key = "sk-file"\nembedder_api_key = "sk-file"', encoding="utf-8")
    for name in ("OPENAI_API_KEY", "LIGHTRAG_JSONL_API_KEY", "LIGHTRAG_JSONL_EMBEDDER_API_KEY"):
        monkeypatch.setenv(name, "sk-secret")
    at = endpoint(Setup(), kind)  # type: ignore[arg-type]
    assert at.url == EVIL and at.api_key is None and "no key from elsewhere" in at.refused
    more = {"embedder": "openai:e"} if kind else {"llm": "m"}
    rag = LightRAG("kb", **more)
    with rag, pytest.raises((ConfigError, EmbeddingError), match=r"lightrag-jsonl\.toml"):
        rag.insert(TEXT)
    folder = f'{kind}base_url = "{EVIL}"\n{kind}api_key = "own"'
    Path("lightrag-jsonl.toml").write_text(folder, encoding="utf-8")
    assert endpoint(Setup(), kind).api_key == "own"  # type: ignore[arg-type]


def test_a_key_goes_with_its_address(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in a file belongs to the address in it; the environment's goes to the user's addresses."""
    user.write_text('base_url = "https://a.example/v1"\napi_key = "sk-a"', encoding="utf-8")
    assert endpoint(Setup()).api_key == "sk-a"
    assert endpoint(Setup(base_url="https://b.example/v1")).api_key is None
    monkeypatch.setenv("LIGHTRAG_JSONL_API_KEY", "sk-b")
    assert endpoint(Setup(base_url="https://b.example/v1")).api_key == "sk-b"
    assert endpoint(Setup()).key_from == "LIGHTRAG_JSONL_*"
    assert endpoint(Setup(embedder_base_url="https://e.example"), "embedder_").api_key == "sk-b"
    for kind in ("", "embedder_"):
        monkeypatch.setenv(f"LIGHTRAG_JSONL_{kind.upper()}BASE_URL", "http://me:pw@host/v1")
        with pytest.raises(ConfigError, match="holds a password") as caught:
            LightRAG("kb", **({"embedder": "openai:e"} if kind else {"llm": "m"}))
        assert "pw" not in str(caught.value) and not Path("kb").exists()


def test_an_error_names_the_server_that_was_asked() -> None:
    """A 401 of one's own server is not blamed on OpenAI, wherever its address comes from."""
    with ScriptedServer(respond=lambda request: error_reply(401, "who are you?")) as server:
        Path("lightrag-jsonl.toml").write_text(f'base_url = "{server.base_url}"', encoding="utf-8")
        with LightRAG("kb", llm="m") as rag, pytest.raises(Exception, match="401") as caught:
            rag.query(QUESTION, mode="bypass")
    host = server.base_url.split("/")[2]
    assert str(caught.value).startswith(host) and "openai.com" not in str(caught.value)
