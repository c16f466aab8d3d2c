"""The way to a server: by a proxy of the environment, or past it."""

import sys
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, LLMError, Message, OpenAILLM
from lightrag_jsonl.providers.proxies import proxy_for
from tests.servers import ScriptedServer, chat_reply

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
HELLO = (Message("user", "你好"),)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxies of this machine are no part of the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(
    ("url", "exempt", "is_direct"),
    [
        ("http://127.0.0.1:11434/v1", "", True),
        ("http://localhost:8000/v1", "", True),
        ("http://[::1]:8000/v1", "", True),
        ("http://gpu.lan:8000/v1", "localhost, .lan", True),
        ("http://gpu.lan:8000/v1", "gpu.lan:8000", True),
        ("http://gpu.lan:8000/v1", "gpu.lan:9000", False),
        ("http://10.1.2.3:8000/v1", "10.0.0.0/8", True),
        ("http://10.1.2.3:8000/v1", "192.168.0.0/16,10.9.*", False),
        ("https://api.example.com/v1", "*.example.com", True),
        ("https://api.example.com/v1", "ample.com", False),
        ("https://api.example.com/v1", "*", True),
        ("https://api.example.com/v1", "", False),
    ],
)
def test_this_machine_and_exempt_hosts_are_asked_directly(
    monkeypatch: pytest.MonkeyPatch, url: str, exempt: str, is_direct: bool
) -> None:
    """Names, domains, ports and networks stand in NO_PROXY; a server on this machine needs none."""
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:7891")
    monkeypatch.setenv("NO_PROXY", exempt)
    assert (proxy_for(url) is None) == is_direct


@pytest.mark.parametrize(
    ("proxy", "url"),
    [
        ("socks://127.0.0.1:7891/", "socks5://127.0.0.1:7891/"),
        ("SOCKS5H://user:pass@proxy:1080", "socks5h://user:pass@proxy:1080"),
        ("127.0.0.1:7890", "http://127.0.0.1:7890"),
    ],
)
def test_proxies_are_read_as_desktops_write_them(
    monkeypatch: pytest.MonkeyPatch, proxy: str, url: str
) -> None:
    """`socks://` of GNOME, and an address alone; the proxy of the server's own protocol counts more."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    assert proxy_for("https://api.example.com/v1") == url
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:7890")
    assert proxy_for("https://api.example.com/v1") == "http://127.0.0.1:7890"


async def test_a_missing_package_and_another_kind_of_proxy_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One sentence says what to install; it shows no password of the proxy."""
    monkeypatch.setenv("ALL_PROXY", "socks5://me:secret-word@proxy:1080")
    monkeypatch.setitem(sys.modules, "socksio", None)
    llm = OpenAILLM("m", base_url="https://api.example.com/v1", api_key="k")
    with pytest.raises(ConfigError, match=r"\.\[socks\]") as caught:
        await llm.complete(HELLO)
    assert "secret-word" not in str(caught.value)
    monkeypatch.setenv("ALL_PROXY", "socks4://proxy:1080")
    with pytest.raises(ConfigError, match="socks4"):
        await OpenAILLM("m", base_url="https://api.example.com/v1", api_key="k").complete(HELLO)


async def test_requests_take_the_way_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server on this machine answers beside a dead proxy; another one is asked through the proxy."""
    with ScriptedServer([chat_reply("好"), chat_reply("by proxy")]) as server:
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
        direct = await OpenAILLM("m", base_url=server.base_url, api_key="k").complete(HELLO)
        with pytest.raises(LLMError, match="no connection"):
            await OpenAILLM("m", base_url="http://model.invalid/v1", api_key="k").complete(HELLO)
        monkeypatch.setenv("HTTP_PROXY", server.url)
        proxied = await OpenAILLM("m", base_url="http://a.invalid/v1", api_key="k").complete(HELLO)
    assert (direct.text, proxied.text) == ("好", "by proxy")
