"""The way to a server: by a proxy of the environment, or past it."""

import contextlib
import socket
import socketserver
import sys
import threading
from pathlib import Path
from typing import Self

import pytest

from lightrag_jsonl import ConfigError, LLMError, Message, OpenAILLM
from lightrag_jsonl.providers.connection import proxy_for
from tests.servers import ScriptedServer, chat_reply


class SocksProxy(socketserver.ThreadingTCPServer):
    """A SOCKS5 proxy on loopback (RFC 1928), to which every name is this machine."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SocksConnection)
        self.hosts: list[str] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class SocksConnection(socketserver.StreamRequestHandler):
    """A connection to the proxy, and on to the server."""

    def handle(self) -> None:
        _, count = self.rfile.read(2)
        self.rfile.read(count)  # the ways to log in
        self.wfile.write(b"\x05\x00")
        _, command, _, kind = self.rfile.read(4)
        assert (command, kind) == (1, 3), "a connection to a name"
        host = self.rfile.read(self.rfile.read(1)[0]).decode()
        port = int.from_bytes(self.rfile.read(2), "big")
        proxy = self.server
        assert isinstance(proxy, SocksProxy)
        proxy.hosts.append(host)
        with socket.create_connection(("127.0.0.1", port)) as server:
            self.wfile.write(b"\x05\x00\x00\x01" + bytes(6))
            threading.Thread(target=copied, args=(server, self.connection), daemon=True).start()
            copied(self.connection, server)


def copied(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one side ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)


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


async def test_a_server_is_reached_through_a_socks_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, which the proxy resolves; a host in NO_PROXY and this machine are asked directly."""
    pytest.importorskip("socksio")
    replies = [chat_reply("by proxy"), chat_reply("direct")]
    with SocksProxy() as proxy, ScriptedServer(replies) as server:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{proxy.server_address[1]}")
        away = server.base_url.replace("127.0.0.1", "model.invalid")
        proxied = await OpenAILLM("m", base_url=away, api_key="k").complete(HELLO)
        assert (proxied.text, proxy.hosts) == ("by proxy", ["model.invalid"])
        here = await OpenAILLM("m", base_url=server.base_url, api_key="k").complete(HELLO)
        monkeypatch.setenv("NO_PROXY", "ip6-loopback, 127.0.0.0/8, machine.invalid")
        with pytest.raises(LLMError, match="no connection"):
            exempt = away.replace("model.", "machine.")
            await OpenAILLM("m", base_url=exempt, api_key="k").complete(HELLO)
        assert (here.text, proxy.hosts) == ("direct", ["model.invalid"])


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
