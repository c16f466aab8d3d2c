"""Clients that are silent, slow or do not read: others are still answered, and the log stays short."""

import contextlib
import json
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")
pytest.importorskip("resource", reason="limits of open files are those of Unix")
import resource

from lightrag_jsonl.server import routing
from lightrag_jsonl.server.connections import FEWEST_CONNECTIONS, MOST_CONNECTIONS, most_connections
from tests.server.running import SECONDS, PacedLLM, Running, serving, serving_model, wait_for
from tests.server.test_serving import process_serving

REQUEST = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@contextlib.contextmanager
def connected(url: str, count: int, *, buffer: int | None = None) -> Iterator[list[socket.socket]]:
    """So many connections, which have sent nothing.

    Each is left a moment to be accepted: what a full queue drops, the kernel tries again after seconds.
    """
    parts = urlsplit(url)
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            client.settimeout(SECONDS)
            if buffer is not None:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            client.connect((parts.hostname, parts.port))
            select.select([client], [], [], 0.005)
            sockets.append(client)
        yield sockets


def is_closed(client: socket.socket) -> bool:
    """Whether the server has ended the connection; waits for that, or for an answer."""
    try:
        return client.recv(1 << 16) == b""
    except ConnectionResetError:
        return True


def post(path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def health(server: Running) -> int:
    return server.client.get("/health", headers={"Connection": "close"}).status_code


@pytest.mark.slow
def test_silent_connections_make_room_for_others(kb: Path) -> None:
    """Beyond the limit, those that have waited longest for a request are closed, and a client that
    asks is answered each time.
    """
    with (
        serving(kb, connections=8, header_seconds=3_600) as server,
        connected(server.url, 30) as silent,
    ):
        assert [health(server) for _ in range(5)] == [200] * 5
        assert all(is_closed(client) for client in silent[:22])
        silent[-1].sendall(REQUEST)
        assert b"200 OK" in silent[-1].recv(1 << 16)


def test_answers_in_progress_are_kept_and_the_next_connection_is_refused(kb: Path) -> None:
    """With all connections being answered, a further one gets a 503, and the answers go on."""
    llm = PacedLLM(["one ", "two"])
    ask = post("/indexes/kb/stream", {"question": "Who was Marie Curie?", "mode": "naive"})
    with (
        serving_model(kb, llm, connections=2, header_seconds=3_600) as server,
        connected(server.url, 2) as busy,
    ):
        for client in busy:
            client.sendall(ask)
            assert b"200 OK" in client.recv(1 << 12)
        with connected(server.url, 1) as (late,):
            assert late.recv(1 << 12).startswith(b"HTTP/1.1 503 ")
        llm.turns.release(9)
        for client in busy:
            seen = b""
            while b"event: answer" not in seen:
                piece = client.recv(1 << 16)
                assert piece
                seen += piece


@pytest.mark.parametrize("sent", [b"", b"GET / HT", REQUEST[:-2], REQUEST + b"GET /he"])
def test_headers_that_do_not_come_end_the_connection(kb: Path, sent: bytes) -> None:
    """Also those of the second request of a connection; a client that asks at once is answered."""
    with serving(kb, header_seconds=0.2) as server, connected(server.url, 1) as (slow,):
        if sent:
            slow.sendall(sent)
        if sent.startswith(REQUEST):
            assert b"200 OK" in slow.recv(1 << 16)
        wait_for(lambda: is_closed(slow))
        assert health(server) == 200


@pytest.mark.slow
def test_many_silent_connections_leave_the_process_answering(kb: Path) -> None:
    """With few files to open and more connections than these, `serve` answers, and its log is short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            server, client = stack.enter_context(process_serving(kb))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        stack.enter_context(connected(str(client.base_url), 400))
        for _ in range(3):
            assert client.get("/health", headers={"Connection": "close"}).status_code == 200
            question = {"question": "Who was Marie Curie?"}
            assert client.post("/indexes/kb/query", json=question).status_code == 200
        server.terminate()
        log, _ = server.communicate(timeout=SECONDS)
    assert b"Too many open files" not in log and log.count(b"more than 128 connections") == 1
    assert len(log) < 5_000


@pytest.mark.slow
def test_a_client_that_never_reads_gives_its_question_back(kb: Path) -> None:
    """A stream whose client takes nothing ends, so that others may ask."""
    llm = PacedLLM(["word " * 200_000] * 12)
    llm.turns.release(11)  # the answer never ends by itself
    body = {"question": "Who was Marie Curie?", "mode": "naive"}
    with serving_model(kb, llm, limits={"questions": 1}, write_seconds=0.3) as server:
        with connected(server.url, 1, buffer=4_096) as (deaf,):
            deaf.sendall(post("/indexes/kb/stream", body))
            wait_for(lambda: server.get("/health") and llm.calls)
            retrieve = "/indexes/kb/retrieve"
            wait_for(lambda: server.client.post(retrieve, json=body).status_code == 200)
        wait_for(lambda: llm.cancelled)


def test_a_body_that_trickles_is_given_up(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that come one by one, each in time, are too slow as a whole: 408."""
    monkeypatch.setattr(routing, "PIECE_SECONDS", 0.5)
    monkeypatch.setattr(routing, "SLOWEST", 1_000_000)
    head = post("/indexes/kb/query", {"question": "?" * 10_000})[:200]
    with serving(kb) as server, connected(server.url, 1) as (slow,):
        slow.sendall(head)
        while not select.select([slow], [], [], 0.05)[0]:
            slow.sendall(b"?")
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 408 ")


def test_the_limit_is_well_below_that_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it, within bounds, also where the system has none."""
    for files, most in (
        (1_024, 512),
        (8, FEWEST_CONNECTIONS),
        (1 << 20, MOST_CONNECTIONS),
        (resource.RLIM_INFINITY, 512),
    ):
        limits = (files, files)
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        assert most_connections() == most
